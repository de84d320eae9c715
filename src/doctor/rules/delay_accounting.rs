//! Who waits for I/O is not counted, just when somebody wants to know.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, Sustained};

/// The rule.
pub const RULE: Rule = Rule {
    name: "delay-accounting-off",
    description: "tasks wait for I/O while waiting times are not counted",
    evaluate: look,
};

/// Share of CPU time spent idle with I/O outstanding, from which on it is a question who waits.
const MIN_IOWAIT_PCT: f64 = 20.0;
/// Or share of time in which some task waited (some avg10).
const MIN_IO_PRESSURE_PCT: f64 = 30.0;
/// Over so long.
const WINDOW_SECS: f64 = 5.0;

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if case.system.slow_facts.knob_number("kernel.task_delayacct") != Some(0) {
        return RuleStatus::Evaluated;
    }
    let waits = |s: &crate::model::snapshot::Snapshot| {
        let iowait = s.cpu.ok().map(|c| c.iowait_pct >= MIN_IOWAIT_PCT);
        let some = s.pressure.ok().and_then(|p| p.io.some).map(|p| p.avg10 >= MIN_IO_PRESSURE_PCT);
        Some(iowait? || some.unwrap_or(false))
    };
    let since = match case.sustained(WINDOW_SECS, waits) {
        Sustained::TooEarly => return RuleStatus::NeedsMoreData("a few seconds of CPU counters"),
        Sustained::NotSustained => return RuleStatus::Evaluated,
        Sustained::Since(since) => since,
    };
    let iowait = case.mean(WINDOW_SECS, |s| Some(s.cpu.ok()?.iowait_pct)).unwrap_or(0.0);
    out.push(
        Finding::new(
            RULE.name,
            Severity::Note,
            FindingSubject::Machine,
            "tasks wait for I/O, and which ones is not counted: kernel.task_delayacct is 0".into(),
        )
        .fact("iowait", format::percent(iowait))
        .fact("kernel.task_delayacct", "0")
        .since(since)
        .why("The IO% column stays empty. Since Linux 5.14 waiting times are only counted when switched on, from then on.")
        .advise_at(
            "set kernel.task_delayacct to 1",
            "some tens of ns for each wait; only waits after that are counted",
            NavTarget::Knob("kernel.task_delayacct".into()),
        )
        .see_also(NavTarget::Processes),
    );
    RuleStatus::Evaluated
}
