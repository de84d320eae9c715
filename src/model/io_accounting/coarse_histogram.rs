//! Coarse latency buckets: two per power of two, from 2^11 ns (2 us) to 2^33 ns (8.6 s). Each process has a histogram
//! on each device, so they are small. A percentile is a bucket's midpoint, at most 25 % off; means are exact.

use crate::model::latency::SparseHistogram;

/// Number of buckets: `SLOTS` in `assets/trace/charge.bpf.c`.
pub const LATENCY_BUCKETS: usize = 44;
/// Exponent of the first bucket: 2^11 ns.
const MIN_EXPONENT: u32 = 11;

/// Midpoint of a bucket, in microseconds.
fn bucket_midpoint_us(slot: u16) -> f64 {
    let half = 1u64 << (MIN_EXPONENT - 1 + u32::from(slot) / 2);
    let low = half * (2 + u64::from(slot) % 2);
    (2 * low + half) as f64 / 2e3
}

/// Percentile in microseconds; `None` without requests.
pub(super) fn percentile_us(counts: &SparseHistogram, share: f64) -> Option<f64> {
    let rank = (counts.total() as f64 * share).ceil() as u64;
    counts.bucket_of_rank(rank).map(|(bucket, ..)| bucket_midpoint_us(bucket))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `bucket` in `assets/trace/charge.bpf.c` computes it.
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
            let midpoint = bucket_midpoint_us(bucket_index(ns)) * 1e3;
            assert!((midpoint - ns as f64).abs() <= ns as f64 / 4.0, "{ns}: {midpoint}");
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
