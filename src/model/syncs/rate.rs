//! Two readings of sync counts become rates.

use super::{Flying, Lost, SlowSync, SyncCounts, SyncFile, SyncsRaw};
use crate::model::latency::Spread;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rows kept of one interval, those that waited longest.
const ROWS: usize = 256;

/// How one process synced one file by one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncRate {
    /// Who and what.
    pub file: Arc<SyncFile>,
    /// Calls that ended in the interval, per second.
    pub calls_per_s: f64,
    /// Share of the interval spent waiting in them, per cent; threads add up. A call counts when it ends, one
    /// that is under way from the interval's begin or its own.
    pub wait_pct: f64,
    /// Calls since tracing began.
    pub calls: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// Their mean, microseconds; `None`: none has ended.
    pub mean_us: Option<f64>,
    /// How they are spread; `None`: none has ended.
    pub spread: Option<Spread>,
    /// The longest, ns.
    pub worst_ns: u64,
    /// CLOCK_BOOTTIME when the last one ended, ns; `None`: none has.
    pub last_ns: Option<u64>,
}

/// The syncs of an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Syncs {
    /// CLOCK_BOOTTIME of the reading, ns.
    pub at_ns: u64,
    /// What is called long, ns.
    pub threshold_ns: u64,
    /// Who waited, longest first.
    pub rows: Vec<SyncRate>,
    /// Rows left out.
    pub more: usize,
    /// The newest slow ones, oldest first.
    pub slow: Vec<Arc<SlowSync>>,
    /// Under way, longest first.
    pub flying: Vec<Flying>,
    /// What there was no room for since tracing began.
    pub lost: Lost,
    /// Syncs by io_uring per second, which are not timed; `None`: not known.
    pub uring_per_s: Option<f64>,
    /// What could not be had, and why.
    pub without: Vec<String>,
}

impl Syncs {
    /// What came between two readings `secs` apart; without an earlier one, since tracing began.
    pub fn derive(prev: Option<&SyncsRaw>, now: &SyncsRaw, secs: f64) -> Self {
        // Counts begin anew with each time that somebody wants them.
        let prev = prev.filter(|p| p.began_ns == now.began_ns);
        let since = now.at_ns.saturating_sub(now.began_ns) as f64 / 1e9;
        let secs = if prev.is_some() { secs } else { since.min(secs) }.max(1e-3);
        let mut rows: Vec<SyncRate> =
            now.files.iter().map(|c| row(prev.and_then(|p| find(p, c)), c, now, secs)).collect();
        rows.sort_by(|a, b| b.wait_pct.total_cmp(&a.wait_pct).then(b.last_ns.cmp(&a.last_ns)));
        let more = rows.len().saturating_sub(ROWS);
        rows.truncate(ROWS);
        let uring =
            now.uring.map(|n| n.saturating_sub(prev.and_then(|p| p.uring).unwrap_or(0)) as f64 / secs);
        Self {
            at_ns: now.at_ns,
            threshold_ns: now.threshold_ns,
            rows,
            more,
            slow: now.slow.clone(),
            flying: now.flying.clone(),
            lost: now.lost,
            uring_per_s: uring,
            without: now.without.clone(),
        }
    }

    /// Bytes it holds beside itself, by estimate. Names and slow ones are shared with other ticks.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.rows.len() * size_of::<SyncRate>()
            + self.slow.len() * size_of::<Arc<SlowSync>>()
            + self.flying.len() * (size_of::<Flying>() + 32)
    }

    /// Something that had no room, in words.
    pub fn lost_text(&self) -> Option<String> {
        let Lost { files, slow, flying } = self.lost;
        let part = |n: u64, what: &str| (n > 0).then(|| format!("{n} {what}"));
        let parts = [
            part(files, "further files not counted"),
            part(slow, "slow syncs not listed"),
            part(flying, "syncs not followed"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("no room: {}", parts.join(", ")))
    }
}

fn find<'a>(raw: &'a SyncsRaw, of: &SyncCounts) -> Option<&'a SyncCounts> {
    let key = of.file.key();
    raw.files.binary_search_by_key(&key, |c| c.file.key()).ok().map(|at| &raw.files[at])
}

