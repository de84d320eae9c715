//! The counters of a worker thread, which other threads may read at any time.
//!
//! One writer, many readers, no locks: the writer's plain loads and stores of relaxed atomics cost what
//! an ordinary increment costs. A reader sees counts that are at most one operation apart, so
//! a thread that is stuck in the kernel still leaves a valid partial report.

use super::depth::{DEPTH_BUCKETS, DepthCounts, batch_bucket, level_bucket};
use super::histogram::{BUCKET_COUNT, Histogram, bucket_index};
use super::latency::{DirectionStats, LatencyStats, StallStats, SyncStats};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    Read,
    Write,
    /// fdatasync.
    Sync,
    /// Frees a range of the file.
    Trim,
    /// fsync; counted as [`Self::Sync`].
    Fsync,
}

impl OpKind {
    fn counter(self) -> usize {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Sync | Self::Fsync => 2,
            Self::Trim => 3,
        }
    }
}

/// Adds without a locked instruction, which is correct because each counter has a single writer.
fn add_relaxed(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

fn set_to_0(counter: &AtomicU64) {
    counter.store(0, Relaxed);
}

#[derive(Default)]
struct MomentCounters {
    sum: AtomicU64,
    min_inverted: AtomicU64, // all bits inverted, so that 0 stands for the highest value
    max: AtomicU64,
    squares: AtomicU64, // bits of an f64: a sum of squared nanoseconds outgrows 64 bits
}

impl MomentCounters {
    fn add(&self, ns: u64) {
        add_relaxed(&self.sum, ns);
        if !ns > self.min_inverted.load(Relaxed) {
            self.min_inverted.store(!ns, Relaxed);
        }
        if ns > self.max.load(Relaxed) {
            self.max.store(ns, Relaxed);
        }
        let x = ns as f64;
        self.squares.store(x.mul_add(x, f64::from_bits(self.squares.load(Relaxed))).to_bits(), Relaxed);
    }

    fn latency(&self, n: u64, histogram: Option<Histogram>) -> LatencyStats {
        let [sum, min, max, squares] =
            [&self.sum, &self.min_inverted, &self.max, &self.squares].map(|c| c.load(Relaxed));
        LatencyStats::from_sums(n, sum, f64::from_bits(squares), !min, max, histogram)
    }
}

struct HistogramCounters(Box<[AtomicU64]>);

impl Default for HistogramCounters {
    fn default() -> Self {
        Self((0..BUCKET_COUNT).map(|_| AtomicU64::new(0)).collect())
    }
}

impl HistogramCounters {
    fn increment(&self, ns: u64) {
        add_relaxed(&self.0[bucket_index(ns)], 1);
    }

    fn histogram(&self) -> Histogram {
        Histogram::from_counts(self.0.iter().map(|c| c.load(Relaxed)))
    }
}

#[derive(Default)]
struct OpCounters {
    ios: AtomicU64,
    bytes: AtomicU64,
    slat: MomentCounters,
    clat: MomentCounters,
    lat: MomentCounters,
    clat_histogram: HistogramCounters,
    lat_histogram: HistogramCounters,
}

/// One worker's counters. Times are CLOCK_MONOTONIC in ns.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct OpRecorder {
    op_counters: [OpCounters; 4],
    /// When counting started (end of the ramp-up); 0: not yet.
    counting_since_ns: AtomicU64,
    /// Time of the last counted completion.
    last_completion: AtomicU64,
    /// Time of the last heartbeat, including the ramp-up and pauses for a rate limit.
    heartbeat_ns: AtomicU64,
    stall_count: AtomicU64,
    stalled_ns: AtomicU64,
    longest_gap_ns: AtomicU64,
    level: [AtomicU64; DEPTH_BUCKETS],
    submit: [AtomicU64; DEPTH_BUCKETS],
    complete: [AtomicU64; DEPTH_BUCKETS],
}

/// A gap without any completion that counts as a stall, ns.
pub(crate) const STALL_NS: u64 = 100_000_000;

impl OpRecorder {
    /// Starts counting; the caller records nothing but heartbeats before.
    pub(crate) fn start_counting(&self, now: u64) {
        self.last_completion.store(now, Relaxed);
        self.counting_since_ns.store(now.max(1), Relaxed);
    }

    /// Forgets all counts, and starts counting again.
    pub(crate) fn restart(&self, now: u64) {
        for side in &self.op_counters {
            let moments = [&side.slat, &side.clat, &side.lat].map(|m| [&m.sum, &m.min_inverted, &m.max, &m.squares]);
            let histograms = side.clat_histogram.0.iter().chain(&side.lat_histogram.0);
            moments.into_iter().flatten().chain(histograms).chain([&side.ios, &side.bytes]).for_each(set_to_0);
        }
        self.level.iter().chain(&self.submit).chain(&self.complete).for_each(set_to_0);
        [&self.stall_count, &self.stalled_ns, &self.longest_gap_ns].into_iter().for_each(set_to_0);
        self.start_counting(now);
    }

