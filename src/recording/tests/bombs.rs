//! Small files that ask for much memory or time: what they take is bounded by a constant and a multiple of their size.

use super::super::codec::put_section;
use super::super::compress::Compressor;
use super::super::frame::{FrameHeader, FrameKind};
use super::*;
use crate::model::file_io::{FileId, FileIoAccount, FileIoKey, FileIoRaw, FileName};
use crate::model::io_accounting::{AccountKey, IoAccount, IoAccountsRaw};
use crate::model::latency::{BUCKETS, DeviceHistograms, LatencyRaw, RequestHistograms, SparseHistogram};
use crate::model::memory_stalls::{MemoryStallsRaw, TaskStallCounters};
use crate::model::network::NetFsRaw;
use crate::model::process::BlockedTask;
use crate::model::syncs::{SlowSync, SyncCounts, SyncFile, SyncsRaw};
use clap::Parser;
use std::process::Command;

const ROWS: u32 = 65_536;
const TASKS: u32 = 131_072;

pub(super) fn timestamp(n: u64) -> Timestamp {
    Timestamp { boot_ns: n * NS_PER_SEC, wall_ns: WALL_EPOCH_NS + (n * NS_PER_SEC) as i64 }
}

/// A file of these ticks, each a key frame that no frame precedes.
fn file_of(ticks: impl IntoIterator<Item = Vec<Observation>>) -> Vec<u8> {
    let mut bytes = RecordingHeader::default().to_bytes();
    let mut encoder = FrameEncoder::default();
    for (n, tick) in ticks.into_iter().enumerate() {
        bytes.extend(encoder.encode_tick(&tick, timestamp(n as u64).wall_ns));
        encoder.skip_tick(&[]);
    }
    bytes
}

fn frame(kind: FrameKind, number: u32, raw: &[u8]) -> Vec<u8> {
    let packed = Compressor::default().compress(raw, true);
    let head = FrameHeader {
        kind,
        number,
        packed_len: packed.len() as u32,
        raw_len: raw.len() as u32,
        wall_ns: timestamp(number.into()).wall_ns,
        crc: crc32fast::hash(&packed),
    };
    [&head.to_bytes()[..], &packed].concat()
}

fn tasks(seq: u64, names: bool) -> Observation {
    tasks_up_to(TASKS, seq, names)
}

pub(super) fn tasks_up_to(count: u32, seq: u64, names: bool) -> Observation {
    let key = |n: u32| TaskKey { pid: n, tid: n, starttime: 0 };
    let text = Arc::new(TaskNames { cmdline: Some([b'x'; 50].into()), ..TaskNames::default() });
    let change = |n| TaskChange { raw: TaskRaw { key: key(n), ..TaskRaw::default() }, ..TaskChange::default() };
    Observation::Tasks(Box::new(Reading::Ok(ProcessUpdate {
        seq,
        time: timestamp(seq),
        reset: true,
        changed: (0..count).map(change).collect(),
        names: (0..count).filter(|_| names).map(|n| (key(n), text.clone())).collect(),
        total: count as usize,
        ..ProcessUpdate::default()
    })))
}

pub(super) fn sample(seq: u64, change: impl FnOnce(&mut Sample)) -> Observation {
    let mut sample = Sample { seq, time: timestamp(seq), ..Sample::default() };
    change(&mut sample);
    Observation::Sample(Box::new(sample))
}

pub(super) fn disks(rows: u32) -> Reading<Vec<DiskRaw>> {
    let disk = |minor| DiskRaw { id: DevId { major: 8, minor }, name: "d".into(), ..DiskRaw::default() };
    Reading::Ok((0..rows).map(disk).collect())
}

pub(super) fn latency(rows: u32, buckets: usize) -> Reading<Arc<LatencyRaw>> {
    let full = SparseHistogram::from_dense((0..buckets).map(|_| 1));
    let kind = || RequestHistograms { total: full.clone(), service: full.clone(), ..RequestHistograms::default() };
    let device = |minor| DeviceHistograms { id: DevId { major: 8, minor }, kinds: std::array::from_fn(|_| kind()) };
    Reading::Ok(Arc::new(LatencyRaw { devices: (0..rows).map(device).collect(), ..LatencyRaw::default() }))
}

