//! Streaming I/O that pushes programs out of memory: a backup or a copy fills the page cache, and the kernel reclaims the
//! pages that were not used lately.

use super::prelude::*;
use crate::model::memory_stalls::RECLAIM;

const WINDOW_SECS: f64 = 5.0;
/// I/O of all disks together that fills the cache.
const STREAM_BYTES_PER_S: f64 = 32.0 * 1_048_576.0;
/// Recycling the cache is normal; it hurts when programs are swapped out ...
const SWAP_OUT_BYTES_PER_S: f64 = 1_048_576.0;
/// ... or tasks reclaim memory themselves.
const RECLAIM_STALLS_PER_S: f64 = 20.0;
/// From here on a task notices that it reclaims.
const NOTICEABLE_MS_PER_S: f64 = 10.0;
/// With a smaller cache it is programs that fill memory.
const MIN_CACHE_PCT: f64 = 30.0;

fn is_under_pressure(tick: &Snapshot) -> Option<bool> {
    let reclaim = tick.reclaim?;
    let swap_out = tick.swap.ok()?.out_bytes_per_s.unwrap_or(0.0);
    let scanned = reclaim.background_bytes_per_s + reclaim.direct_bytes_per_s;
    let hurts = swap_out >= SWAP_OUT_BYTES_PER_S || reclaim.stalls_per_s >= RECLAIM_STALLS_PER_S;
    Some(scanned >= STREAM_BYTES_PER_S / 2.0 && hurts)
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let missing = "a few seconds of memory counters";
    let Some(since) = ctx.sustained(WINDOW_SECS, is_under_pressure, missing)? else { return Ok(()) };
    let Some((mem, tick)) = ctx.system.snapshot.mem.ok().zip(ctx.snapshot()) else { return Ok(()) };
    let cache_pct = mem.cached as f64 * 100.0 / mem.total.max(1) as f64;
    let disks = |tick: &Snapshot| tick.disks_mb_per_s(ctx.system.topology.ok());
    let (read, written) =
        disks(tick).ok_or_else(|| RuleSkipped::Unavailable("which devices are disks: unknown".into()))?;
    let throughput = ctx.mean(WINDOW_SECS, |tick| disks(tick).map(|(read, written)| (read + written) * 1_048_576.0));
    if cache_pct < MIN_CACHE_PCT || throughput.unwrap_or(0.0) < STREAM_BYTES_PER_S {
        return Ok(());
    }
    let reclaim = tick.reclaim.unwrap_or_default();
    let busiest = ctx.top_io_tasks(WINDOW_SECS).into_iter().next().map(|task| task.name);
    let stalled = ctx.stalled_tasks(WINDOW_SECS, RECLAIM).into_iter().find(|t| t.ms_per_s >= NOTICEABLE_MS_PER_S);
    let title = format!(
        "streaming I/O fills the page cache ({} of memory) and pushes programs out",
        format::percent(cache_pct)
    );
    Finding::of_machine(Severity::Warn, title)
        .fact("page cache", format::bytes(mem.cached as f64))
        .fact("disks read", format::mb_per_s(read))
        .fact("disks written", format::mb_per_s(written))
        .fact("pages scanned", format::bytes_per_s(reclaim.background_bytes_per_s + reclaim.direct_bytes_per_s))
        .fact("direct reclaim", format::per_s(reclaim.stalls_per_s))
        .fact_opt("so", tick.swap.ok().and_then(|swap| swap.out_bytes_per_s).map(format::bytes_per_s))
        .fact_opt("busiest", busiest)
        .fact_opt("most stalled", stalled.map(|task| format!("{}, {} of its time", task.name, task.percent())))
        .since(since)
        .why("Streamed data is used once; what it evicts is used again and comes back from disk page by page.")
        .advise("bypass the cache or give the stream its own cgroup: dd iflag=direct, rsync under memory.high, nocache")
        .costs("it may get slower")
        .advise_at("lower vm.swappiness: the cache is reclaimed before programs are swapped", knob("vm.swappiness"))
        .costs("files are read from disk again earlier")
        .see_also(NavTarget::Memory)
        .report(out);
    Ok(())
}
