//! Selects the rows of a window: filters, then picks the rows of the window by selection instead of sorting all
//! 20,000 rows for 40 lines.

use super::table::{ProcessTable, StoredRow, TaskRates};
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use std::cmp::Ordering;

/// Sort keys of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessColumn {
    /// Process id, then thread id.
    Pid,
    /// Thread id.
    Tid,
    /// User name.
    User,
    /// Task name.
    Comm,
    /// Command line.
    Command,
    /// State, D first.
    State,
    /// Time since the last state change.
    StateSince,
    /// I/O class and level, highest priority first.
    Ionice,
    /// Bytes read and written per second.
    #[default]
    Io,
    /// Bytes read per second.
    Read,
    /// Bytes written per second.
    Write,
    /// Bytes cancelled per second.
    Cancelled,
    /// Bytes read since the task started.
    ReadTotal,
    /// Bytes written since the task started.
    WriteTotal,
    /// Bytes read since the counters were reset.
    AccRead,
    /// Bytes written since the counters were reset.
    AccWrite,
    /// Bytes read and written since the counters were reset.
    AccIo,
    /// Reads and writes completed at devices per second, from tracing.
    Iops,
    /// 99th percentile of their latency, from tracing.
    IoLatency,
    /// Bytes written back for it per second, from tracing.
    Writeback,
    /// Time waiting for block I/O.
    IoDelay,
    /// Time waiting for swap.
    SwapinDelay,
    /// Time throttled because too many pages are dirty.
    Throttled,
    /// Time in direct reclaim.
    Reclaim,
    /// Swapped-out memory.
    Swap,
    /// Resident memory.
    Rss,
    /// Major faults per second.
    MajorFaults,
    /// Control group.
    Cgroup,
    /// Number of threads.
    Threads,
}

/// Conditions that a row must satisfy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessFilter {
    /// With I/O, a delay, a major fault or D state in the last interval (iotop -o).
    pub only_active: bool,
    /// With activity since the counters were reset (iotop -a -o).
    pub only_accumulated: bool,
    /// No kernel threads.
    pub hide_kernel_threads: bool,
    /// Of this user (name or number).
    pub user: Option<String>,
    /// Whose pid, name, command line or control group contains this; ASCII case-insensitive.
    pub text: Option<String>,
    /// Threads of this process.
    pub pid: Option<u32>,
    /// Processes whose threads are folded into the main thread, see [`ProcessTable::row_with_folded_threads`].
    pub folded_pids: Vec<u32>,
}

/// Selection and order of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessQuery {
    /// Sort key.
    pub sort_by: ProcessColumn,
    /// Smallest first instead of largest first (for text: Z first).
    pub reverse: bool,
    /// Conditions for rows.
    pub filter: ProcessFilter,
    /// Index of the first row in the window.
    pub offset: usize,
    /// Number of rows in the window.
    pub height: usize,
}

/// The rows of a window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessWindow {
    /// Row indices for [`ProcessTable::row`], in order; valid until the next update.
    pub rows: Vec<u32>,
    /// Number of rows that pass the filter.
    pub matching: usize,
}

/// Sort keys of a row: enough for most comparisons without access to the row.
struct SortEntry {
    sort_number: f64,
    /// Whether it is a kernel thread, pid, tid.
    tie_breaker: (bool, u32, u32),
    row_index: u32,
}

impl ProcessColumn {
    /// Whether rows are sorted by text, not by a number.
    fn sorts_as_text(self) -> bool {
        matches!(self, ProcessColumn::User | ProcessColumn::Comm | ProcessColumn::Command | ProcessColumn::Cgroup)
    }

    /// Whether the smallest value or A comes first, unless reversed.
    pub fn is_ascending_by_default(self) -> bool {
        use ProcessColumn::{Cgroup, Comm, Command, Ionice, Pid, Tid, User};
        matches!(self, Pid | Tid | User | Comm | Command | Cgroup | Ionice)
    }
}

