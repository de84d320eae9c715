//! A task as the table stores it.

use super::task::{IoBytes, TaskNames, TaskRaw};
use std::sync::Arc;

pub(super) const NO_SLOT: u32 = u32::MAX;

/// One task. Rates are in a side table, because few rows have them at any time.
#[derive(Debug, Clone)]
pub(super) struct StoredRow {
    pub raw: TaskRaw,
    pub names: Option<Arc<TaskNames>>,
    /// CLOCK_BOOTTIME in ns when the present state was first seen.
    pub state_since_ns: u64,
    pub rates_slot: u32,
    /// `None`: nothing since the counters were reset.
    pub accumulated: Option<Box<AccumulatedCounters>>,
    pub exited: bool,
    pub blocked: bool,
}

impl StoredRow {
    pub(super) fn new(raw: TaskRaw, state_since_ns: u64) -> Self {
        Self { raw, names: None, state_since_ns, rates_slot: NO_SLOT, accumulated: None, exited: false, blocked: false }
    }

    pub(super) fn accumulated_counters(&self) -> AccumulatedCounters {
        self.accumulated.as_deref().copied().unwrap_or_default()
    }

    /// The command line as raw bytes, arguments separated by blanks.
    pub(super) fn cmdline(&self) -> Option<&[u8]> {
        self.names.as_ref()?.cmdline.as_deref()
    }
}

/// Rates of a row that changed in the last update; `None` if unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskRates {
    pub row: u32,
    /// Read from storage.
    pub read_bytes_per_s: Option<f64>,
    /// Dirtied for storage.
    pub write_bytes_per_s: Option<f64>,
    /// Dirtied bytes that were truncated before they were written.
    pub cancelled_bytes_per_s: Option<f64>,
    /// Time waiting for block I/O, percent of the interval. For a process the sum over its threads, up to 100 for
    /// each thread.
    pub io_delay_pct: Option<f64>,
    /// Time waiting for pages from swap, percent of the interval.
    pub swapin_delay_pct: Option<f64>,
    pub major_faults_per_s: Option<f64>,
}

/// Activity of a row since the counters were reset.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AccumulatedCounters {
    pub io: IoBytes,
    /// Bytes that the kernel added to the counters for children that ended; they are not in `io`.
    pub children_io: IoBytes,
    pub major_faults: u64,
    pub blkio_ns: u64,
    pub swapin_ns: u64,
}

impl AccumulatedCounters {
    /// Adds the counts of `more`; saturates, because counters of a recording are untrusted.
    pub(super) fn add(&mut self, more: &Self) {
        self.io.add(more.io);
        self.children_io.add(more.children_io);
        self.major_faults = self.major_faults.saturating_add(more.major_faults);
        self.blkio_ns = self.blkio_ns.saturating_add(more.blkio_ns);
        self.swapin_ns = self.swapin_ns.saturating_add(more.swapin_ns);
    }

    pub(super) fn is_zero(&self) -> bool {
        [self.io, self.children_io] == [IoBytes::default(); 2]
            && (self.major_faults, self.blkio_ns, self.swapin_ns) == (0, 0, 0)
    }
}
