//! Devices that are fast, then slow, in a stored benchmark: burst credits of a cloud volume, or a full write cache.

use super::prelude::*;
use crate::model::slow_facts::BenchResultFacts;
use crate::model::topology::MountRef;

/// Share of time with a request in flight from which on it matters.
const BUSY_PCT: f64 = 50.0;
const WINDOW_SECS: f64 = 5.0;
/// The device is in its slow state up to this multiple of the slow rate.
const SLOW_STATE_FACTOR: f64 = 1.2;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let facts = ctx.require_facts("stored benchmark results")?;
    let mut seen = Vec::new();
    for result in &facts.results {
        let (Some(rates), Some(id)) = (result.burst, measured_device(ctx, result)) else { continue };
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

/// The device that a result is of. Since the last boot its number may belong to another one, so it has to be mounted where it
/// was, on a disk that calls itself the same.
fn measured_device(ctx: &RuleContext<'_>, result: &BenchResultFacts) -> Option<DevId> {
    let id = DevId::parse(result.device.as_deref()?.as_bytes())?;
    let topology = ctx.system.topology.ok()?;
    let is_there = |mount: &MountRef| mount.mount_point.sanitized() == result.mount;
    if !result.mount.is_empty() && !topology.mounts_of(id).iter().any(is_there) {
        return None;
    }
    let models: Vec<&str> = topology.physical_disks(id).filter_map(|disk| disk.model.as_deref()).collect();
    let is_other = |was: &str| !models.is_empty() && !models.iter().any(|model| model.trim() == was.trim());
    Some(id).filter(|_| !result.model.as_deref().is_some_and(is_other))
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
