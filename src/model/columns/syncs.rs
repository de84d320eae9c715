//! The columns of the two lists of syncs.

use crate::model::column::{Align, Column, Value};
use crate::model::syncs::{SlowLine, SyncLine};

/// A column of who waits for which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SyncCol {
    Pid,
    Comm,
    Call,
    Rate,
    Wait,
    P99,
    Worst,
    Mean,
    Calls,
    Last,
    Device,
    Errors,
    Path,
}

const fn col<C>(
    id: C,
    name: &'static str,
    head: &'static str,
    width: u16,
    align: Align,
    help: &'static str,
) -> Column<C> {
    Column { id, name, head, help, width, align }
}

use Align::{Left, Right};

/// In the order in which they are shown; from the end on they give way to a narrow screen, the path never.
pub const SYNCS: &[Column<SyncCol>] = &[
    col(SyncCol::Pid, "pid", "PID", 7, Right, "the process; its threads are counted together"),
    col(SyncCol::Comm, "command", "COMMAND", 12, Left, "its name"),
    col(SyncCol::Call, "call", "CALL", 9, Left, "the system call"),
    col(SyncCol::Rate, "rate", "calls/s", 7, Right, "calls that ended, per second"),
    col(SyncCol::Wait, "wait", "wait%", 6, Right, "share of the interval spent waiting in them"),
    col(SyncCol::P99, "p99", "p99 ms", 8, Right, "99 % took no longer, since tracing began, milliseconds"),
    col(SyncCol::Worst, "worst", "worst ms", 8, Right, "the longest since tracing began, milliseconds"),
    col(SyncCol::Device, "device", "DEVICE", 10, Left, "the file system's device"),
    col(SyncCol::Mean, "mean", "mean ms", 8, Right, "their mean since tracing began, milliseconds"),
    col(SyncCol::Calls, "calls", "calls", 8, Right, "calls since tracing began"),
    col(SyncCol::Last, "last", "last", 7, Right, "time since the last one ended"),
    col(SyncCol::Errors, "errors", "errors", 6, Right, "calls that failed since tracing began"),
    col(SyncCol::Path, "path", "PATH", 0, Left, "the file"),
];

impl SyncLine {
    /// The cell of a column.
    pub fn value(&self, col: SyncCol) -> Value<'_> {
        let r = &self.rate;
        match col {
            SyncCol::Pid => Value::Int(u64::from(r.file.pid)),
            SyncCol::Comm => Value::Text(&self.comm),
            SyncCol::Call => Value::Text(r.file.call.name()),
            SyncCol::Rate => Value::Fixed(r.calls_per_s, 1),
            SyncCol::Wait => Value::Fixed(r.wait_pct, 1),
            SyncCol::P99 => Value::fixed(r.spread.map(|s| s.p99 / 1e3), 2),
            SyncCol::Worst => Value::fixed(r.mean_us.map(|_| r.worst_ns as f64 / 1e6), 2),
            SyncCol::Mean => Value::fixed(r.mean_us.map(|us| us / 1e3), 2),
            SyncCol::Calls => Value::Int(r.calls),
            SyncCol::Last => Value::text(self.last.as_deref()),
            SyncCol::Device => Value::Text(&self.device),
            SyncCol::Errors => Value::Int(r.errors),
            SyncCol::Path => Value::Text(&self.path),
        }
    }

    /// What a column is sorted by.
    pub fn order(&self, col: SyncCol) -> Value<'_> {
        match col {
            SyncCol::Last => Value::fixed(self.rate.last_ns.map(|ns| ns as f64), 0),
            other => self.value(other),
        }
    }
}

/// A column of the slow ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SlowCol {
    When,
    Took,
    Pid,
    Comm,
    Call,
    On,
    Error,
    Path,
}

/// In the order in which they are shown.
pub const SLOW: &[Column<SlowCol>] = &[
    col(SlowCol::When, "when", "ENDED", 9, Left, "when it ended; under way: it has not"),
    col(SlowCol::Took, "took", "took ms", 9, Right, "how long it took until then, milliseconds"),
    col(SlowCol::Pid, "tid", "TID", 7, Right, "the thread"),
    col(SlowCol::Comm, "command", "COMMAND", 12, Left, "its name"),
    col(SlowCol::Call, "call", "CALL", 9, Left, "the system call"),
    col(
        SlowCol::On,
        "on",
        "WAITED ON",
        22,
        Left,
        "where it was found waiting most; -: it was not caught waiting",
    ),
    col(SlowCol::Error, "error", "error", 6, Right, "errno, 0 if it went well"),
    col(SlowCol::Path, "path", "PATH", 0, Left, "the file"),
];

impl SlowLine {
    /// The cell of a column; `when` is what stands for its end.
    pub fn value<'a>(&'a self, col: SlowCol, when: &'a str) -> Value<'a> {
        match col {
            SlowCol::When => Value::Text(if self.under_way { "under way" } else { when }),
            SlowCol::Took => Value::Fixed(self.took_ns as f64 / 1e6, 1),
            SlowCol::Pid => Value::Int(u64::from(self.tid)),
            SlowCol::Comm => Value::Text(&self.comm),
            SlowCol::Call => Value::Text(self.file.call.name()),
            SlowCol::On => Value::text(self.on.as_deref()),
            SlowCol::Error if self.under_way => Value::Missing,
            SlowCol::Error => Value::Int(u64::from(self.error)),
            SlowCol::Path => Value::Text(&self.path),
        }
    }
}
