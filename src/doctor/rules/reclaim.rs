//! Tasks that have to make room in memory themselves before they get any: each allocation may wait for pages to be
//! scanned, written out, or given up by somebody else. Who pays is often not who fills the memory.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{IoTask, RuleContext, StalledTask, Sustained};
use crate::model::memory_stalls::{MemoryStalls, RECLAIM};
use crate::model::snapshot::Snapshot;

/// The rule.
pub const RULE: Rule =
    Rule { name: "reclaim-stalls", description: "a task is held up making room in memory by itself", evaluate: look };

/// Over so long.
const WINDOW_SECS: f64 = 5.0;
/// One task loses so many milliseconds of each second. A stream that recycles its own cache in a control group loses
/// less than half of that.
const WARN_MS_PER_S: f64 = 200.0;
/// It hardly gets anywhere.
const CRITICAL_MS_PER_S: f64 = 700.0;
/// A stream that fills the cache: bytes per second.
const STREAM_BYTES_PER_S: f64 = 32.0 * 1_048_576.0;
/// Tasks named.
const MAX_NAMED_TASKS: usize = 3;

fn is_stalled_in_reclaim(s: &Snapshot) -> Option<bool> {
    let stalls: &MemoryStalls = s.memory_stalls.ok()?;
    stalls.totals[RECLAIM]?;
    Some(stalls.processes.iter().any(|t| t.rates[RECLAIM].ms_per_s >= WARN_MS_PER_S))
}

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let snap = &case.system.snapshot;
    if let Some(why) = snap.memory_stalls.unavailable_reason(case.now_ns()) {
        return RuleStatus::Unavailable(why);
    }
    if let Some(why) =
        snap.memory_stalls.ok().filter(|s| s.totals[RECLAIM].is_none()).and_then(|s| s.unavailable.first())
    {
        return RuleStatus::Unavailable(why.clone());
    }
    let since = match case.sustained(WINDOW_SECS, is_stalled_in_reclaim) {
        Sustained::TooEarly => return RuleStatus::NeedsMoreData("a few seconds of traced stalls"),
        Sustained::NotSustained => return RuleStatus::Evaluated,
        Sustained::Since(since) => since,
    };
    let victims = case.stalled_tasks(WINDOW_SECS, RECLAIM);
    if let Some(first) = victims.first().filter(|v| v.ms_per_s >= WARN_MS_PER_S) {
        out.push(build_finding(case, first, &victims, since));
    }
    RuleStatus::Evaluated
}

fn build_finding(case: &RuleContext<'_>, first: &StalledTask, victims: &[StalledTask], since: u64) -> Finding {
    let severity = if first.ms_per_s >= CRITICAL_MS_PER_S { Severity::Critical } else { Severity::Warn };
    let row = case.system.processes.get(&first.key);
    let cgroup = row.as_ref().and_then(|r| r.cgroup).map(crate::sanitize::sanitize).filter(|c| c != "/");
    let title = format!(
        "{} loses {} of its time making room in memory (direct reclaim)",
        first.name,
        format::percent(first.ms_per_s / 10.0)
    );
    let subject = FindingSubject::Task(first.key, first.name.clone());
    let mut f = Finding::new(RULE.name, severity, subject, title).since(since);
    for v in victims.iter().take(MAX_NAMED_TASKS) {
        let text =
            format!("{}, {} of the time, up to {:.0} ms at once", v.name, format::percent(v.ms_per_s / 10.0), v.max_ms);
        f = f.fact("in direct reclaim", text);
    }
    if let Some(m) = find_stream(case) {
        let own = if m.key.pid == first.key.pid { " (the task itself)" } else { "" };
        f = f.fact(
            "streams most",
            format!("{}, {}{own}", m.name, format::bytes_per_s(m.read_bytes_per_s + m.write_bytes_per_s)),
        );
    }
    f.fact_opt("control group", cgroup)
        .fact_opt(
            "memory pressure, all tasks waiting",
            case.snapshot().and_then(|s| s.pressure.ok()?.memory.full).map(|p| format::percent(p.avg10)),
        )
        .why(
            "The kernel keeps pages ready in the background. When they are used up faster, whoever asks next has to find \
             some by itself and stands still meanwhile; in a control group at its limit each of its tasks does.",
        )
        .advise(
            "run what streams past the cache, or in a control group with a memory.high of its own",
            "it may get slower",
        )
        .advise(
            "raise the limit of the control group, or give the task's group memory.low",
            "memory that others lack",
        )
        .advise_at(
            "have the kernel keep more pages ready: raise vm.watermark_scale_factor",
            "a little memory that is never used",
            NavTarget::Knob("vm.watermark_scale_factor".into()),
        )
        .see_also(NavTarget::Task(first.key))
}

/// Who fills the cache, if somebody moves enough for that.
fn find_stream(case: &RuleContext<'_>) -> Option<IoTask> {
    case.top_io_tasks(WINDOW_SECS)
        .into_iter()
        .find(|m| !m.is_kernel_thread && m.read_bytes_per_s + m.write_bytes_per_s >= STREAM_BYTES_PER_S)
}
