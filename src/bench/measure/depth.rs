//! How many operations were really in flight, handed over and reaped at a time, in fio's classes.
//!
//! Counted once a batch, not once an operation (fio, `io_u.c`: `io_u_mark_depth`, `__io_u_mark_map`).

use serde::{Deserialize, Serialize};

/// Classes of each count.
pub const CLASSES: usize = 7;
/// fio's names of the classes of operations in flight: from this many on.
pub const LEVELS: [&str; CLASSES] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// fio's names of the classes of batches: up to this many.
pub const BATCHES: [&str; CLASSES] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// The class of `n` operations in flight.
#[inline(always)]
pub fn level_of(n: usize) -> usize {
    (n.max(1).ilog2() as usize).min(CLASSES - 1)
}

/// The class of a batch of `n`.
#[inline(always)]
pub fn batch_of(n: usize) -> usize {
    match n {
        0 => 0,
        1..=4 => 1,
        _ => ((n - 1).ilog2() as usize).min(CLASSES - 1),
    }
}

/// Counts per class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Depths {
    /// Operations, by how many were in flight when they were handed over.
    pub level: [u64; CLASSES],
    /// Hand-overs, by size.
    pub submit: [u64; CLASSES],
    /// Reapings that found something, by size.
    pub complete: [u64; CLASSES],
}

impl Depths {
    /// `n` operations one after the other, as system calls make them.
    pub fn one_by_one(n: u64) -> Self {
        let mut all = Self::default();
        (all.level[level_of(1)], all.submit[batch_of(1)], all.complete[batch_of(1)]) = (n, n, n);
        all
    }

    /// Two workers' counts taken together.
    pub fn merged(&self, other: &Depths) -> Depths {
        let add = |a: [u64; CLASSES], b: [u64; CLASSES]| std::array::from_fn(|n| a[n] + b[n]);
        Depths {
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
    fn classes_are_fios() {
        let level = |n| LEVELS[level_of(n)];
        assert_eq!(
            [1, 2, 3, 4, 31, 32, 63, 64, 4096].map(level),
            ["1", "2", "2", "4", "16", "32", "32", ">=64", ">=64"]
        );
        let batch = |n| BATCHES[batch_of(n)];
        assert_eq!(
            [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65].map(batch),
            ["0", "4", "4", "8", "8", "16", "16", "32", "32", "64", "64", ">=64"]
        );
    }

    #[test]
    fn workers_add_up() {
        let both = Depths::one_by_one(3).merged(&Depths::one_by_one(4));
        assert_eq!(both, Depths::one_by_one(7));
    }
}
