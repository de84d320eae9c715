//! How many request children may run, or be stuck, at the same time in the whole program.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

/// Children that may be under way or stuck at once.
pub const MAX_CHILDREN: usize = 8;

static SHARED: LazyLock<ChildBudget> = LazyLock::new(ChildBudget::default);

/// Counts children against [`MAX_CHILDREN`].
#[derive(Debug, Clone, Default)]
pub struct ChildBudget(Arc<AtomicUsize>);

/// The right to one child; given back when dropped.
#[derive(Debug)]
pub struct ChildSlot(ChildBudget);

impl ChildBudget {
    /// The budget of this process.
    pub fn shared() -> Self {
        SHARED.clone()
    }

    /// A slot, unless all are taken.
    pub fn acquire(&self) -> Option<ChildSlot> {
        let more = |n: usize| (n < MAX_CHILDREN).then_some(n + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(ChildSlot(self.clone()))
    }
}

impl Drop for ChildSlot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_limited_and_given_back() {
        let budget = ChildBudget::default();
        let mut slots: Vec<_> = std::iter::from_fn(|| budget.acquire()).collect();
        assert_eq!(slots.len(), MAX_CHILDREN);
        slots.pop();
        assert!(budget.acquire().is_some());
    }
}
