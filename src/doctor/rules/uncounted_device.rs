//! Devices whose requests the kernel does not count: everywhere they look idle.

use super::prelude::*;
use crate::doctor::device_sums::passes_on;
use crate::model::topology::DeviceKind;

/// Tracing sees their requests nevertheless.
const WINDOW_SECS: f64 = 5.0;

/// Requests per second that tracing attributes to processes; `None` where they are not traced.
fn traced_per_s(ctx: &RuleContext<'_>, id: DevId) -> Result<Option<f64>, RuleSkipped> {
    if ctx.system.snapshot.io_attribution.ok().is_none() {
        return Ok(None);
    }
    let per_s = ctx.mean(WINDOW_SECS, |tick| {
        let on_device = tick.io_attribution.ok()?.processes.iter().filter_map(|process| process.on_device(id));
        Some(on_device.map(|rates| rates.reads_per_s + rates.writes_per_s).sum())
    });
    per_s.map(Some).ok_or(RuleSkipped::NeedsMoreData("a few seconds of traced I/O"))
}

/// Whether `iostats` decides what is counted. Mapped devices, arrays and zram count by themselves.
fn is_counted_by_queue(ctx: &RuleContext<'_>, id: DevId) -> bool {
    let has_no_requests = passes_on(ctx, id) || ctx.device_kind(id) == Some(DeviceKind::Zram);
    !has_no_requests && ctx.device_mean(id, WINDOW_SECS, |device| device.tps).unwrap_or(0.0) <= 0.0
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let uncounted = ctx.system.queues.iter().filter(|(_, queue)| queue.iostats == Some(false));
    let uncounted = uncounted.filter_map(|(name, _)| Some((name, ctx.find_device(name)?)));
    for (name, id) in uncounted.filter(|(_, id)| is_counted_by_queue(ctx, *id)) {
        let per_s = traced_per_s(ctx, id)?;
        if per_s == Some(0.0) {
            continue;
        }
        let device = ctx.device_name(id);
        let seen = per_s.map_or(String::new(), |per_s| format!(", though tracing sees {}", format::per_s(per_s)));
        let title = format!("the kernel does not count the I/O of {device}: its figures are 0 everywhere{seen}");
        ctx.device_finding(Severity::Note, id, title)
            .fact("iostats", "0")
            .fact_opt("traced", per_s.map(format::per_s))
            .why("tps, MB/s, await and %util come from /proc/diskstats, here as in iostat. Rules that judge the device by them see nothing.")
            .advise(format!("echo 1 > /sys/block/{}/queue/iostats", sanitize(name)))
            .costs("some tens of ns for each request")
            .report(out);
    }
    Ok(())
}
