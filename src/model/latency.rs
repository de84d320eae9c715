//! Latency of requests: histograms read from the kernel, percentiles, heatmap bins.
//!
//! Buckets are log-linear: 16 equal ones per power of two nanoseconds, from 2^8 (256 ns) up to 2^36 (68.7 s). The first
//! bucket includes shorter times, the last one longer times. A bucket is at most 1/16 of its lower bound wide, so its
//! midpoint is at most 1/32 (3.2 %) off any time counted in it. The BPF programs use the same buckets:
//! `assets/trace/buckets.h`.

use super::device_id::DevId;
use super::request_pattern::RequestPattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Log-linear buckets: `2^sub_bits` equal ones per power of two nanoseconds, from `2^min_exponent` on.
pub(crate) struct BucketScale {
    pub sub_bits: u32,
    pub min_exponent: u32,
}

impl BucketScale {
    /// The bucket of a time of at least `2^min_exponent` ns.
    #[inline(always)]
    pub(crate) fn index(&self, ns: u64) -> u64 {
        let exp = ns.ilog2();
        (u64::from(exp - self.min_exponent) << self.sub_bits)
            | ((ns >> (exp - self.sub_bits)) & ((1 << self.sub_bits) - 1))
    }

    /// Lower bound (inclusive) and upper bound (exclusive) of a bucket, in ns.
    pub(crate) fn bounds(&self, slot: u16) -> (u64, u64) {
        let (per_octave, slot) = (1 << self.sub_bits, u64::from(slot));
        let width = 1 << (self.min_exponent - self.sub_bits + (slot / per_octave) as u32);
        let low = (per_octave + slot % per_octave) * width;
        (low, low + width)
    }
}

const SCALE: BucketScale = BucketScale { sub_bits: 4, min_exponent: 8 };
/// Number of buckets.
pub const BUCKETS: usize = 28 << SCALE.sub_bits;
/// Buckets per heatmap bin: two bins per power of two.
const BUCKETS_PER_BIN: u16 = 8;

/// The bucket of a time, as the BPF programs compute it.
pub fn bucket_index(ns: u64) -> u16 {
    SCALE.index(ns.max(1 << SCALE.min_exponent)).min(BUCKETS as u64 - 1) as u16
}

/// Lower bound (inclusive) and upper bound (exclusive) of a bucket, in ns. For the first and the last bucket these are
/// nominal: the first one has no lower bound and the last one no upper bound.
pub fn bucket_bounds(slot: u16) -> (u64, u64) {
    SCALE.bounds(slot)
}

/// Time of the `nth` request (from 1) of `n` in a bucket, in microseconds, if they are evenly distributed.
fn interpolate_us(slot: u16, nth: u64, n: u32) -> f64 {
    let (low, high) = bucket_bounds(slot);
    let share = (nth as f64 - 0.5) / f64::from(n);
    (low as f64 + (high - low) as f64 * share) / 1e3
}

/// A histogram as its non-empty buckets, in order. Counts are the kernel's and wrap at 32 bits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparseHistogram(Box<[(u16, u32)]>);

impl SparseHistogram {
    /// From the counts of all buckets.
    pub fn from_dense(dense: impl IntoIterator<Item = u32>) -> Self {
        Self::from_sparse(dense.into_iter().zip(0..).map(|(n, slot)| (slot, n)))
    }

    /// From buckets in order.
    pub fn from_sparse(buckets: impl IntoIterator<Item = (u16, u32)>) -> Self {
        Self(buckets.into_iter().filter(|(_, n)| *n > 0).collect())
    }

    /// The non-empty buckets, in order.
    pub fn buckets(&self) -> &[(u16, u32)] {
        &self.0
    }

    /// The count of one bucket.
    pub fn count_at(&self, slot: u16) -> u32 {
        self.0.binary_search_by_key(&slot, |b| b.0).map_or(0, |at| self.0[at].1)
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &Self) -> Self {
        // A count that wrapped to 0 has no bucket here and is missed: one bucket in one tick of an hour.
        Self::from_sparse(self.0.iter().map(|&(slot, n)| (slot, n.wrapping_sub(before.count_at(slot)))))
    }

    /// The sum of histograms.
    pub(crate) fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sums: BTreeMap<u16, u32> = BTreeMap::new();
        for (slot, n) in all.into_iter().flat_map(Self::buckets) {
            let sum = sums.entry(*slot).or_default();
            *sum = sum.saturating_add(*n);
        }
        Self::from_sparse(sums)
    }

    /// The bucket of the request with this rank (from 1, shortest first): its index, its count, the rank within it.
    pub fn bucket_of_rank(&self, rank: u64) -> Option<(u16, u32, u64)> {
        let mut before = 0;
        for &(bucket, n) in self.0.iter() {
            if before + u64::from(n) >= rank {
                return Some((bucket, n, rank - before));
            }
            before += u64::from(n);
        }
        None
    }

    /// Number of requests.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|b| u64::from(b.1)).sum()
    }
}

