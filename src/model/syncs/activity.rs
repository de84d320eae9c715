//! Derives rates from two readings of sync counts.

use super::{InFlightSync, SlowSync, SyncCounts, SyncDrops, SyncFile, SyncsRaw};
use crate::model::coverage::SinceStart;
use crate::model::latency::{LatencySummary, SparseHistogram};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Maximum number of rows, those with the longest waits.
const MAX_ROWS: usize = 256;

/// Syncs of one file by one process with one system call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncRate {
    pub file: Arc<SyncFile>,
    /// Calls that ended in the interval, per second.
    pub calls_per_s: f64,
    /// Share of the interval spent waiting in them, percent, summed over threads. A completed call counts in full when
    /// it ends, a call in flight from the start of the interval or its own start.
    pub wait_pct: f64,
    /// Calls since tracing began.
    pub calls: u64,
    /// Of these, failed calls.
    pub errors: u64,
    /// Mean duration since tracing began, microseconds; `None` if none has ended.
    pub mean_us: Option<f64>,
    /// Percentiles of the duration since tracing began; `None` if none has ended.
    pub latency: Option<LatencySummary>,
    /// Durations of the calls that ended in the interval.
    #[serde(default)]
    pub ended: SparseHistogram,
    /// Longest duration, ns.
    pub max_ns: u64,
    /// CLOCK_BOOTTIME when the last one ended, ns; `None` if none has ended.
    pub last_ended_ns: Option<u64>,
}

/// Syncs of an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncActivity {
    /// CLOCK_BOOTTIME of the reading, ns.
    pub read_ns: u64,
    /// Syncs that take longer than this are listed, ns.
    pub threshold_ns: u64,
    /// By file, longest wait first.
    pub rows: Vec<SyncRate>,
    /// Number of rows that were left out.
    pub hidden_rows: usize,
    /// The newest slow syncs, oldest first.
    pub slow: Vec<Arc<SlowSync>>,
    /// Syncs in flight, longest first.
    pub in_flight: Vec<InFlightSync>,
    /// What was dropped since tracing began because a table was full.
    pub drops: SyncDrops,
    /// Syncs by io_uring per second, which are not timed; `None` if unknown.
    pub io_uring_per_s: Option<f64>,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

impl SyncActivity {
    /// Rates between two readings `secs` apart; without an earlier one, since tracing began.
    pub fn derive(prev: Option<&SyncsRaw>, now: &SyncsRaw, secs: f64) -> Self {
        // Counts restart whenever syncs are requested again.
        let prev = prev.filter(|p| p.tracing_started_ns == now.tracing_started_ns);
        let secs = if prev.is_some() { secs } else { now.since_start(secs).covered_secs() }.max(1e-3);
        let mut rows: Vec<SyncRate> =
            now.files.iter().map(|c| derive_rate(prev.and_then(|p| find_counts(p, c)), c, now, secs)).collect();
        rows.sort_by(|a, b| b.wait_pct.total_cmp(&a.wait_pct).then(b.last_ended_ns.cmp(&a.last_ended_ns)));
        let more = rows.len().saturating_sub(MAX_ROWS);
        rows.truncate(MAX_ROWS);
        let io_uring_per_s =
            now.io_uring.map(|n| n.saturating_sub(prev.and_then(|p| p.io_uring).unwrap_or(0)) as f64 / secs);
        Self {
            read_ns: now.read_ns,
            threshold_ns: now.threshold_ns,
            rows,
            hidden_rows: more,
            slow: now.slow.clone(),
            in_flight: now.in_flight.clone(),
            drops: now.drops,
            io_uring_per_s,
            unavailable: now.unavailable.clone(),
        }
    }

    /// Estimated size in bytes. Names and slow syncs are shared with other ticks.
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.rows.iter().map(|row| size_of::<SyncRate>() + size_of_val(row.ended.buckets())).sum::<usize>()
            + self.slow.len() * size_of::<Arc<SlowSync>>()
            + self.in_flight.len() * (size_of::<InFlightSync>() + 32)
    }

    /// What was dropped, as a sentence.
    pub fn drops_text(&self) -> Option<String> {
        let SyncDrops { files, slow, in_flight } = self.drops;
        let part = |n: u64, what: &str| (n > 0).then(|| format!("{n} {what}"));
        let parts = [
            part(files, "further files not counted"),
            part(slow, "slow syncs not listed"),
            part(in_flight, "syncs not followed"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("tables full: {}", parts.join(", ")))
    }
}

impl SyncRate {
    /// Percentiles of calls of this file; `None` if there are none.
    pub(crate) fn summary_of(&self, calls: &SparseHistogram) -> Option<LatencySummary> {
        LatencySummary::from_histogram(calls).map(|summary| clamp_summary(summary, self.max_ns as f64 / 1e3))
    }
}

impl SyncsRaw {
    /// What a reading covers that none is earlier than.
    pub(crate) fn since_start(&self, interval_secs: f64) -> SinceStart {
        SinceStart { started_ns: self.tracing_started_ns, read_ns: self.read_ns, interval_secs }
    }
}

fn find_counts<'a>(raw: &'a SyncsRaw, of: &SyncCounts) -> Option<&'a SyncCounts> {
    let key = of.file.key();
    raw.files.binary_search_by_key(&key, |c| c.file.key()).ok().map(|at| &raw.files[at])
}

