//! Recordings of an invented machine: whole, cut off, damaged, hostile, begun anywhere.

mod damage;
mod hostile;
mod seek;

use super::encode::Encoder;
use super::frame::Header;
use super::reader::{Bytes, Reader};
use super::{Entry, apply};
use crate::export::json::{self, Since};
use crate::export::page::Scope;
use crate::model::clock::Clock;
use crate::model::disk::{DevId, DiskRaw, OpRaw};
use crate::model::kernlog::{LogClock, Record};
use crate::model::memory::{MemRaw, VmRaw};
use crate::model::network::NicRaw;
use crate::model::process::{Change, DelayRaw, IoBytes, IoPrio, IoRaw, Names, ProcUpdate, TaskKey, TaskRaw};
use crate::model::queue::QueueAttrs;
use crate::model::sample::Sample;
use crate::model::section::{Blocked, Section};
use crate::model::topology::{BlockDev, Topology};
use crate::model::world::World;
use std::collections::BTreeMap;
use std::sync::Arc;

const SEC: u64 = 1_000_000_000;
const WALL: i64 = 1_790_000_000_000_000_000;

/// Numbers that look random and are the same every time.
pub struct Dice(pub u64);

impl Dice {
    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n.max(1)
    }
}

/// An invented machine.
struct Machine {
    dice: Dice,
    now: u64,
    seq: u64,
    counters: u64,
    tasks: BTreeMap<u32, TaskRaw>,
    read: BTreeMap<u32, u64>,
    next_tid: u32,
    last: Option<Clock>,
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice(seed),
            now: 1000 * SEC,
            seq: 0,
            counters: 5_000,
            tasks: BTreeMap::new(),
            read: BTreeMap::new(),
            next_tid: 100,
            last: None,
        }
    }

    fn at(&self) -> Clock {
        Clock { boot_ns: self.now, wall_ns: WALL + self.now as i64 }
    }

    fn sample(&mut self) -> Sample {
        self.counters += self.dice.below(1000);
        let n = self.counters;
        let disk = |minor: u32, n: u64| DiskRaw {
            id: DevId { major: 8, minor },
            name: format!("sd{minor}\u{1b}[2J").into(),
            write: OpRaw { ios: n, merged: n / 3, sectors: n * 8, ms: n * 2 },
            read: OpRaw { ios: 7, ..OpRaw::default() },
            discard: Some(OpRaw::default()),
            flush: (minor == 0).then_some((n / 10, n / 5)),
            busy_ms: n,
            queue_ms: n * 3,
            in_flight: n % 3,
        };
        let few = self.dice.below(20) == 0;
        Sample {
            seq: self.seq,
            at: self.at(),
            disks: Section::Ok(
                (0..if few { 1 } else { 3 }).map(|m| disk(m, n * u64::from(m == 0) + 5)).collect(),
            ),
            vm: Section::Ok(VmRaw {
                page_size: 4096,
                nr_dirty: Some(n % 777),
                nr_dirtied: Some(n),
                nr_written: Some(n / 2),
                ..VmRaw::default()
            }),
            mem: match self.dice.below(10) {
                0 => Section::Blocked(Blocked { since_boot_ns: 5, on: "/proc/meminfo".into() }),
                _ => Section::Ok(MemRaw { total: 1 << 34, free: n, ..MemRaw::default() }),
            },
            nics: Section::Ok(vec![NicRaw {
                name: "eth0".into(),
                rx_bytes: n,
                tx_bytes: n,
                speed_bits: None,
            }]),
            ..Sample::default()
        }
    }

    fn look(&mut self) -> Section<ProcUpdate> {
        if self.dice.below(30) == 0 {
            return Section::Absent("/proc: gone for a moment".into());
        }
        let mut update = ProcUpdate {
            seq: self.seq,
            at: self.at(),
            prev: self.last,
            took_ns: 1000 + self.dice.below(99),
            delays: Section::Ok(()),
            ..ProcUpdate::default()
        };
        update.reset = self.last.is_none();
        let ended: Vec<u32> = self.tasks.keys().copied().filter(|_| self.dice.below(25) == 0).collect();
        for tid in ended {
            update.gone.extend(self.tasks.remove(&tid).map(|t| t.key));
            self.read.remove(&tid);
        }
        while self.tasks.len() < 6 {
            self.begin(&mut update);
        }
        let tids: Vec<u32> = self.tasks.keys().copied().collect();
        for tid in tids {
            if self.dice.below(3) == 0 {
                self.run(tid, &mut update);
            }
        }
        update.total = self.tasks.len();
        self.last = Some(update.at);
        Section::Ok(update)
    }

    fn begin(&mut self, update: &mut ProcUpdate) {
        // A number is used again now and then.
        let tid = if self.dice.below(4) == 0 { 100 } else { self.next_tid };
        self.next_tid += 1;
        if self.tasks.contains_key(&tid) {
            return;
        }
        let starttime = self.now / (SEC / 100);
        let mut comm = [0; 16];
        comm[..6].copy_from_slice(b"a\x1b]0;b");
        let uid = (tid % 3) * 1000;
        let raw = TaskRaw {
            key: TaskKey { pid: tid, tid, starttime },
            comm,
            state: b'S',
            kernel_thread: tid.is_multiple_of(5),
            ioprio: (!tid.is_multiple_of(2)).then_some(IoPrio { class: 2, level: 4 }),
            ppid: 1,
            uid: Some(uid),
            num_threads: 1,
            majflt: 0,
            cpu_ticks: 0,
            runs: 1,
            rss_bytes: 4096 * u64::from(tid),
            swap_bytes: Some(0),
            io: if tid.is_multiple_of(7) { IoRaw::Denied } else { IoRaw::Read(IoBytes::default()) },
            delays: Some(DelayRaw { blkio_ns: 0, swapin_ns: Some(0) }),
        };
        self.tasks.insert(tid, raw);
        let at_ns = self.now + u64::from(tid);
        self.read.insert(tid, at_ns);
        update.changed.push(Change { raw, at_ns, since_ns: 0 });
        update.users.push((uid, format!("user{uid}").into()));
        let cmdline = Some(format!("/bin/x {tid} \u{202e}").into_bytes().into_boxed_slice());
        let names =
            Names { cmdline, cgroup: "/a/b".into(), container: (tid % 2 == 0).then(|| "docker:1".into()) };
        update.names.push((raw.key, Arc::new(names)));
    }

    fn run(&mut self, tid: u32, update: &mut ProcUpdate) {
        let by = self.dice.below(1 << 20);
        let Some(raw) = self.tasks.get_mut(&tid) else { return };
        if update.changed.iter().any(|c| c.raw.key == raw.key) {
            return;
        }
        raw.runs += 1 + by % 3;
        raw.cpu_ticks += by % 5;
        raw.state = if by.is_multiple_of(4) { b'D' } else { b'R' };
        raw.rss_bytes = 4096 * (by % 1000);
        if let IoRaw::Read(io) = &mut raw.io {
            io.write += by & !4095;
        }
        let at_ns = self.now + u64::from(tid);
        let since_ns = self.read.insert(tid, at_ns).unwrap_or(0);
        update.changed.push(Change { raw: *raw, at_ns, since_ns });
        if raw.state == b'D' {
            update.waits.push((raw.key, "submit_bio_wait".into()));
        }
    }

    fn tick(&mut self) -> Vec<Entry> {
        self.seq += 1;
        self.now += SEC + self.dice.below(1000);
        let mut news = vec![Entry::Sample(Box::new(self.sample())), Entry::Procs(Box::new(self.look()))];
        if self.seq % 9 == 1 {
            let size_bytes = Some(self.seq);
            let dev = |minor| BlockDev {
                id: DevId { major: 8, minor },
                name: format!("sd{minor}"),
                size_bytes,
                ..BlockDev::default()
            };
            let topology = Topology { devices: (0..3).map(dev).collect() };
            news.push(Entry::Topology(Box::new(Section::Ok(topology))));
            let queue = QueueAttrs { scheduler: Some("bfq".into()), ..QueueAttrs::default() };
            news.push(Entry::Queues(BTreeMap::from([("sd0".into(), queue)])));
        }
        if self.seq % 5 == 2 {
            let message = format!("I/O error, dev sd0, sector {} \u{1b}[31m", self.seq).into_bytes();
            let record =
                Record { seq: self.seq, boot_us: self.now / 1000, level: 3, message, ..Record::default() };
            let clock = LogClock { mono_ns: self.now, wall_ns: self.at().wall_ns };
            news.push(Entry::Records(vec![record], clock));
        }
        news
    }
}

