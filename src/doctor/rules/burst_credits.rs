//! Fast, then slow: burst credits of a cloud volume, or a write cache that ran full, as benchmarks kept on this
//! machine have shown.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::slow_facts::BenchResultFacts;

/// The rule.
pub const RULE: Rule = Rule {
    name: "burst-credits",
    description: "a device that was fast, then slow in a kept benchmark",
    evaluate: look,
};

/// It matters while the device works, share of time with a request in flight.
const BUSY_PCT: f64 = 50.0;
/// Over so long.
const WINDOW_SECS: f64 = 5.0;
/// The device is in its slow state when it gives at most this much more than the slow figure.
const SLOW_STATE_FACTOR: f64 = 1.2;

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let Some(facts) = &case.system.slow_facts.latest else {
        return RuleStatus::NeedsMoreData("the kept benchmark results");
    };
    let mut told = Vec::new();
    for r in &facts.results {
        let (Some((fast, slow)), Some(id)) = (r.burst, r.device.as_deref().and_then(parse_device)) else {
            continue;
        };
        if told.contains(&id) {
            continue;
        }
        told.push(id);
        let mean = |get: fn(&crate::model::disk::DiskRate) -> f64| case.device_mean(id, WINDOW_SECS, get);
        let (Some(util), Some(tps)) = (mean(|d| d.util_pct), mean(|d| d.tps)) else { continue };
        if util >= BUSY_PCT {
            out.push(build_finding(case, id, r, (fast, slow), tps));
        }
    }
    RuleStatus::Evaluated
}

fn parse_device(text: &str) -> Option<DevId> {
    let (major, minor) = text.split_once(':')?;
    Some(DevId { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

fn build_finding(
    case: &RuleContext<'_>,
    id: DevId,
    r: &BenchResultFacts,
    (fast, slow): (f64, f64),
    tps: f64,
) -> Finding {
    let name = case.device_name(id);
    let spent = tps <= slow * SLOW_STATE_FACTOR;
    let now = if spent { ", and it is at its slow rate now" } else { "" };
    Finding::new(
        RULE.name,
        if spent { Severity::Warn } else { Severity::Note },
        FindingSubject::Device(id, name.clone()),
        format!("{name} gives {} IOPS at first and {} later{now}", format::count(fast), format::count(slow)),
    )
    .fact("at first", format!("{} IOPS", format::count(fast)))
    .fact("later", format!("{} IOPS", format::count(slow)))
    .fact("now", format!("{} tps", format::count(tps)))
    .fact("measured by", format!("{} of {}", crate::sanitize::sanitize(&r.profile), crate::sanitize::sanitize(&r.time)))
    .why("Cloud volumes save up credits while idle; disks with a write cache are fast until it is full. What lasts is the later figure.")
    .advise("plan with the later figure: a larger volume or one with provisioned IOPS", "money")
    .advise_at("measure again for long enough to see both", "spends the credits", NavTarget::Bench("randrw", None))
    .see_also(NavTarget::Device(id))
    .on_devices(case.device_chain(id))
}
