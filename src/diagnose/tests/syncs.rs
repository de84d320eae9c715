//! Syncs that hold somebody up, and those that do not.

use super::firing::Fires;
use super::quiet::Quiet;
use super::stage::*;
use crate::diagnose::finding::Judged;
use crate::diagnose::finding::Severity::{Critical, Note, Warn};
use crate::model::latency::LatencySummary;
use crate::model::process::IoBytes;
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;
use crate::model::syncs::{InFlightSync, SlowSync, SyncFile, SyncRate, SyncActivity, NOT_REQUESTED};
use std::sync::Arc;

/// Calls per second, share of the time in them, and 99 % no longer than so many ms, of postgres on sda1.
fn syncs(snap: &mut Snapshot, calls_per_s: f64, wait_pct: f64, p99_ms: f64) {
    let file = Arc::new(SyncFile {
        pid: 78205,
        comm: "postgres".into(),
        device: SDA1,
        ino: 12,
        path_tail: "pg/wal/0001".into(),
        is_full_path: true,
        ..SyncFile::default()
    });
    let us = p99_ms * 1e3;
    let spread = LatencySummary { samples: 100, p50: us / 2.0, p90: us, p99: us, p999: us, max: us };
    let rate = SyncRate {
        file: file.clone(),
        calls_per_s,
        wait_pct,
        calls: 100,
        errors: 0,
        mean_us: Some(us / 2.0),
        latency: Some(spread),
        max_ns: (us * 1e3) as u64,
        last_ended_ns: Some(1),
    };
    let on = Some("jbd2_log_wait_commit".to_owned());
    let slow = vec![Arc::new(SlowSync { id: 1, file: file.clone(), waiting_on: on.clone(), ..SlowSync::default() })];
    let flying = if calls_per_s > 0.0 { Vec::new() } else { vec![InFlightSync { file, waiting_on, ..InFlightSync::default() }] };
    snap.syncs = Reading::Ok(Arc::new(SyncActivity { rows: vec![rate], slow, in_flight: flying, ..SyncActivity::default() }));
}

fn streaming(s: &mut Stage, calls_per_s: f64, wait_pct: f64, p99_ms: f64) {
    s.ticks(8, |t| {
        with(t, load(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 0.0)));
        syncs(t, calls_per_s, wait_pct, p99_ms);
    });
    s.task(4711, "dd", |_| {}, IoBytes { write: 300 << 20, ..IoBytes::default() }, 0);
}

/// Hundreds of quick ones a second, and one that has taken most of the window.
fn stalled(s: &mut Stage) {
    s.ticks(8, |t| {
        with(t, load(SDA, "sda", (150.0, 110.0, 16.0, 1024.0, 0.0)));
        syncs(t, 300.0, 80.0, 0.6);
        let Reading::Ok(all) = &mut t.syncs else { return };
        let all = Arc::make_mut(all);
        all.rows[0].max_ns = 3_000_000_000;
        let file = all.rows[0].file.clone();
        all.read_ns = 60_000_000_000;
        let began_ns = all.read_ns - 3_500_000_000;
        all.slow =
            vec![Arc::new(SlowSync { id: 1, file, started_ns, duration_ns: 3_000_000_000, ..SlowSync::default() })];
    });
    s.task(4711, "dd", |_| {}, IoBytes { write: 300 << 20, ..IoBytes::default() }, 0);
}

/// Trouble.
pub const FIRING: &[Fires] = &[
    Fires {
        rule: "syncs-behind-a-stream",
        what: "a big file beside a database",
        severity: Warn,
        says: "postgres (78205) waits on syncs of /srv/pg/wal/0001 (62 % of its time, p99 180 ms) because dd (4711) \
               streams 300 MiB/s to the same device, sda1",
        make: |s| streaming(s, 6.0, 62.0, 180.0),
    },
    Fires {
        rule: "syncs-behind-a-stream",
        what: "one that has not come back yet",
        severity: Critical,
        says: "(100 % of its time",
        make: |s| streaming(s, 0.0, 100.0, 900.0),
    },
    Fires {
        rule: "syncs-behind-a-stream",
        what: "a stall among many quick ones",
        severity: Critical,
        says: "waits on syncs of /srv/pg/wal/0001 (80 % of its time, longest 3000 ms) because dd (4711) streams",
        make: stalled,
    },
    Fires {
        rule: "waits-on-syncs",
        what: "a slow disk and nobody else",
        severity: Warn,
        says: "postgres (78205) waits on syncs of /srv/pg/wal/0001: 90 % of its time, p99 180 ms",
        make: |s| {
            s.ticks(8, |t| syncs(t, 9.0, 90.0, 180.0));
        },
    },
];

fn blind(j: &Judged) -> bool {
    matches!(j, Judged::Cannot(_))
}

fn early(j: &Judged) -> bool {
    matches!(j, Judged::NotYet(_))
}

const fn quiet(
    rule: &'static str,
    what: &'static str,
    judged: Option<fn(&Judged) -> bool>,
    make: fn(&mut Stage),
) -> Quiet {
    Quiet { rule, what, from: Note, judged, make }
}

/// Nearly.
pub const QUIET: &[Quiet] = &[
    quiet("waits-on-syncs", "a benchmark that syncs at full speed", None, |s| {
        s.ticks(8, |t| syncs(t, 900.0, 97.0, 2.0));
    }),
    quiet("waits-on-syncs", "now and then a slow one", None, |s| {
        s.ticks(8, |t| syncs(t, 0.5, 10.0, 200.0));
    }),
    quiet("waits-on-syncs", "the other rule has told it", None, |s| streaming(s, 6.0, 62.0, 180.0)),
    quiet("waits-on-syncs", "no leave to look", Some(blind), |s| {
        s.ticks(8, |t| t.syncs = Reading::Denied("needs CAP_BPF".into()));
    }),
    quiet("syncs-behind-a-stream", "syncs beside the stream are quick", None, |s| {
        streaming(s, 200.0, 60.0, 9.0);
    }),
    quiet("syncs-behind-a-stream", "nobody else writes", None, |s| {
        s.ticks(8, |t| syncs(t, 6.0, 62.0, 180.0));
    }),
    quiet("syncs-behind-a-stream", "the stream goes to another disk", None, |s| {
        s.ticks(8, |t| {
            with(t, load(NVME, "nvme0n1", (1500.0, 1.0, 2.0, 1024.0, 0.0)));
            syncs(t, 6.0, 62.0, 180.0);
        });
        s.task(4711, "dd", |_| {}, IoBytes { write: 300 << 20, ..IoBytes::default() }, 0);
    }),
    quiet("syncs-behind-a-stream", "just begun", Some(early), |s| {
        s.ticks(2, |t| syncs(t, 6.0, 62.0, 180.0));
    }),
    quiet("syncs-behind-a-stream", "nobody wants to know", Some(|j| *j == Judged::Yes), |s| {
        s.ticks(8, |t| t.syncs = Reading::Absent(NOT_REQUESTED.into()));
    }),
    quiet("syncs-behind-a-stream", "no tracepoints to be seen", Some(blind), |s| {
        s.ticks(8, |t| t.syncs = Reading::Absent("tracefs is not mounted".into()));
    }),
];
