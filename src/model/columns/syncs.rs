//! Columns of the two lists of syncs.

use crate::model::column::{Align, CellValue, ColumnSpec};
use crate::model::syncs::{SlowSyncRow, SyncRow};

/// A column of the syncs by process and file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SyncColumn {
    Pid,
    Comm,
    Call,
    Rate,
    Wait,
    P99,
    Max,
    Mean,
    Calls,
    LastEnded,
    Device,
    Errors,
    Path,
}

const fn column<C>(
    id: C,
    name: &'static str,
    head: &'static str,
    width: u16,
    align: Align,
    help: &'static str,
) -> ColumnSpec<C> {
    ColumnSpec { id, name, header: head, help, width, align }
}

use Align::{Left, Right};

/// In display order. Narrow panes drop columns from the end, but never the path.
pub const SYNC_COLUMNS: &[ColumnSpec<SyncColumn>] = &[
    column(SyncColumn::Pid, "pid", "PID", 7, Right, "the process; its threads are counted together"),
    column(SyncColumn::Comm, "command", "COMMAND", 12, Left, "its name"),
    column(SyncColumn::Call, "call", "CALL", 9, Left, "the system call"),
    column(SyncColumn::Rate, "rate", "calls/s", 7, Right, "calls that ended, per second"),
    column(SyncColumn::Wait, "wait", "wait%", 6, Right, "share of the interval spent waiting in them"),
    column(SyncColumn::P99, "p99", "p99 ms", 8, Right, "99th percentile since tracing began, milliseconds"),
    column(SyncColumn::Max, "worst", "worst ms", 8, Right, "the longest since tracing began, milliseconds"),
    column(SyncColumn::Device, "device", "DEVICE", 10, Left, "the file system's device"),
    column(SyncColumn::Mean, "mean", "mean ms", 8, Right, "mean since tracing began, milliseconds"),
    column(SyncColumn::Calls, "calls", "calls", 8, Right, "calls since tracing began"),
    column(SyncColumn::LastEnded, "last", "last", 7, Right, "time since the last one ended"),
    column(SyncColumn::Errors, "errors", "errors", 6, Right, "calls that failed since tracing began"),
    column(SyncColumn::Path, "path", "PATH", 0, Left, "the file"),
];

impl SyncRow {
    /// The cell of a column.
    pub fn value(&self, col: SyncColumn) -> CellValue<'_> {
        let r = &self.rate;
        match col {
            SyncColumn::Pid => CellValue::Int(u64::from(r.file.pid)),
            SyncColumn::Comm => CellValue::Text(&self.comm),
            SyncColumn::Call => CellValue::Text(r.file.call.name()),
            SyncColumn::Rate => CellValue::Fixed(r.calls_per_s, 1),
            SyncColumn::Wait => CellValue::Fixed(r.wait_pct, 1),
            SyncColumn::P99 => CellValue::fixed(r.latency.map(|s| s.p99 / 1e3), 2),
            SyncColumn::Max => CellValue::fixed(r.mean_us.map(|_| r.max_ns as f64 / 1e6), 2),
            SyncColumn::Mean => CellValue::fixed(r.mean_us.map(|us| us / 1e3), 2),
            SyncColumn::Calls => CellValue::Int(r.calls),
            SyncColumn::LastEnded => CellValue::text(self.last_ended.as_deref()),
            SyncColumn::Device => CellValue::Text(&self.device),
            SyncColumn::Errors => CellValue::Int(r.errors),
            SyncColumn::Path => CellValue::Text(&self.path),
        }
    }

    /// The value that a column is sorted by.
    pub fn sort_value(&self, col: SyncColumn) -> CellValue<'_> {
        match col {
            SyncColumn::LastEnded => CellValue::fixed(self.rate.last_ended_ns.map(|ns| ns as f64), 0),
            other => self.value(other),
        }
    }
}

/// A column of the slow syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SlowSyncColumn {
    EndedAt,
    Duration,
    Pid,
    Comm,
    Call,
    WaitedOn,
    Error,
    Path,
}

/// In display order.
pub const SLOW_SYNC_COLUMNS: &[ColumnSpec<SlowSyncColumn>] = &[
    column(SlowSyncColumn::EndedAt, "when", "ENDED", 9, Left, "when it ended, or under way"),
    column(SlowSyncColumn::Duration, "took", "took ms", 9, Right, "duration so far, milliseconds"),
    column(SlowSyncColumn::Pid, "tid", "TID", 7, Right, "the thread"),
    column(SlowSyncColumn::Comm, "command", "COMMAND", 12, Left, "its name"),
    column(SlowSyncColumn::Call, "call", "CALL", 9, Left, "the system call"),
    column(
        SlowSyncColumn::WaitedOn,
        "on",
        "WAITED ON",
        22,
        Left,
        "what it was most often found waiting on; - if never found waiting",
    ),
    column(SlowSyncColumn::Error, "error", "error", 6, Right, "errno, 0 on success"),
    column(SlowSyncColumn::Path, "path", "PATH", 0, Left, "the file"),
];

impl SlowSyncRow {
    /// The cell of a column; `when` is the text for the time at which the sync ended.
    pub fn value<'a>(&'a self, col: SlowSyncColumn, when: &'a str) -> CellValue<'a> {
        match col {
            SlowSyncColumn::EndedAt => CellValue::Text(if self.is_in_flight { "under way" } else { when }),
            SlowSyncColumn::Duration => CellValue::Fixed(self.duration_ns as f64 / 1e6, 1),
            SlowSyncColumn::Pid => CellValue::Int(u64::from(self.tid)),
            SlowSyncColumn::Comm => CellValue::Text(&self.comm),
            SlowSyncColumn::Call => CellValue::Text(self.file.call.name()),
            SlowSyncColumn::WaitedOn => CellValue::text(self.waiting_on.as_deref()),
            SlowSyncColumn::Error if self.is_in_flight => CellValue::Missing,
            SlowSyncColumn::Error => CellValue::Int(u64::from(self.error)),
            SlowSyncColumn::Path => CellValue::Text(&self.path),
        }
    }
}
