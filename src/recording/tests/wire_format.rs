//! Pins the bytes of format 1: files written by any version must stay readable, so the encoder may not drift.

use super::*;
use crate::model::cpu::CpuRaw;
use crate::model::io_accounting::{AccountKey, AccountKind, IoAccount, IoAccountsRaw, LATENCY_BUCKETS};
use crate::model::latency::{BUCKETS, DeviceHistograms, LatencyRaw, SparseHistogram};
use crate::model::memory::SwapArea;
use crate::model::memory_stalls::{MemoryStallsRaw, StallCounter, TaskStallCounters};
use crate::model::network::{NetFsKind, NetFsRaw};
use crate::model::pressure::{PressureRaw, PsiAverages, ResourcePressure};
use crate::model::process::BlockedTask;
use crate::model::request_pattern::RequestPattern;
use crate::model::syncs::{InFlightSync, SlowSync, SyncCall, SyncCounts, SyncDrops, SyncFile, SyncsRaw};
use strum::VariantArray as _;

/// Denied, absent or blocked in one of 24 ticks each, else `value`.
fn reading<T>(rng: &mut TestRng, value: T) -> Reading<T> {
    match rng.below(24) {
        0 => Reading::Denied("denied".into()),
        1 => Reading::Absent("absent".into()),
        2 => Reading::Blocked(BlockedRead { since_boot_ns: 77, waiting_on: "io_schedule".into() }),
        _ => Reading::Ok(value),
    }
}

/// A histogram of which the counts wrap and the buckets come and go.
fn histogram(rng: &mut TestRng, tick: u32, buckets: usize) -> SparseHistogram {
    let first = rng.below(4) as usize;
    SparseHistogram::from_dense((0..buckets).map(|i| match i % 37 == first || i + 1 == buckets {
        true => tick.wrapping_mul(i as u32).wrapping_sub(3),
        false => 0,
    }))
}

fn latency(rng: &mut TestRng, tick: u32) -> LatencyRaw {
    let devices = 1 + rng.below(8) / 6;
    let device = |minor, rng: &mut TestRng| {
        let mut device =
            DeviceHistograms { id: DevId { major: 259, minor: minor as u32 }, ..DeviceHistograms::default() };
        for kind in &mut device.kinds {
            if rng.below(2) == 0 {
                kind.total = histogram(rng, tick, BUCKETS);
                kind.service = histogram(rng, tick / 2, 40);
                kind.pattern = RequestPattern { sizes: [tick; 12], random: 7, sequential: tick.wrapping_neg() };
            }
        }
        device
    };
    LatencyRaw {
        tracing_started_ns: 0,
        devices: (0..devices).map(|minor| device(minor, rng)).collect(),
        dropped: rng.below(3),
        unavailable: vec!["zram: bios, not requests".into(); rng.below(2) as usize],
    }
}

fn memory_stalls(rng: &mut TestRng, tick: u64) -> MemoryStallsRaw {
    let first = 10 + rng.below(5) as u32 / 4;
    let task = |pid: u32, rng: &mut TestRng| TaskStallCounters {
        pid,
        starttime: 5,
        comm: b"dd\xff".to_vec(),
        bdi: b"8:0".to_vec(),
        counters: std::array::from_fn(|i| StallCounter {
            count: tick + i as u64,
            total_ns: rng.below(2) * tick * 1000,
            max_ns: tick * 77,
        }),
    };
    MemoryStallsRaw {
        tracing_started_ns: 0,
        tasks: (first..first + 4).map(|pid| task(pid, rng)).collect(),
        is_counted: [true, rng.below(2) == 0],
        dropped: tick / 9,
        unavailable: Vec::new(),
    }
}

fn io_accounts(rng: &mut TestRng, tick: u64) -> IoAccountsRaw {
    let mut keys = Vec::new();
    for pid in 0..6 {
        // Those of the first version of the format; discards came later.
        for kind in AccountKind::VARIANTS[..6].iter().copied() {
            if rng.below(3) > 0 {
                let device = DevId { major: 8, minor: pid % 2 };
                keys.push(AccountKey {
                    pid,
                    device,
                    cgroup_id: 9_000_000_000 + u64::from(pid),
                    kind,
                    is_stacked: false,
                });
            }
        }
    }
    keys.sort();
    let account = |key: &AccountKey| IoAccount {
        key: *key,
        requests: tick * u64::from(key.pid),
        bytes: tick * 4096,
        total_ns: u64::MAX - tick,
        histogram: histogram(&mut TestRng(tick + 1), tick as u32 / 3, LATENCY_BUCKETS),
    };
    IoAccountsRaw {
        tracing_started_ns: 0,
        accounts: keys.iter().map(account).collect(),
        names: (0..5).filter(|_| rng.below(4) > 0).map(|pid| (pid, format!("task{pid}").into())).collect(),
        cgroups: (0..3).filter(|_| rng.below(4) > 0).map(|id| (id, format!("/slice{id}").into())).collect(),
        dropped: tick,
        unavailable: vec!["no cgroups".into()],
    }
}