pub(super) fn syncs(rows: u32) -> Reading<SyncsRaw> {
    let file = |ino| Arc::new(SyncFile { ino, ..SyncFile::default() });
    let counts = |n: u32| SyncCounts { file: file(n.into()), ..SyncCounts::default() };
    let slow = |n: u32| Arc::new(SlowSync { id: n.into(), ..SlowSync::default() });
    Reading::Ok(SyncsRaw {
        files: (0..rows).map(counts).collect(),
        slow: (0..rows).map(slow).collect(),
        ..SyncsRaw::default()
    })
}

pub(super) fn accounts(rows: u32) -> Reading<Arc<IoAccountsRaw>> {
    let account = |pid| IoAccount { key: AccountKey { pid, ..AccountKey::default() }, ..IoAccount::default() };
    Reading::Ok(Arc::new(IoAccountsRaw {
        accounts: (0..rows).map(account).collect(),
        names: (0..rows).map(|pid| (pid, "n".into())).collect(),
        cgroups: (0..rows).map(|id| (id.into(), "/c".into())).collect(),
        ..IoAccountsRaw::default()
    }))
}

fn files(rows: u32) -> Reading<Arc<FileIoRaw>> {
    let id = |ino: u32| FileId { ino: ino.into(), ..FileId::default() };
    let key = |ino| FileIoKey { file: id(ino), ..FileIoKey::default() };
    Reading::Ok(Arc::new(FileIoRaw {
        accounts: (0..rows).map(|n| FileIoAccount { key: key(n), ..FileIoAccount::default() }).collect(),
        files: (0..rows).map(|n| Arc::new(FileName { id: id(n), ..FileName::default() })).collect(),
        ..FileIoRaw::default()
    }))
}

fn stalls() -> Reading<MemoryStallsRaw> {
    let task = |pid| TaskStallCounters { pid, comm: b"c".to_vec(), ..TaskStallCounters::default() };
    Reading::Ok(MemoryStallsRaw { tasks: (0..ROWS).map(task).collect(), ..MemoryStallsRaw::default() })
}

pub(super) fn mounts(rows: u32) -> Reading<Vec<NetFsRaw>> {
    let mount = |n: u32| NetFsRaw { mount: n.to_string().into_bytes().into(), ..NetFsRaw::default() };
    Reading::Ok((0..rows).map(mount).collect())
}

/// `n` times the same text within JSON of 8 MiB at most.
fn json_section(tag: u64, before: &str, item: &str, after: &str) -> Vec<u8> {
    json_of(8 << 20, tag, before, item, after)
}

fn json_of(size: usize, tag: u64, before: &str, item: &str, after: &str) -> Vec<u8> {
    let mut body = before.to_owned() + item;
    while body.len() + item.len() + after.len() + 2 < size {
        body += ",";
        body += item;
    }
    let mut raw = Vec::new();
    put_section(&mut raw, tag, (body + after).as_bytes());
    raw
}

