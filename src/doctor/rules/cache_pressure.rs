//! Streams of file data that push programs out of memory: a backup or a copy fills the page cache, and the
//! kernel takes the pages from whoever has not used theirs lately.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, Sustained};
use crate::model::memory_stalls::RECLAIM;
use crate::model::snapshot::Snapshot;

/// The rule.
pub const RULE: Rule = Rule {
    name: "cache-pressure",
    description: "streaming I/O fills the page cache and pushes programs out",
    evaluate: look,
};

/// Over so long.
const WINDOW_SECS: f64 = 5.0;
/// A stream: bytes per second through the cache.
const STREAM_BYTES_PER_S: f64 = 32.0 * 1_048_576.0;
/// Recycling its own cache is what the kernel is for; it hurts when programs go to swap ...
const SWAP_OUT_BYTES_PER_S: f64 = 1_048_576.0;
/// ... or have to look for memory themselves, times a second.
const RECLAIM_STALLS_PER_S: f64 = 20.0;
/// Milliseconds of each second in which a task notices that it makes room itself.
const NOTICEABLE_MS_PER_S: f64 = 10.0;
/// The cache is at least this share of memory; with less it is programs that fill it.
const MIN_CACHE_PCT: f64 = 30.0;

fn is_under_pressure(s: &Snapshot) -> Option<bool> {
    let r = s.reclaim?;
    let out = s.swap.ok()?.out_bytes_per_s.unwrap_or(0.0);
    let scanned = r.background_bytes_per_s + r.direct_bytes_per_s;
    Some(scanned >= STREAM_BYTES_PER_S / 2.0 && (out >= SWAP_OUT_BYTES_PER_S || r.stalls_per_s >= RECLAIM_STALLS_PER_S))
}

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let since = match case.sustained(WINDOW_SECS, is_under_pressure) {
        Sustained::TooEarly => return RuleStatus::NeedsMoreData("a few seconds of memory counters"),
        Sustained::NotSustained => return RuleStatus::Evaluated,
        Sustained::Since(since) => since,
    };
    let Some((mem, snap)) = case.system.snapshot.mem.ok().zip(case.snapshot()) else {
        return RuleStatus::Evaluated;
    };
    let share = mem.cached as f64 * 100.0 / mem.total.max(1) as f64;
    let Some((read, written)) = snap.disks_mb_per_s(case.system.topology.ok()) else {
        return RuleStatus::Unavailable("which devices are disks is not known".into());
    };
    let through = case
        .mean(WINDOW_SECS, |s| s.disks_mb_per_s(case.system.topology.ok()).map(|(r, w)| (r + w) * 1_048_576.0))
        .unwrap_or(0.0);
    if share < MIN_CACHE_PCT || through < STREAM_BYTES_PER_S {
        return RuleStatus::Evaluated;
    }
    let reclaim = snap.reclaim.unwrap_or_default();
    let by = case.busiest_tasks().first().map(|m| case.task_name(m.row_index));
    let title =
        format!("streaming I/O fills the page cache ({} of memory) and pushes programs out", format::percent(share));
    let held = case.stalled_tasks(WINDOW_SECS, RECLAIM).into_iter().find(|v| v.ms_per_s >= NOTICEABLE_MS_PER_S);
    let held = held.map(|v| format!("{}, {} of its time", v.name, format::percent(v.ms_per_s / 10.0)));
    out.push(
        Finding::new(RULE.name, Severity::Warn, FindingSubject::Machine, title)
            .fact("page cache", format::bytes(mem.cached as f64))
            .fact("disks read", format::mb_per_s(read))
            .fact("disks written", format::mb_per_s(written))
            .fact("scanned for pages", format::bytes_per_s(reclaim.background_bytes_per_s + reclaim.direct_bytes_per_s))
            .fact("tasks that had to look themselves", format!("{}/s", format::count(reclaim.stalls_per_s)))
            .fact_opt("so", snap.swap.ok().and_then(|s| s.out_bytes_per_s).map(format::bytes_per_s))
            .fact_opt("busiest", by)
            .fact_opt("held up most", held)
            .since(since)
            .why("The data of a stream is used once; what it pushes out is used again and comes back from disk, page by page.")
            .advise(
                "run the stream past the cache or in its own group: dd iflag=direct, rsync under memory.high, nocache",
                "it may get slower",
            )
            .advise_at(
                "lower vm.swappiness: the cache is recycled before programs are swapped",
                "files are read from disk again sooner",
                NavTarget::Knob("vm.swappiness".into()),
            )
            .see_also(NavTarget::Memory),
    );
    RuleStatus::Evaluated
}
