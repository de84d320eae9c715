//! Caches in front of slow devices (dm-cache, bcache) that do not work, or that hold more and more that is nowhere else.

use super::device_health::{growth, named_finding};
use super::prelude::*;
use crate::model::health::{CacheHealth, DeviceHealth, Health};

/// From this share of the cache on, nearly every write waits until another block was written back.
const FULL_OF_DIRTY_PCT: u64 = 90;
/// Less dirty data is soon written.
const MIN_DIRTY_BYTES: u64 = 64 << 20;
/// A device with fewer requests is idle, and writes back could go on.
const IDLE_TPS: f64 = 2.0;
const IDLE_SECS: f64 = 8.0;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for found in &ctx.require_facts("health of the devices")?.health {
        let Health::Cache(cache) = &found.health else { continue };
        let Some((severity, problem)) = problem_of(ctx, found, cache) else { continue };
        let name = ctx.find_device(&found.device).map_or_else(|| found.device.clone(), |id| ctx.device_name(id));
        let finding = named_finding(ctx, severity, &found.device, format!("{} {name} {problem}", cache.kind))
            .fact_opt("state", Some(cache.state.clone()).filter(|state| !state.is_empty()))
            .fact_opt("needs check", cache.needs_check.then(|| "yes".to_owned()))
            .fact_opt("dirty", cache.dirty_bytes.filter(|n| *n > 0).map(|n| format::bytes(n as f64)))
            .fact_opt("cache size", cache.size_bytes.map(|bytes| format::bytes(bytes as f64)))
            .fact_opt("I/O errors", cache.io_errors.filter(|n| *n > 0).map(|n| n.to_string()))
            .why(
                "With writeback the newest data is in the cache only. Without the cache the device below is slow, and if the \
                 cache is lost, so is what was not written back.",
            )
            .advise_at("read the kernel log for the cause", NavTarget::KernelLog(None));
        match severity {
            Severity::Critical => finding
                .advise(repair_of(&cache.kind))
                .costs("the device is away meanwhile; without a repair, what was not written back is lost"),
            _ => finding.advise("see whether the device below or the cache is slow or has errors, and what the policy of the cache writes back"),
        }
        .report(out);
    }
    Ok(())
}

/// How to repair a cache that has failed.
fn repair_of(kind: &str) -> &'static str {
    match kind {
        "bcache" => {
            "stop using it and check the backup. If its cache device is lost for good, detach it (1 into bcache/detach of the \
             device) and check the file system: the newest writes are missing"
        }
        _ => {
            "check the backup, deactivate it, and repair the metadata of the cache (lvconvert --repair CACHEPOOL, or cache_check \
             and cache_repair). To remove the cache instead (lvconvert --uncache --force) loses what was not written back"
        }
    }
}

fn problem_of(ctx: &RuleContext<'_>, found: &DeviceHealth, cache: &CacheHealth) -> Option<(Severity, String)> {
    let problem = match cache.state.as_str() {
        "Fail" | "Error" => Some("has failed: the kernel permits no I/O on it"),
        "ro" => Some("cannot change its metadata any more: writes fail"),
        "inconsistent" => Some("was used without its cache while that held newer data: its content is inconsistent"),
        _ => None,
    };
    if let Some(problem) = problem {
        return Some((Severity::Critical, problem.to_owned()));
    }
    if cache.needs_check {
        return Some((
            Severity::Critical,
            "needs a check of its metadata: it will not be activated again without".into(),
        ));
    }
    if cache.state == "no cache" {
        return Some((Severity::Warn, "works without a cache: every request goes to the slow device".into()));
    }
    if let Some(count) = growth(ctx, found, |health| cache_of(health)?.io_errors) {
        return Some((Severity::Warn, format!("had {count} I/O errors since the reading before")));
    }
    let dirty_bytes = cache.dirty_bytes?;
    let pct = cache.size_bytes.map(|size| dirty_bytes.saturating_mul(100) / size.max(1));
    let dirty = format::bytes(dirty_bytes as f64);
    match pct.filter(|pct| *pct >= FULL_OF_DIRTY_PCT) {
        Some(pct) => {
            Some((Severity::Warn, format!("is {pct}% dirty ({dirty}): writes go at the speed of the device below")))
        }
        None if is_stuck(ctx, found, &cache.kind, dirty_bytes) => {
            Some((Severity::Note, format!("keeps {dirty} dirty while it is idle: nothing is written back")))
        }
        None => None,
    }
}

fn cache_of(health: &Health) -> Option<&CacheHealth> {
    if let Health::Cache(cache) = health { Some(cache) } else { None }
}

/// Whether dirty blocks of an idle dm-cache do not become fewer. bcache keeps `writeback_percent` of its cache dirty on purpose.
fn is_stuck(ctx: &RuleContext<'_>, found: &DeviceHealth, kind: &str, dirty_bytes: u64) -> bool {
    let before = ctx.system.slow_facts.previous.as_ref().and_then(|facts| {
        let same = facts.health.iter().find(|health| health.device == found.device)?;
        cache_of(&same.health)?.dirty_bytes
    });
    let is_idle = || {
        let id = ctx.find_device(&found.device)?;
        Some(ctx.device_mean(id, IDLE_SECS, |device| device.tps)? < IDLE_TPS)
    };
    kind == "dm-cache"
        && dirty_bytes >= MIN_DIRTY_BYTES
        && before.is_some_and(|before| before <= dirty_bytes)
        && is_idle() == Some(true)
}