/// A recording and where its ticks end.
struct Tape {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    ticks: Vec<Vec<Entry>>,
}

fn tape(ticks: usize, every: (u32, u32)) -> Tape {
    let header = Header { host: "box\u{1b}[2J".into(), interval_ns: SEC, ..Header::default() };
    let mut machine = Machine::new(0x9e37_79b9_7f4a_7c15);
    let mut encoder = Encoder::new(every.0, every.1);
    let mut tape = Tape { bytes: header.write(), ends: Vec::new(), ticks: Vec::new() };
    for _ in 0..ticks {
        let news = machine.tick();
        tape.bytes.extend(encoder.frame(&news, machine.at().wall_ns));
        tape.ends.push(tape.bytes.len());
        tape.ticks.push(news);
    }
    tape
}

/// All ticks that can be read, and whether tasks are missing from them.
fn read_partly<B: Bytes>(reader: &mut Reader<B>) -> BTreeMap<u32, (bool, Vec<Entry>)> {
    let mut out = BTreeMap::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        out.insert(moment.number, (moment.partial, moment.news));
    }
    out
}

/// All ticks that can be read, by their numbers.
fn read<B: Bytes>(reader: &mut Reader<B>) -> Vec<(u32, Vec<Entry>)> {
    let mut out = Vec::new();
    while let Some(moment) = reader.next_tick().unwrap() {
        out.push((moment.number, moment.news));
    }
    out
}

