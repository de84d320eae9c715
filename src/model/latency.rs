//! How long requests took, from the histograms the kernel keeps for us: buckets, percentiles, heat.
//!
//! Buckets are log-linear: [`SUB`] equal ones to each power of two of nanoseconds, from 2^[`MIN_EXP`] (256 ns) up
//! to 2^36 (68.7 s). The first takes all that is shorter, the last all that is longer. A bucket is at most 1/16 of
//! its lower bound wide, so its middle is at most 1/32 (3.2 %) off whatever was counted in it. The kernel's side is
//! `assets/trace/buckets.h`.

use super::disk::DevId;
use super::request_pattern::RequestPattern;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, LazyLock};

/// Buckets to a power of two, as a power of two.
const SUB_BUCKET_BITS: u32 = 4;
/// Buckets to a power of two.
const SUB_BUCKETS: u64 = 1 << SUB_BUCKET_BITS;
/// The first power of two, in ns.
const MIN_EXPONENT: u32 = 8;
/// Buckets.
pub const BUCKETS: usize = 28 << SUB_BUCKET_BITS;
/// Buckets that make a step of heat: two steps to a power of two.
const BUCKETS_PER_BIN: u16 = 8;

/// The bucket of a time, as the kernel's side finds it.
pub fn bucket_index(ns: u64) -> u16 {
    if ns < 1 << MIN_EXPONENT {
        return 0;
    }
    let exp = ns.ilog2();
    let slot =
        (u64::from(exp - MIN_EXPONENT) << SUB_BUCKET_BITS) | ((ns >> (exp - SUB_BUCKET_BITS)) & (SUB_BUCKETS - 1));
    slot.min(BUCKETS as u64 - 1) as u16
}

/// The shortest time that belongs to a bucket, and the shortest that no longer does, in ns. The first one's lower
/// bound is told as if it were like the others; the last one has no upper bound and is told likewise.
pub fn bucket_bounds(slot: u16) -> (u64, u64) {
    let (octave, sub) = (u32::from(slot) >> SUB_BUCKET_BITS, u64::from(slot) & (SUB_BUCKETS - 1));
    let width = 1u64 << (MIN_EXPONENT - SUB_BUCKET_BITS + octave);
    ((SUB_BUCKETS + sub) * width, (SUB_BUCKETS + sub + 1) * width)
}

/// The time of the request that is so many-th (from 1) of `n` in a bucket, in microseconds, if they are evenly spread.
fn interpolate_us(slot: u16, nth: u64, n: u32) -> f64 {
    let (low, high) = bucket_bounds(slot);
    let share = (nth as f64 - 0.5) / f64::from(n);
    (low as f64 + (high - low) as f64 * share) / 1e3
}

/// A histogram: its buckets that are not empty, in order. Counts are the kernel's and wrap at 32 bits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparseHistogram(Box<[(u16, u32)]>);

impl SparseHistogram {
    /// From all buckets, empty ones too.
    pub fn from_dense(dense: impl IntoIterator<Item = u32>) -> Self {
        Self::from_sparse(dense.into_iter().zip(0..).map(|(n, slot)| (slot, n)))
    }

    /// From buckets in order.
    pub fn from_sparse(buckets: impl IntoIterator<Item = (u16, u32)>) -> Self {
        Self(buckets.into_iter().filter(|(_, n)| *n > 0).collect())
    }

    /// The buckets that are not empty, in order.
    pub fn buckets(&self) -> &[(u16, u32)] {
        &self.0
    }

    /// What one bucket holds.
    pub fn count_at(&self, slot: u16) -> u32 {
        self.0.binary_search_by_key(&slot, |b| b.0).map_or(0, |at| self.0[at].1)
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &Self) -> Self {
        let mut old = before.0.iter().peekable();
        // A count that wrapped to 0 has no bucket here and is missed; that is one bucket in one tick of an hour.
        Self::from_sparse(self.0.iter().map(|&(slot, n)| {
            while old.next_if(|b| b.0 < slot).is_some() {}
            (slot, n.wrapping_sub(old.next_if(|b| b.0 == slot).map_or(0, |b| b.1)))
        }))
    }

    /// How many requests.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|b| u64::from(b.1)).sum()
    }
}

/// What the kernel has counted for one kind of request of a device, since tracing began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestHistograms {
    /// From the request's allocation to its completion: queued and in service, as await has it.
    pub total: SparseHistogram,
    /// From its issue to the driver to its completion. Empty for devices that take bios, not requests.
    pub service: SparseHistogram,
    /// How large they are, and in which order.
    #[serde(rename = "shape")]
    pub pattern: RequestPattern,
}

/// Kinds of requests that are measured, in the order of [`DeviceCounts::kinds`].
pub const REQUEST_KINDS: [&str; 3] = ["read", "write", "flush"];

/// The histograms of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceHistograms {
    /// The whole device; partitions are not told apart.
    pub id: DevId,
    /// Reads, writes, flushes; see [`KINDS`].
    pub kinds: [RequestHistograms; 3],
}

/// One reading of all histograms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyRaw {
    /// Devices that are measured, by number.
    pub devices: Vec<DeviceHistograms>,
    /// Requests that could not be followed, because too many were in flight at once.
    #[serde(rename = "lost")]
    pub dropped: u64,
    /// What of it could not be had, and why.
    #[serde(rename = "without")]
    pub unavailable: Vec<String>,
}

