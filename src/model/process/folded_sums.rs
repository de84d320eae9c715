//! Folds rows into one: the threads of a process into its main thread, a subtree into the process above it. That row has
//! the sums of all.

use super::row::ProcessRow;
use super::stored_row::{AccumulatedCounters, StoredRow, TaskRates};
use super::table::ProcessTable;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Sums over the rows that are folded into a process, and its own, by process id.
#[derive(Debug, Clone, Default)]
pub(crate) struct FoldedSums(HashMap<u32, (TaskRates, AccumulatedCounters)>);

impl FoldedSums {
    /// Adds a row to the sums of a process.
    pub(super) fn add(&mut self, pid: u32, table: &ProcessTable, row: &StoredRow) {
        let (rates, accumulated) = (table.rates_of(row), row.accumulated_counters());
        match self.0.entry(pid) {
            Entry::Vacant(sum) => _ = sum.insert((rates, accumulated)),
            Entry::Occupied(mut sum) => {
                let sum = sum.get_mut();
                sum.0 = sum_rates(sum.0, rates);
                sum.1.add(&accumulated);
            }
        }
    }

    /// Forgets the sums of a process.
    pub(super) fn clear(&mut self, pid: u32) {
        self.0.remove(&pid);
    }
}

impl ProcessTable {
    /// Sums over the threads of these processes.
    pub(super) fn thread_sums(&self, pids: &[u32]) -> FoldedSums {
        let mut sums = FoldedSums::default();
        if !pids.is_empty() {
            let rows = self.rows.iter().filter(|row| pids.contains(&row.raw.key.pid));
            rows.for_each(|row| sums.add(row.raw.key.pid, self, row));
        }
        sums
    }

    /// The row at an index from [`ProcessTable::window`]; the main thread of a process in `sums` has them.
    pub(super) fn row_with_sums<'a>(&'a self, at: u32, sums: &'a FoldedSums) -> ProcessRow<'a> {
        let mut row = self.row(at);
        row.sums = sums.0.get(&row.pid()).filter(|_| row.tid() == row.pid());
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
