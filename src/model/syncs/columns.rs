//! The rows of the two lists of syncs, and their columns. Adding a column is a variant and a row of its table.

use super::{SyncFile, SyncRate};
use crate::model::column::CellValue::{self, Fixed, Int, Text};
use crate::model::column::{ColumnSource, ColumnSpec};
use std::sync::Arc;

/// Syncs of a process and file. Text is sanitized.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncRow {
    /// The rates.
    pub rate: SyncRate,
    /// The process's name.
    pub comm: String,
    /// The device's name, `-` without one.
    pub device: String,
    /// The file.
    pub path: String,
    /// Time since the last one ended.
    pub last_ended: Option<String>,
}

/// A slow sync, completed or in flight. Text is sanitized.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowSyncRow {
    /// Process, file and system call.
    pub file: Arc<SyncFile>,
    /// The thread.
    pub tid: u32,
    /// Its name; for a sync in flight that of the process.
    pub comm: String,
    /// The file.
    pub path: String,
    /// CLOCK_BOOTTIME when it began, ns.
    pub started_ns: u64,
    /// Duration, so far if it is in flight, ns.
    pub duration_ns: u64,
    /// Whether it is in flight.
    pub is_in_flight: bool,
    /// `errno`.
    pub error: u32,
    /// What it waited on.
    pub waiting_on: Option<String>,
}

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
    Device,
    Mean,
    Calls,
    LastEnded,
    Errors,
    Path,
}
use SyncColumn as Col;

/// A column of the syncs by process and file.
pub type SyncColumnSpec = ColumnSpec<SyncColumn, SyncValue>;
type SyncValue = for<'a> fn(&'a SyncRow) -> CellValue<'a>;

const fn right(id: Col, header: &'static str, width: u16, value: SyncValue, help: &'static str) -> SyncColumnSpec {
    ColumnSpec::right(id, header, width, value, help)
}

/// What all columns are read from.
pub static SOURCE: ColumnSource = ColumnSource::new(
    "tracing of fsync and its kin, while this view or the findings are open",
    "where no sync has ended, where it waits for nothing known, or the file lies on no device",
);

/// In display order. Narrow panes drop columns from the end, but never the path.
pub static SYNC_COLUMNS: &[SyncColumnSpec] = &[
    right(Col::Pid, "PID", 7, |s| Int(s.rate.file.pid as u64), "id of the process; its threads are counted together")
        .smallest_first(),
    ColumnSpec::left(Col::Comm, "COMMAND", 12, |s| Text(&s.comm), "its name"),
    ColumnSpec::left(Col::Call, "CALL", 9, |s| Text(s.rate.file.call.name()), "the system call"),
    right(Col::Rate, "calls/s", 7, |s| Fixed(s.rate.calls_per_s, 1), "calls that ended, per second"),
    right(Col::Wait, "wait%", 6, |s| Fixed(s.rate.wait_pct, 1), "percent of the interval spent waiting in them")
        .thresholds(f64::INFINITY, 25.0),
    right(
        Col::P99,
        "p99 ms",
        8,
        |s| millis(s.rate.latency.map(|l| l.p99)),
        "99th percentile of their duration since tracing began, milliseconds",
    ),
    right(Col::Max, "max ms", 8, longest, "the longest since tracing began, milliseconds"),
    ColumnSpec::left(Col::Device, "DEVICE", 10, |s| Text(&s.device), "the file system's device"),
    right(Col::Mean, "mean ms", 8, |s| millis(s.rate.mean_us), "mean duration since tracing began, milliseconds"),
    right(Col::Calls, "calls", 8, |s| Int(s.rate.calls), "number of calls since tracing began"),
    right(Col::LastEnded, "last", 7, |s| CellValue::text(s.last_ended.as_deref()), "time since the last one ended"),
    right(Col::Errors, "errors", 6, |s| Int(s.rate.errors), "number of calls that failed since tracing began")
        .thresholds(f64::INFINITY, 1.0),
    ColumnSpec::path(Col::Path, "PATH", 0, |s| Text(&s.path), "the file"),
];

fn millis<'a>(us: Option<f64>) -> CellValue<'a> {
    CellValue::fixed(us.map(|us| us / 1e3), 2)
}

fn longest(row: &SyncRow) -> CellValue<'_> {
    millis(row.rate.mean_us.map(|_| row.rate.max_ns as f64 / 1e3))
}

impl SyncRow {
    /// The value that a column is sorted by.
    pub fn sort_value(&self, column: SyncColumn) -> CellValue<'_> {
        match column {
            Col::LastEnded => CellValue::fixed(self.rate.last_ended_ns.map(|ns| ns as f64), 0),
            other => (SYNC_COLUMNS[other as usize].value)(self),
        }
    }
}

/// A column of the slow syncs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SlowSyncColumn {
    EndedAt,
    Duration,
    Tid,
    Comm,
    Call,
    WaitedOn,
    Error,
    Path,
}

type SlowSyncValue = for<'a> fn(&'a SlowSyncRow, &'a str) -> CellValue<'a>;

/// In display order. Values are made from a row and the text for the time at which the sync ended.
pub static SLOW_SYNC_COLUMNS: &[ColumnSpec<SlowSyncColumn, SlowSyncValue>] = &[
    ColumnSpec::left(SlowSyncColumn::EndedAt, "ENDED", 9, ended_at, "when it ended, or under way"),
    ColumnSpec::right(SlowSyncColumn::Duration, "took ms", 9, duration, "duration so far, milliseconds"),
    ColumnSpec::right(SlowSyncColumn::Tid, "TID", 7, |s, _| Int(s.tid as u64), "id of the thread"),
    ColumnSpec::left(SlowSyncColumn::Comm, "COMMAND", 12, |s, _| Text(&s.comm), "its name"),
    ColumnSpec::left(SlowSyncColumn::Call, "CALL", 9, |s, _| Text(s.file.call.name()), "the system call"),
    ColumnSpec::left(SlowSyncColumn::WaitedOn, "WAITED ON", 22, waited_on, "where it was most often found waiting"),
    ColumnSpec::right(SlowSyncColumn::Error, "error", 6, error as SlowSyncValue, "errno, 0 on success")
        .thresholds(f64::INFINITY, 1.0),
    ColumnSpec::path(SlowSyncColumn::Path, "PATH", 0, |s, _| Text(&s.path), "the file"),
];

fn ended_at<'a>(row: &'a SlowSyncRow, when: &'a str) -> CellValue<'a> {
    Text(if row.is_in_flight { "under way" } else { when })
}

fn duration<'a>(row: &'a SlowSyncRow, _: &'a str) -> CellValue<'a> {
    Fixed(row.duration_ns as f64 / 1e6, 1)
}

fn waited_on<'a>(row: &'a SlowSyncRow, _: &'a str) -> CellValue<'a> {
    CellValue::text(row.waiting_on.as_deref())
}

fn error<'a>(row: &'a SlowSyncRow, _: &'a str) -> CellValue<'a> {
    if row.is_in_flight { CellValue::Missing } else { Int(row.error.into()) }
}
