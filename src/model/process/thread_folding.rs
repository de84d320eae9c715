//! Folds the threads of a process into one row: the main thread, with the sums of all threads.

use super::row::ProcessRow;
use super::selection::{ProcessColumn, ProcessQuery};
use super::table::{AccumulatedCounters, ProcessTable, StoredRow, TaskRates};

impl ProcessTable {
    /// The row at an index from [`ProcessTable::window`]; the main thread of a process in `folded`
    /// has the sums of all its threads.
    pub fn row_with_folded_threads(&self, at: u32, folded: &[u32]) -> ProcessRow<'_> {
        let row = &self.rows[at as usize];
        let key = row.raw.key;
        if key.tid != key.pid || !folded.contains(&key.pid) {
            return self.row(at);
        }
        let threads = || self.rows.iter().filter(|r| r.raw.key.pid == key.pid);
        let rates = threads().map(|r| self.rates_of(r)).reduce(sum_rates).unwrap_or_default();
        let acc = threads().map(|r| self.accumulated_of(r)).fold(AccumulatedCounters::default(), sum_accumulated);
        ProcessRow::new(row, rates, Some(&acc), self.wait_channel(row), self.user_name(row))
    }

    /// Sort key of a row; for a folded process the sum over its threads.
    pub(super) fn folded_sort_key(&self, row: &StoredRow, query: &ProcessQuery) -> f64 {
        let (key, folded) = (row.raw.key, &query.filter.folded_pids);
        if folded.is_empty() || !is_additive(query.sort_by) || !folded.contains(&key.pid) {
            return self.sort_key(row, query.sort_by);
        }
        let threads = self.rows.iter().filter(|r| r.raw.key.pid == key.pid);
        let known = threads.map(|r| self.sort_key(r, query.sort_by)).filter(|k| !k.is_nan());
        known.reduce(|a, b| a + b).unwrap_or(f64::NAN)
    }
}

/// Whether the values of threads add up. Memory is shared, so it does not.
fn is_additive(by: ProcessColumn) -> bool {
    use ProcessColumn::{AccIo, AccRead, AccWrite, Cancelled, Io, IoDelay, MajorFaults, Read, SwapinDelay, Write};
    matches!(by, Io | Read | Write | Cancelled | AccRead | AccWrite | AccIo | IoDelay | SwapinDelay | MajorFaults)
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

fn sum_accumulated(mut a: AccumulatedCounters, b: AccumulatedCounters) -> AccumulatedCounters {
    a.io.read += b.io.read;
    a.io.write += b.io.write;
    a.io.cancelled += b.io.cancelled;
    a.major_faults += b.major_faults;
    a.blkio_ns += b.blkio_ns;
    a.swapin_ns += b.swapin_ns;
    a
}