fn syncs(rng: &mut TestRng, tick: u64) -> SyncsRaw {
    let file = |n: u64| {
        Arc::new(SyncFile {
            pid: n as u32,
            call: SyncCall::VARIANTS[n as usize % 6],
            device: DevId { major: 8, minor: 1 },
            ino: 100 + n,
            comm: b"postgres".as_slice().into(),
            path_tail: b"pg_wal/0\xfe".as_slice().into(),
            is_full_path: n.is_multiple_of(2),
        })
    };
    let first = tick / 7;
    let counts = |n: u64, rng: &mut TestRng| SyncCounts {
        file: file(n),
        calls: tick * n,
        errors: rng.below(2),
        total_ns: tick * 1_000_000,
        max_ns: n,
        last_ended_ns: tick,
        histogram: histogram(rng, tick as u32, BUCKETS),
    };
    let slow = |id: u64| SlowSync {
        id,
        file: file(id % 9),
        tid: 3,
        comm: b"walwriter".as_slice().into(),
        started_ns: id * 10,
        duration_ns: 99,
        error: 5,
        waiting_on: id.is_multiple_of(2).then(|| "jbd2_log_wait_commit".into()),
    };
    let in_flight = InFlightSync { file: file(first + 1), tid: 8, started_ns: tick, waiting_on: Some("io".into()) };
    SyncsRaw {
        tracing_started_ns: 5,
        read_ns: tick * NS_PER_SEC,
        threshold_ns: 10_000_000,
        files: (first..first + 4).map(|n| counts(n, rng)).collect(),
        slow: (tick / 2..tick).map(|id| Arc::new(slow(id))).collect(),
        in_flight: vec![in_flight; rng.below(3) as usize],
        drops: SyncDrops { files: 1, slow: tick, in_flight: 0 },
        io_uring: (tick > 9).then_some(tick),
        unavailable: Vec::new(),
    }
}

fn counters(rng: &mut TestRng, sample: &mut Sample) {
    let tick = sample.seq;
    sample.cpu = reading(rng, CpuRaw { ticks: [tick; 10], cpus: 8, forks: tick, blocked_tasks: 1 });
    let stall = PsiAverages { avg10: 0.25 * tick as f64, avg60: 0.5, avg300: 99.99, total_us: tick };
    let pressure = ResourcePressure { some: Some(stall), full: tick.is_multiple_of(2).then_some(stall) };
    sample.pressure = reading(rng, PressureRaw { io: pressure, memory: pressure, cpu: ResourcePressure::default() });
    let area = |n: u64| SwapArea {
        name: format!("/swap{n}"),
        kind: "file".into(),
        size_bytes: 1 << 30,
        used_bytes: tick,
        priority: -2,
    };
    sample.swap_areas = reading(rng, (0..1 + tick % 2).map(area).collect());
    let mount = |kind| NetFsRaw {
        kind,
        mount: b"/m\xff".as_slice().into(),
        server: b"nas:/x".as_slice().into(),
        version: Some("4.2".into()),
        ops: Some(tick),
        rtt_ms: tick.is_multiple_of(3).then_some(tick),
        ..NetFsRaw::default()
    };
    sample.netfs = reading(rng, vec![mount(NetFsKind::Nfs), mount(NetFsKind::Cifs)]);
    let raw = latency(rng, tick as u32);
    sample.latency = reading(rng, Arc::new(raw));
    let raw = memory_stalls(rng, tick);
    sample.memory_stalls = reading(rng, raw);
    let raw = io_accounts(rng, tick);
    sample.io_accounts = reading(rng, Arc::new(raw));
    // Sections that were added later; they have their own tests.
    sample.file_io = Reading::Absent("not in this recording".into());
    sample.task_waits = Reading::Absent("not in this recording".into());
    let raw = syncs(rng, tick);
    sample.syncs = reading(rng, raw);
}

/// 60 ticks with every kind of reading and observation.
fn all_ticks() -> Vec<Vec<Observation>> {
    let mut machine = FakeMachine::new(4711);
    let mut rng = TestRng(11);
    let mut ticks: Vec<Vec<Observation>> = (0..60).map(|_| machine.tick()).collect();
    for observation in ticks.iter_mut().flatten() {
        match observation {
            Observation::Sample(sample) => counters(&mut rng, sample),
            Observation::Tasks(tasks) => {
                let Reading::Ok(update) = &mut **tasks else { continue };
                update.rows_are_threads = rng.below(9) == 0;
                update.hidden_count = rng.below(4) as usize;
                update.notes = vec!["no delay accounting".into(); rng.below(2) as usize];
                let key = TaskKey { pid: 1, tid: 1, starttime: 0 };
                let blocked = BlockedTask { key, since_boot_ns: 9, waiting_on: "mmap".into(), counters_readable: true };
                update.blocked = vec![blocked; rng.below(2) as usize];
            }
            _ => {}
        }
    }
    ticks
}

#[test]
fn the_bytes_of_format_1_do_not_change() {
    let mut encoder = FrameEncoder::new(10, 3);
    let (mut payload, mut frames) = (0, crc32fast::Hasher::new());
    for (n, tick) in all_ticks().iter().enumerate() {
        let frame = encoder.encode_tick(tick, n as i64);
        payload += frame.len();
        frames.update(&frame);
    }
    assert_eq!((payload, frames.finalize()), (46930, 2858330978));
}

#[test]
fn every_kind_of_reading_round_trips() {
    let mut encoder = FrameEncoder::new(10, 3);
    let mut bytes = RecordingHeader::default().to_bytes();
    let ticks = all_ticks();
    for (n, tick) in ticks.iter().enumerate() {
        bytes.extend(encoder.encode_tick(tick, n as i64));
    }
    let samples = |all: &[Observation]| {
        let keep = |o: &&Observation| matches!(o, Observation::Sample(_) | Observation::Tasks(_));
        all.iter().filter(keep).cloned().collect::<Vec<_>>()
    };
    let mut reader = RecordingReader::open(bytes.as_slice()).unwrap();
    for ((number, read), written) in read_ticks(&mut reader).iter().zip(&ticks) {
        let (read, written) = (samples(read), samples(written));
        for (read, written) in read.iter().zip(&written) {
            assert_eq!(read, written, "tick {number}");
        }
    }
}