fn derive_rate(before: Option<&SyncCounts>, now: &SyncCounts, raw: &SyncsRaw, secs: f64) -> SyncRate {
    // A file that was evicted from the kernel's table and came back counts from 0.
    let before = before.filter(|b| b.calls <= now.calls);
    let (calls, total) = before.map_or((0, 0), |b| (b.calls, b.total_ns));
    let whole = (secs * 1e9) as u64;
    let under_way = raw.in_flight.iter().filter(|f| f.file.key() == now.file.key());
    let under_way: u64 = under_way.map(|f| raw.read_ns.saturating_sub(f.started_ns).min(whole)).sum();
    let ended = now.total_ns.saturating_sub(total);
    // A long call that ends in a short interval must not count more than all of it.
    let new = now.calls - calls;
    let ended = if new == 1 { ended.min(whole) } else { ended };
    let rate = SyncRate {
        file: now.file.clone(),
        calls_per_s: new as f64 / secs,
        wait_pct: (ended + under_way) as f64 / (secs * 1e7),
        calls: now.calls,
        errors: now.errors,
        mean_us: (now.calls > 0).then(|| now.total_ns as f64 / now.calls as f64 / 1e3),
        latency: None,
        ended: before.map_or_else(|| now.histogram.clone(), |before| now.histogram.since(&before.histogram)),
        max_ns: now.max_ns,
        last_ended_ns: (now.calls > 0).then_some(now.last_ended_ns),
    };
    SyncRate { latency: rate.summary_of(&now.histogram), ..rate }
}

/// Limits the percentiles: interpolation in a bucket may exceed the longest time.
fn clamp_summary(s: LatencySummary, us: f64) -> LatencySummary {
    let [p50, p90, p99, p999, max] = [s.p50, s.p90, s.p99, s.p999, s.max].map(|n| n.min(us));
    LatencySummary { samples: s.samples, p50, p90, p99, p999, max }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sync_counts(pid: u32, calls: u64, total_ms: u64) -> SyncCounts {
        SyncCounts {
            file: Arc::new(SyncFile { pid, ..Default::default() }),
            calls,
            total_ns: total_ms * 1_000_000,
            max_ns: 9,
            last_ended_ns: 5,
            histogram: SparseHistogram::from_sparse([(200, calls as u32)]),
            ..Default::default()
        }
    }

    fn reading(at_s: u64, files: Vec<SyncCounts>) -> SyncsRaw {
        SyncsRaw { tracing_started_ns: 1_000_000_000, read_ns: at_s * 1_000_000_000, files, ..Default::default() }
    }

    #[test]
    fn the_longest_wait_comes_first_and_rates_cover_the_interval() {
        let before = reading(10, vec![sync_counts(1, 10, 100), sync_counts(2, 1, 1)]);
        let now = reading(12, vec![sync_counts(1, 20, 120), sync_counts(2, 3, 1001), sync_counts(3, 0, 0)]);
        let syncs = SyncActivity::derive(Some(&before), &now, 2.0);
        let seen: Vec<_> = syncs.rows.iter().map(|r| (r.file.pid, r.calls_per_s, r.wait_pct)).collect();
        assert_eq!(seen, [(2, 1.0, 50.0), (1, 5.0, 1.0), (3, 0.0, 0.0)]);
        assert_eq!((syncs.rows[1].mean_us, syncs.rows[2].mean_us), (Some(6000.0), None));
        assert!(syncs.rows[0].latency.is_some_and(|s| s.max <= 0.009) && syncs.rows[2].last_ended_ns.is_none());
    }

    #[test]
    fn the_calls_of_an_interval_are_told_from_those_before() {
        let slow = SyncCounts { histogram: SparseHistogram::from_sparse([(400, 50)]), ..sync_counts(1, 50, 5000) };
        let histogram = SparseHistogram::from_sparse([(150, 7), (400, 50)]);
        let later = SyncCounts { histogram, ..sync_counts(1, 57, 5001) };
        let derive = |before: Option<&SyncsRaw>, now: &SyncCounts| {
            SyncActivity::derive(before, &reading(12, vec![now.clone()]), 2.0).rows[0].ended.clone()
        };
        assert_eq!(derive(None, &slow), slow.histogram);
        assert_eq!(derive(Some(&reading(10, vec![slow.clone()])), &later).buckets(), [(150, 7)]);
        assert_eq!(derive(Some(&reading(10, vec![later])), &slow), slow.histogram, "it counts from 0 again");
    }

    #[test]
    fn the_first_reading_covers_the_time_since_tracing_began() {
        let syncs = SyncActivity::derive(None, &reading(2, vec![sync_counts(1, 10, 100)]), 100.0);
        assert_eq!((syncs.rows[0].calls_per_s, syncs.rows[0].wait_pct), (10.0, 10.0));
        let restarted = SyncsRaw { tracing_started_ns: 7, ..reading(2, vec![sync_counts(1, 500, 1)]) };
        let syncs = SyncActivity::derive(Some(&restarted), &reading(2, vec![sync_counts(1, 10, 100)]), 1.0);
        assert_eq!(syncs.rows[0].calls_per_s, 10.0, "counts of another time are none to compare with");
    }

    #[test]
    fn a_sync_in_flight_counts_as_waiting() {
        let file = Arc::new(SyncFile { pid: 1, ..Default::default() });
        let in_flight = vec![InFlightSync { file, started_ns: 3_000_000_000, ..Default::default() }];
        let now = SyncsRaw { in_flight, ..reading(12, vec![sync_counts(1, 1, 1)]) };
        let before = reading(10, vec![sync_counts(1, 1, 1)]);
        assert_eq!(SyncActivity::derive(Some(&before), &now, 2.0).rows[0].wait_pct, 100.0);
    }

    #[test]
    fn drops_are_reported() {
        assert_eq!(SyncActivity::default().drops_text(), None);
        let syncs = SyncActivity { drops: SyncDrops { files: 2, slow: 0, in_flight: 1 }, ..Default::default() };
        assert_eq!(
            syncs.drops_text().as_deref(),
            Some("tables full: 2 further files not counted, 1 syncs not followed")
        );
    }
}
