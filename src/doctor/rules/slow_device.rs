//! A device that is slow for what it is: a request alone takes too long, or with a full queue too few come
//! out.

use super::saturation::{WINDOW_SECS, mount_point_on};
use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, Sustained};
use crate::doctor::storage_class::{StorageClass, storage_class};
use crate::model::disk::{DevId, DiskRate};

/// The rule.
pub const RULE: Rule = Rule {
    name: "slow-device",
    description: "a device slower than its class: long service with a short queue, or few requests out of a full one",
    evaluate: look,
};

/// A queue up to this is short: the wait is the device's own.
const SHORT_QUEUE: f64 = 2.0;
/// Fewer requests a second give no mean worth a verdict.
const MIN_TPS: f64 = 2.0;
/// Larger requests are about bandwidth, where requests a second say little, KiB.
const SMALL_KB: f64 = 64.0;
/// Busy all the time.
const BUSY_PCT: f64 = 95.0;

fn is_slow_with_short_queue(d: &DiskRate, class: StorageClass) -> bool {
    d.tps >= MIN_TPS && d.queue_size <= SHORT_QUEUE && d.await_ms >= class.limits().slow_ms
}

fn is_slow_with_full_queue(d: &DiskRate, class: StorageClass) -> bool {
    let limits = class.limits();
    let kb = if d.tps > 0.0 { (d.read_mb_per_s + d.write_mb_per_s) * 1024.0 / d.tps } else { 0.0 };
    d.queue_size > SHORT_QUEUE && d.util_pct >= BUSY_PCT && d.tps < limits.min_tps && kb <= SMALL_KB && d.tps > 0.0
}

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(why) = case.system.snapshot.devices.unavailable_reason(case.now_ns()) {
        return RuleStatus::Unavailable(why);
    }
    let mut judged = RuleStatus::NeedsMoreData("a few seconds of device counters");
    for d in case.devices() {
        let class = storage_class(case.system, d.id);
        let slow =
            |d: &DiskRate| !d.stalled && (is_slow_with_short_queue(d, class) || is_slow_with_full_queue(d, class));
        let held = case.sustained(WINDOW_SECS, |s| s.device(d.id).map(slow));
        if held == Sustained::TooEarly {
            continue;
        }
        judged = RuleStatus::Evaluated;
        // What lies on a slow device is slow with it, and so is what lies on one that is saturated.
        let lower = |id: &DevId| {
            let class = crate::doctor::storage_class::storage_class(case.system, *id);
            let bad = |d: &DiskRate| {
                is_slow_with_short_queue(d, class)
                    || is_slow_with_full_queue(d, class)
                    || super::saturation::is_saturated(d, class)
            };
            case.sustained(WINDOW_SECS, |s| s.device(*id).map(bad)).since().is_some()
        };
        let Sustained::Since(since) = held else { continue };
        let chain = case.device_chain(d.id);
        if !chain.iter().skip(1).any(lower) {
            out.extend(build_finding(case, d.id, class, since, chain));
        }
    }
    if case.snapshot().is_some_and(|s| s.devices.ok().is_some_and(Vec::is_empty)) {
        RuleStatus::Evaluated
    } else {
        judged
    }
}

fn build_finding(
    case: &RuleContext<'_>,
    id: DevId,
    class: StorageClass,
    since: u64,
    chain: Vec<DevId>,
) -> Option<Finding> {
    let mean = |get: fn(&DiskRate) -> f64| case.device_mean(id, WINDOW_SECS, get);
    let (tps, queue) = (mean(|d| d.tps)?, mean(|d| d.queue_size)?);
    let await_ms = case.mean_per_request(id, WINDOW_SECS, |d| d.await_ms)?;
    let mb = mean(|d| d.read_mb_per_s + d.write_mb_per_s)?;
    let limits = class.limits();
    let severity = if await_ms >= limits.critical_ms { Severity::Critical } else { Severity::Warn };
    let name = case.device_name(id);
    let why_slow = match queue <= SHORT_QUEUE {
        true => format!("{} a request with a queue of only {}", format::ms(await_ms), format::count(queue)),
        false => {
            format!(
                "only {} requests/s out of a queue of {}, {} await",
                format::count(tps),
                format::count(queue),
                format::ms(await_ms)
            )
        }
    };
    let dir = case.system.topology.ok().and_then(|t| mount_point_on(t, id));
    Some(
        Finding::new(
            RULE.name,
            severity,
            FindingSubject::Device(id, name.clone()),
            format!("{name} is slow for {}: {why_slow}", class.description()),
        )
        .fact("tps", format::count(tps))
        .fact("await", format::ms(await_ms))
        .fact("aqu-sz", format::count(queue))
        .fact("bandwidth", format::mb_per_s(mb))
        .fact(
            "expected",
            format!(
                "under {} a request, or at least {} requests/s",
                format::ms(limits.slow_ms),
                format::count(limits.min_tps)
            ),
        )
        .since(since)
        .why(
            "The device itself takes this long: no setting of the queue makes up for it, and everything that waits for \
             it waits with it.",
        )
        .advise_at("look for errors, resets and resyncs in the kernel log", "nothing", NavTarget::KernelLog(None))
        .advise(
            "look for a limit outside: burst credits or a quota of the cloud volume, a busy host, a degraded or \
             rebuilding RAID, a limit of the control group (cgroup limits do not show in the device's counters)",
            "nothing",
        )
        .advise_at(
            "measure it alone and place it on the ruler of known storage",
            "adds load while it runs",
            NavTarget::Bench("randrw", dir),
        )
        .see_also(NavTarget::Device(id))
        .on_devices(chain),
    )
}
