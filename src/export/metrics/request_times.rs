//! Durations counted in the bounds that are exported: powers of two nanoseconds, on bounds of the kernel's buckets, so
//! that each count is in the bucket where it belongs.

use crate::model::latency::{SparseHistogram, bucket_bounds};

/// The first and the last bound: 2^12 ns (4.1 us) and 2^34 ns (17.2 s).
const EXPONENTS: std::ops::RangeInclusive<u32> = 12..=34;
/// The bounds, and the bucket above the last one.
const BUCKETS: usize = (*EXPONENTS.end() - *EXPONENTS.start()) as usize + 2;

/// A histogram of durations.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RequestTimes {
    counts: [u64; BUCKETS],
    /// Their sum in seconds.
    pub(super) seconds: f64,
}

impl RequestTimes {
    /// The durations of a histogram; their sum is that of the middles of its buckets, at most 3.2 % off.
    pub(super) fn from_histogram(histogram: &SparseHistogram) -> Self {
        let mut times = Self::default();
        for (slot, n) in histogram.buckets() {
            let (low, high) = bucket_bounds(*slot);
            // The bounds of the kernel's buckets are exclusive above: `high - 1` is in this one.
            let exponent = (high - 1).ilog2() + 1;
            let at = exponent.saturating_sub(*EXPONENTS.start()) as usize;
            times.counts[at.min(BUCKETS - 1)] += u64::from(*n);
            times.seconds += f64::from(*n) * (low + high) as f64 / 2e9;
        }
        times
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, n)| *sum += n);
        self.seconds += other.seconds;
    }

    /// The number of durations.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The upper bounds in seconds, and how many durations are between each and the one before it.
    pub(super) fn buckets(&self) -> [(f64, u64); BUCKETS] {
        std::array::from_fn(|at| {
            let bound = EXPONENTS.clone().nth(at).map_or(f64::INFINITY, |exponent| (1u64 << exponent) as f64 / 1e9);
            (bound, self.counts[at])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::latency::bucket_index;
    use proptest::prelude::*;

    #[test]
    fn the_bounds_are_powers_of_two_and_the_last_bucket_is_open() {
        let buckets = RequestTimes::default().buckets();
        assert_eq!((buckets[0].0, buckets[1].0, buckets[BUCKETS - 2].0), (4.096e-6, 8.192e-6, 17.179869184));
        assert!(buckets[BUCKETS - 1].0.is_infinite());
    }

    proptest! {
        #[test]
        fn every_duration_is_counted_below_the_next_bound(ns in 0u64..1 << 40) {
            let times = RequestTimes::from_histogram(&SparseHistogram::from_sparse([(bucket_index(ns), 3)]));
            prop_assert_eq!(times.count(), 3);
            let seconds = ns as f64 / 1e9;
            let first = times.buckets().into_iter().position(|(bound, _)| seconds < bound).unwrap();
            prop_assert_eq!(times.buckets()[first].1, 3);
        }
    }
}
