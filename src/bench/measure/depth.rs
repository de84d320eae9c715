//! How many operations were in flight, submitted and reaped at a time, in fio's buckets.
//!
//! Counted once a batch, not once an operation (fio, `io_u.c`: `io_u_mark_depth`, `__io_u_mark_map`).

use serde::{Deserialize, Serialize};

pub(crate) const DEPTH_BUCKETS: usize = 7;
/// fio's bucket labels of operations in flight: lower bounds.
pub(crate) const LEVEL_LABELS: [&str; DEPTH_BUCKETS] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// fio's bucket labels of batch sizes: upper bounds.
pub(crate) const BATCH_LABELS: [&str; DEPTH_BUCKETS] = ["0", "4", "8", "16", "32", "64", ">=64"];

pub(crate) fn level_bucket(n: usize) -> usize {
    (n.max(1).ilog2() as usize).min(DEPTH_BUCKETS - 1)
}

pub(crate) fn batch_bucket(n: usize) -> usize {
    match n {
        0 => 0,
        1..=4 => 1,
        _ => ((n - 1).ilog2() as usize).min(DEPTH_BUCKETS - 1),
    }
}

/// Counts per bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepthCounts {
    /// Operations by how many were in flight at their submission.
    pub level: [u64; DEPTH_BUCKETS],
    /// Submissions by size.
    pub submit: [u64; DEPTH_BUCKETS],
    /// Non-empty reaps by size.
    pub complete: [u64; DEPTH_BUCKETS],
}

impl DepthCounts {
    /// `n` operations one after the other.
    pub fn sequential(n: u64) -> Self {
        let mut all = Self::default();
        (all.level[level_bucket(1)], all.submit[batch_bucket(1)], all.complete[batch_bucket(1)]) = (n, n, n);
        all
    }

    pub fn merge(&self, other: &DepthCounts) -> DepthCounts {
        let add = |a: [u64; DEPTH_BUCKETS], b: [u64; DEPTH_BUCKETS]| std::array::from_fn(|n| a[n].saturating_add(b[n]));
        DepthCounts {
            level: add(self.level, other.level),
            submit: add(self.submit, other.submit),
            complete: add(self.complete, other.complete),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_match_fio() {
        let level = |n| LEVEL_LABELS[level_bucket(n)];
        assert_eq!(
            [1, 2, 3, 4, 31, 32, 63, 64, 4096].map(level),
            ["1", "2", "2", "4", "16", "32", "32", ">=64", ">=64"]
        );
        let batch = |n| BATCH_LABELS[batch_bucket(n)];
        assert_eq!(
            [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65].map(batch),
            ["0", "4", "4", "8", "8", "16", "16", "32", "32", "64", "64", ">=64"]
        );
    }

    #[test]
    fn merge_adds_the_counts_of_workers() {
        let both = DepthCounts::sequential(3).merge(&DepthCounts::sequential(4));
        assert_eq!(both, DepthCounts::sequential(7));
    }
}
