//! Recordings of an invented machine: intact, truncated, damaged, hostile, read from any tick.

mod bombs;
mod damage;
mod hostile;
mod long;
mod seek;
mod thread_states;
mod wire_format;

use super::codec::{Coded, Wire};
use super::encoder::FrameEncoder;
use super::frame::RecordingHeader;
use super::reader::{ReadAt, RecordingReader};
use crate::export::json::{self, LogSince};
use crate::export::snapshot::SnapshotScope;
use crate::model::disk::{DevId, DiskOpRaw, DiskRaw};
use crate::model::kernel_log::{KmsgRecord, LogClock};
use crate::model::memory::{MemRaw, VmRaw};
use crate::model::network::NicRaw;
use crate::model::observation::Observation;
use crate::model::process::{
    IoBytes, IoPrio, ProcessUpdate, TaskChange, TaskDelays, TaskIoRaw, TaskKey, TaskNames, TaskRaw,
};
use crate::model::queue::QueueAttrs;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;
use crate::model::system_state::SystemState;
use crate::model::timestamp::Timestamp;
use crate::model::topology::{BlockDevice, Topology};
use std::collections::BTreeMap;
use std::sync::Arc;

const NS_PER_SEC: u64 = 1_000_000_000;
const WALL_EPOCH_NS: i64 = 1_790_000_000_000_000_000;

/// Reproducible pseudo-random numbers (xorshift).
pub struct TestRng(pub u64);

impl TestRng {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n.max(1)
    }
}

/// The size of a reading as the difference to `base`, and what a reader makes of it. An unchanged reading is not written.
pub fn round_trip<T: Clone + Default + PartialEq>(
    base: &Reading<T>,
    cur: &Reading<T>,
    layout: fn(&mut Wire, &T, &mut T) -> Coded,
) -> (usize, Reading<T>) {
    let (mut out, mut read) = (Vec::new(), base.clone());
    Wire::Write(&mut out).reading(base, &mut cur.clone(), layout).unwrap();
    if !out.is_empty() {
        let mut wire = Wire::Read(&out);
        wire.reading(base, &mut read, layout).unwrap();
        assert!(wire.is_at_end());
    }
    (out.len(), read)
}

/// A changed byte, or a cut there, is rejected or read as something else.
pub fn assert_damage_is_harmless<T: Clone + Default + PartialEq>(
    (base, cur): &(Reading<T>, Reading<T>),
    at: proptest::sample::Index,
    to: u8,
    layout: fn(&mut Wire, &T, &mut T) -> Coded,
) {
    let mut out = Vec::new();
    Wire::Write(&mut out).reading(base, &mut cur.clone(), layout).unwrap();
    if !out.is_empty() {
        let at = at.index(out.len());
        out[at] = to;
        let _ = Wire::Read(&out).reading(base, &mut base.clone(), layout);
        let _ = Wire::Read(&out[..at]).reading(base, &mut base.clone(), layout);
    }
}

impl ReadAt for &[u8] {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
}

/// An invented machine.
struct FakeMachine {
    rng: TestRng,
    now_ns: u64,
    seq: u64,
    counters: u64,
    tasks: BTreeMap<u32, TaskRaw>,
    read_at_ns: BTreeMap<u32, u64>,
    next_tid: u32,
    last_scan: Option<Timestamp>,
}

impl FakeMachine {
    fn new(seed: u64) -> Self {
        Self {
            rng: TestRng(seed),
            now_ns: 1000 * NS_PER_SEC,
            seq: 0,
            counters: 5_000,
            tasks: BTreeMap::new(),
            read_at_ns: BTreeMap::new(),
            next_tid: 100,
            last_scan: None,
        }
    }

    fn clock(&self) -> Timestamp {
        Timestamp { boot_ns: self.now_ns, wall_ns: WALL_EPOCH_NS + self.now_ns as i64 }
    }

    fn sample(&mut self) -> Sample {
        self.counters += self.rng.below(1000);
        let n = self.counters;
        let disk = |minor: u32, n: u64| DiskRaw {
            id: DevId { major: 8, minor },
            name: format!("sd{minor}\u{1b}[2J").into(),
            write: DiskOpRaw { ios: n, merged: n / 3, sectors: n * 8, ms: n * 2 },
            read: DiskOpRaw { ios: 7, ..DiskOpRaw::default() },
            discard: Some(DiskOpRaw::default()),
            flush: (minor == 0).then_some((n / 10, n / 5)),
            busy_ms: n,
            queue_ms: n * 3,
            in_flight: n % 3,
        };
        let has_one_disk = self.rng.below(20) == 0;
        Sample {
            seq: self.seq,
            time: self.clock(),
            disks: Reading::Ok(
                (0..if has_one_disk { 1 } else { 3 }).map(|m| disk(m, n * u64::from(m == 0) + 5)).collect(),
            ),
            vm: Reading::Ok(VmRaw {
                page_size: 4096,
                nr_dirty: Some(n % 777),
                nr_dirtied: Some(n),
                nr_written: Some(n / 2),
                ..VmRaw::default()
            }),
            mem: match self.rng.below(10) {
                0 => Reading::Blocked(BlockedRead { since_boot_ns: 5, waiting_on: "/proc/meminfo".into() }),
                _ => Reading::Ok(MemRaw { total: 1 << 34, free: n, ..MemRaw::default() }),
            },
            nics: Reading::Ok(vec![NicRaw { name: "eth0".into(), rx_bytes: n, tx_bytes: n, speed_bits: None }]),
            ..Sample::default()
        }
    }

