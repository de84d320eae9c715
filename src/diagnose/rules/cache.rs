//! Streams of file data that push programs out of memory: a backup or a copy fills the page cache, and the
//! kernel takes the pages from whoever has not used theirs lately.

use crate::diagnose::case::{Case, Held};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::snapshot::Snapshot;
use crate::model::memory_stalls::RECLAIM;

/// The rule.
pub const RULE: Rule = Rule {
    name: "cache-pressure",
    about: "streaming I/O fills the page cache and pushes programs out",
    look,
};

/// Over so long.
const WINDOW_SECS: f64 = 5.0;
/// A stream: bytes per second through the cache.
const STREAM: f64 = 32.0 * 1_048_576.0;
/// Recycling its own cache is what the kernel is for; it hurts when programs go to swap ...
const PUSHED_OUT: f64 = 1_048_576.0;
/// ... or have to look for memory themselves, times a second.
const STALLS: f64 = 20.0;
/// Milliseconds of each second in which a task notices that it makes room itself.
const NOTICED_MS: f64 = 10.0;
/// The cache is at least this share of memory; with less it is programs that fill it.
const CACHE_PCT: f64 = 30.0;

fn hurts(s: &Snapshot) -> Option<bool> {
    let r = s.reclaim?;
    let out = s.swap.ok()?.out_bytes_per_s.unwrap_or(0.0);
    let scanned = r.background_bytes_per_s + r.direct_bytes_per_s;
    Some(scanned >= STREAM / 2.0 && (out >= PUSHED_OUT || r.stalls_per_s >= STALLS))
}

fn look(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let since = match case.held(WINDOW_SECS, hurts) {
        Held::NotYet => return Judged::NotYet("a few seconds of memory counters"),
        Held::No => return Judged::Yes,
        Held::Since(since) => since,
    };
    let Some((mem, snap)) = case.world.snapshot.mem.ok().zip(case.snap()) else { return Judged::Yes };
    let share = mem.cached as f64 * 100.0 / mem.total.max(1) as f64;
    let Some((read, written)) = snap.disks_mb_per_s(case.world.topology.ok()) else {
        return Judged::Cannot("which devices are disks is not known".into());
    };
    let through = case
        .mean(WINDOW_SECS, |s| s.disks_mb_per_s(case.world.topology.ok()).map(|(r, w)| (r + w) * 1_048_576.0))
        .unwrap_or(0.0);
    if share < CACHE_PCT || through < STREAM {
        return Judged::Yes;
    }
    let reclaim = snap.reclaim.unwrap_or_default();
    let by = case.busiest().first().map(|m| case.task_name(m.row_index));
    let title = format!(
        "streaming I/O fills the page cache ({} of memory) and pushes programs out",
        words::pct(share)
    );
    let held = case.held_up(WINDOW_SECS, RECLAIM).into_iter().find(|v| v.ms_per_s >= NOTICED_MS);
    let held = held.map(|v| format!("{}, {} of its time", v.name, words::pct(v.ms_per_s / 10.0)));
    out.push(
        Finding::new(RULE.name, Severity::Warn, Subject::Machine, title)
            .fact("page cache", words::bytes(mem.cached as f64))
            .fact("disks read", words::mb(read))
            .fact("disks written", words::mb(written))
            .fact("scanned for pages", words::rate(reclaim.background_bytes_per_s + reclaim.direct_bytes_per_s))
            .fact("tasks that had to look themselves", format!("{}/s", words::count(reclaim.stalls_per_s)))
            .fact_if("so", snap.swap.ok().and_then(|s| s.out_bytes_per_s).map(words::rate))
            .fact_if("busiest", by)
            .fact_if("held up most", held)
            .since(since)
            .why("The data of a stream is used once; what it pushes out is used again and comes back from disk, page by page.")
            .advise(
                "run the stream past the cache or in its own group: dd iflag=direct, rsync under memory.high, nocache",
                "it may get slower",
            )
            .advise_at(
                "lower vm.swappiness: the cache is recycled before programs are swapped",
                "files are read from disk again sooner",
                Jump::Knob("vm.swappiness".into()),
            )
            .look_at(Jump::Memory),
    );
    Judged::Yes
}
