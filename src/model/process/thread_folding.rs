//! Folds the threads of a process into one row: the main thread, with the sums of all threads.

use super::row::ProcessRow;
use super::stored_row::{AccumulatedCounters, TaskRates};
use super::table::ProcessTable;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Sums over the threads of processes, by process id.
#[derive(Default)]
pub(crate) struct ThreadSums(HashMap<u32, (TaskRates, AccumulatedCounters)>);

impl ProcessTable {
    pub(crate) fn thread_sums(&self, pids: &[u32]) -> ThreadSums {
        let mut sums = ThreadSums::default();
        if pids.is_empty() {
            return sums;
        }
        for row in self.rows.iter().filter(|row| pids.contains(&row.raw.key.pid)) {
            let (rates, accumulated) = (self.rates_of(row), row.accumulated_counters());
            match sums.0.entry(row.raw.key.pid) {
                Entry::Vacant(sum) => _ = sum.insert((rates, accumulated)),
                Entry::Occupied(mut sum) => {
                    let sum = sum.get_mut();
                    sum.0 = sum_rates(sum.0, rates);
                    sum.1.add(&accumulated);
                }
            }
        }
        sums
    }

    /// The row at an index from [`ProcessTable::window`]; the main thread of a process in `folded` has the sums of
    /// all its threads.
    pub(crate) fn row_with_folded_threads<'a>(&'a self, at: u32, folded: &'a ThreadSums) -> ProcessRow<'a> {
        let mut row = self.row(at);
        row.sums = folded.0.get(&row.pid()).filter(|_| row.tid() == row.pid());
        row
    }
}

fn sum_known(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

fn sum_rates(a: TaskRates, b: TaskRates) -> TaskRates {
    TaskRates {
        row: a.row,
        read_bytes_per_s: sum_known(a.read_bytes_per_s, b.read_bytes_per_s),
        write_bytes_per_s: sum_known(a.write_bytes_per_s, b.write_bytes_per_s),
        cancelled_bytes_per_s: sum_known(a.cancelled_bytes_per_s, b.cancelled_bytes_per_s),
        io_delay_pct: sum_known(a.io_delay_pct, b.io_delay_pct),
        swapin_delay_pct: sum_known(a.swapin_delay_pct, b.swapin_delay_pct),
        major_faults_per_s: sum_known(a.major_faults_per_s, b.major_faults_per_s),
    }
}
