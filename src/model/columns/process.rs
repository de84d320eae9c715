//! Columns of the Processes table, with iotop's meanings.

use crate::model::column::{Align, CellValue, ColumnSpec};
use crate::model::process::{ProcessColumn as Col, ProcessRow};
use std::fmt::Write as _;

const fn right_aligned(
    id: Col,
    name: &'static str,
    head: &'static str,
    width: u16,
    help: &'static str,
) -> ColumnSpec<Col> {
    ColumnSpec { id, name, header: head, help, width, align: Align::Right }
}

const fn left_aligned(
    id: Col,
    name: &'static str,
    head: &'static str,
    width: u16,
    help: &'static str,
) -> ColumnSpec<Col> {
    ColumnSpec { id, name, header: head, help, width, align: Align::Left }
}

const PID: ColumnSpec<Col> = right_aligned(Col::Pid, "pid", "PID", 7, "process id");
const TID: ColumnSpec<Col> = right_aligned(Col::Tid, "tid", "TID", 7, "thread id");
const USER: ColumnSpec<Col> = left_aligned(Col::User, "user", "USER", 8, "owner");
const PRIO: ColumnSpec<Col> = left_aligned(Col::Ionice, "prio", "PRIO", 5, "I/O class and level; ? if never set");
const READ: ColumnSpec<Col> = right_aligned(Col::Read, "read", "READ/s", 7, "bytes fetched from storage per second");
const WRITE: ColumnSpec<Col> = right_aligned(
    Col::Write,
    "write",
    "WRITE/s",
    7,
    "bytes dirtied for storage per second, by the process that dirtied them, not the flusher",
);
const WRITEBACK: ColumnSpec<Col> = right_aligned(
    Col::Writeback,
    "writeback",
    "WBACK/s",
    7,
    "bytes per second of page cache that it dirtied and that was written back, from tracing",
);
const IOPS: ColumnSpec<Col> = right_aligned(
    Col::Iops,
    "iops",
    "IOPS",
    6,
    "reads and writes submitted by it and completed per second, from tracing",
);
const P99: ColumnSpec<Col> =
    right_aligned(Col::IoLatency, "p99", "P99ms", 7, "99th percentile of their latency in milliseconds, from tracing");
const CANCELLED: ColumnSpec<Col> = right_aligned(
    Col::Cancelled,
    "cancelled",
    "CANC/s",
    6,
    "bytes dirtied and truncated before they were written, per second",
);
const READ_TOTAL: ColumnSpec<Col> =
    right_aligned(Col::AccRead, "read_sum", "READ", 7, "bytes fetched since the start, or since a reset with D");
const WRITE_TOTAL: ColumnSpec<Col> =
    right_aligned(Col::AccWrite, "write_sum", "WRITE", 7, "bytes dirtied since the start, or since a reset with D");
const SWAPIN: ColumnSpec<Col> = right_aligned(
    Col::SwapinDelay,
    "swapin",
    "SWAPIN%",
    7,
    "share of time waiting for pages from swap (needs delay accounting)",
);
const THROTTLED: ColumnSpec<Col> = right_aligned(
    Col::Throttled,
    "throttled",
    "THROT%",
    6,
    "share of time throttled because too many pages were dirty, summed over threads, from tracing",
);
const RECLAIM: ColumnSpec<Col> = right_aligned(
    Col::Reclaim,
    "reclaim",
    "RECL%",
    6,
    "share of time in direct reclaim, summed over threads, from tracing",
);
const IO: ColumnSpec<Col> =
    right_aligned(Col::IoDelay, "io_delay", "IO%", 6, "share of time waiting for block I/O (needs delay accounting)");
const SWAP: ColumnSpec<Col> =
    right_aligned(Col::Swap, "swap", "SWAP", 6, "VmSwap: private memory in swap, without shared memory");
const RSS: ColumnSpec<Col> = right_aligned(Col::Rss, "rss", "RSS", 6, "resident memory");
const MAJOR_FAULTS: ColumnSpec<Col> =
    right_aligned(Col::MajorFaults, "majflt", "MAJF/s", 6, "page faults that needed I/O, per second");
const STATE: ColumnSpec<Col> =
    left_aligned(Col::State, "state", "S", 1, "state; D: uninterruptible, usually waiting for I/O");
