//! Time that processes lose to memory stalls. Counted by tracing, which has its own ticks.

use super::table::{ProcessTable, StoredRow};
use super::task::TaskKey;
use crate::model::memory_stalls::MemoryStalls;
use std::collections::HashMap;

/// Percentages of the last interval.
#[derive(Debug, Default)]
pub(super) struct StallPercentages {
    is_counted: [bool; 2],
    /// Percent of the interval, for processes with stalls.
    pct: HashMap<TaskKey, [f64; 2]>,
}

impl ProcessTable {
    /// Sets the stalls of the newest tick; processes that are not listed had none.
    pub fn set_stalls(&mut self, stalls: Option<&MemoryStalls>) {
        self.stall_percentages.pct.clear();
        self.stall_percentages.is_counted = stalls.map_or([false; 2], |s| s.totals.map(|kind| kind.is_some()));
        for task in stalls.into_iter().flat_map(|s| &s.processes) {
            self.stall_percentages.pct.insert(task.key, task.rates.map(|k| k.ms_per_s / 10.0));
        }
    }

    /// Stalls are counted for whole processes, so those of a thread are unknown.
    pub(super) fn stalled_pct(&self, row: &StoredRow) -> [Option<f64>; 2] {
        if self.rows_are_threads() {
            return [None; 2];
        }
        let known = self.stall_percentages.pct.get(&row.raw.key).copied().unwrap_or_default();
        std::array::from_fn(|kind| self.stall_percentages.is_counted[kind].then_some(known[kind]))
    }
}
