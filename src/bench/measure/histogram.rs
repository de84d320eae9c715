//! fio's latency histogram, so that percentiles equal fio's.
//!
//! 29 groups of 64 buckets, log-linear, at most 0.8 % wide each side (fio, `stat.h`:
//! `FIO_IO_U_PLAT_BITS` 6, `FIO_IO_U_PLAT_GROUP_NR` 29; `stat.c`: `plat_val_to_idx`).

use serde::{Deserialize, Serialize};

const GROUP_BITS: u32 = 6;
const BUCKETS_PER_GROUP: usize = 1 << GROUP_BITS;
/// Buckets of a histogram.
pub const BUCKET_COUNT: usize = 29 * BUCKETS_PER_GROUP;

/// fio's default percentile list (`stat.h`, `FIO_IO_U_LIST_MAX_LEN` and `init.c`).
pub const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// The index of the bucket of `ns`.
#[inline(always)]
pub fn bucket_index(ns: u64) -> usize {
    // Below 2^(BITS+1) every value has a bucket of its own.
    let msb = 63 - (ns | 1).leading_zeros();
    if msb <= GROUP_BITS {
        return ns as usize;
    }
    let error_bits = msb - GROUP_BITS;
    let base = (error_bits as usize + 1) << GROUP_BITS;
    let offset = (ns >> error_bits) as usize & (BUCKETS_PER_GROUP - 1);
    (base + offset).min(BUCKET_COUNT - 1)
}

/// The middle of bucket `index`, in ns (fio's `plat_idx_to_val`).
pub fn bucket_midpoint(index: usize) -> u64 {
    if index < BUCKETS_PER_GROUP << 1 {
        return index as u64;
    }
    let error_bits = (index >> GROUP_BITS) as u32 - 1;
    let base = 1u64 << (error_bits + GROUP_BITS);
    let k = (index % BUCKETS_PER_GROUP) as f64;
    base + ((k + 0.5) * (1u64 << error_bits) as f64) as u64
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
        self.buckets.iter().map(|(_, n)| n).sum()
    }

    /// Adds another histogram's samples.
    pub fn merge_from(&mut self, other: &Histogram) {
        let mut all = std::collections::BTreeMap::new();
        for (i, n) in self.buckets.iter().chain(&other.buckets) {
            *all.entry(*i).or_insert(0) += n;
        }
        self.buckets = all.into_iter().collect();
    }

    /// The samples added since `earlier`, an older state of this histogram.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut old = earlier.buckets.iter().peekable();
        let mut buckets = Vec::with_capacity(self.buckets.len());
        for &(i, n) in &self.buckets {
            while old.next_if(|(o, _)| *o < i).is_some() {}
            let before = old.next_if(|(o, _)| *o == i).map_or(0, |(_, n)| *n);
            if n > before {
                buckets.push((i, n - before));
            }
        }
        Histogram { buckets }
    }

    /// The value in ns below or at which `percent` of the samples are, as fio computes it; `None`
    /// without samples.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let goal = percent / 100.0 * self.count() as f64;
        let mut sum = 0;
        for &(i, n) in &self.buckets {
            sum += n;
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
            let mut both = ha.clone();
            both.merge_from(&hb);
            prop_assert_eq!(both.since(&ha), hb);
        }
    }
}
