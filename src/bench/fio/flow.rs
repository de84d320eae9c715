//! `flow`: jobs with the same `flow_id` share their operations by weight (flow.c).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The jobs of one `flow_id`.
#[derive(Debug)]
pub(crate) struct FlowGroup {
    operations: AtomicU64,
    weight: AtomicU64,
}

impl Default for FlowGroup {
    fn default() -> Self {
        Self { operations: AtomicU64::new(1), weight: AtomicU64::new(0) }
    }
}

/// The share of one clone of a job, given back when dropped.
#[derive(Debug)]
pub(crate) struct FlowShare {
    group: Arc<FlowGroup>,
    weight: u64,
    operations: u64,
}

impl FlowShare {
    pub(crate) fn new(group: &Arc<FlowGroup>, weight: u32) -> Self {
        let weight = u64::from(weight);
        group.weight.fetch_add(weight, Relaxed);
        Self { group: group.clone(), weight, operations: 0 }
    }

    /// Counts an operation if the share allows it.
    pub(super) fn takes(&mut self) -> bool {
        let (all, weights) = (self.group.operations.load(Relaxed), self.group.weight.load(Relaxed));
        if u128::from(self.operations) * u128::from(weights) > u128::from(self.weight) * u128::from(all) {
            return false;
        }
        self.group.operations.fetch_add(1, Relaxed);
        self.operations += 1;
        true
    }
}

impl Drop for FlowShare {
    fn drop(&mut self) {
        self.group.operations.fetch_sub(self.operations, Relaxed);
        self.group.weight.fetch_sub(self.weight, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_shared_by_weight() {
        let group = Arc::<FlowGroup>::default();
        let (mut one, mut eight) = (FlowShare::new(&group, 1), FlowShare::new(&group, 8));
        let mut counts = [0u32; 2];
        for _ in 0..9000 {
            counts[0] += u32::from(one.takes());
            counts[1] += u32::from(eight.takes());
        }
        assert!((7.5..8.5).contains(&(f64::from(counts[1]) / f64::from(counts[0]))), "{counts:?}");
        drop(eight);
        assert!((0..3).any(|_| one.takes()));
    }
}
