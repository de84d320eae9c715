//! Devices with requests in flight of which none completes. Other tools show an await of 0 then, because await counts
//! completed requests (Documentation/admin-guide/iostats.rst).

use super::prelude::*;

/// Longer than a slow request: a spinning disk in error recovery answers or gives up within 7 s, others much sooner.
const STALLED_SECS: f64 = 4.0;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for (device, since) in ctx.sustained_devices(ctx.devices(), STALLED_SECS, |_, device| Some(device.stalled))? {
        // Every device above a stalled one stalls: report the lowest.
        let is_stalled = |id: &DevId| ctx.snapshot().and_then(|s| s.device(*id)).is_some_and(|d| d.stalled);
        if !device.stalled || ctx.device_chain(device.id).iter().skip(1).any(is_stalled) {
            continue;
        }
        let duration = format::duration(ctx.secs_since(since));
        let title = format!(
            "{} is stalled: {} request{} in flight, none completed for {duration}",
            ctx.device_name(device.id),
            device.in_flight,
            if device.in_flight == 1 { "" } else { "s" },
        );
        ctx.device_finding(Severity::Critical, device.id, title)
            .fact("in flight", device.in_flight.to_string())
            .fact("completed", "0")
            .fact("for", duration)
            .since(since)
            .why(
                "Everything that needs this device blocks: reads, syncs, and every write once the dirty limit is \
                 reached. Tasks that wait for it cannot be killed.",
            )
            .advise_at("read the kernel log about the device and its link", NavTarget::KernelLog(None))
            .advise(
                "check the path to it: controller, cable, multipath, the server behind a network or loop device, \
                 a frozen file system below (fsfreeze)",
            )
            .advise("do not change its queue settings now: the write would block as well")
            .report(out);
    }
    Ok(())
}
