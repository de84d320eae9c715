//! Tasks in direct reclaim: an allocation waits until the task itself has scanned and freed pages. The task that waits is
//! often not the one that fills memory.

use super::prelude::*;
use crate::doctor::busiest_tasks::StalledTask;
use crate::model::memory_stalls::RECLAIM;

pub(super) const WINDOW_SECS: f64 = 5.0;
/// A stream that recycles its own cache in a control group loses less than half of this.
pub(super) const WARN_MS_PER_S: f64 = 200.0;
/// The task makes hardly any progress.
const CRITICAL_MS_PER_S: f64 = 700.0;
/// I/O that fills the cache.
const STREAM_BYTES_PER_S: f64 = 32.0 * 1_048_576.0;
const MAX_NAMED_TASKS: usize = 3;

fn is_stalled(tick: &Snapshot) -> Option<bool> {
    let stalls = tick.memory_stalls.ok()?;
    stalls.totals[RECLAIM]?;
    Some(stalls.processes.iter().any(|process| process.rates[RECLAIM].ms_per_s >= WARN_MS_PER_S))
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let stalls = ctx.require(&ctx.system.snapshot.memory_stalls)?;
    if let (None, Some(why)) = (stalls.totals[RECLAIM], stalls.unavailable.first()) {
        return Err(RuleSkipped::Unavailable(why.clone()));
    }
    let Some(since) = ctx.sustained(WINDOW_SECS, is_stalled, "a few seconds of traced stalls")? else { return Ok(()) };
    let tasks = ctx.stalled_tasks(ctx.figure_secs(since, WINDOW_SECS), RECLAIM);
    if let Some(first) = tasks.first().filter(|task| task.ms_per_s >= WARN_MS_PER_S) {
        out.push(build_finding(ctx, first, &tasks).since(since));
    }
    Ok(())
}

fn build_finding(ctx: &RuleContext<'_>, first: &StalledTask, tasks: &[StalledTask]) -> Finding {
    let severity = Severity::critical_if(first.ms_per_s >= CRITICAL_MS_PER_S);
    let row = ctx.system.processes.get(&first.key);
    let cgroup = row.as_ref().and_then(|row| row.cgroup()).map(sanitize).filter(|cgroup| cgroup != "/");
    let pressure = ctx.snapshot().and_then(|s| s.pressure.ok()?.memory.full).map(|psi| format::percent(psi.avg10));
    let title = format!("{} spends {} of its time in direct reclaim", first.name, first.percent());

    let mut finding = Finding::of_task(severity, first.key, &first.name, title);
    for task in tasks.iter().take(MAX_NAMED_TASKS) {
        let stalls = format!("{}, {} of the time, up to {:.0} ms at once", task.name, task.percent(), task.max_ms);
        finding = finding.fact("in direct reclaim", stalls);
    }
    let mut io_tasks = ctx.top_io_tasks(WINDOW_SECS).into_iter();
    if let Some(task) = io_tasks.find(|t| !t.is_kernel_thread && t.bytes_per_s() >= STREAM_BYTES_PER_S) {
        let itself = if task.key.pid == first.key.pid { " (the task itself)" } else { "" };
        let rate = format::bytes_per_s(task.bytes_per_s());
        finding = finding.fact("largest stream", format!("{}, {rate}{itself}", task.name));
    }
    finding
        .in_cgroup(cgroup.as_deref())
        .fact_opt("control group", cgroup)
        .fact_opt("memory pressure, full", pressure)
        .why(
            "The kernel frees pages in the background. When they are used up faster, each task that allocates has to \
             free some itself and waits; in a cgroup at its memory limit, each of its tasks does.",
        )
        .advise("use direct I/O for the stream, or give it a cgroup with memory.high")
        .costs("it may get slower")
        .advise("raise the cgroup's limit, or give the task's cgroup memory.low")
        .costs("others have less memory")
        .advise_at(
            "have the kernel keep more pages free: raise vm.watermark_scale_factor",
            knob("vm.watermark_scale_factor"),
        )
        .costs("a little memory is never used")
}
