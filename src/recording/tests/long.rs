//! Small files of many ticks with many rows each.

use super::bombs::{accounts, disks, latency, mounts, sample, syncs, tasks_up_to, timestamp};
use super::*;
use crate::model::latency::BUCKETS;

/// A file of `n` ticks, of which the frames are those that a recorder writes.
fn file_of(n: u64, tick: impl Fn(u64) -> Vec<Observation>) -> Vec<u8> {
    let mut encoder = FrameEncoder::new(60, 15);
    let mut bytes = RecordingHeader::default().to_bytes();
    (1..=n).for_each(|n| bytes.extend(encoder.encode_tick(&tick(n), timestamp(n).wall_ns)));
    bytes
}

fn idle_tasks(seq: u64) -> Observation {
    let update = ProcessUpdate { seq, time: timestamp(seq), total: 26_000, ..ProcessUpdate::default() };
    Observation::Tasks(Box::new(Reading::Ok(update)))
}

fn stalled_disks(seq: u64) -> Observation {
    sample(seq, |s| {
        let mut rows = disks(14_000);
        if let Reading::Ok(rows) = &mut rows {
            rows.iter_mut().for_each(|row| {
                row.in_flight = 1;
                row.read.ios = 1;
            });
        }
        s.disks = rows;
    })
}

/// All of them by name.
pub(super) fn long_files() -> Vec<(&'static str, Vec<u8>)> {
    let tasks = |names| {
        file_of(4_000, move |n| match n {
            1 => vec![sample(n, |_| ()), tasks_up_to(26_000, 1, names)],
            _ => vec![sample(n, |_| ()), idle_tasks(n)],
        })
    };
    vec![
        ("idle tasks", tasks(false)),
        ("idle tasks with names", tasks(true)),
        ("idle disks", file_of(400, |n| vec![sample(n, |s| s.disks = disks(14_000))])),
        ("stalled disks", file_of(400, |n| vec![stalled_disks(n)])),
        ("idle mounts", file_of(400, |n| vec![sample(n, |s| s.netfs = mounts(14_000))])),
        ("idle histograms", file_of(400, |n| vec![sample(n, |s| s.latency = latency(300, BUCKETS))])),
        ("idle accounts", file_of(400, |n| vec![sample(n, |s| s.io_accounts = accounts(13_000))])),
        ("idle syncs", file_of(400, |n| vec![sample(n, |s| s.syncs = syncs(9_500))])),
    ]
}
