//! Syncs for the screen: a database behind a copy, a sync that hangs, an error, hostile names.

use super::app;
use iotop_plus::model::disk::DevId;
use iotop_plus::model::latency::{SparseHistogram, bucket_index};
use iotop_plus::model::sample::Sample;
use iotop_plus::model::reading::Reading;
use iotop_plus::model::syncs::{SyncCall, InFlightSync, SlowSync, SyncCounts, SyncFile, SyncsRaw};
use iotop_plus::tui::event::Event;
use iotop_plus::tui::state::App;
use iotop_plus::tui::update::update;
use std::sync::Arc;

const MS: u64 = 1_000_000;
const SEC: u64 = 1000 * MS;

fn file(pid: u32, comm: &str, call: SyncCall, dev: DevId, names: &str) -> Arc<SyncFile> {
    let (comm, names) = (comm.into(), names.into());
    let ino = if call == SyncCall::Sync { 0 } else { 7 };
    Arc::new(SyncFile { pid, call, device: dev, ino, comm, path_tail: names, is_full_path: true })
}

/// So many calls of so many ms each, the last of them just now.
fn counted(file: &Arc<SyncFile>, calls: u64, ms: u64, now: u64) -> SyncCounts {
    SyncCounts {
        file: file.clone(),
        calls,
        errors: u64::from(ms == 3),
        total_ns: calls * ms * MS,
        max_ns: 3 * ms * MS,
        last_ended_ns: if calls > 0 { now - ms * MS } else { 0 },
        histogram: SparseHistogram::from_sparse((calls > 0).then(|| (bucket_index(ms * MS), calls as u32))),
    }
}

/// What tracing has counted by then, after `n` seconds of it.
pub fn reading(sample: &Sample, n: u64) -> SyncsRaw {
    let vda = DevId { major: 254, minor: 0 };
    let now = sample.time.boot_ns;
    let files = [
        file(812, "postgres", SyncCall::Fdatasync, vda, "var/lib/pg/wal/000000010000"),
        file(812, "postgres", SyncCall::Fsync, vda, "var/lib/pg/base/1/2"),
        file(900, "cp\u{1b}[31m\u{202e}", SyncCall::Fsync, vda, "srv/big\u{1b}]0;x\u{7}.img"),
        file(901, "sync", SyncCall::Sync, DevId::default(), ""),
    ];
    let [wal, base, big, sync] = &files;
    let slow = |id: u64, file: &Arc<SyncFile>, ago_ms: u64, ms: u64, error, on: Option<&str>| {
        let (file, comm, on) = (file.clone(), file.comm.clone(), on.map(str::to_owned));
        let began_ns = now - (ago_ms + ms) * MS;
        Arc::new(SlowSync { id, tid: file.pid, file, comm, started_ns: began_ns, duration_ns: ms * MS, error, waiting_on: on })
    };
    let fly = |file: &Arc<SyncFile>, ago: u64, on: Option<&str>| InFlightSync {
        file: file.clone(),
        tid: file.pid,
        started_ns: now - ago,
        waiting_on: on.map(str::to_owned),
    };
    SyncsRaw {
        tracing_started_ns: now - n * SEC,
        read_ns: now,
        threshold_ns: 10 * MS,
        files: vec![
            counted(base, 4, 3, now),
            counted(wal, 9 * n, 180, now),
            counted(big, 0, 1, now),
            counted(sync, 1, 40, now),
        ],
        slow: vec![
            slow(1, base, 9000, 12, 5, None),
            slow(2, sync, 3000, 40, 0, Some("wb_wait_for_completion")),
            slow(3, wal, 1200, 171, 0, Some("jbd2_log_wait_commit")),
            slow(4, wal, 300, 183, 0, Some("jbd2_log_wait_commit")),
        ],
        in_flight: vec![fly(big, 42 * SEC, Some("folio_wait_bit_common")), fly(wal, 2 * MS, None)],
        io_uring: Some(25 * n),
        ..SyncsRaw::default()
    }
}

/// A tick of the machine on screen with that of syncs.
pub fn tell(app: &mut App, syncs: impl FnOnce(&Sample) -> Reading<SyncsRaw>) {
    let mut sample = app.system.last_sample.clone().unwrap();
    sample.seq += 1;
    sample.time.boot_ns += SEC;
    sample.time.wall_ns += SEC as i64;
    sample.syncs = syncs(&sample);
    update(app, Event::Sample(Box::new(sample)));
}

/// The screen after two ticks of it.
pub fn waiting(size: (u16, u16)) -> App {
    let mut app = app(size);
    for n in [7, 8] {
        tell(&mut app, |s| Reading::Ok(reading(s, n)));
    }
    app
}