    fn scan_tasks(&mut self) -> Reading<ProcessUpdate> {
        if self.rng.below(30) == 0 {
            return Reading::Absent("/proc: gone for a moment".into());
        }
        let mut update = ProcessUpdate {
            seq: self.seq,
            time: self.clock(),
            previous_time: self.last_scan,
            duration_ns: 1000 + self.rng.below(99),
            delays: Reading::Ok(()),
            ..ProcessUpdate::default()
        };
        update.reset = self.last_scan.is_none();
        let ended: Vec<u32> = self.tasks.keys().copied().filter(|_| self.rng.below(25) == 0).collect();
        for tid in ended {
            update.exited.extend(self.tasks.remove(&tid).map(|t| t.key));
            self.read_at_ns.remove(&tid);
        }
        while self.tasks.len() < 6 {
            self.start_task(&mut update);
        }
        let tids: Vec<u32> = self.tasks.keys().copied().collect();
        for tid in tids {
            if self.rng.below(3) == 0 {
                self.run_task(tid, &mut update);
            }
        }
        update.total = self.tasks.len();
        self.last_scan = Some(update.time);
        Reading::Ok(update)
    }

    fn start_task(&mut self, update: &mut ProcessUpdate) {
        // A task number is reused now and then.
        let tid = if self.rng.below(4) == 0 { 100 } else { self.next_tid };
        self.next_tid += 1;
        if self.tasks.contains_key(&tid) {
            return;
        }
        let starttime = self.now_ns / (NS_PER_SEC / 100);
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
            timeslices: 1,
            rss_bytes: 4096 * u64::from(tid),
            swap_bytes: Some(0),
            io: if tid.is_multiple_of(7) { TaskIoRaw::Denied } else { TaskIoRaw::Read(IoBytes::default()) },
            delays: Some(TaskDelays { blkio_ns: 0, swapin_ns: Some(0) }),
        };
        self.tasks.insert(tid, raw);
        let at_ns = self.now_ns + u64::from(tid);
        self.read_at_ns.insert(tid, at_ns);
        update.changed.push(TaskChange { raw, scanned_ns: at_ns, previous_scan_ns: 0 });
        update.users.push((uid, format!("user{uid}").into()));
        let cmdline = Some(format!("/bin/x {tid} \u{202e}").into_bytes().into_boxed_slice());
        let names = TaskNames { cmdline, cgroup: "/a/b".into(), container: (tid % 2 == 0).then(|| "docker:1".into()) };
        update.names.push((raw.key, Arc::new(names)));
    }

    fn run_task(&mut self, tid: u32, update: &mut ProcessUpdate) {
        let by = self.rng.below(1 << 20);
        let Some(raw) = self.tasks.get_mut(&tid) else { return };
        if update.changed.iter().any(|c| c.raw.key == raw.key) {
            return;
        }
        raw.timeslices += 1 + by % 3;
        raw.cpu_ticks += by % 5;
        raw.state = if by.is_multiple_of(4) { b'D' } else { b'R' };
        raw.rss_bytes = 4096 * (by % 1000);
        if let TaskIoRaw::Read(io) = &mut raw.io {
            io.write += by & !4095;
        }
        let at_ns = self.now_ns + u64::from(tid);
        let since_ns = self.read_at_ns.insert(tid, at_ns).unwrap_or(0);
        update.changed.push(TaskChange { raw: *raw, scanned_ns: at_ns, previous_scan_ns: since_ns });
        if raw.state == b'D' {
            update.wait_channels.push((raw.key, "submit_bio_wait".into()));
        }
    }

    fn tick(&mut self) -> Vec<Observation> {
        self.seq += 1;
        self.now_ns += NS_PER_SEC + self.rng.below(1000);
        let mut observations =
            vec![Observation::Sample(Box::new(self.sample())), Observation::Tasks(Box::new(self.scan_tasks()))];
        if self.seq % 9 == 1 {
            let size_bytes = Some(self.seq);
            let dev = |minor| BlockDevice {
                id: DevId { major: 8, minor },
                name: format!("sd{minor}"),
                size_bytes,
                ..BlockDevice::default()
            };
            let topology = Topology { devices: (0..3).map(dev).collect() };
            observations.push(Observation::Topology(Box::new(Reading::Ok(topology))));
            let queue = QueueAttrs { scheduler: Some("bfq".into()), ..QueueAttrs::default() };
            observations.push(Observation::Queues(BTreeMap::from([("sd0".into(), queue)])));
        }
        if self.seq % 5 == 2 {
            let message = format!("I/O error, dev sd0, sector {} \u{1b}[31m", self.seq).into_bytes();
            let record =
                KmsgRecord { seq: self.seq, boot_us: self.now_ns / 1000, level: 3, message, ..KmsgRecord::default() };
            let clock = LogClock { mono_ns: self.now_ns, wall_ns: self.clock().wall_ns };
            observations.push(Observation::KernelLog(vec![record], clock));
        }
        observations
    }
}

