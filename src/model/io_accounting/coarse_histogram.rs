//! Coarse buckets of time, two to a power of two from 2^11 ns (2 us) to 2^33 ns (8.6 s): each process on each device has
//! its own, so they are few. A percentile is the middle of its bucket, at most 25 % off; means are exact.

use crate::model::latency::SparseHistogram;

/// Buckets: `SLOTS` in `assets/trace/charge.bpf.c`.
pub const LATENCY_BUCKETS: usize = 44;
/// The first power of two, in ns.
const MIN_EXPONENT: u32 = 11;

/// The middle of a bucket in microseconds.
fn bucket_midpoint_us(slot: u16) -> f64 {
    let half = 1u64 << (MIN_EXPONENT - 1 + u32::from(slot) / 2);
    let low = half * (2 + u64::from(slot) % 2);
    (2 * low + half) as f64 / 2e3
}

/// The time within which that share of requests stayed, in microseconds; `None` where there were none.
pub(super) fn percentile_us(counts: &SparseHistogram, share: f64) -> Option<f64> {
    let wanted = (counts.total() as f64 * share).ceil() as u64;
    let mut seen = 0;
    let found = counts.buckets().iter().find(|b| {
        seen += u64::from(b.1);
        seen >= wanted
    });
    found.or(counts.buckets().last()).map(|b| bucket_midpoint_us(b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `bucket` of the kernel's side finds it.
    fn bucket_index(ns: u64) -> u16 {
        match ns.checked_ilog2() {
            Some(exp) if exp >= MIN_EXPONENT => {
                (((exp - MIN_EXPONENT) << 1) as u64 | ns >> (exp - 1) & 1).min(LATENCY_BUCKETS as u64 - 1) as u16
            }
            _ => 0,
        }
    }

    #[test]
    fn a_bucket_midpoint_is_within_a_quarter_of_every_value_in_it() {
        let mut ns = 1u64 << MIN_EXPONENT;
        while ns < 1 << 33 {
            let told = bucket_midpoint_us(bucket_index(ns)) * 1e3;
            assert!((told - ns as f64).abs() <= ns as f64 / 4.0, "{ns}: {told}");
            ns += ns / 7;
        }
    }

    #[test]
    fn percentiles_match_the_requests() {
        let counts = SparseHistogram::from_sparse([(bucket_index(100_000), 98), (bucket_index(5_000_000), 2)]);
        assert!(percentile_us(&counts, 0.5).is_some_and(|us| (75.0..125.0).contains(&us)));
        assert!(percentile_us(&counts, 0.99).is_some_and(|us| (3800.0..6300.0).contains(&us)));
        assert_eq!(percentile_us(&SparseHistogram::default(), 0.99), None);
    }
}
