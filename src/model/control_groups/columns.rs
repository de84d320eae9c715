//! The columns of the tree of control groups.

use super::ControlGroupRate;
use crate::model::column::CellValue::{self, Text};
use crate::model::column::{ColumnSource, ColumnSpec};

/// A group in the tree. Text is sanitized.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlGroupRow {
    /// Its rates and what it holds.
    pub rate: ControlGroupRate,
    /// Its container, or the last part of its path, indented below its parent.
    pub label: String,
    /// The device with most bytes; `-` without I/O.
    pub device: String,
    /// Processes in it and below it.
    pub processes: u64,
    /// Percent of time that they were throttled for too many dirty pages; `None` without tracing.
    pub throttled_pct: Option<f64>,
}

/// A column of the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ControlGroupColumn {
    ReadBytes,
    WriteBytes,
    IoLimit,
    IoStall,
    Memory,
    MemoryLimit,
    Dirty,
    Writeback,
    Swap,
    Throttled,
    MemoryStall,
    Tasks,
    Device,
    Group,
}
use ControlGroupColumn as Col;

/// A column of the groups.
pub type ControlGroupColumnSpec = ColumnSpec<ControlGroupColumn, GroupValue>;
type GroupValue = for<'a> fn(&'a ControlGroupRow) -> CellValue<'a>;

/// What all columns are read from.
pub static SOURCE: ColumnSource = ColumnSource::new(
    "io.stat, io.max, io.pressure, memory.* of each group below /sys/fs/cgroup, while this list is open; blkio.* and memory.* of version 1; thrott% from tracing",
    "where the controller is off for the group, or there is no earlier reading",
);

const fn right(
    id: Col,
    header: &'static str,
    width: u16,
    value: GroupValue,
    help: &'static str,
) -> ControlGroupColumnSpec {
    ColumnSpec::right(id, header, width, value, help)
}

fn bytes<'a>(n: Option<u64>) -> CellValue<'a> {
    CellValue::bytes(n.map(|n| n as f64))
}

/// In display order. Narrow panes drop columns from the end, but never the group.
pub static CONTROL_GROUP_COLUMNS: &[ControlGroupColumnSpec] = &[
    right(
        Col::ReadBytes,
        "read/s",
        7,
        |g| CellValue::bytes(g.rate.io_per_s(0)),
        "bytes read from devices per second, with the groups below",
    ),
    right(
        Col::WriteBytes,
        "write/s",
        8,
        |g| CellValue::bytes(g.rate.io_per_s(1)),
        "bytes written to devices per second, with the groups below",
    ),
    right(
        Col::IoLimit,
        "ofmax%",
        7,
        |g| CellValue::fixed(g.rate.io_limit_pct(), 0),
        "I/O in percent of the nearest limit of io.max; 100: held back by it",
    ),
    right(
        Col::IoStall,
        "iowait%",
        8,
        |g| CellValue::fixed(g.rate.io_stall_pct, 1),
        "percent of the interval in which a task of it waited for I/O (io.pressure, some)",
    ),
    right(Col::Memory, "memory", 7, |g| bytes(g.rate.memory), "memory that it uses, page cache too, in bytes"),
    right(
        Col::MemoryLimit,
        "ofmem%",
        7,
        |g| CellValue::fixed(g.rate.memory_limit_pct(), 0),
        "memory in percent of the lower one of memory.high and memory.max",
    ),
    right(Col::Dirty, "dirty", 7, |g| bytes(g.rate.dirty), "page cache to be written back, in bytes"),
    right(Col::Writeback, "wback", 7, |g| bytes(g.rate.writeback), "page cache being written back, in bytes"),
    right(Col::Swap, "swap", 7, |g| bytes(g.rate.swap), "swapped out, in bytes"),
    right(
        Col::Throttled,
        "thrott%",
        8,
        |g| CellValue::fixed(g.throttled_pct, 1),
        "percent of time throttled for too many dirty pages, over all its tasks, from tracing",
    ),
    right(
        Col::MemoryStall,
        "mwait%",
        7,
        |g| CellValue::fixed(g.rate.memory_stall_pct, 1),
        "percent of the interval in which a task of it waited for memory (memory.pressure, some)",
    ),
    right(Col::Tasks, "procs", 6, |g| CellValue::Int(g.processes), "number of processes, with the groups below"),
    ColumnSpec::left(Col::Device, "DEVICE", 8, |g| Text(&g.device), "the device with most bytes of it"),
    ColumnSpec::left(Col::Group, "GROUP", 0, |g| Text(&g.label), "container, or name of the group below its parent"),
];

impl ControlGroupRow {
    /// The value that a column is sorted by.
    pub fn sort_value(&self, column: ControlGroupColumn) -> CellValue<'_> {
        CONTROL_GROUP_COLUMNS.iter().find(|c| c.id == column).map_or(CellValue::Missing, |c| (c.value)(self))
    }
}