/// A recording, and the offsets at which its ticks end.
struct TestRecording {
    bytes: Vec<u8>,
    tick_ends: Vec<usize>,
    ticks: Vec<Vec<Observation>>,
}

fn record_ticks(ticks: usize, every: (u32, u32)) -> TestRecording {
    let header = RecordingHeader { host: "box\u{1b}[2J".into(), interval_ns: NS_PER_SEC, ..RecordingHeader::default() };
    let mut machine = FakeMachine::new(0x9e37_79b9_7f4a_7c15);
    let mut encoder = FrameEncoder::new(every.0, every.1);
    let mut recording = TestRecording { bytes: header.to_bytes(), tick_ends: Vec::new(), ticks: Vec::new() };
    for _ in 0..ticks {
        let observations = machine.tick();
        recording.bytes.extend(encoder.encode_tick(&observations, machine.clock().wall_ns));
        recording.tick_ends.push(recording.bytes.len());
        recording.ticks.push(observations);
    }
    recording
}

/// All readable ticks by number, and whether tasks are missing from them.
fn read_ticks_with_partial<B: ReadAt>(reader: &mut RecordingReader<B>) -> BTreeMap<u32, (bool, Vec<Observation>)> {
    let mut out = BTreeMap::new();
    while let Some(tick) = reader.next_tick().unwrap() {
        out.insert(tick.number, (tick.is_partial, tick.observations));
    }
    out
}

/// All readable ticks with their numbers.
fn read_ticks<B: ReadAt>(reader: &mut RecordingReader<B>) -> Vec<(u32, Vec<Observation>)> {
    let mut out = Vec::new();
    while let Some(tick) = reader.next_tick().unwrap() {
        out.push((tick.number, tick.observations));
    }
    out
}

fn new_state<B: ReadAt>(reader: &RecordingReader<B>) -> SystemState {
    SystemState::new(reader.header.host(), reader.header.log_clock())
}

fn to_json(world: &SystemState) -> String {
    json::snapshot_json(world, &crate::doctor::RuleEngine::default(), SnapshotScope::ALL, LogSince::Time(0), &[])
        .unwrap()
}

#[test]
fn replay_equals_the_live_session() {
    let recording = record_ticks(150, (20, 3));
    let mut reader = RecordingReader::open(recording.bytes.as_slice()).unwrap();
    let span = reader.span;
    assert_eq!((span.ticks, span.first_number, span.last_number, span.damaged_bytes), (150, 0, 149, 0));
    let mut live = new_state(&reader);
    let mut replayed = new_state(&reader);
    for (n, expected) in recording.ticks.iter().enumerate() {
        let tick = reader.next_tick().unwrap().unwrap();
        assert_eq!((tick.number as usize, tick.full_state.is_some()), (n, n == 0), "tick {n}");
        expected.iter().cloned().for_each(|entry| _ = live.apply(entry));
        tick.observations.into_iter().for_each(|entry| _ = replayed.apply(entry));
        assert_eq!(to_json(&replayed), to_json(&live), "tick {n}");
    }
    assert_eq!(reader.next_tick().unwrap(), None);
    assert_eq!(reader.unreadable_frames, 0);
}

/// The reference recording that `tests/recording.rs` reads with later versions. KEEP_RECORDING writes it, to be used
/// only after a change of the format's version; its expected values beside it are written by `replay --format json`.
#[test]
fn the_reference_recording_is_readable() {
    let recording = record_ticks(45, (10, 3));
    let name = format!("tests/fixtures/recordings/v{}-invented.iotop", crate::recording::frame::FORMAT_VERSION);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("KEEP_RECORDING").is_some() {
        std::fs::write(&path, &recording.bytes).unwrap();
    }
    let reference = std::fs::read(&path).unwrap();
    let mut reader = RecordingReader::open(reference.as_slice()).unwrap();
    assert_eq!((reader.span.ticks, reader.span.damaged_bytes), (45, 0));
    assert_eq!(read_ticks(&mut reader).len(), 45);
}

#[test]
fn observations_round_trip_unchanged() {
    let recording = record_ticks(12, (60, 15));
    let mut reader = RecordingReader::open(recording.bytes.as_slice()).unwrap();
    for ((_, observations), expected) in read_ticks(&mut reader).into_iter().zip(&recording.ticks) {
        let samples = |all: &[Observation]| {
            let is = |e: &&Observation| {
                matches!(e, Observation::Sample(_) | Observation::Tasks(_) | Observation::KernelLog(..))
            };
            all.iter().filter(is).cloned().collect::<Vec<_>>()
        };
        assert_eq!(samples(&observations), samples(expected));
    }
}