/// Histograms of one kind of request of a device, since tracing began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHistograms {
    /// From allocation to completion: queueing and service, as in await.
    pub total: SparseHistogram,
    /// From issue to the driver to completion. Empty for devices that take bios, not requests.
    pub service: SparseHistogram,
    /// Sizes, and sequential or random.
    pub pattern: RequestPattern,
}

/// Kinds of requests that are traced, in the order of [`DeviceHistograms::kinds`].
pub const REQUEST_KINDS: [&str; 3] = ["read", "write", "flush"];

/// The histograms of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceHistograms {
    /// The whole device; partitions are not distinguished.
    pub id: DevId,
    /// In the order of [`REQUEST_KINDS`].
    pub kinds: [RequestHistograms; 3],
}

/// One reading of all histograms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyRaw {
    /// CLOCK_BOOTTIME when tracing began, ns; 0 in recordings of versions that did not store it.
    #[serde(default)]
    pub tracing_started_ns: u64,
    /// Traced devices, by number.
    pub devices: Vec<DeviceHistograms>,
    /// Requests that could not be traced because too many were in flight.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

/// Percentiles in microseconds. A percentile is interpolated within its bucket, as if the requests in it were evenly
/// distributed. The error is less than the width of a bucket (6.2 %), and for real devices much smaller.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of requests.
    pub samples: u64,
    /// 50th percentile.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl LatencySummary {
    /// `None` for an empty histogram.
    pub fn from_histogram(counts: &SparseHistogram) -> Option<Self> {
        let samples = counts.total();
        let &(longest, last) = counts.0.last()?;
        let max = interpolate_us(longest, u64::from(last), last);
        let at = |permille: u64| {
            let bucket = counts.bucket_of_rank((samples * permille).div_ceil(1000));
            bucket.map_or(max, |(bucket, n, rank)| interpolate_us(bucket, rank, n))
        };
        Some(Self { samples, p50: at(500), p90: at(900), p99: at(990), p999: at(999), max })
    }
}

/// A histogram in coarse bins, two per power of two, for heatmaps over time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatmapBins(Box<[(u8, u32)]>);

impl HeatmapBins {
    fn from_histogram(counts: &SparseHistogram) -> Self {
        let mut out: Vec<(u8, u32)> = Vec::new();
        for &(slot, n) in counts.buckets() {
            let step = (slot / BUCKETS_PER_BIN) as u8;
            match out.last_mut() {
                Some(last) if last.0 == step => last.1 = last.1.saturating_add(n),
                _ => out.push((step, n)),
            }
        }
        Self(out.into())
    }

    /// The non-empty bins and their counts, shortest times first.
    pub fn bins(&self) -> &[(u8, u32)] {
        &self.0
    }

    /// Start of a bin, in microseconds.
    pub fn bin_start_us(step: u8) -> f64 {
        bucket_bounds(u16::from(step) * BUCKETS_PER_BIN).0 as f64 / 1e3
    }
}

/// Latency of one kind of request in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestLatency {
    /// Queueing and service.
    pub total: Option<LatencySummary>,
    /// Service only.
    pub service: Option<LatencySummary>,
    /// [`RequestLatency::total`] as a heatmap column.
    pub heatmap: HeatmapBins,
    /// [`RequestLatency::service`] as a heatmap column.
    pub service_heatmap: HeatmapBins,
    /// Sizes, and sequential or random; all 0 in recordings of versions that did not count it.
    pub pattern: RequestPattern,
    /// No request was traced, although some completed: tracing of this kind began after them.
    pub is_unmeasured: bool,
}

/// Latency of a device's requests in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceLatency {
    /// In the order of [`REQUEST_KINDS`].
    pub kinds: [RequestLatency; 3],
}

impl DeviceLatency {
    /// Latency between two readings; without `before`, since tracing began.
    pub fn derive(before: Option<&DeviceHistograms>, now: &DeviceHistograms) -> Self {
        let none = RequestHistograms::default();
        Self {
            kinds: std::array::from_fn(|kind| {
                let (old, new) = (before.map_or(&none, |b| &b.kinds[kind]), &now.kinds[kind]);
                let (total, service) = (new.total.since(&old.total), new.service.since(&old.service));
                RequestLatency {
                    total: LatencySummary::from_histogram(&total),
                    service: LatencySummary::from_histogram(&service),
                    heatmap: HeatmapBins::from_histogram(&total),
                    service_heatmap: HeatmapBins::from_histogram(&service),
                    pattern: new.pattern.since(&old.pattern),
                    is_unmeasured: false,
                }
            }),
        }
    }

    /// Marks kinds of which no request was traced, but `completed` in the interval.
    pub(crate) fn mark_unmeasured(&mut self, completed: [bool; 3]) {
        for (kind, completed) in self.kinds.iter_mut().zip(completed) {
            kind.is_unmeasured = completed && kind.total.is_none() && kind.pattern.request_count() == 0;
        }
    }

