//! Time that processes lose to memory stalls. Counted by tracing, which has its own ticks.

use super::task::TaskKey;
use crate::model::memory_stalls::MemoryStalls;
use std::collections::HashMap;

/// Percentages of the last interval, for dirty throttling and direct reclaim.
#[derive(Debug, Default)]
pub(super) struct StallPercentages {
    is_counted: [bool; 2],
    /// Percent of the interval, for processes with stalls.
    pct: HashMap<TaskKey, [f64; 2]>,
}

impl StallPercentages {
    pub(super) fn new(stalls: Option<&MemoryStalls>) -> Self {
        let tasks = stalls.into_iter().flat_map(|s| &s.processes);
        Self {
            is_counted: stalls.map_or([false; 2], |s| s.totals.map(|kind| kind.is_some())),
            pct: tasks.map(|task| (task.key, task.rates.map(|kind| kind.ms_per_s / 10.0))).collect(),
        }
    }

    /// 0 for a process without stalls, `None` for a kind that is not counted.
    pub(super) fn of(&self, key: &TaskKey) -> [Option<f64>; 2] {
        let known = self.pct.get(key).copied().unwrap_or_default();
        std::array::from_fn(|kind| self.is_counted[kind].then_some(known[kind]))
    }
}
