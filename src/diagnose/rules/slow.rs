//! A device that is slow for what it is: a request alone takes too long, or with a full queue too few come
//! out.

use super::saturated::{LASTS_SECS, mount_on};
use crate::diagnose::case::{Case, Held};
use crate::diagnose::class::{Class, class};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::disk::{DevId, DiskRate};

/// The rule.
pub const RULE: Rule = Rule {
    name: "slow-device",
    about: "a device slower than its class: long service with a short queue, or few requests out of a full one",
    look,
};

/// A queue up to this is short: the wait is the device's own.
const SHORT_QUEUE: f64 = 2.0;
/// Fewer requests a second give no mean worth a verdict.
const LEAST_TPS: f64 = 2.0;
/// Larger requests are about bandwidth, where requests a second say little, KiB.
const SMALL_KB: f64 = 64.0;
/// Busy all the time.
const BUSY_PCT: f64 = 95.0;

fn slow_alone(d: &DiskRate, class: Class) -> bool {
    d.tps >= LEAST_TPS && d.queue_size <= SHORT_QUEUE && d.await_ms >= class.limits().slow_ms
}

fn slow_together(d: &DiskRate, class: Class) -> bool {
    let limits = class.limits();
    let kb = if d.tps > 0.0 { (d.read_mb_per_s + d.write_mb_per_s) * 1024.0 / d.tps } else { 0.0 };
    d.queue_size > SHORT_QUEUE
        && d.util_pct >= BUSY_PCT
        && d.tps < limits.least_tps
        && kb <= SMALL_KB
        && d.tps > 0.0
}

fn look(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(why) = case.world.snapshot.devices.unavailable_reason(case.now_ns()) {
        return Judged::Cannot(why);
    }
    let mut judged = Judged::NotYet("a few seconds of device counters");
    for d in case.devices() {
        let class = class(case.world, d.id);
        let slow = |d: &DiskRate| !d.stalled && (slow_alone(d, class) || slow_together(d, class));
        let held = case.held(LASTS_SECS, |s| s.device(d.id).map(slow));
        if held == Held::NotYet {
            continue;
        }
        judged = Judged::Yes;
        // What lies on a slow device is slow with it, and so is what lies on one that is saturated.
        let lower = |id: &DevId| {
            let class = crate::diagnose::class::class(case.world, *id);
            let bad = |d: &DiskRate| {
                slow_alone(d, class) || slow_together(d, class) || super::saturated::is_saturated(d, class)
            };
            case.held(LASTS_SECS, |s| s.device(*id).map(bad)).since().is_some()
        };
        let Held::Since(since) = held else { continue };
        let chain = case.chain(d.id);
        if !chain.iter().skip(1).any(lower) {
            out.extend(found(case, d.id, class, since, chain));
        }
    }
    if case.snap().is_some_and(|s| s.devices.ok().is_some_and(Vec::is_empty)) { Judged::Yes } else { judged }
}

fn found(case: &Case<'_>, id: DevId, class: Class, since: u64, chain: Vec<DevId>) -> Option<Finding> {
    let mean = |get: fn(&DiskRate) -> f64| case.device_mean(id, LASTS_SECS, get);
    let (tps, queue) = (mean(|d| d.tps)?, mean(|d| d.queue_size)?);
    let await_ms = case.per_request(id, LASTS_SECS, |d| d.await_ms)?;
    let mb = mean(|d| d.read_mb_per_s + d.write_mb_per_s)?;
    let limits = class.limits();
    let severity = if await_ms >= limits.bad_ms { Severity::Critical } else { Severity::Warn };
    let name = case.device_name(id);
    let why_slow = match queue <= SHORT_QUEUE {
        true => format!("{} a request with a queue of only {}", words::ms(await_ms), words::count(queue)),
        false => {
            format!(
                "only {} requests/s out of a queue of {}, {} await",
                words::count(tps),
                words::count(queue),
                words::ms(await_ms)
            )
        }
    };
    let dir = case.world.topology.ok().and_then(|t| mount_on(t, id));
    Some(
        Finding::new(
            RULE.name,
            severity,
            Subject::Device(id, name.clone()),
            format!("{name} is slow for {}: {why_slow}", class.name()),
        )
        .fact("tps", words::count(tps))
        .fact("await", words::ms(await_ms))
        .fact("aqu-sz", words::count(queue))
        .fact("bandwidth", words::mb(mb))
        .fact(
            "expected",
            format!(
                "under {} a request, or at least {} requests/s",
                words::ms(limits.slow_ms),
                words::count(limits.least_tps)
            ),
        )
        .since(since)
        .why(
            "The device itself takes this long: no setting of the queue makes up for it, and everything that waits for \
             it waits with it.",
        )
        .advise_at(
            "look for errors, resets and resyncs in the kernel log",
            "nothing",
            Jump::Kernel(None),
        )
        .advise(
            "look for a limit outside: burst credits or a quota of the cloud volume, a busy host, a degraded or \
             rebuilding RAID, a limit of the control group (cgroup limits do not show in the device's counters)",
            "nothing",
        )
        .advise_at(
            "measure it alone and place it on the ruler of known storage",
            "adds load while it runs",
            Jump::Bench("randrw", dir),
        )
        .look_at(Jump::Device(id))
        .touching(chain),
    )
}
