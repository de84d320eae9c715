//! Delay accounting is off while tasks wait for I/O, so nothing shows which ones.

use super::prelude::*;

/// CPU time spent idle with I/O outstanding ...
const MIN_IOWAIT_PCT: f64 = 20.0;
/// ... or time in which some task waited for I/O (PSI some avg10).
const MIN_IO_PRESSURE_PCT: f64 = 30.0;
const WINDOW_SECS: f64 = 5.0;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    if ctx.system.slow_facts.knob_number("kernel.task_delayacct") != Some(0) {
        return Ok(());
    }
    let is_waiting = |tick: &Snapshot| {
        let pressure = tick.pressure.ok().and_then(|p| p.io.some).map_or(0.0, |psi| psi.avg10);
        Some(tick.cpu.ok()?.iowait_pct >= MIN_IOWAIT_PCT || pressure >= MIN_IO_PRESSURE_PCT)
    };
    let Some(since) = ctx.sustained(WINDOW_SECS, is_waiting, "a few seconds of CPU counters")? else { return Ok(()) };
    let iowait_pct = ctx.mean(WINDOW_SECS, |tick| Some(tick.cpu.ok()?.iowait_pct)).unwrap_or(0.0);
    let title = "tasks wait for I/O, but kernel.task_delayacct is 0, so it is not recorded which ones";
    Finding::of_machine(Severity::Note, title)
        .fact("iowait", format::percent(iowait_pct))
        .fact("kernel.task_delayacct", "0")
        .since(since)
        .why("The IO% column is empty. Since Linux 5.14 delays are counted only while this is on.")
        .advise_at("set kernel.task_delayacct to 1", knob("kernel.task_delayacct"))
        .costs("some tens of ns for each wait; earlier waits stay uncounted")
        .see_also(NavTarget::Processes)
        .report(out);
    Ok(())
}