fn world<B: Bytes>(reader: &Reader<B>) -> World {
    World::new(reader.header.host(), reader.header.log_clock())
}

fn shown(world: &World) -> String {
    json::object(world, &crate::diagnose::Engine::default(), Scope::ALL, Since::Time(0), &[]).unwrap()
}

#[test]
fn what_was_recorded_comes_back() {
    let tape = tape(150, (20, 3));
    let mut reader = Reader::open(tape.bytes.as_slice()).unwrap();
    let span = reader.span();
    assert_eq!((span.ticks, span.first, span.last, span.damaged), (150, 0, 149, 0));
    let mut live = world(&reader);
    let mut replayed = world(&reader);
    for (n, told) in tape.ticks.iter().enumerate() {
        let moment = reader.next_tick().unwrap().unwrap();
        assert_eq!((moment.number as usize, moment.before.is_some()), (n, n == 0), "tick {n}");
        told.iter().cloned().for_each(|entry| apply(&mut live, entry));
        moment.news.into_iter().for_each(|entry| apply(&mut replayed, entry));
        assert_eq!(shown(&replayed), shown(&live), "tick {n}");
    }
    assert_eq!(reader.next_tick().unwrap(), None);
    assert_eq!(reader.unreadable, 0);
}

/// Writes the recording that `tests/recording.rs` holds later versions to; only when asked to, after a change of
/// the format's version. Its figures beside it are written by `replay --format json`.
#[test]
fn a_recording_to_keep() {
    let tape = tape(45, (10, 3));
    let name = format!("tests/fixtures/recordings/v{}-invented.iotop", super::frame::VERSION);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("KEEP_RECORDING").is_some() {
        std::fs::write(&path, &tape.bytes).unwrap();
    }
    let kept = std::fs::read(&path).unwrap();
    let mut reader = Reader::open(kept.as_slice()).unwrap();
    assert_eq!((reader.span().ticks, reader.span().damaged), (45, 0));
    assert_eq!(read(&mut reader).len(), 45);
}

#[test]
fn news_is_kept_raw() {
    let tape = tape(12, (60, 15));
    let mut reader = Reader::open(tape.bytes.as_slice()).unwrap();
    for ((_, news), told) in read(&mut reader).into_iter().zip(&tape.ticks) {
        let samples = |all: &[Entry]| {
            let is = |e: &&Entry| matches!(e, Entry::Sample(_) | Entry::Procs(_) | Entry::Records(..));
            all.iter().filter(is).cloned().collect::<Vec<_>>()
        };
        assert_eq!(samples(&news), samples(told));
    }
}
