//! Dirty pages that take long to write at the current rate. A sync, a clean shutdown or an unmount waits for all of them.

use super::prelude::*;
use super::writeback::{dirty_bytes, written_devices};

/// The kernel wants no page dirty for longer (vm.dirty_expire_centisecs = 3000).
const WARN_SECS: f64 = 30.0;
/// Services that take longer to stop are killed (systemd's TimeoutStopSec is 90 s).
const CRITICAL_SECS: f64 = 90.0;
/// Less is written soon enough.
const MIN_DIRTY_BYTES: f64 = 32.0 * 1_048_576.0;
/// Writeback comes in bursts, so the rate is a mean over this long.
const WINDOW_SECS: f64 = 8.0;
/// Less than a page per second is no progress.
const MIN_WRITE_BYTES_PER_S: f64 = 4096.0;

/// Whether the flushers write at full speed: below the background threshold they only write expired pages, and their
/// rate does not show what they could do.
fn is_flushing(tick: &Snapshot) -> Option<bool> {
    let w = tick.writeback.ok()?;
    Some(dirty_bytes(w)? >= MIN_DIRTY_BYTES.max(w.background_threshold_bytes? as f64))
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let w = ctx.require(&ctx.system.snapshot.writeback)?;
    let missing = "a few seconds of writeback counters";
    let Some(since) = ctx.sustained(WINDOW_SECS, is_flushing, missing)? else { return Ok(()) };
    let written_per_s = ctx.mean(ctx.figure_secs(since, WINDOW_SECS), |tick| tick.writeback.ok()?.written_bytes_per_s);
    let (Some(dirty), Some(written_per_s)) = (dirty_bytes(w), written_per_s) else { return Ok(()) };
    let secs = dirty / written_per_s.max(1.0);
    if secs < WARN_SECS {
        return Ok(());
    }
    let severity = Severity::critical_if(secs >= CRITICAL_SECS);
    let duration = (written_per_s >= MIN_WRITE_BYTES_PER_S).then(|| format::duration(secs));
    let (dirty, written) = (format::bytes(dirty), format::bytes_per_s(written_per_s));
    let title = match &duration {
        Some(duration) => format!("{dirty} of dirty pages take {duration} to write at the current {written}"),
        None => format!("{dirty} of dirty pages are not being written"),
    };
    Finding::of_machine(severity, title)
        .fact("dirty + writeback", dirty)
        .fact("written", written)
        .fact_opt("time to write", duration)
        .fact_opt("dirtied", w.dirtied_bytes_per_s.map(format::bytes_per_s))
        .since(since)
        .why(
            "A sync, an unmount or a shutdown waits for all of it, and a power failure loses it. Small syncs wait \
             behind it on the same device.",
        )
        .advise_at(
            "limit the backlog: lower vm.dirty_bytes to what the device writes in a few seconds",
            knob("vm.dirty_bytes"),
        )
        .costs("writers are slowed to the device's speed earlier")
        .advise_at("find the process that dirties pages: the WRITE column", NavTarget::Processes)
        .see_also(NavTarget::Memory)
        .on_devices(written_devices(ctx))
        .report(out);
    Ok(())
}
