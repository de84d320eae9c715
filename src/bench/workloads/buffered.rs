//! What the workloads share that make one system call after the other through the page cache.

use super::workload::{PlannedWrites, Workload, lower_is_better};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::plan::{BenchPlan, PlanError, require};
use crate::bench::rng::Rng;
use crate::bench::session::{BenchSession, RunError};
use crate::bench::target::BenchFile;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A workload with such a plan; the rest is its own.
pub(super) const BUFFERED: Workload = Workload {
    name: "",
    brief: "",
    about: "",
    needs_directory: true,
    params: "size block rate rate-bytes idle stall-limit seed",
    plan: one_call_plan,
    check: check_one_call,
    footprint: |plan| plan.size,
    own_bytes: |_, _| None,
    expects_device: |_| false,
    planned_writes: |plan| PlannedWrites { guaranteed: plan.size, additional: Some(0) },
    describe: |_| Vec::new(),
    has_reference_classes: |_| false,
    metric: lower_is_better("", "", |_| None),
    conclude: |_| None,
    run: |_| Ok(()),
};

/// One call at a time through the page cache, without a time limit.
pub(super) fn one_call_plan() -> BenchPlan {
    BenchPlan { depth: 1, direct: false, ramp_ms: 0, time_ms: 0, ..BenchPlan::default() }
}

pub(super) fn check_one_call(plan: &BenchPlan) -> Result<(), PlanError> {
    let name = &plan.profile;
    require(!plan.direct, format!("{name} works through the page cache: leave out --direct"))?;
    let is_single = plan.depth == 1 && plan.jobs == 1;
    require(is_single, format!("{name} makes one call at a time: leave out --depth and --jobs"))
}

pub(super) struct RateLimiter {
    interval_ns: u64,
    due_ns: u64,
}

impl RateLimiter {
    /// The plan's rate limit for calls of `block` bytes, from now on.
    pub(super) fn new(plan: &BenchPlan, block: u32) -> Self {
        Self { interval_ns: plan.op_interval_ns(block), due_ns: monotonic_ns() }
    }

    /// Waits until the next operation may begin; returns the time after that.
    pub(super) fn wait_for_turn(&mut self) -> u64 {
        let now = monotonic_ns();
        if self.interval_ns == 0 {
            return now;
        }
        let wait = self.due_ns.saturating_sub(now);
        self.due_ns += self.interval_ns;
        if wait == 0 {
            return now;
        }
        std::thread::sleep(Duration::from_nanos(wait));
        monotonic_ns()
    }
}

/// When the plan's time is over, if counting begins now.
pub(super) fn end_of_time(plan: &BenchPlan) -> u64 {
    if plan.time_ms == 0 { u64::MAX } else { monotonic_ns() + plan.time_ms * 1_000_000 }
}

/// Records a call that began at `start`, named `what` in errors: returns the bytes it moved, and the time now.
pub(super) fn record_call(
    recorder: &OpRecorder,
    kind: OpKind,
    start: u64,
    what: &str,
    call: io::Result<usize>,
) -> Result<(u64, u64), RunError> {
    let bytes = call.map_err(|e| RunError::from_errno(what, e))? as u64;
    let now = monotonic_ns();
    recorder.record_op(kind, bytes, start, start, now);
    Ok((bytes, now))
}

/// fdatasync, recorded; returns the time after it.
pub(super) fn record_fdatasync(recorder: &OpRecorder, file: &BenchFile, what: &str) -> Result<u64, RunError> {
    let start = monotonic_ns();
    let call = file.buffered().sync_data().map(|()| 0);
    Ok(record_call(recorder, OpKind::Sync, start, what, call)?.1)
}

#[derive(Clone, Copy)]
pub(super) struct AppendMode {
    pub sync_each: bool,
    /// Starts again at the end of the file, as write-ahead logs are recycled; else ends there.
    pub recycle: bool,
}

/// Appends records until the time or size limit, or until `done`.
pub(super) fn append_records(
    session: &BenchSession,
    recorder: &OpRecorder,
    file: &BenchFile,
    mode: AppendMode,
    done: &AtomicBool,
) -> Result<(), RunError> {
    let plan = &session.plan;
    let mut record = vec![0; plan.block as usize];
    Rng::new(plan.seed, 0).fill_bytes(&mut record);
    let end = end_of_time(plan);
    let mut pace = RateLimiter::new(plan, plan.block);
    let (mut at, mut written) = (0u64, 0u64);
    while !done.load(Ordering::Relaxed) {
        session.check_cancelled()?;
        let start = pace.wait_for_turn();
        let used_up = plan.io_bytes > 0 && written >= plan.io_bytes;
        let full = at + u64::from(plan.block) > plan.size;
        if start >= end || used_up || (full && !mode.recycle) {
            return Ok(());
        }
        at = if full { 0 } else { at };
        let call = file.buffered().write_at(&record, at);
        let (n, mut now) = record_call(recorder, OpKind::Write, start, "write", call)?;
        if mode.sync_each {
            now = record_fdatasync(recorder, file, "fdatasync")?;
        }
        recorder.record_completion_time(now);
        (at, written) = (at + n, written + n);
    }
    Ok(())
}
