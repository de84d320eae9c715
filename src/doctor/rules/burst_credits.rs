//! Devices that are fast, then slow, in a stored benchmark: burst credits of a cloud volume, or a full write cache.

use super::prelude::*;
use crate::model::slow_facts::BenchResultFacts;

/// Share of time with a request in flight from which on it matters.
const BUSY_PCT: f64 = 50.0;
const WINDOW_SECS: f64 = 5.0;
/// The device is in its slow state up to this multiple of the slow rate.
const SLOW_STATE_FACTOR: f64 = 1.2;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let facts = ctx.require_facts("stored benchmark results")?;
    let mut seen = Vec::new();
    for result in &facts.results {
        let (Some(rates), Some(id)) = (result.burst, result.device.as_deref().and_then(|d| DevId::parse(d.as_bytes())))
        else {
            continue;
        };
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let mean = |get: fn(&DiskRate) -> f64| ctx.device_mean(id, WINDOW_SECS, get);
        let (Some(util_pct), Some(tps)) = (mean(|d| d.util_pct), mean(|d| d.tps)) else { continue };
        if util_pct >= BUSY_PCT {
            out.push(build_finding(ctx, id, result, rates, tps));
        }
    }
    Ok(())
}

fn build_finding(
    ctx: &RuleContext<'_>,
    id: DevId,
    result: &BenchResultFacts,
    (fast, slow): (f64, f64),
    tps: f64,
) -> Finding {
    let (severity, now) = match tps <= slow * SLOW_STATE_FACTOR {
        true => (Severity::Warn, ", and runs at the slow rate now"),
        false => (Severity::Note, ""),
    };
    let (fast, slow) = (format!("{} IOPS", format::count(fast)), format!("{} IOPS", format::count(slow)));
    let title = format!("{} gives {fast} at first and {slow} later{now}", ctx.device_name(id));
    ctx.device_finding(severity, id, title)
        .fact("at first", fast)
        .fact("later", slow)
        .fact("now", format!("{} tps", format::count(tps)))
        .fact("measured by", format!("{} of {}", sanitize(&result.profile), sanitize(&result.time)))
        .why("Cloud volumes save credits while idle, and write caches are fast until they are full. Only the later rate lasts.")
        .advise("plan with the later rate: a larger volume, or one with provisioned IOPS").costs("money")
        .advise_at("run the benchmark again for long enough to see both", NavTarget::Bench("randrw", None)).costs("spends the credits")
}
