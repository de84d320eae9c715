//! How long processes were held up by memory, beside their other rates: counted by tracing, which has ticks of its own.

use super::table::{ProcTable, Row};
use super::task::TaskKey;
use crate::model::stalls::Stalls;
use std::collections::HashMap;

/// What is known of the last interval.
#[derive(Debug, Default)]
pub(super) struct Stalled {
    counted: [bool; 2],
    /// Per cent of the interval, of those held up.
    pct: HashMap<TaskKey, [f64; 2]>,
}

impl ProcTable {
    /// Takes in who was held up in the newest tick of counters; whoever is not in it was not.
    pub fn set_stalls(&mut self, stalls: Option<&Stalls>) {
        self.stalled.pct.clear();
        self.stalled.counted = stalls.map_or([false; 2], |s| s.all.map(|kind| kind.is_some()));
        for task in stalls.into_iter().flat_map(|s| &s.tasks) {
            self.stalled.pct.insert(task.key, task.kinds.map(|k| k.ms_per_s / 10.0));
        }
    }

    /// Counted for whole processes, so a thread's own are not known.
    pub(super) fn stalled_pct(&self, row: &Row) -> [Option<f64>; 2] {
        if self.threads() {
            return [None; 2];
        }
        let known = self.stalled.pct.get(&row.raw.key).copied().unwrap_or_default();
        std::array::from_fn(|kind| self.stalled.counted[kind].then_some(known[kind]))
    }
}