const THREADS: ColumnSpec<Col> = right_aligned(Col::Threads, "threads", "THR", 4, "threads of the process");
const CGROUP: ColumnSpec<Col> = left_aligned(Col::Cgroup, "cgroup", "CGROUP", 20, "container or control group");
const COMMAND: ColumnSpec<Col> = left_aligned(
    Col::Command,
    "command",
    "COMMAND",
    0,
    "command line; [name] for kernel threads; in D state preceded by the kernel function it waits in",
);

/// For narrow panes.
pub const COMPACT: &[ColumnSpec<Col>] = &[PID, USER, STATE, READ, WRITE, IO, SWAP, COMMAND];
/// Wide, with rates. Narrower panes drop columns from the end, so the least important ones are just before COMMAND.
pub const FULL: &[ColumnSpec<Col>] = &[
    PID,
    PRIO,
    USER,
    STATE,
    READ,
    WRITE,
    IO,
    SWAPIN,
    SWAP,
    THROTTLED,
    RECLAIM,
    MAJOR_FAULTS,
    RSS,
    CANCELLED,
    THREADS,
    CGROUP,
    COMMAND,
];
/// Wide, with tracing of I/O by process.
pub const FULL_TRACED: &[ColumnSpec<Col>] = &[
    PID,
    PRIO,
    USER,
    STATE,
    READ,
    WRITE,
    WRITEBACK,
    IOPS,
    P99,
    IO,
    SWAPIN,
    SWAP,
    THROTTLED,
    RECLAIM,
    MAJOR_FAULTS,
    RSS,
    CANCELLED,
    THREADS,
    CGROUP,
    COMMAND,
];
/// Wide, with totals.
pub const FULL_TOTALS: &[ColumnSpec<Col>] = &[
    PID,
    PRIO,
    USER,
    STATE,
    READ_TOTAL,
    WRITE_TOTAL,
    IO,
    SWAPIN,
    SWAP,
    THROTTLED,
    RECLAIM,
    MAJOR_FAULTS,
    RSS,
    CANCELLED,
    THREADS,
    CGROUP,
    COMMAND,
];
/// For narrow panes, with totals.
pub const COMPACT_TOTALS: &[ColumnSpec<Col>] = &[PID, USER, STATE, READ_TOTAL, WRITE_TOTAL, IO, SWAP, COMMAND];
/// For narrow panes while sorted by a stall.
pub const COMPACT_STALLS: &[ColumnSpec<Col>] = &[PID, USER, STATE, READ, WRITE, THROTTLED, RECLAIM, COMMAND];
/// For text exports: fits 100 columns beside a short command.
pub const TEXT_EXPORT: &[ColumnSpec<Col>] =
    &[PID, PRIO, USER, STATE, READ, WRITE, IO, SWAPIN, SWAP, MAJOR_FAULTS, RSS, COMMAND];
/// For text exports, with tracing of I/O by process.
pub const TRACED_TEXT_EXPORT: &[ColumnSpec<Col>] =
    &[PID, USER, STATE, READ, WRITE, WRITEBACK, IOPS, P99, IO, SWAP, MAJOR_FAULTS, COMMAND];
/// The same for threads: narrow, wide, narrow with totals, wide with totals.
pub const THREAD_COLUMN_SETS: [&[ColumnSpec<Col>]; 4] = [
    &[TID, USER, STATE, READ, WRITE, IO, SWAP, COMMAND],
    &[TID, PID, PRIO, USER, STATE, READ, WRITE, IO, SWAPIN, SWAP, MAJOR_FAULTS, RSS, CANCELLED, CGROUP, COMMAND],
    &[TID, USER, STATE, READ_TOTAL, WRITE_TOTAL, IO, SWAP, COMMAND],
    &[
        TID,
        PID,
        PRIO,
        USER,
        STATE,
        READ_TOTAL,
        WRITE_TOTAL,
        IO,
        SWAPIN,
        SWAP,
        MAJOR_FAULTS,
        RSS,
        CANCELLED,
        CGROUP,
        COMMAND,
    ],
];

/// Every sort key by its name in the config file.
pub const SORT_KEYS: &[(&str, Col)] = &[
    ("io", Col::Io),
    ("pid", Col::Pid),
    ("tid", Col::Tid),
    ("user", Col::User),
    ("prio", Col::Ionice),
    ("state", Col::State),
    ("read", Col::Read),
    ("write", Col::Write),
    ("read_sum", Col::AccRead),
    ("write_sum", Col::AccWrite),
    ("io_sum", Col::AccIo),
    ("cancelled", Col::Cancelled),
    ("writeback", Col::Writeback),
    ("iops", Col::Iops),
    ("p99", Col::IoLatency),
    ("swapin", Col::SwapinDelay),
    ("io_delay", Col::IoDelay),
    ("throttled", Col::Throttled),
    ("reclaim", Col::Reclaim),
    ("swap", Col::Swap),
    ("rss", Col::Rss),
    ("majflt", Col::MajorFaults),
    ("threads", Col::Threads),
    ("cgroup", Col::Cgroup),
    ("command", Col::Command),
];

