//! Processes near their limit of open files: the next open() or accept() fails with EMFILE.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::RuleContext;

/// The rule.
pub const RULE: Rule =
    Rule { name: "open-files", description: "processes near their limit of open files", evaluate: look };

/// From here on a burst of connections or of data files is enough.
const WARN_PCT: f64 = 80.0;
/// From here on it fails now and then.
const CRITICAL_PCT: f64 = 97.0;

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let Some(facts) = &case.system.slow_facts.latest else {
        return RuleStatus::NeedsMoreData("open files of the processes");
    };
    for f in &facts.open_files {
        let Some(soft) = f.soft.filter(|n| *n > 0) else { continue };
        let used = f.open as f64 * 100.0 / soft as f64;
        if used < WARN_PCT {
            continue;
        }
        let Some(row) = case.system.processes.get(&f.key) else { continue };
        let severity = if used >= CRITICAL_PCT { Severity::Critical } else { Severity::Warn };
        out.push(
            Finding::new(
                RULE.name,
                severity,
                FindingSubject::Task(f.key, row.comm.to_string()),
                format!("{} ({}) has {} of {soft} files open", row.comm, row.pid, f.open),
            )
            .fact("open", f.open.to_string())
            .fact("soft limit", soft.to_string())
            .fact("hard limit", f.hard.map_or("unlimited".into(), |n| n.to_string()))
            .fact("used", format::percent(used))
            .why("Beyond the limit opening a file or taking a connection fails; databases stop or lose their log then.")
            .advise_at(
                "raise its limit now (databases ask for 40,000 and more)",
                "memory of the kernel for each file; lasts until it ends: also set LimitNOFILE= or limits.conf",
                NavTarget::Knob(format!("nofile@{}", row.pid)),
            )
            .advise("find a leak: does the number only grow?", "nothing")
            .see_also(NavTarget::Task(f.key)),
        );
    }
    RuleStatus::Evaluated
}
