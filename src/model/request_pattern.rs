//! Sizes of requests, and whether they are sequential or random. Counted by
//! `assets/trace/requests.bpf.c`.
//!
//! A request is *sequential* if it starts exactly where one of the last seven streams of its kind (reads or writes) on
//! its hardware queue ended, in the order of issue. Alternating streams are therefore each sequential. The first
//! request of a stream, one after a gap, and one that goes backwards are random. Requests are counted when they are
//! issued, so merged ones count as one.

use serde::{Deserialize, Serialize};

/// Size buckets: one per power of two from 512 bytes; the last one includes all sizes from 1 MiB.
pub const SIZE_BUCKETS: usize = 12;

/// Requests of one kind by size and pattern. Counts are the kernel's and wrap at 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPattern {
    /// By size, smallest first; see [`bucket_min_bytes`].
    pub sizes: [u32; SIZE_BUCKETS],
    /// Random requests.
    pub random: u32,
    /// Sequential requests.
    pub sequential: u32,
}

/// Smallest size in a bucket of [`RequestPattern::sizes`], bytes; the first bucket includes smaller sizes.
pub fn bucket_min_bytes(at: usize) -> u64 {
    512 << at
}

impl RequestPattern {
    /// What was counted since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            sizes: std::array::from_fn(|i| self.sizes[i].wrapping_sub(before.sizes[i])),
            random: self.random.wrapping_sub(before.random),
            sequential: self.sequential.wrapping_sub(before.sequential),
        }
    }

    /// Number of requests with a known size.
    pub fn request_count(&self) -> u64 {
        self.sizes.iter().map(|n| u64::from(*n)).sum()
    }

    /// Adds the counts of `more`.
    pub fn add(&mut self, more: &Self) {
        self.sizes.iter_mut().zip(more.sizes).for_each(|(sum, n)| *sum = sum.saturating_add(n));
        self.random = self.random.saturating_add(more.random);
        self.sequential = self.sequential.saturating_add(more.sequential);
    }

    /// The most common size: the smallest size of its bucket in bytes, and its share in percent.
    pub fn most_common_size(&self) -> Option<(u64, f64)> {
        let (at, n) = self.sizes.iter().enumerate().max_by_key(|(_, n)| **n)?;
        (*n > 0).then(|| (bucket_min_bytes(at), f64::from(*n) * 100.0 / self.request_count() as f64))
    }

    /// Share of sequential requests in percent; `None` if nothing was counted.
    pub fn sequential_pct(&self) -> Option<f64> {
        let all = u64::from(self.random) + u64::from(self.sequential);
        (all > 0).then(|| f64::from(self.sequential) * 100.0 / all as f64)
    }

    /// The counts as a row of a recording.
    pub fn to_row(&self) -> [u64; SIZE_BUCKETS + 2] {
        let mut row = [0; SIZE_BUCKETS + 2];
        row.iter_mut().zip(self.sizes).for_each(|(cell, n)| *cell = u64::from(n));
        (row[SIZE_BUCKETS], row[SIZE_BUCKETS + 1]) = (u64::from(self.random), u64::from(self.sequential));
        row
    }

    /// From such a row; values are truncated to 32 bits.
    pub fn from_row(row: &[u64; SIZE_BUCKETS + 2]) -> Self {
        Self {
            sizes: std::array::from_fn(|i| row[i] as u32),
            random: row[SIZE_BUCKETS] as u32,
            sequential: row[SIZE_BUCKETS + 1] as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_known_requests_and_counts_may_wrap() {
        let mut before = RequestPattern { random: u32::MAX, sequential: 5, ..RequestPattern::default() };
        before.sizes[3] = u32::MAX - 1;
        let mut now = RequestPattern { random: 0, sequential: 8, ..RequestPattern::default() };
        now.sizes[3] = 2;
        let since = now.since(&before);
        assert_eq!((since.random, since.sequential, since.request_count()), (1, 3, 4));
        assert_eq!((since.sequential_pct(), RequestPattern::default().sequential_pct()), (Some(75.0), None));
        assert_eq!(
            (bucket_min_bytes(0), bucket_min_bytes(3), bucket_min_bytes(SIZE_BUCKETS - 1)),
            (512, 4096, 1 << 20)
        );
    }

    #[test]
    fn the_most_common_size_is_over_all_added_requests() {
        let of = |at: usize, n| {
            let mut shape = RequestPattern::default();
            shape.sizes[at] = n;
            shape
        };
        let mut sum = of(3, 5);
        sum.add(&of(8, 15));
        assert_eq!(
            (sum.most_common_size(), RequestPattern::default().most_common_size()),
            (Some((128 << 10, 75.0)), None)
        );
    }

    #[test]
    fn rows_round_trip() {
        let mut shape = RequestPattern { random: 7, sequential: u32::MAX, ..RequestPattern::default() };
        shape.sizes[11] = 9;
        assert_eq!(RequestPattern::from_row(&shape.to_row()), shape);
    }
}