/// The cell of a column. `command` is the text of the command column, made by the caller from [`write_command`].
pub fn cell_value<'a>(row: &'a ProcessRow<'_>, id: Col, command: &'a str) -> CellValue<'a> {
    let rate = |n: Option<f64>| CellValue::bytes(n);
    match id {
        Col::Pid => CellValue::Int(u64::from(row.pid)),
        Col::Tid => CellValue::Int(u64::from(row.tid)),
        Col::User => CellValue::text(row.user.as_deref()),
        Col::Ionice => CellValue::text(row.ionice.as_deref()),
        Col::State | Col::StateSince => CellValue::Letter(row.state),
        Col::Read => rate(row.read_bytes_per_s),
        Col::Write => rate(row.write_bytes_per_s),
        Col::Cancelled => rate(row.cancelled_bytes_per_s),
        Col::Io => rate(row.read_bytes_per_s.zip(row.write_bytes_per_s).map(|(r, w)| r + w)),
        Col::ReadTotal => rate(row.read_bytes_total.map(|n| n as f64)),
        Col::WriteTotal => rate(row.write_bytes_total.map(|n| n as f64)),
        Col::AccRead => rate(row.accumulated.map(|a| a.read as f64)),
        Col::AccWrite => rate(row.accumulated.map(|a| a.write as f64)),
        Col::AccIo => rate(row.accumulated.map(|a| (a.read + a.write) as f64)),
        Col::Iops => row.attributed_io.map_or(CellValue::Missing, |c| CellValue::Count(c.iops())),
        Col::IoLatency => CellValue::fixed(row.attributed_io.and_then(|c| c.p99_us).map(|us| us / 1e3), 2),
        Col::Writeback => rate(row.attributed_io.map(|c| c.writeback_bytes_per_s)),
        Col::IoDelay => CellValue::fixed(row.io_delay_pct, 1),
        Col::SwapinDelay => CellValue::fixed(row.swapin_delay_pct, 1),
        Col::Throttled => CellValue::fixed(row.throttled_pct, 1),
        Col::Reclaim => CellValue::fixed(row.reclaim_pct, 1),
        Col::Swap => rate(row.swap_bytes.map(|n| n as f64)),
        Col::Rss => CellValue::Bytes(row.rss_bytes as f64),
        Col::MajorFaults => row.major_faults_per_s.map_or(CellValue::Missing, CellValue::Count),
        Col::Threads => CellValue::Int(u64::from(row.num_threads)),
        Col::Cgroup => CellValue::text(row.container.or(row.cgroup)),
        Col::Comm => CellValue::Text(&row.comm),
        Col::Command => CellValue::Text(command),
    }
}

/// Appends the text of the command column: the wait channel of a task in D state, then its command line.
pub fn write_command(out: &mut String, row: &ProcessRow<'_>) {
    if let Some(wchan) = row.wchan.filter(|_| row.state == 'D') {
        let _ = write!(out, "[D {wchan}] ");
    }
    if row.tid != row.pid && !row.kernel_thread {
        let _ = write!(out, "{{{}}} ", row.comm);
    }
    match &row.command {
        Some(command) => _ = write!(out, "{command}"),
        None => out.push_str(&row.comm),
    }
}

/// [`write_command`] as a string.
pub fn command_text(row: &ProcessRow<'_>) -> String {
    let mut out = String::new();
    write_command(&mut out, row);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_displayed_column_has_a_sort_key_and_a_unique_name() {
        let wide = [FULL, FULL_TRACED, FULL_TOTALS, TEXT_EXPORT, TRACED_TEXT_EXPORT];
        for set in [COMPACT, COMPACT_TOTALS, COMPACT_STALLS].into_iter().chain(wide).chain(THREAD_COLUMN_SETS) {
            let names: std::collections::HashSet<_> = set.iter().map(|c| c.name).collect();
            assert_eq!(names.len(), set.len());
            for c in set {
                assert!(SORT_KEYS.contains(&(c.name, c.id)), "{}", c.name);
            }
        }
    }
}
