//! Columns of the Processes table, in iotop's meanings.

use crate::model::column::{Align, Column, Value};
use crate::model::process::{Column as Col, ProcRow};
use std::fmt::Write as _;

const fn col(id: Col, name: &'static str, head: &'static str, width: u16, help: &'static str) -> Column<Col> {
    Column { id, name, head, help, width, align: Align::Right }
}

const fn left(
    id: Col,
    name: &'static str,
    head: &'static str,
    width: u16,
    help: &'static str,
) -> Column<Col> {
    Column { id, name, head, help, width, align: Align::Left }
}

const PID: Column<Col> = col(Col::Pid, "pid", "PID", 7, "process id");
const TID: Column<Col> = col(Col::Tid, "tid", "TID", 7, "thread id");
const USER: Column<Col> = left(Col::User, "user", "USER", 8, "owner");
const PRIO: Column<Col> = left(Col::Ionice, "prio", "PRIO", 5, "I/O class and level; ? before it: never set");
const READ: Column<Col> = col(Col::Read, "read", "READ/s", 7, "bytes fetched from storage per second");
const WRITE: Column<Col> = col(
    Col::Write,
    "write",
    "WRITE/s",
    7,
    "bytes dirtied for storage per second: blames who dirtied, not the flusher",
);
const WRITEBACK: Column<Col> = col(
    Col::Writeback,
    "writeback",
    "WBACK/s",
    7,
    "bytes of page cache it had dirtied that reached a device, whoever wrote them, by tracing",
);
const IOPS: Column<Col> = col(
    Col::Iops,
    "iops",
    "IOPS",
    6,
    "reads and writes it submitted that devices completed, per second, by tracing",
);
const P99: Column<Col> =
    col(Col::IoLatency, "p99", "P99ms", 7, "milliseconds that 99 % of those stayed within, by tracing");
const CANCELLED: Column<Col> = col(
    Col::Cancelled,
    "cancelled",
    "CANC/s",
    6,
    "bytes dirtied and truncated before they were written, per second",
);
const READ_SUM: Column<Col> =
    col(Col::AccRead, "read_sum", "READ", 7, "bytes fetched since the start or since D");
const WRITE_SUM: Column<Col> =
    col(Col::AccWrite, "write_sum", "WRITE", 7, "bytes dirtied since the start or since D");
const SWAPIN: Column<Col> = col(
    Col::SwapinDelay,
    "swapin",
    "SWAPIN%",
    7,
    "share of time waiting for pages from swap (needs delay accounting)",
);
const THROTTLED: Column<Col> = col(
    Col::Throttled,
    "throttled",
    "THROT%",
    6,
    "share of time put to sleep because too many pages were dirty, threads added up, by tracing",
);
const RECLAIM: Column<Col> = col(
    Col::Reclaim,
    "reclaim",
    "RECL%",
    6,
    "share of time making room in memory by itself (direct reclaim), threads added up, by tracing",
);
const IO: Column<Col> =
    col(Col::IoDelay, "io_delay", "IO%", 6, "share of time waiting for block I/O (needs delay accounting)");
const SWAP: Column<Col> = col(
    Col::Swap,
    "swap",
    "SWAP",
    6,
    "VmSwap: private memory in swap; shared memory is not in it, see the detail",
);
const RSS: Column<Col> = col(Col::Rss, "rss", "RSS", 6, "resident memory");
const MAJF: Column<Col> =
    col(Col::MajorFaults, "majflt", "MAJF/s", 6, "page faults that needed I/O, per second");
const STATE: Column<Col> =
    left(Col::State, "state", "S", 1, "state; D: uninterruptible, usually waiting for I/O");
const THREADS: Column<Col> = col(Col::Threads, "threads", "THR", 4, "threads of the process");
const CGROUP: Column<Col> = left(Col::Cgroup, "cgroup", "CGROUP", 20, "container or control group");
const COMMAND: Column<Col> = left(
    Col::Command,
    "command",
    "COMMAND",
    0,
    "command line; [name]: a kernel thread; before it the kernel function a task in D waits in",
);

/// Beside other panes.
pub const SHORT: &[Column<Col>] = &[PID, USER, STATE, READ, WRITE, IO, SWAP, COMMAND];
/// The full view, rates. What matters least stands before COMMAND: it is left out first.
pub const FULL: &[Column<Col>] = &[
    PID, PRIO, USER, STATE, READ, WRITE, IO, SWAPIN, SWAP, THROTTLED, RECLAIM, MAJF, RSS, CANCELLED, THREADS,
    CGROUP, COMMAND,
];
/// The full view where who does the I/O is traced.
pub const TRACED: &[Column<Col>] = &[
    PID, PRIO, USER, STATE, READ, WRITE, WRITEBACK, IOPS, P99, IO, SWAPIN, SWAP, THROTTLED, RECLAIM, MAJF,
    RSS, CANCELLED, THREADS, CGROUP, COMMAND,
];
/// The full view, sums.
pub const SUMS: &[Column<Col>] = &[
    PID, PRIO, USER, STATE, READ_SUM, WRITE_SUM, IO, SWAPIN, SWAP, THROTTLED, RECLAIM, MAJF, RSS, CANCELLED,
    THREADS, CGROUP, COMMAND,
];
/// Beside other panes, sums.
pub const SHORT_SUMS: &[Column<Col>] = &[PID, USER, STATE, READ_SUM, WRITE_SUM, IO, SWAP, COMMAND];
/// Beside other panes, sorted by what holds tasks up.
pub const SHORT_HELD: &[Column<Col>] = &[PID, USER, STATE, READ, WRITE, THROTTLED, RECLAIM, COMMAND];
/// On paper: what fits a line of 100 beside a command.
pub const PAPER: &[Column<Col>] =
    &[PID, PRIO, USER, STATE, READ, WRITE, IO, SWAPIN, SWAP, MAJF, RSS, COMMAND];