fn row(before: Option<&SyncCounts>, now: &SyncCounts, raw: &SyncsRaw, secs: f64) -> SyncRate {
    // One that was taken out of the kernel's table and came back counts from 0.
    let before = before.filter(|b| b.calls <= now.calls);
    let (calls, total) = before.map_or((0, 0), |b| (b.calls, b.total_ns));
    let whole = (secs * 1e9) as u64;
    let under_way = raw.flying.iter().filter(|f| f.file.key() == now.file.key());
    let under_way: u64 = under_way.map(|f| raw.at_ns.saturating_sub(f.began_ns).min(whole)).sum();
    let ended = now.total_ns.saturating_sub(total);
    // A long one that ends in a short interval would be more than all of it.
    let new = now.calls - calls;
    let ended = if new == 1 { ended.min(whole) } else { ended };
    SyncRate {
        file: now.file.clone(),
        calls_per_s: new as f64 / secs,
        wait_pct: (ended + under_way) as f64 / (secs * 1e7),
        calls: now.calls,
        errors: now.errors,
        mean_us: (now.calls > 0).then(|| now.total_ns as f64 / now.calls as f64 / 1e3),
        spread: Spread::of(&now.counts).map(|s| no_more_than(s, now.worst_ns as f64 / 1e3)),
        worst_ns: now.worst_ns,
        last_ns: (now.calls > 0).then_some(now.last_ns),
    }
}

/// The middle of a bucket may be more than anything that is in it.
fn no_more_than(s: Spread, us: f64) -> Spread {
    let [p50, p90, p99, p999, max] = [s.p50, s.p90, s.p99, s.p999, s.max].map(|n| n.min(us));
    Spread { samples: s.samples, p50, p90, p99, p999, max }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::latency::Counts;

    fn counted(pid: u32, calls: u64, total_ms: u64) -> SyncCounts {
        SyncCounts {
            file: Arc::new(SyncFile { pid, ..Default::default() }),
            calls,
            total_ns: total_ms * 1_000_000,
            worst_ns: 9,
            last_ns: 5,
            counts: Counts::sparse([(200, calls as u32)]),
            ..Default::default()
        }
    }

    fn reading(at_s: u64, files: Vec<SyncCounts>) -> SyncsRaw {
        SyncsRaw { began_ns: 1_000_000_000, at_ns: at_s * 1_000_000_000, files, ..Default::default() }
    }

    #[test]
    fn the_longest_waiter_comes_first_and_rates_are_of_the_interval() {
        let before = reading(10, vec![counted(1, 10, 100), counted(2, 1, 1)]);
        let now = reading(12, vec![counted(1, 20, 120), counted(2, 3, 1001), counted(3, 0, 0)]);
        let syncs = Syncs::derive(Some(&before), &now, 2.0);
        let seen: Vec<_> = syncs.rows.iter().map(|r| (r.file.pid, r.calls_per_s, r.wait_pct)).collect();
        assert_eq!(seen, [(2, 1.0, 50.0), (1, 5.0, 1.0), (3, 0.0, 0.0)]);
        assert_eq!((syncs.rows[1].mean_us, syncs.rows[2].mean_us), (Some(6000.0), None));
        assert!(syncs.rows[0].spread.is_some_and(|s| s.max <= 0.009) && syncs.rows[2].last_ns.is_none());
    }

    #[test]
    fn the_first_reading_covers_the_time_since_tracing_began() {
        let syncs = Syncs::derive(None, &reading(2, vec![counted(1, 10, 100)]), 100.0);
        assert_eq!((syncs.rows[0].calls_per_s, syncs.rows[0].wait_pct), (10.0, 10.0));
        let anew = SyncsRaw { began_ns: 7, ..reading(2, vec![counted(1, 500, 1)]) };
        let syncs = Syncs::derive(Some(&anew), &reading(2, vec![counted(1, 10, 100)]), 1.0);
        assert_eq!(syncs.rows[0].calls_per_s, 10.0, "counts of another time are none to compare with");
    }

    #[test]
    fn one_under_way_counts_as_waiting_before_it_ends() {
        let file = Arc::new(SyncFile { pid: 1, ..Default::default() });
        let flying = vec![Flying { file, began_ns: 3_000_000_000, ..Default::default() }];
        let now = SyncsRaw { flying, ..reading(12, vec![counted(1, 1, 1)]) };
        let before = reading(10, vec![counted(1, 1, 1)]);
        assert_eq!(Syncs::derive(Some(&before), &now, 2.0).rows[0].wait_pct, 100.0);
    }

    #[test]
    fn what_had_no_room_is_told() {
        assert_eq!(Syncs::default().lost_text(), None);
        let syncs = Syncs { lost: Lost { files: 2, slow: 0, flying: 1 }, ..Default::default() };
        assert_eq!(
            syncs.lost_text().as_deref(),
            Some("no room: 2 further files not counted, 1 syncs not followed")
        );
    }
}
