//! How long processes were held up by memory, beside their other rates: counted by tracing, which has ticks of its own.

use super::table::{ProcessTable, StoredRow};
use super::task::TaskKey;
use crate::model::memory_stalls::MemoryStalls;
use std::collections::HashMap;

/// What is known of the last interval.
#[derive(Debug, Default)]
pub(super) struct StallPercentages {
    is_counted: [bool; 2],
    /// Per cent of the interval, of those held up.
    pct: HashMap<TaskKey, [f64; 2]>,
}

impl ProcessTable {
    /// Takes in who was held up in the newest tick of counters; whoever is not in it was not.
    pub fn set_stalls(&mut self, stalls: Option<&MemoryStalls>) {
        self.stall_percentages.pct.clear();
        self.stall_percentages.is_counted = stalls.map_or([false; 2], |s| s.totals.map(|kind| kind.is_some()));
        for task in stalls.into_iter().flat_map(|s| &s.processes) {
            self.stall_percentages.pct.insert(task.key, task.rates.map(|k| k.ms_per_s / 10.0));
        }
    }

    /// Counted for whole processes, so a thread's own are not known.
    pub(super) fn stalled_pct(&self, row: &StoredRow) -> [Option<f64>; 2] {
        if self.rows_are_threads() {
            return [None; 2];
        }
        let known = self.stall_percentages.pct.get(&row.raw.key).copied().unwrap_or_default();
        std::array::from_fn(|kind| self.stall_percentages.is_counted[kind].then_some(known[kind]))
    }
}