/// The same where who does the I/O is traced.
pub const TRACED_PAPER: &[Column<Col>] =
    &[PID, USER, STATE, READ, WRITE, WRITEBACK, IOPS, P99, IO, SWAP, MAJF, COMMAND];
/// The same four for threads.
pub const THREAD_SETS: [&[Column<Col>]; 4] = [
    &[TID, USER, STATE, READ, WRITE, IO, SWAP, COMMAND],
    &[TID, PID, PRIO, USER, STATE, READ, WRITE, IO, SWAPIN, SWAP, MAJF, RSS, CANCELLED, CGROUP, COMMAND],
    &[TID, USER, STATE, READ_SUM, WRITE_SUM, IO, SWAP, COMMAND],
    &[
        TID, PID, PRIO, USER, STATE, READ_SUM, WRITE_SUM, IO, SWAPIN, SWAP, MAJF, RSS, CANCELLED, CGROUP,
        COMMAND,
    ],
];

/// Names in the config file for every order there is, beside the columns' own.
pub const ORDERS: &[(&str, Col)] = &[
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

/// The cell of a column. `command` is what the caller made of the command line (a wait channel before it,
/// an indent).
pub fn value<'a>(row: &'a ProcRow<'_>, id: Col, command: &'a str) -> Value<'a> {
    let rate = |n: Option<f64>| Value::bytes(n);
    match id {
        Col::Pid => Value::Int(u64::from(row.pid)),
        Col::Tid => Value::Int(u64::from(row.tid)),
        Col::User => Value::text(row.user.as_deref()),
        Col::Ionice => Value::text(row.ionice.as_deref()),
        Col::State | Col::StateSince => Value::Letter(row.state),
        Col::Read => rate(row.read_bytes_per_s),
        Col::Write => rate(row.write_bytes_per_s),
        Col::Cancelled => rate(row.cancelled_bytes_per_s),
        Col::Io => rate(row.read_bytes_per_s.zip(row.write_bytes_per_s).map(|(r, w)| r + w)),
        Col::ReadTotal => rate(row.read_bytes_total.map(|n| n as f64)),
        Col::WriteTotal => rate(row.write_bytes_total.map(|n| n as f64)),
        Col::AccRead => rate(row.accumulated.map(|a| a.read as f64)),
        Col::AccWrite => rate(row.accumulated.map(|a| a.write as f64)),
        Col::AccIo => rate(row.accumulated.map(|a| (a.read + a.write) as f64)),
        Col::Iops => row.charged.map_or(Value::Missing, |c| Value::Count(c.iops())),
        Col::IoLatency => Value::fixed(row.charged.and_then(|c| c.p99_us).map(|us| us / 1e3), 2),
        Col::Writeback => rate(row.charged.map(|c| c.writeback_bytes_per_s)),
        Col::IoDelay => Value::fixed(row.io_delay_pct, 1),
        Col::SwapinDelay => Value::fixed(row.swapin_delay_pct, 1),
        Col::Throttled => Value::fixed(row.throttled_pct, 1),
        Col::Reclaim => Value::fixed(row.reclaim_pct, 1),
        Col::Swap => rate(row.swap_bytes.map(|n| n as f64)),
        Col::Rss => Value::Bytes(row.rss_bytes as f64),
        Col::MajorFaults => row.major_faults_per_s.map_or(Value::Missing, Value::Count),
        Col::Threads => Value::Int(u64::from(row.num_threads)),
        Col::Cgroup => Value::text(row.container.or(row.cgroup)),
        Col::Comm => Value::Text(&row.comm),
        Col::Command => Value::Text(command),
    }
}

/// The command column's text, written to the end of `out`: the wait channel of a task in D before its command line.
pub fn write_command(out: &mut String, row: &ProcRow<'_>) {
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
pub fn command(row: &ProcRow<'_>) -> String {
    let mut out = String::new();
    write_command(&mut out, row);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_shown_has_an_order_and_a_unique_name() {
        let wide = [FULL, TRACED, SUMS, PAPER, TRACED_PAPER];
        for set in [SHORT, SHORT_SUMS, SHORT_HELD].into_iter().chain(wide).chain(THREAD_SETS) {
            let names: std::collections::HashSet<_> = set.iter().map(|c| c.name).collect();
            assert_eq!(names.len(), set.len());
            for c in set {
                assert!(ORDERS.contains(&(c.name, c.id)), "{}", c.name);
            }
        }
    }
}