impl ProcessTable {
    /// The rows of a window. Linear in the number of rows; only the rows of the window are sorted. Ties are broken by
    /// (pid, tid), so rows do not jump. Unknown values sort last.
    pub fn window(&self, query: &ProcessQuery) -> ProcessWindow {
        let needle = query.filter.text.as_ref().map(|t| t.to_ascii_lowercase().into_bytes());
        let mut keys: Vec<SortEntry> = Vec::with_capacity(self.rows.len());
        for (at, row) in self.rows.iter().enumerate() {
            if self.matches_filter(row, &query.filter, needle.as_deref()) {
                let key = row.raw.key;
                let tie = (row.raw.kernel_thread, key.pid, key.tid);
                keys.push(SortEntry {
                    sort_number: self.folded_sort_key(row, query),
                    tie_breaker: tie,
                    row_index: at as u32,
                });
            }
        }
        let matching = keys.len();
        let start = query.offset.min(matching);
        let end = query.offset.saturating_add(query.height).min(matching);
        let order = |a: &SortEntry, b: &SortEntry| self.compare_entries(a, b, query);
        if end < matching {
            keys.select_nth_unstable_by(end, order);
            keys.truncate(end);
        }
        if start > 0 && start < keys.len() {
            keys.select_nth_unstable_by(start, order);
        }
        keys.drain(..start);
        keys.sort_unstable_by(order);
        ProcessWindow { rows: keys.into_iter().map(|place| place.row_index).collect(), matching }
    }

    fn compare_entries(&self, a: &SortEntry, b: &SortEntry, query: &ProcessQuery) -> Ordering {
        let row = |place: &SortEntry| &self.rows[place.row_index as usize];
        // Among equal rows, programs come before kernel threads, because most of those never do any I/O. If two rows
        // have the same id, the older task has exited.
        let tie =
            || a.tie_breaker.cmp(&b.tie_breaker).then_with(|| row(a).raw.key.starttime.cmp(&row(b).raw.key.starttime));
        // Numbers: largest first. Text: A first. NaN means "unknown" and comes last either way.
        let mut by = match (a.sort_number.is_nan(), b.sort_number.is_nan()) {
            (false, false) => b.sort_number.total_cmp(&a.sort_number),
            (a_nan, b_nan) => return a_nan.cmp(&b_nan).then_with(tie),
        };
        if query.sort_by.sorts_as_text() {
            by = by.then_with(|| self.compare_text(row(a), row(b), query.sort_by));
        }
        if query.reverse {
            by = by.reverse();
        }
        by.then_with(tie)
    }

    fn compare_text(&self, a: &StoredRow, b: &StoredRow, by: ProcessColumn) -> Ordering {
        match by {
            ProcessColumn::Comm => a.raw.comm().cmp(b.raw.comm()),
            ProcessColumn::Command => cmdline(a).cmp(&cmdline(b)),
            ProcessColumn::User => self.user_name(a).cmp(&self.user_name(b)).then(a.raw.uid.cmp(&b.raw.uid)),
            ProcessColumn::Cgroup => a.names.as_ref().map(|n| &n.cgroup).cmp(&b.names.as_ref().map(|n| &n.cgroup)),
            _ => Ordering::Equal,
        }
    }

