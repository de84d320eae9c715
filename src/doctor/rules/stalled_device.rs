//! A device that has requests in flight and completes none. Its await is then 0 in every other tool, because
//! nothing completes (Documentation/admin-guide/iostats.rst).

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, Sustained};

/// The rule.
pub const RULE: Rule =
    Rule { name: "device-stalled", description: "requests in flight and none completing", evaluate: look };

/// Without a completion for so long it is no slow request any more: a spinning disk in error recovery gives up
/// or answers within 7 s, all others much sooner.
const STALLED_SECS: f64 = 4.0;

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(why) = case.system.snapshot.devices.unavailable_reason(case.now_ns()) {
        return RuleStatus::Unavailable(why);
    }
    let mut judged = RuleStatus::NeedsMoreData("a few seconds of device counters");
    for d in case.devices() {
        let held = case.sustained(STALLED_SECS, |s| s.device(d.id).map(|d| d.stalled));
        match held {
            Sustained::TooEarly => continue,
            _ => judged = RuleStatus::Evaluated,
        }
        let (Sustained::Since(since), true) = (held, d.stalled) else { continue };
        // What lies on a stalled device stalls with it: the lowest one is the news.
        let below = case.device_chain(d.id);
        let lower =
            |id: &crate::model::disk::DevId| case.snapshot().and_then(|s| s.device(*id)).is_some_and(|d| d.stalled);
        if below.iter().skip(1).any(lower) {
            continue;
        }
        let name = case.device_name(d.id);
        let secs = case.now_ns().saturating_sub(since) as f64 / 1e9;
        let one = d.in_flight == 1;
        let title = format!(
            "{name} is stalled: {} request{} in flight, none completed for {}",
            d.in_flight,
            if one { "" } else { "s" },
            format::duration(secs)
        );
        out.push(
            Finding::new(RULE.name, Severity::Critical, FindingSubject::Device(d.id, name.clone()), title)
                .fact("in flight", d.in_flight.to_string())
                .fact("completed", "0")
                .fact("for", format::duration(secs))
                .since(since)
                .why(
                    "Whoever needs this device waits for good: reads, syncs, and every write once the dirty limit is \
                     reached. Signals do not help tasks that wait for it.",
                )
                .advise_at("read what the kernel says of the device or its link", "nothing", NavTarget::KernelLog(None))
                .advise(
                    "check the path to it: controller, cable, multipath, the server behind a network or loop device, a \
                     frozen file system beneath (fsfreeze)",
                    "nothing",
                )
                .advise("do not change its queue settings now: the write would hang as well", "none; it is a warning")
                .see_also(NavTarget::Device(d.id))
                .on_devices(below),
        );
    }
    match (judged, case.snapshot().is_some_and(|s| s.devices.ok().is_some_and(Vec::is_empty))) {
        (_, true) => RuleStatus::Evaluated,
        (judged, _) => judged,
    }
}
