//! fio's latency histogram, so that percentiles equal fio's.
//!
//! 29 groups of 64 buckets, log-linear, at most 0.8 % wide each side (fio, `stat.h`:
//! `FIO_IO_U_PLAT_BITS` 6, `FIO_IO_U_PLAT_GROUP_NR` 29; `stat.c`: `plat_val_to_idx`).

use crate::model::latency::BucketScale;
use serde::{Deserialize, Serialize};

/// Above the first buckets, which are 1 ns wide.
const SCALE: BucketScale = BucketScale { sub_bits: 6, min_exponent: 6 };
const FIRST_BUCKETS: usize = 1 << SCALE.min_exponent;
/// Buckets of a histogram.
pub const BUCKET_COUNT: usize = 29 << SCALE.sub_bits;

/// fio's default percentile list (`stat.h`, `FIO_IO_U_LIST_MAX_LEN` and `init.c`).
pub(crate) const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// The index of the bucket of `ns`.
pub fn bucket_index(ns: u64) -> usize {
    if ns < FIRST_BUCKETS as u64 {
        return ns as usize;
    }
    (FIRST_BUCKETS + SCALE.index(ns) as usize).min(BUCKET_COUNT - 1)
}

/// The middle of bucket `index`, in ns (fio's `plat_idx_to_val`).
pub(crate) fn bucket_midpoint(index: usize) -> u64 {
    let Some(slot) = index.min(BUCKET_COUNT - 1).checked_sub(FIRST_BUCKETS) else { return index as u64 };
    let (low, high) = SCALE.bounds(slot as u16);
    low + (high - low) / 2
}

/// A finished histogram: only the buckets that counted something, as (bucket, count), ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// (bucket index, samples in it).
    pub buckets: Vec<(u16, u64)>,
}

impl Histogram {
    /// From one count per bucket.
    pub fn from_counts(counts: impl Iterator<Item = u64>) -> Self {
        let buckets = counts.enumerate().filter(|(_, n)| *n > 0).map(|(i, n)| (i as u16, n)).collect();
        Self { buckets }
    }

    /// Samples counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    pub(crate) fn merge(&self, other: &Histogram) -> Histogram {
        let mut all = std::collections::BTreeMap::new();
        for (i, n) in self.buckets.iter().chain(&other.buckets) {
            let sum: &mut u64 = all.entry(*i).or_default();
            *sum = sum.saturating_add(*n);
        }
        Histogram { buckets: all.into_iter().collect() }
    }

    /// The samples added since `earlier`, an older state of this histogram.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let before = |i| earlier.buckets.binary_search_by_key(&i, |b| b.0).map_or(0, |at| earlier.buckets[at].1);
        let more = self.buckets.iter().map(|&(i, n)| (i, n.saturating_sub(before(i))));
        Histogram { buckets: more.filter(|(_, n)| *n > 0).collect() }
    }

    /// The value in ns below or at which `percent` of the samples are, as in fio; `None` without samples.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let goal = percent / 100.0 * self.count() as f64;
        let mut sum = 0u64;
        for &(i, n) in &self.buckets {
            sum = sum.saturating_add(n);
            if sum as f64 >= goal {
                return Some(bucket_midpoint(i as usize));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bucket_midpoints_match_fio() {
        // Values as fio 3.33 prints them: every bucket's middle.
        for ns in [0, 1, 127, 128, 1_000, 65_000, 1_000_000_000] {
            let v = bucket_midpoint(bucket_index(ns));
            assert!(v.abs_diff(ns) as f64 <= ns as f64 * 0.008 + 1.0, "{ns} -> {v}");
        }
        assert_eq!(bucket_midpoint(bucket_index(700_000)), 700_416);
        assert_eq!(bucket_midpoint(bucket_index(1_500_000)), 1_499_136);
        assert_eq!(bucket_index(u64::MAX), BUCKET_COUNT - 1);
    }

    #[test]
    fn percentiles_are_cumulative_from_the_lowest_bucket() {
        let mut counts = vec![0u64; BUCKET_COUNT];
        for ns in 1..=100 {
            counts[bucket_index(ns)] += 1;
        }
        let h = Histogram::from_counts(counts.into_iter());
        assert_eq!((h.percentile(1.0), h.percentile(50.0), h.percentile(99.99)), (Some(1), Some(50), Some(100)));
        assert_eq!(Histogram::default().percentile(50.0), None);
    }

    proptest! {
        #[test]
        fn buckets_are_ordered_and_exact_to_a_percent(a in 0u64..1 << 34, b in 0u64..1 << 34) {
            if a <= b { prop_assert!(bucket_index(a) <= bucket_index(b)); }
            let v = bucket_midpoint(bucket_index(a));
            prop_assert!(v.abs_diff(a) as f64 <= a as f64 * 0.0079 + 1.0);
        }

        #[test]
        fn since_is_the_difference(a in proptest::collection::vec(0u64..2000, 0..50), b in proptest::collection::vec(0u64..2000, 0..50)) {
            let count = |v: &[u64]| { let mut c = vec![0u64; BUCKET_COUNT]; for x in v { c[bucket_index(*x)] += 1; } Histogram::from_counts(c.into_iter()) };
            let (ha, hb) = (count(&a), count(&b));
            prop_assert_eq!(ha.merge(&hb).since(&ha), hb);
        }
    }
}