    /// A number to sort by, largest first; NaN for "unknown"; 0 for columns sorted by text.
    pub(super) fn sort_key(&self, row: &StoredRow, by: ProcessColumn) -> f64 {
        let known = |n: Option<f64>| n.unwrap_or(f64::NAN);
        let count = |n: Option<u64>| n.map_or(f64::NAN, |n| n as f64);
        let rates = || -> TaskRates { self.rates_of(row) };
        let bytes = row.raw.io.bytes();
        match by {
            ProcessColumn::Pid => -(row.raw.key.pid as f64),
            ProcessColumn::Tid => -(row.raw.key.tid as f64),
            ProcessColumn::User | ProcessColumn::Comm | ProcessColumn::Command | ProcessColumn::Cgroup => 0.0,
            ProcessColumn::State => state_rank(row.raw.state),
            ProcessColumn::StateSince => -(row.state_since_ns as f64),
            ProcessColumn::Ionice => known(row.raw.ioprio.map(|p| -f64::from(p.class) * 8.0 - f64::from(p.level))),
            ProcessColumn::Io => known(rates().read.zip(rates().write).map(|(r, w)| r + w)),
            ProcessColumn::Read => known(rates().read),
            ProcessColumn::Write => known(rates().write),
            ProcessColumn::Cancelled => known(rates().cancelled),
            ProcessColumn::ReadTotal => count(bytes.map(|b| b.read)),
            ProcessColumn::WriteTotal => count(bytes.map(|b| b.write)),
            ProcessColumn::AccRead => count(bytes.map(|_| self.accumulated_of(row).io.read)),
            ProcessColumn::AccWrite => count(bytes.map(|_| self.accumulated_of(row).io.write)),
            ProcessColumn::AccIo => {
                count(bytes.map(|_| self.accumulated_of(row).io.read + self.accumulated_of(row).io.write))
            }
            ProcessColumn::Iops => known(self.attributed_io(row).map(|c| c.iops())),
            ProcessColumn::IoLatency => known(self.attributed_io(row).and_then(|c| c.p99_us)),
            ProcessColumn::Writeback => known(self.attributed_io(row).map(|c| c.writeback_bytes_per_s)),
            ProcessColumn::IoDelay => known(rates().io_delay_pct),
            ProcessColumn::SwapinDelay => known(rates().swapin_delay_pct),
            ProcessColumn::Throttled => known(rates().stalled_pct[THROTTLE]),
            ProcessColumn::Reclaim => known(rates().stalled_pct[RECLAIM]),
            ProcessColumn::Swap => count(row.raw.swap_bytes),
            ProcessColumn::Rss => row.raw.rss_bytes as f64,
            ProcessColumn::MajorFaults => known(rates().major_faults),
            ProcessColumn::Threads => row.raw.num_threads as f64,
        }
    }

    fn matches_filter(&self, row: &StoredRow, filter: &ProcessFilter, needle: Option<&[u8]>) -> bool {
        let key = row.raw.key;
        if key.tid != key.pid && filter.folded_pids.contains(&key.pid) {
            return false;
        }
        if filter.hide_kernel_threads && row.raw.kernel_thread
            || filter.pid.is_some_and(|pid| pid != row.raw.key.pid)
            || filter.only_active && !self.is_active(row)
            || filter.only_accumulated && !self.has_accumulated(row)
        {
            return false;
        }
        if let Some(user) = &filter.user {
            let named = self.user_name(row).is_some_and(|u| **u == **user);
            if !named && row.raw.uid.map(|uid| uid.to_string()).as_ref() != Some(user) {
                return false;
            }
        }
        needle.is_none_or(|needle| contains_text(row, needle))
    }

    fn is_active(&self, row: &StoredRow) -> bool {
        if row.raw.state == b'D' || row.blocked || self.io_attribution.has_io(row.raw.key.pid) {
            return true;
        }
        let r = self.rates_of(row);
        [r.read, r.write, r.cancelled, r.io_delay_pct, r.swapin_delay_pct, r.major_faults]
            .into_iter()
            .chain(r.stalled_pct)
            .any(|rate| rate.is_some_and(|rate| rate > 0.0))
    }

    fn has_accumulated(&self, row: &StoredRow) -> bool {
        let acc = self.accumulated_of(row);
        acc.io.read + acc.io.write + acc.io.cancelled + acc.major_faults + acc.blkio_ns + acc.swapin_ns > 0
    }
}

fn state_rank(state: u8) -> f64 {
    match state {
        b'D' => 9.0,
        b'R' => 8.0,
        b'Z' => 7.0,
        b'T' | b't' => 6.0,
        b'S' => 5.0,
        b'I' => 4.0,
        _ => 1.0,
    }
}

fn cmdline(row: &StoredRow) -> Option<&[u8]> {
    row.names.as_ref()?.cmdline.as_deref()
}

fn contains_text(row: &StoredRow, needle: &[u8]) -> bool {
    let has = |hay: &[u8]| needle.is_empty() || hay.windows(needle.len()).any(|part| part.eq_ignore_ascii_case(needle));
    has(row.raw.comm())
        || cmdline(row).is_some_and(has)
        || row.names.as_ref().is_some_and(|n| has(n.cgroup.as_bytes()))
        || row.raw.key.pid.to_string().as_bytes() == needle
        || row.raw.key.tid.to_string().as_bytes() == needle
}