    /// Estimated size in bytes.
    pub fn heap_bytes(&self) -> usize {
        let heat = |h: &HeatmapBins| size_of_val(h.bins());
        size_of::<Self>() + self.kinds.iter().map(|k| heat(&k.heatmap) + heat(&k.service_heatmap)).sum::<usize>()
    }
}

/// Completeness of the latency trace in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracingStatus {
    /// Requests that could not be traced.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_cover_the_range_without_gap_or_overlap() {
        for s in 1..BUCKETS as u16 {
            assert_eq!(bucket_bounds(s).0, bucket_bounds(s - 1).1);
            assert_eq!((bucket_index(bucket_bounds(s).0), bucket_index(bucket_bounds(s).0 - 1)), (s, s - 1));
        }
        assert_eq!((bucket_bounds(0).0, bucket_bounds(BUCKETS as u16 - 1).1), (256, 1 << 36));
        assert_eq!((bucket_index(0), bucket_index(u64::MAX)), (0, BUCKETS as u16 - 1));
    }

    #[test]
    fn percentiles_match_the_requests() {
        // 990 of 100 us, 9 of 1 ms, one of 20 ms.
        let times = [100_000; 990].into_iter().chain([1_000_000; 9]).chain([20_000_000]);
        let mut dense = [0; BUCKETS];
        times.for_each(|ns| dense[usize::from(bucket_index(ns))] += 1);
        let s = LatencySummary::from_histogram(&SparseHistogram::from_dense(dense)).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= b / 16.0;
        assert_eq!(s.samples, 1000);
        assert!(near(s.p50, 100.0) && near(s.p99, 100.0), "{s:?}");
        assert!(near(s.p999, 1000.0) && near(s.max, 20_000.0), "{s:?}");
        assert_eq!(LatencySummary::from_histogram(&SparseHistogram::default()), None);
    }

    #[test]
    fn percentiles_of_evenly_spread_times_are_within_a_thousandth() {
        // 100.0, 100.1 ... 199.9 us: 16 whole buckets and parts of two.
        let mut dense = [0; BUCKETS];
        (1000..2000u64).for_each(|tenth| dense[usize::from(bucket_index(tenth * 100))] += 1);
        let s = LatencySummary::from_histogram(&SparseHistogram::from_dense(dense)).unwrap();
        for (reported, exact) in [(s.p50, 150.0), (s.p90, 190.0)] {
            assert!((reported - exact).abs() < 0.2, "{reported} for {exact}");
        }
        // The last bucket is not full, so where in it the times end is unknown.
        let (low, high) = bucket_bounds(bucket_index(199_900));
        assert!((low as f64..high as f64).contains(&(s.p99 * 1e3)), "{s:?}");
        // A single request in a bucket counts as its midpoint.
        let one = LatencySummary::from_histogram(&SparseHistogram::from_sparse([(200, 1)])).unwrap();
        let (low, high) = bucket_bounds(200);
        assert_eq!((one.p50, one.max), ((low + high) as f64 / 2e3, one.p50));
        assert!(s.p999 <= s.max && s.p99 <= s.p999, "{s:?}");
    }

    #[test]
    fn since_counts_only_new_requests_and_counters_may_wrap() {
        let old = SparseHistogram::from_sparse([(3, u32::MAX), (5, 7), (9, 1)]);
        let new = SparseHistogram::from_sparse([(2, 4), (3, 1), (5, 7), (9, 3)]);
        assert_eq!(new.since(&old).buckets(), [(2, 4), (3, 2), (9, 2)]);
        assert_eq!((new.count_at(5), new.count_at(6)), (7, 0));
    }

    #[test]
    fn a_heatmap_bin_sums_its_buckets() {
        let heat = HeatmapBins::from_histogram(&SparseHistogram::from_sparse([(0, 1), (7, 2), (8, 4), (447, 8)]));
        assert_eq!(heat.bins(), [(0, 3), (1, 4), (55, 8)]);
        assert_eq!((HeatmapBins::bin_start_us(0), HeatmapBins::bin_start_us(2)), (0.256, 0.512));
    }

    proptest! {
        #[test]
        fn a_time_is_within_its_bucket_and_near_its_midpoint(ns in 256u64..1 << 36) {
            let (low, high) = bucket_bounds(bucket_index(ns));
            prop_assert!(low <= ns && ns < high);
            prop_assert!((interpolate_us(bucket_index(ns), 1, 1) * 1e3 - ns as f64).abs() <= ns as f64 / 32.0);
        }

        #[test]
        fn longer_times_are_never_in_earlier_buckets(a in any::<u64>(), b in any::<u64>()) {
            prop_assert!(bucket_index(a.min(b)) <= bucket_index(a.max(b)));
        }

        #[test]
        fn sparse_and_dense_histograms_are_equal(dense in proptest::collection::vec(0u32..3, BUCKETS)) {
            let counts = SparseHistogram::from_dense(dense.iter().copied());
            prop_assert_eq!(counts.total(), dense.iter().map(|n| u64::from(*n)).sum::<u64>());
            for (slot, n) in dense.iter().enumerate() {
                prop_assert_eq!(counts.count_at(slot as u16), *n);
            }
        }
    }
}
