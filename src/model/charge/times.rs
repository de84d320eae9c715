//! Coarse buckets of time, two to a power of two from 2^11 ns (2 us) to 2^33 ns (8.6 s): each process on each device has
//! its own, so they are few. A percentile is the middle of its bucket, at most 25 % off; means are exact.

use crate::model::latency::Counts;

/// Buckets: `SLOTS` in `assets/trace/charge.bpf.c`.
pub const TIMES: usize = 44;
/// The first power of two, in ns.
const MIN_EXP: u32 = 11;

/// The middle of a bucket in microseconds.
fn middle_us(slot: u16) -> f64 {
    let half = 1u64 << (MIN_EXP - 1 + u32::from(slot) / 2);
    let low = half * (2 + u64::from(slot) % 2);
    (2 * low + half) as f64 / 2e3
}

/// The time within which that share of requests stayed, in microseconds; `None` where there were none.
pub(super) fn percentile_us(counts: &Counts, share: f64) -> Option<f64> {
    let wanted = (counts.samples() as f64 * share).ceil() as u64;
    let mut seen = 0;
    let found = counts.buckets().iter().find(|b| {
        seen += u64::from(b.1);
        seen >= wanted
    });
    found.or(counts.buckets().last()).map(|b| middle_us(b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `bucket` of the kernel's side finds it.
    fn slot(ns: u64) -> u16 {
        match ns.checked_ilog2() {
            Some(exp) if exp >= MIN_EXP => {
                (((exp - MIN_EXP) << 1) as u64 | ns >> (exp - 1) & 1).min(TIMES as u64 - 1) as u16
            }
            _ => 0,
        }
    }

    #[test]
    fn the_middle_is_near_whatever_is_in_the_bucket() {
        let mut ns = 1u64 << MIN_EXP;
        while ns < 1 << 33 {
            let told = middle_us(slot(ns)) * 1e3;
            assert!((told - ns as f64).abs() <= ns as f64 / 4.0, "{ns}: {told}");
            ns += ns / 7;
        }
    }

    #[test]
    fn percentiles_are_those_of_the_requests() {
        let counts = Counts::sparse([(slot(100_000), 98), (slot(5_000_000), 2)]);
        assert!(percentile_us(&counts, 0.5).is_some_and(|us| (75.0..125.0).contains(&us)));
        assert!(percentile_us(&counts, 0.99).is_some_and(|us| (3800.0..6300.0).contains(&us)));
        assert_eq!(percentile_us(&Counts::default(), 0.99), None);
    }
}
