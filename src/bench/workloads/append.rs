//! An append-only log under three policies: sync always, every second in a second thread,
//! never. It shows how long a write waits while a sync is running.

use super::workload::{PlannedWrites, Workload};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::BenchPlan;
use crate::bench::report::Measurement;
use crate::bench::rng::Rng;
use crate::bench::session::{BenchSession, RunError};
use crate::bench::target::BenchFile;
use crate::units::format_bytes_long;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The workload of this module.
pub struct AppendWorkload;

/// Limits the rate by sleeping.
pub struct RateLimiter {
    interval_ns: u64,
    due_ns: u64,
}

impl RateLimiter {
    /// The plan's rate limit, from `now` on.
    pub fn new(plan: &BenchPlan, now: u64) -> Self {
        Self { interval_ns: plan.op_interval_ns(plan.block), due_ns: now }
    }

    /// Waits until the next operation may begin; returns the time after that.
    pub fn wait_for_turn(&mut self) -> u64 {
        let mut now = monotonic_ns();
        if self.interval_ns > 0 {
            if now < self.due_ns {
                std::thread::sleep(Duration::from_nanos(self.due_ns - now));
                now = monotonic_ns();
            }
            self.due_ns += self.interval_ns;
        }
        now
    }
}

/// Checks a plan for workloads that make one system call after the other through the page cache.
pub fn check_buffered_and_sequential(name: &str, plan: &BenchPlan) -> Result<(), String> {
    if plan.direct {
        return Err(format!("{name} works through the page cache: leave out --direct"));
    }
    if plan.depth != 1 || plan.jobs != 1 {
        return Err(format!("{name} makes one call at a time: leave out --depth and --jobs"));
    }
    Ok(())
}

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

/// Appends until the time or size limit.
fn append_records(
    session: &BenchSession,
    recorder: &OpRecorder,
    file: &BenchFile,
    policy: SyncPolicy,
    done: &AtomicBool,
) -> Result<(), RunError> {
    let plan = &session.plan;
    let fd = file.buffered_fd();
    let mut record = vec![0; plan.block as usize];
    Rng::new(plan.seed, 0).fill_bytes(&mut record);
    let begin = monotonic_ns();
    let end = if plan.time_ms == 0 { u64::MAX } else { begin + plan.time_ms * 1_000_000 };
    let mut pace = RateLimiter::new(plan, begin);
    let mut at = 0u64;
    while !done.load(Ordering::Relaxed) {
        session.check_cancelled()?;
        let start = pace.wait_for_turn();
        let used_up = plan.io_bytes > 0 && at >= plan.io_bytes;
        if start >= end || used_up || at + u64::from(plan.block) > plan.size {
            return Ok(());
        }
        let n = rustix::io::pwrite(fd, &record, at).map_err(|e| RunError::from_errno("write", e))?;
        at += n as u64;
        let mut now = monotonic_ns();
        recorder.record_op(OpKind::Write, n as u64, start, start, now);
        if policy == SyncPolicy::Always {
            let between = now;
            rustix::fs::fdatasync(fd).map_err(|e| RunError::from_errno("fdatasync", e))?;
            now = monotonic_ns();
            recorder.record_op(OpKind::Sync, 0, between, between, now);
        }
        recorder.record_completion_time(now);
    }
    Ok(())
}

/// Syncs once a second until `done`, which it checks every 50 ms.
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
        rustix::fs::fdatasync(file.buffered_fd()).map_err(|e| RunError::from_errno("fdatasync", e))?;
        recorder.record_op(OpKind::Sync, 0, now, now, monotonic_ns());
        due = now + 1_000_000_000;
    }
    Ok(())
}

impl Workload for AppendWorkload {
    fn name(&self) -> &'static str {
        "append"
    }

    fn about(&self) -> &'static str {
        "an append-only log: sync always, every second in a second thread, never, side by side"
    }

    fn defaults(&self) -> BenchPlan {
        BenchPlan {
            profile: "append".into(),
            size: 2 << 30,
            block: 512,
            depth: 1,
            read_pct: 0,
            direct: false,
            ramp_ms: 0,
            time_ms: 10_000,
            // Unlimited, the writes would only measure memory; 20,000 records a second is a busy log.
            rate_iops: 20_000,
            ..BenchPlan::default()
        }
    }

    fn params(&self) -> &'static [&'static str] {
        &["size", "block", "time", "rate", "rate-bytes", "io-size", "idle", "stall-limit", "seed"]
    }

    fn planned_writes(&self, plan: &BenchPlan) -> PlannedWrites {
        let times = POLICIES.len() as u64;
        let whole = plan.size.saturating_mul(times);
        let timed = PlannedWrites::timed(plan, 0, 100, times);
        PlannedWrites { additional: Some(timed.additional.map_or(whole, |n| n.min(whole))), ..timed }
    }

    fn check(&self, plan: &BenchPlan) -> Result<(), String> {
        check_buffered_and_sequential(self.name(), plan)
    }

    fn describe(&self, plan: &BenchPlan) -> Vec<String> {
        vec![
            format!(
                "three nameless files, one after the other, appended to, {} at most each",
                format_bytes_long(plan.size)
            ),
            format!(
                "records of {} bytes, at most {} a second: the same for each policy",
                plan.block,
                if plan.rate_iops == 0 { "any number".into() } else { plan.rate_iops.to_string() }
            ),
            super::workload::duration_line(plan),
        ]
    }

    fn run(&self, session: &mut BenchSession) -> Result<(), RunError> {
        let place = session.open_target()?;
        for (policy, label) in POLICIES {
            session.begin_preparation("making the next file");
            session.check_cancelled()?;
            // Space is checked for the whole file, but nothing is allocated: a log grows.
            place.check_space(session.plan.size)?;
            let file = place.create(0)?;
            let part = Measurement {
                label: label.into(),
                engine: if policy == SyncPolicy::Never { "pwrite".into() } else { "pwrite, fdatasync".into() },
                block: session.plan.block,
                ..Measurement::default()
            };
            let goal = (session.plan.time_ms * 1_000_000, session.plan.io_bytes);
            session.measure_custom(part, goal, |session, recorder, part| {
                let done = AtomicBool::new(false);
                let second = OpRecorder::new();
                second.start_counting(monotonic_ns());
                let failed = Mutex::new(None);
                let ended = std::thread::scope(|scope| {
                    if policy == SyncPolicy::EverySecond {
                        scope.spawn(|| {
                            if let Err(stop) = sync_every_second(session, &file, &done, &second) {
                                *failed.lock().unwrap_or_else(|e| e.into_inner()) = Some(stop);
                                done.store(true, Ordering::Relaxed);
                            }
                        });
                    }
                    let ended = append_records(session, recorder, &file, policy, &done);
                    done.store(true, Ordering::Relaxed);
                    ended
                });
                if policy == SyncPolicy::EverySecond {
                    part.sync = second.sync_stats();
                }
                let longest = recorder.direction_stats(OpKind::Write).lat.max_ns;
                part.add_metric("longest write", longest as f64 / 1e6, "ms");
                match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
                    Some(stop) => Err(stop),
                    None => ended,
                }
            })?;
        }
        session.finish_measuring();
        Ok(())
    }
}
