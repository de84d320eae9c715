//! An append-only log synced always, every second in a second thread, or never: how long a write waits for a sync.

use super::buffered::{AppendMode, BUFFERED, append_records, one_call_plan, record_fdatasync};
use super::workload::{PlannedWrites, Workload, duration_line, log_bytes, lower_is_better, percentile_ms};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::BenchPlan;
use crate::bench::report::interpretation;
use crate::bench::session::{BenchSession, RunError};
use crate::bench::target::BenchFile;
use crate::units::format_bytes_long;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) const APPEND: Workload = Workload {
    name: "append",
    brief: "appended log",
    about: "an append-only log: sync always, every second in a second thread, never, side by side",
    params: "size block time rate rate-bytes io-size idle stall-limit seed",
    plan: || BenchPlan {
        size: 2 << 30,
        block: 512,
        read_pct: 0,
        time_ms: 10_000,
        // Unlimited, the writes would only measure memory; 20,000 records a second is a busy log.
        rate_iops: 20_000,
        ..one_call_plan()
    },
    own_bytes: log_bytes,
    planned_writes: |plan| {
        let times = POLICIES.len() as u64;
        let whole = plan.size.saturating_mul(times);
        let timed = PlannedWrites::timed(plan, 0, 100, times);
        PlannedWrites { additional: Some(timed.additional.map_or(whole, |n| n.min(whole))), ..timed }
    },
    describe,
    // The delay of a write while the sync of the second thread runs.
    metric: lower_is_better("write p99.9 with a sync every second", "ms", |r| {
        percentile_ms(&r.find("sync every second")?.write.lat, 99.9)
    }),
    conclude: interpretation::interpret_append,
    run,
    ..BUFFERED
};

#[derive(Clone, Copy, PartialEq)]
enum SyncPolicy {
    Always,
    EverySecond,
    Never,
}

const POLICIES: [(SyncPolicy, &str); 3] = [
    (SyncPolicy::Always, "sync always"),
    (SyncPolicy::EverySecond, "sync every second, in a second thread"),
    (SyncPolicy::Never, "sync never"),
];

/// Syncs once a second until `done`, which it checks every 50 ms; sets it when a sync fails.
fn sync_every_second(
    session: &BenchSession,
    file: &BenchFile,
    done: &AtomicBool,
    recorder: &OpRecorder,
) -> Result<(), RunError> {
    let mut due = monotonic_ns() + 1_000_000_000;
    while !done.load(Ordering::Relaxed) && session.check_cancelled().is_ok() {
        let now = monotonic_ns();
        if now < due {
            std::thread::sleep(Duration::from_nanos((due - now).min(50_000_000)));
            continue;
        }
        record_fdatasync(recorder, file, "fdatasync").inspect_err(|_| done.store(true, Ordering::Relaxed))?;
        due = now + 1_000_000_000;
    }
    Ok(())
}

fn describe(plan: &BenchPlan) -> Vec<String> {
    let cap = if plan.rate_iops == 0 { "any number".into() } else { plan.rate_iops.to_string() };
    vec![
        format!(
            "three nameless files, one after the other, appended to, {} at most each",
            format_bytes_long(plan.size)
        ),
        format!("records of {} bytes, at most {cap} a second: the same for each policy", plan.block),
        duration_line(plan),
    ]
}

fn run(session: &mut BenchSession) -> Result<(), RunError> {
    let place = session.open_target()?;
    for (policy, label) in POLICIES {
        session.begin_preparation("making the next file");
        session.check_cancelled()?;
        // Space is checked for the whole file, but nothing is allocated: a log grows.
        place.check_space(session.plan.size)?;
        let file = place.create(0)?;
        let part =
            session.new_measurement(label, if policy == SyncPolicy::Never { "pwrite" } else { "pwrite, fdatasync" });
        let goal = (session.plan.time_ms * 1_000_000, session.plan.io_bytes);
        session.measure_custom(part, goal, |session, recorder, part| {
            let done = AtomicBool::new(false);
            let second = OpRecorder::default();
            second.start_counting(monotonic_ns());
            let mode = AppendMode { sync_each: policy == SyncPolicy::Always, recycle: false };
            let (ended, synced) = std::thread::scope(|scope| {
                let syncs = (policy == SyncPolicy::EverySecond)
                    .then(|| scope.spawn(|| sync_every_second(session, &file, &done, &second)));
                let ended = append_records(session, recorder, &file, mode, &done);
                done.store(true, Ordering::Relaxed);
                (ended, syncs.and_then(|thread| thread.join().ok()).unwrap_or(Ok(())))
            });
            if policy == SyncPolicy::EverySecond {
                part.sync = second.sync_stats();
            }
            let longest = recorder.direction_stats(OpKind::Write).lat.max_ns;
            part.add_metric("longest write", longest as f64 / 1e6, "ms");
            synced.and(ended)
        })?;
    }
    session.finish_measuring();
    Ok(())
}