/// How times are spread, in microseconds. A percentile lies in the bucket in which that share of requests is reached,
/// as far into it as it takes if its requests are evenly spread in it: never a bucket (6.2 %) off, and where times
/// differ, as those of real devices do, far less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Requests.
    pub samples: u64,
    /// Half of them took no longer.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// The longest, likewise.
    pub max: f64,
}

impl LatencySummary {
    /// `None` where nothing was counted.
    pub fn from_histogram(counts: &SparseHistogram) -> Option<Self> {
        let samples = counts.total();
        let &(longest, last) = counts.0.last()?;
        let max = interpolate_us(longest, u64::from(last), last);
        let at = |permille: u64| {
            let wanted = (samples * permille).div_ceil(1000);
            let mut seen = 0;
            let found = counts.0.iter().find(|b| {
                seen += u64::from(b.1);
                seen >= wanted
            });
            found.map_or(max, |&(slot, n)| interpolate_us(slot, wanted + u64::from(n) - seen, n))
        };
        Some(Self { samples, p50: at(500), p90: at(900), p99: at(990), p999: at(999), max })
    }
}

/// A histogram in coarse steps, two to a power of two, for pictures over time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatmapBins(Box<[(u8, u32)]>);

/// Steps there are.
pub const HEATMAP_BINS: u8 = (BUCKETS as u16 / BUCKETS_PER_BIN) as u8;

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

    /// Steps that are not empty and what they hold, the shortest times first.
    pub fn bins(&self) -> &[(u8, u32)] {
        &self.0
    }

    /// Where a step begins, in microseconds.
    pub fn bin_start_us(step: u8) -> f64 {
        bucket_bounds(u16::from(step) * BUCKETS_PER_BIN).0 as f64 / 1e3
    }
}

/// What the requests of one kind took in one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestLatency {
    /// Queued and in service.
    pub total: Option<LatencySummary>,
    /// In service.
    pub service: Option<LatencySummary>,
    /// [`KindLatency::total`] as a picture.
    #[serde(rename = "heat")]
    pub heatmap: HeatmapBins,
    /// [`KindLatency::service`] as a picture.
    #[serde(rename = "service_heat")]
    pub service_heatmap: HeatmapBins,
    /// How large they were, and in which order; all 0 in recordings of programs that did not count it.
    #[serde(rename = "shape")]
    pub pattern: RequestPattern,
}

/// What the requests of a device took in one interval: reads, writes, flushes; see [`KINDS`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceLatency {
    /// In the order of [`KINDS`].
    pub kinds: [RequestLatency; 3],
}

impl DeviceLatency {
    /// What came between two readings; without `before`, since tracing began.
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
                }
            }),
        }
    }

    /// What it is while nothing happens: the same one for every device and every tick.
    pub fn idle() -> Arc<Self> {
        static IDLE: LazyLock<Arc<DeviceLatency>> = LazyLock::new(Arc::default);
        IDLE.clone()
    }

    /// Bytes it holds beside itself, by estimate.
    pub fn heap_bytes(&self) -> usize {
        let heat = |h: &HeatmapBins| size_of_val(h.bins());
        size_of::<Self>() + self.kinds.iter().map(|k| heat(&k.heatmap) + heat(&k.service_heatmap)).sum::<usize>()
    }
}

/// How tracing itself fared in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracingStatus {
    /// Requests that could not be followed.
    #[serde(rename = "lost")]
    pub dropped: u64,
    /// What of it could not be had, and why.
    #[serde(rename = "without")]
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
        // 100.0, 100.1 ... 199.9 us: 16 buckets and the parts of two.
        let mut dense = [0; BUCKETS];
        (1000..2000u64).for_each(|tenth| dense[usize::from(bucket_index(tenth * 100))] += 1);
        let s = LatencySummary::from_histogram(&SparseHistogram::from_dense(dense)).unwrap();
        for (told, is) in [(s.p50, 150.0), (s.p90, 190.0)] {
            assert!((told - is).abs() < 0.2, "{told} for {is}");
        }
        // The last bucket is not full; nothing knows where in it they end.
        let (low, high) = bucket_bounds(bucket_index(199_900));
        assert!((low as f64..high as f64).contains(&(s.p99 * 1e3)), "{s:?}");
        // One request of a bucket is told as its middle.
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
        assert_eq!(heat.bins(), [(0, 3), (1, 4), (HEATMAP_BINS - 1, 8)]);
        assert_eq!((HeatmapBins::bin_start_us(0), HeatmapBins::bin_start_us(2)), (0.256, 0.512));
    }

    proptest! {
        #[test]
        fn a_time_is_within_its_bucket_and_near_its_middle(ns in 256u64..1 << 36) {
            let (low, high) = bucket_bounds(bucket_index(ns));
            prop_assert!(low <= ns && ns < high);
            prop_assert!((interpolate_us(bucket_index(ns), 1, 1) * 1e3 - ns as f64).abs() <= ns as f64 / 32.0);
        }

        #[test]
        fn longer_times_are_never_in_earlier_buckets(a in any::<u64>(), b in any::<u64>()) {
            prop_assert!(bucket_index(a.min(b)) <= bucket_index(a.max(b)));
        }

        #[test]
        fn sparse_and_dense_say_the_same(dense in proptest::collection::vec(0u32..3, BUCKETS)) {
            let counts = SparseHistogram::from_dense(dense.iter().copied());
            prop_assert_eq!(counts.total(), dense.iter().map(|n| u64::from(*n)).sum::<u64>());
            for (slot, n) in dense.iter().enumerate() {
                prop_assert_eq!(counts.count_at(slot as u16), *n);
            }
        }
    }
}
