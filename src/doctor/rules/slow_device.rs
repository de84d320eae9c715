//! Devices that are slow for their class: a request takes long with a short queue, or few requests complete with a full
//! queue.

use super::device_state::{is_saturated, is_slow};
use super::directions::SHORT_QUEUE;
use super::prelude::*;
use super::saturation::{WINDOW_SECS, is_behind_stream, mount_point_on};
use crate::doctor::device_users::{DeviceUsers, Requests};

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let class = |id| ctx.storage_class(id);
    let slow = |device: &DiskRate| !device.stalled && is_slow(device, class(device.id));
    for (device, since) in ctx.sustained_devices(ctx.devices(), WINDOW_SECS, |_, device| Some(slow(device)))? {
        // Every device above a slow or saturated one is slow: report the lowest.
        let below_is_slow = |id: &DevId| {
            let slow = |d: &DiskRate| is_slow(d, class(*id)) || is_saturated(d, class(*id));
            ctx.is_sustained(WINDOW_SECS, |tick| tick.device(*id).map(slow))
        };
        let is_behind_stream = || is_behind_stream(ctx, device.id, ctx.figure_secs(since, WINDOW_SECS));
        if !ctx.device_chain(device.id).iter().skip(1).any(below_is_slow) && !is_behind_stream() {
            out.extend(build_finding(ctx, device.id, since));
        }
    }
    Ok(())
}

fn build_finding(ctx: &RuleContext<'_>, id: DevId, since: u64) -> Option<Finding> {
    let secs = ctx.figure_secs(since, WINDOW_SECS);
    let mean = |get: fn(&DiskRate) -> f64| ctx.device_mean(id, secs, get);
    let (tps, queue_size) = (mean(|d| d.tps)?, mean(|d| d.queue_size)?);
    let await_ms = ctx.mean_await_ms(id, secs)?;
    let mb_per_s = mean(|d| d.read_mb_per_s + d.write_mb_per_s)?;
    let class = ctx.storage_class(id);
    let limits = class.limits();
    let severity = Severity::critical_if(await_ms >= limits.critical_ms);
    let (tps, await_ms, queue) = (format::count(tps), format::ms(await_ms), format::count(queue_size));
    let problem = match queue_size <= SHORT_QUEUE {
        true => format!("await {await_ms} with aqu-sz {queue}"),
        false => format!("only {tps} tps with aqu-sz {queue}, await {await_ms}"),
    };
    let users = DeviceUsers::find(ctx, id, secs, Requests::All);
    let used_by = users.summary().map_or(String::new(), |users| format!("; {users}"));
    let title = format!("{} is slow for {}: {problem}{used_by}", ctx.device_name(id), class.description());
    let expected =
        format!("await below {}, or at least {} tps", format::ms(limits.slow_ms), format::count(limits.min_tps));
    Some(
        ctx.device_finding(severity, id, title)
            .fact("tps", tps)
            .fact("await", await_ms)
            .fact("aqu-sz", queue)
            .fact("throughput", format::mb_per_s(mb_per_s))
            .fact("expected", expected)
            .fact_opt(users.fact_name(), users.list())
            .since(since)
            .delays(users.sufferers(limits.slow_ms))
            .on_files(main_files(ctx, id, secs, Requests::All))
            .why("The device itself takes this long: no queue setting makes up for it, and everything that uses it is slow.")
            .advise_at("look for errors, resets and resyncs in the kernel log", NavTarget::KernelLog(None))
            .advise("look for an external limit: burst credits or a quota of the cloud volume, a busy host, a degraded or \
                 rebuilding RAID, a cgroup limit (which does not show in the device's counters)")
            .advise_benchmark("benchmark it alone and compare it with known storage", "randrw", mount_point_on(ctx, id)),
    )
}