fn log_frames(n: u32, size: usize) -> Vec<u8> {
    let record =
        r#"{"seq":1,"boot_us":1,"level":1,"facility":0,"caller":null,"message":[],"subsystem":null,"device":null}"#;
    let raw = json_of(size, 6, r#"{"mono_ns":0,"wall_ns":0,"records":["#, record, "]}");
    frame(FrameKind::Log, 0, &raw).repeat(n as usize)
}

/// What the frames of [`nested_headers`] contain.
#[derive(Debug, Clone, Copy)]
enum Nesting {
    /// All the headers after them.
    Rest,
    /// The same, and more than the file has.
    BeyondEnd,
    /// As many of the headers after them as do not fit into the reader's window, and each frame ends after the one before.
    Overlapping,
}

/// Frame headers whose frames contain headers.
fn nested_headers(n: u32, nesting: Nesting) -> Vec<u8> {
    let header = |number: u32| FrameHeader {
        kind: FrameKind::Key,
        number,
        packed_len: match nesting {
            Nesting::Rest => (n - number - 1) * 36,
            Nesting::BeyondEnd => 32 << 20,
            Nesting::Overlapping => 300 << 10,
        },
        raw_len: 1000,
        wall_ns: 0,
        crc: 0,
    };
    (0..n).flat_map(|number| header(number).to_bytes()).collect()
}

fn with_header(frames: &[u8]) -> Vec<u8> {
    [&RecordingHeader::default().to_bytes(), frames].concat()
}

/// All files made to do harm, by name.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let one = |observation| file_of([vec![observation]]);
    let valid = record_ticks(30, (6, 2)).bytes;
    let empty = || frame(FrameKind::Key, 0, &[]);
    let key = |section: Vec<u8>| with_header(&frame(FrameKind::Key, 0, &section));
    let device = serde_json::to_string(&BlockDevice::default()).unwrap();
    let topology = json_section(3, r#"{"ok":{"devices":["#, &device, "]}}");
    let unavailable = json_section(5, "[", r#"["",""]"#, "]");
    let blocked = BlockedTask::default();
    let of_blocked = ProcessUpdate { blocked: vec![blocked; 200_000], reset: true, seq: 1, ..ProcessUpdate::default() };
    let of_notes =
        ProcessUpdate { notes: vec![String::new(); 2_000_000], reset: true, seq: 1, ..ProcessUpdate::default() };
    let of_users = |n: u32| ProcessUpdate {
        users: (0..TASKS).map(|uid| (n * TASKS + uid, "u".into())).collect(),
        seq: n.into(),
        ..ProcessUpdate::default()
    };
    let update = |update| Observation::Tasks(Box::new(Reading::Ok(update)));
    let everything = |n: u64| {
        let all = sample(n, |s| {
            (s.disks, s.latency, s.syncs) = (disks(ROWS), latency(300, BUCKETS), syncs(ROWS));
            (s.io_accounts, s.memory_stalls, s.netfs) = (accounts(ROWS), stalls(), mounts(ROWS));
        });
        vec![all, tasks(n, true)]
    };
    vec![
        ("tasks", one(tasks(1, false))),
        ("names", one(tasks(1, true))),
        ("users", file_of((1..5).map(|n| vec![update(of_users(n))]))),
        ("blocked", one(update(of_blocked))),
        ("notes", one(update(of_notes))),
        ("disks", one(sample(1, |s| s.disks = disks(ROWS)))),
        ("netfs", one(sample(1, |s| s.netfs = mounts(ROWS)))),
        ("latency", one(sample(1, |s| s.latency = latency(ROWS, 0)))),
        ("histograms", one(sample(1, |s| s.latency = latency(1000, BUCKETS)))),
        ("syncs", one(sample(1, |s| s.syncs = syncs(ROWS)))),
        ("accounts", one(sample(1, |s| s.io_accounts = accounts(ROWS)))),
        ("files", one(sample(1, |s| s.file_io = files(ROWS)))),
        ("stalls", one(sample(1, |s| s.memory_stalls = stalls()))),
        ("everything", file_of([everything(1)])),
        ("many", file_of((1..4).map(|n| vec![tasks(n, false)]))),
        ("topology", key(topology)),
        ("unavailable", key(unavailable)),
        // Those that follow exceed no limit, or hardly.
        ("most tasks", one(tasks_up_to(27_000, 1, true))),
        ("most disks", one(sample(1, |s| s.disks = disks(14_000)))),
        ("most mounts", one(sample(1, |s| s.netfs = mounts(14_000)))),
        ("most histograms", one(sample(1, |s| s.latency = latency(300, BUCKETS)))),
        ("most accounts", one(sample(1, |s| s.io_accounts = accounts(13_000)))),
        ("most syncs", one(sample(1, |s| s.syncs = syncs(9_500)))),
        ("most devices", key(json_of(3 << 20, 3, r#"{"ok":{"devices":["#, &device, "]}}"))),
        ("most reasons", key(json_of(1 << 20, 5, "[", r#"["",""]"#, "]"))),
        ("most lines", with_header(&[log_frames(100, 3 << 20), empty()].concat())),
        ("log", with_header(&[log_frames(100, 8 << 20), empty()].concat())),
        ("cut", with_header(&[empty(), nested_headers(7_000, Nesting::BeyondEnd)].concat())),
        ("nested", with_header(&[empty(), nested_headers(30_000, Nesting::Rest)].concat())),
        ("joined", [&valid[..], &valid].concat()),
        ("repeated", with_header(&[&empty()[..]; 500].concat())),
    ]
}

/// Writes them for use with the program: KEEP_BOMBS=DIR.
#[test]
#[ignore = "writes files"]
fn keep_bombs() {
    let Some(dir) = std::env::var_os("KEEP_BOMBS") else { return };
    for (name, bytes) in bombs().into_iter().chain(super::long::long_files()) {
        std::fs::write(std::path::Path::new(&dir).join(name), bytes).unwrap();
    }
}

/// Replays one file; see [`peak_memory`].
#[test]
#[ignore = "run by another test in a process of its own"]
fn replay_one() {
    let Some(file) = std::env::var_os("REPLAYED_FILE") else { return };
    let args = ["iotop-plus".into(), "replay".into(), file, "--format".into(), "json".into(), "-n".into(), "5".into()];
    crate::cli::run(crate::cli::Cli::parse_from(args));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    std::fs::write(std::env::var_os("PEAK_FILE").unwrap(), line.split_whitespace().nth(1).unwrap()).unwrap();
}

/// The most memory that replaying a file takes, in bytes.
fn peak_memory(bytes: &[u8]) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let (file, peak) = (dir.path().join("file"), dir.path().join("peak"));
    std::fs::write(&file, bytes).unwrap();
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "recording::tests::bombs::replay_one", "--ignored", "--test-threads", "1"])
        .env("REPLAYED_FILE", &file)
        .env("PEAK_FILE", &peak)
        .output()
        .unwrap();
    let kib = std::fs::read_to_string(peak).unwrap_or_else(|_| panic!("{out:?}"));
    kib.parse::<u64>().unwrap() << 10
}

#[test]
fn no_file_takes_much_more_memory_than_its_size() {
    // What the program of the tests itself takes, and a harmless file.
    let harmless = peak_memory(&record_ticks(2, (1, 1)).bytes);
    for (name, bytes) in bombs() {
        let (peak, most) = (peak_memory(&bytes), harmless + (37 << 20) + 140 * bytes.len() as u64);
        assert!(peak <= most, "{name}: {} bytes took {} KiB, not {}", bytes.len(), peak >> 10, most >> 10);
    }
}

#[test]
fn a_machine_of_a_hundred_thousand_tasks_and_a_thousand_devices_is_recorded_and_played() {
    let mut rng = TestRng(3);
    let task = |tid: u32, rng: &mut TestRng| {
        let raw = TaskRaw {
            key: TaskKey { pid: tid, tid, starttime: 5_000 + rng.below(1 << 20) },
            comm: *b"worker\0\0\0\0\0\0\0\0\0\0",
            state: b'S',
            cpu_ticks: rng.below(1 << 12),
            timeslices: rng.below(1 << 14),
            rss_bytes: 4096 * rng.below(1 << 12),
            num_threads: 1,
            ..TaskRaw::default()
        };
        TaskChange { raw, scanned_ns: rng.below(1 << 16), previous_scan_ns: 0 }
    };
    let changed: Vec<TaskChange> = (1..=100_000).map(|tid| task(tid, &mut rng)).collect();
    let names = |change: &TaskChange| {
        let cmdline = Some(format!("/usr/bin/worker --id {}", change.raw.key.tid).into_bytes().into());
        (change.raw.key, Arc::new(TaskNames { cmdline, cgroup: "/system.slice/w".into(), container: None }))
    };
    let first = ProcessUpdate {
        seq: 1,
        time: timestamp(1),
        reset: true,
        names: changed.iter().map(names).collect(),
        total: changed.len(),
        changed,
        ..ProcessUpdate::default()
    };
    let tick = |n: u64| {
        let update = match n {
            1 => first.clone(),
            _ => ProcessUpdate { seq: n, time: timestamp(n), total: 100_000, ..ProcessUpdate::default() },
        };
        let counters = sample(n, |s| (s.disks, s.latency) = (disks(1000), latency(1000, 60)));
        vec![counters, Observation::Tasks(Box::new(Reading::Ok(update)))]
    };
    let mut encoder = FrameEncoder::new(2, 2);
    let frames: Vec<u8> = (1..=5).flat_map(|n| encoder.encode_tick(&tick(n), timestamp(n).wall_ns)).collect();
    let bytes = with_header(&frames);
    let mut reader = RecordingReader::open(bytes.as_slice()).unwrap();
    assert_eq!((read_ticks(&mut reader).len(), reader.unreadable_frames), (5, 0));
    reader.seek(4).unwrap();
    let tick = reader.next_tick().unwrap().unwrap();
    let has_all = |o: &Observation| matches!(o, Observation::Tasks(t) if t.ok().unwrap().changed.len() == 100_000);
    assert!(tick.number == 4 && tick.full_state.unwrap().iter().any(has_all));
}

/// Counts what is read from it.
struct CountedBytes<'a>(&'a [u8], std::rc::Rc<std::cell::Cell<usize>>);

impl ReadAt for CountedBytes<'_> {
    fn read_at(&mut self, at: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.read_at(at, buf)?;
        self.1.set(self.1.get() + n);
        Ok(n)
    }
}

#[test]
fn the_search_in_damaged_bytes_reads_no_more_than_a_multiple_of_them() {
    let tick = || frame(FrameKind::Key, 0, &[]);
    for nesting in [Nesting::Rest, Nesting::BeyondEnd, Nesting::Overlapping] {
        for n in [5_000, 20_000] {
            let bytes = with_header(&[tick(), nested_headers(n, nesting)].concat());
            let count = std::rc::Rc::default();
            let mut reader = RecordingReader::open(CountedBytes(&bytes, std::rc::Rc::clone(&count))).unwrap();
            assert_eq!(read_ticks(&mut reader).len(), 1);
            assert!(count.get() < (16 << 20) + 40 * bytes.len(), "{n} headers, {nesting:?}: {} bytes", count.get());
        }
    }
}

#[test]
fn frames_whose_numbers_go_back_are_unreadable() {
    let valid = record_ticks(30, (6, 2));
    let header = RecordingHeader::from_bytes(&valid.bytes).unwrap().to_bytes().len();
    let joined = [&valid.bytes[..], &valid.bytes].concat();
    let later_first = [&valid.bytes[..header], &valid.bytes[valid.tick_ends[11]..], &valid.bytes[header..]].concat();
    for (bytes, numbers) in [(joined, 0..30), (later_first, 12..30)] {
        let mut reader = RecordingReader::open(bytes.as_slice()).unwrap();
        let span = reader.span;
        assert_eq!((span.first_number, span.last_number, span.ticks), (numbers.start, 29, numbers.len() as u64));
        for from in [0, 12, 29] {
            reader.seek(from).unwrap();
            reader.unreadable_frames = 0;
            let read: Vec<u32> = read_ticks(&mut reader).into_iter().map(|(number, _)| number).collect();
            assert!(read.is_sorted_by(|a, b| a < b) && read.last() == Some(&29), "{read:?}");
            assert!(reader.unreadable_frames >= 30);
        }
        for wall_ns in [i64::MIN, span.first_ns, span.last_ns, i64::MAX] {
            assert!((span.first_number..=29).contains(&reader.tick_number_at(wall_ns).unwrap()));
        }
    }
}