    /// Records a completed operation: `start` is when its preparation began, then submission and completion.
    pub(crate) fn record_op(&self, kind: OpKind, bytes: u64, start: u64, issue: u64, end: u64) {
        let side = &self.op_counters[kind.counter()];
        add_relaxed(&side.ios, 1);
        let lat = end.saturating_sub(start);
        side.lat.add(lat);
        side.lat_histogram.increment(lat);
        if !matches!(kind, OpKind::Sync | OpKind::Fsync) {
            add_relaxed(&side.bytes, bytes);
            let clat = end.saturating_sub(issue);
            side.slat.add(issue.saturating_sub(start));
            side.clat.add(clat);
            side.clat_histogram.increment(clat);
        }
    }

    /// Records the submission of `n` operations at a time.
    pub(crate) fn record_submit(&self, n: usize) {
        add_relaxed(&self.submit[batch_bucket(n)], 1);
    }

    /// Counts `n` queued operations with the depth that all of them made together, as in fio.
    pub(crate) fn record_depth(&self, n: usize, inflight: usize) {
        add_relaxed(&self.level[level_bucket(inflight)], n as u64);
    }

    pub(crate) fn record_reap(&self, n: usize) {
        add_relaxed(&self.complete[batch_bucket(n)], 1);
    }

    pub(crate) fn depth_counts(&self) -> DepthCounts {
        let read = |a: &[AtomicU64; DEPTH_BUCKETS]| std::array::from_fn(|n| a[n].load(Relaxed));
        DepthCounts { level: read(&self.level), submit: read(&self.submit), complete: read(&self.complete) }
    }

    /// Records completions at `now`, which ends the gap since the previous ones.
    pub(crate) fn record_completion_time(&self, now: u64) {
        let gap = now.saturating_sub(self.last_completion.load(Relaxed));
        self.last_completion.store(now, Relaxed);
        self.heartbeat_ns.store(now, Relaxed);
        if gap > self.longest_gap_ns.load(Relaxed) {
            self.longest_gap_ns.store(gap, Relaxed);
        }
        if gap >= STALL_NS {
            add_relaxed(&self.stall_count, 1);
            add_relaxed(&self.stalled_ns, gap);
        }
    }

    /// Reports progress without a completion.
    pub(crate) fn heartbeat(&self, now: u64) {
        self.heartbeat_ns.store(now, Relaxed);
    }

    pub(crate) fn last_heartbeat_ns(&self) -> u64 {
        self.heartbeat_ns.load(Relaxed)
    }

    pub(crate) fn counting_since(&self) -> Option<u64> {
        Some(self.counting_since_ns.load(Relaxed)).filter(|t| *t > 0)
    }

    pub(crate) fn last_completion_ns(&self) -> u64 {
        self.last_completion.load(Relaxed)
    }

    pub(crate) fn stall_stats(&self) -> StallStats {
        let [count, total_ns, longest_ns] =
            [&self.stall_count, &self.stalled_ns, &self.longest_gap_ns].map(|c| c.load(Relaxed));
        StallStats { count, total_ns, longest_ns }
    }

    pub(crate) fn direction_stats(&self, kind: OpKind) -> DirectionStats {
        let side = &self.op_counters[kind.counter()];
        let ios = side.ios.load(Relaxed);
        DirectionStats {
            ios,
            bytes: side.bytes.load(Relaxed),
            slat: side.slat.latency(ios, None),
            clat: side.clat.latency(ios, Some(side.clat_histogram.histogram())),
            lat: side.lat.latency(ios, Some(side.lat_histogram.histogram())),
        }
    }

    pub(crate) fn sync_stats(&self) -> SyncStats {
        let side = &self.op_counters[OpKind::Sync.counter()];
        let ios = side.ios.load(Relaxed);
        SyncStats { ios, lat: side.lat.latency(ios, Some(side.lat_histogram.histogram())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slat_clat_and_lat_follow_fio() {
        let r = OpRecorder::default();
        r.start_counting(0);
        r.record_op(OpKind::Read, 4096, 1_000, 1_400, 3_000);
        r.record_op(OpKind::Read, 4096, 2_000, 2_200, 5_000);
        let d = r.direction_stats(OpKind::Read);
        assert_eq!((d.ios, d.bytes), (2, 8192));
        assert_eq!((d.slat.min_ns, d.slat.max_ns, d.slat.mean_ns), (200, 400, 300.0));
        assert_eq!((d.clat.mean_ns, d.lat.mean_ns), (2200.0, 2500.0));
        assert!((d.lat.stddev_ns - 707.1).abs() < 0.1, "{}", d.lat.stddev_ns);
        assert_eq!(r.direction_stats(OpKind::Write).ios, 0);
    }

    #[test]
    fn depths_are_counted_by_batch() {
        let r = OpRecorder::default();
        r.record_submit(16);
        r.record_depth(16, 64);
        r.record_reap(8);
        let counts = r.depth_counts();
        assert_eq!((counts.level[5], counts.level[6], counts.submit[3], counts.complete[2]), (0, 16, 1, 1));
    }

    #[test]
    fn a_gap_without_completions_is_a_stall() {
        let r = OpRecorder::default();
        r.start_counting(1_000);
        r.record_completion_time(2_000);
        r.record_completion_time(2_000 + 3 * STALL_NS);
        r.record_completion_time(2_000 + 4 * STALL_NS);
        let expected = StallStats { count: 2, total_ns: 4 * STALL_NS, longest_ns: 3 * STALL_NS };
        assert_eq!(r.stall_stats(), expected);
    }
}
