//! Processes near their limit of open files, beyond which open() and accept() fail with EMFILE.

use super::prelude::*;

/// From here on a burst of connections or data files reaches the limit.
pub(super) const WARN_PCT: f64 = 80.0;
/// From here on opening fails now and then.
const CRITICAL_PCT: f64 = 97.0;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for files in &ctx.require_facts("open files of the processes")?.open_files {
        let Some(soft) = files.soft.filter(|n| *n > 0) else { continue };
        let used_pct = files.open as f64 * 100.0 / soft as f64;
        if used_pct < WARN_PCT {
            continue;
        }
        let Some(row) = ctx.system.processes.get(&files.key) else { continue };
        let severity = Severity::critical_if(used_pct >= CRITICAL_PCT);
        let title = format!("{} has {} of {soft} files open", row.label(), files.open);
        Finding::of_task(severity, files.key, &row.comm(), title)
            .fact("open", files.open.to_string())
            .fact("soft limit", soft.to_string())
            .fact("hard limit", files.hard.map_or("unlimited".into(), |n| n.to_string()))
            .fact("used", format::percent(used_pct))
            .why("At the limit, opening files and accepting connections fails; databases stop or lose their log.")
            .advise_at(
                "raise its limit now (databases recommend 40,000 and more)",
                knob(format!("nofile@{}", row.pid())),
            )
            .costs("kernel memory for each file; lasts until it exits, so set LimitNOFILE= or limits.conf as well")
            .advise("check for a leak: does the number only grow?")
            .report(out);
    }
    Ok(())
}
