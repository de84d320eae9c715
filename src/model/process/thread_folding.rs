//! Folds the threads of a process into one row: the main thread, with the sums of all threads.

use super::row::{AccumulatedCounters, ProcessRow, StoredRow, TaskRates};
use super::selection::ProcessQuery;
use super::table::ProcessTable;
use crate::model::columns::process::{ProcessColumn, SortKey};

impl ProcessTable {
    /// The row at an index from [`ProcessTable::window`]; the main thread of a process in `folded`
    /// has the sums of all its threads.
    pub fn row_with_folded_threads(&self, at: u32, folded: &[u32]) -> ProcessRow<'_> {
        let row = &self.rows[at as usize];
        let key = row.raw.key;
        if key.tid != key.pid || !folded.contains(&key.pid) {
            return self.row(at);
        }
        let mut acc = AccumulatedCounters::default();
        self.threads(key.pid).for_each(|r| acc.add(&self.accumulated_of(r)));
        let rates = self.threads(key.pid).map(|r| self.rates_of(r)).reduce(sum_rates).unwrap_or_default();
        ProcessRow::new(row, rates, acc).with_names(self.wait_channel(row), self.user_name(row))
    }

    fn threads(&self, pid: u32) -> impl Iterator<Item = &StoredRow> {
        self.rows.iter().filter(move |r| r.raw.key.pid == pid)
    }

    /// Sort key of a row; for a folded process the sum over its threads.
    pub(super) fn folded_sort_key<'a>(&'a self, row: &'a StoredRow, query: &ProcessQuery) -> SortKey<'a> {
        let (pid, folded, column) = (row.raw.key.pid, &query.filter.folded_pids, query.sort_by.spec());
        let needs_names = query.sort_by == ProcessColumn::User;
        let key = column.sort_key(&if needs_names { self.row_of(row) } else { self.unnamed_row(row) });
        if !column.is_additive() || !folded.contains(&pid) {
            return key;
        }
        let numbers = self.threads(pid).map(|r| column.sort_key(&self.unnamed_row(r)).number).filter(|n| !n.is_nan());
        SortKey { number: numbers.reduce(|a, b| a + b).unwrap_or(f64::NAN), ..key }
    }
}

/// Sum of the known values.
fn sum_known(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

fn sum_rates(a: TaskRates, b: TaskRates) -> TaskRates {
    TaskRates {
        read: sum_known(a.read, b.read),
        write: sum_known(a.write, b.write),
        cancelled: sum_known(a.cancelled, b.cancelled),
        io_delay_pct: sum_known(a.io_delay_pct, b.io_delay_pct),
        swapin_delay_pct: sum_known(a.swapin_delay_pct, b.swapin_delay_pct),
        major_faults: sum_known(a.major_faults, b.major_faults),
        ..a
    }
}
