//! Dirty pages that would take long to write at the present rate: a sync, a clean shutdown or a file system
//! that is unmounted waits for all of them.

use super::writeback::dirty_bytes;
use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, Sustained};
use crate::model::snapshot::Snapshot;

/// The rule.
pub const RULE: Rule =
    Rule { name: "slow-drain", description: "dirty pages that take long to write at the present rate", evaluate: look };

/// The kernel itself wants no page dirty for longer than this (vm.dirty_expire_centisecs = 3000).
const WARN_SECS: f64 = 30.0;
/// Services are killed when they do not end within this time (systemd's TimeoutStopSec is 90 s).
const CRITICAL_SECS: f64 = 90.0;
/// Less is not worth a word, bytes.
const MIN_DIRTY_BYTES: f64 = 32.0 * 1_048_576.0;
/// The rate is a mean over so long: writeback comes in bursts.
const WINDOW_SECS: f64 = 8.0;

/// Less than a page per second is nothing, bytes.
const MIN_WRITE_BYTES_PER_S: f64 = 4096.0;

/// The flushers are at work at their full speed: below the background threshold they only write what expired,
/// and their rate says nothing of what they could do.
fn is_flushing(s: &Snapshot) -> Option<bool> {
    let w = s.writeback.ok()?;
    let all = dirty_bytes(w)?;
    Some(all >= MIN_DIRTY_BYTES && all >= w.background_threshold_bytes? as f64)
}

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(why) = case.system.snapshot.writeback.unavailable_reason(case.now_ns()) {
        return RuleStatus::Unavailable(why);
    }
    let since = match case.sustained(WINDOW_SECS, is_flushing) {
        Sustained::TooEarly => return RuleStatus::NeedsMoreData("a few seconds of writeback counters"),
        Sustained::NotSustained => return RuleStatus::Evaluated,
        Sustained::Since(since) => since,
    };
    let Some(w) = case.system.snapshot.writeback.ok() else { return RuleStatus::Evaluated };
    let (Some(all), Some(written)) =
        (dirty_bytes(w), case.mean(WINDOW_SECS, |s| s.writeback.ok()?.written_bytes_per_s))
    else {
        return RuleStatus::Evaluated;
    };
    let secs = all / written.max(1.0);
    if secs < WARN_SECS {
        return RuleStatus::Evaluated;
    }
    let severity = if secs >= CRITICAL_SECS { Severity::Critical } else { Severity::Warn };
    // Without a trickle the quotient is no time at all.
    let title = match written < MIN_WRITE_BYTES_PER_S {
        true => format!("{} of dirty pages do not get less: nothing is written", format::bytes(all)),
        false => format!(
            "{} of dirty pages take {} to write at the present {}",
            format::bytes(all),
            format::duration(secs),
            format::bytes_per_s(written)
        ),
    };
    out.push(
        Finding::new(RULE.name, severity, FindingSubject::Machine, title)
            .fact("dirty + writeback", format::bytes(all))
            .fact("written", format::bytes_per_s(written))
            .fact_opt("time to drain", (written >= MIN_WRITE_BYTES_PER_S).then(|| format::duration(secs)))
            .fact_opt("dirtied", w.dirtied_bytes_per_s.map(format::bytes_per_s))
            .since(since)
            .why(
                "A sync, an unmount or a shutdown has to wait for all of it, and a power cut loses it. Programs that \
                 only sync a little wait behind it on the same device.",
            )
            .advise_at(
                "cap the backlog: lower vm.dirty_bytes to what the device writes in a few seconds",
                "writers are slowed down to the device's speed sooner",
                NavTarget::Knob("vm.dirty_bytes".into()),
            )
            .advise_at("find who dirties: the WRITE column", "nothing", NavTarget::Processes)
            .see_also(NavTarget::Memory),
    );
    RuleStatus::Evaluated
}
