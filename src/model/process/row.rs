//! One row as it is shown or exported, with the names of the JSON output.

use super::table::{AccumulatedCounters, StoredRow, TaskRates};
use super::task::{IoBytes, TaskIoRaw, TaskKey};
use crate::model::io_accounting::IoRates;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::sanitize;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// One task, made for showing: text is cleaned, what could not be read is `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessRow<'a> {
    /// Process id.
    pub pid: u32,
    /// Thread id; the process id where rows are whole processes.
    pub tid: u32,
    /// Start, in 1/100 s since boot.
    pub starttime: u64,
    /// The name the task gave itself, cleaned.
    pub comm: Cow<'a, str>,
    /// The command line; `None` until it was fetched.
    pub command: Option<CommandLine<'a>>,
    /// The user's name, or the number where it has none.
    pub user: Option<Cow<'a, str>>,
    /// State letter.
    pub state: char,
    /// The kernel function it waits in, where that was asked for.
    pub wchan: Option<&'a str>,
    /// I/O class and level as iotop prints it.
    pub ionice: Option<Cow<'static, str>>,
    /// Bytes read from storage per second.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes dirtied for storage per second.
    pub write_bytes_per_s: Option<f64>,
    /// Dirtied bytes dropped before they were written, per second.
    pub cancelled_bytes_per_s: Option<f64>,
    /// Bytes read since the task began.
    pub read_bytes_total: Option<u64>,
    /// Bytes dirtied since the task began.
    pub write_bytes_total: Option<u64>,
    /// Time waiting for block I/O, per cent of the interval; of a process the sum over its threads, so up
    /// to 100 for each.
    pub io_delay_pct: Option<f64>,
    /// Time waiting for pages from swap, per cent of the interval.
    pub swapin_delay_pct: Option<f64>,
    /// Time put to sleep because too many pages were dirty, per cent of the interval; threads added up. By tracing.
    #[serde(skip)]
    pub throttled_pct: Option<f64>,
    /// Time spent making room in memory itself (direct reclaim), per cent of the interval; threads added up. By
    /// tracing.
    #[serde(skip)]
    pub reclaim_pct: Option<f64>,
    /// Swapped-out private memory (VmSwap), bytes.
    pub swap_bytes: Option<u64>,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
    /// Page faults that needed I/O, per second.
    pub major_faults_per_s: Option<f64>,
    /// Control group path.
    pub cgroup: Option<&'a str>,
    /// The container its control group points to.
    #[serde(skip)]
    pub container: Option<&'a str>,
    /// User id.
    #[serde(skip)]
    pub uid: Option<u32>,
    /// Parent process.
    #[serde(skip)]
    pub ppid: u32,
    /// Threads of the process.
    #[serde(skip)]
    pub num_threads: u32,
    /// A kernel thread.
    #[serde(skip)]
    pub kernel_thread: bool,
    /// It ended in the last interval; the figures are the last ones seen.
    #[serde(skip)]
    pub exited: bool,
    /// A read of its counters does not return; figures are old.
    #[serde(skip)]
    pub blocked: bool,
    /// What the process did at the devices and what was written back for it, by tracing; `None`: not traced.
    #[serde(skip)]
    pub attributed_io: Option<IoRates>,
    /// Why there is no traffic, if there is none.
    #[serde(skip)]
    pub io: TaskIoRaw,
    /// When the present state was first seen, CLOCK_BOOTTIME in ns: how long a task is in D.
    #[serde(skip)]
    pub state_since_ns: u64,
    /// Bytes since the counters were reset (iotop -a); `None` where they cannot be read.
    #[serde(skip)]
    pub accumulated: Option<IoBytes>,
    /// Major faults since the counters were reset.
    #[serde(skip)]
    pub accumulated_major_faults: u64,
    /// Time waiting for block I/O since the counters were reset, ns.
    #[serde(skip)]
    pub accumulated_io_delay_ns: Option<u64>,
    /// Time waiting for swap since the counters were reset, ns.
    #[serde(skip)]
    pub accumulated_swapin_delay_ns: Option<u64>,
}

impl<'a> ProcessRow<'a> {
    pub(super) fn new(
        row: &'a StoredRow,
        rates: TaskRates,
        acc: Option<&AccumulatedCounters>,
        wait: Option<&'a Arc<str>>,
        user: Option<&'a Arc<str>>,
    ) -> Self {
        let raw = &row.raw;
        let acc = acc.copied().unwrap_or_default();
        let bytes = raw.io.bytes();
        let names = row.names.as_deref();
        Self {
            pid: raw.key.pid,
            tid: raw.key.tid,
            starttime: raw.key.starttime,
            comm: sanitize::sanitize_cow(raw.comm()),
            command: CommandLine::from_row(row),
            user: user.map(|u| sanitize::sanitize_cow(u.as_bytes())).or_else(|| Some(raw.uid?.to_string().into())),
            state: raw.state as char,
            wchan: wait.map(|w| &**w),
            ionice: raw.ioprio.map(|p| p.name()),
            read_bytes_per_s: rates.read,
            write_bytes_per_s: rates.write,
            cancelled_bytes_per_s: rates.cancelled,
            read_bytes_total: bytes.map(|b| b.read),
            write_bytes_total: bytes.map(|b| b.write),
            io_delay_pct: rates.io_delay_pct,
            swapin_delay_pct: rates.swapin_delay_pct,
            throttled_pct: rates.stalled_pct[THROTTLE],
            reclaim_pct: rates.stalled_pct[RECLAIM],
            swap_bytes: raw.swap_bytes,
            rss_bytes: raw.rss_bytes,
            major_faults_per_s: rates.major_faults,
            cgroup: names.map(|n| &*n.cgroup).filter(|c| !c.is_empty()),
            container: names.and_then(|n| n.container.as_deref()),
            uid: raw.uid,
            ppid: raw.ppid,
            num_threads: raw.num_threads,
            kernel_thread: raw.kernel_thread,
            exited: row.exited,
            blocked: row.blocked,
            attributed_io: None,
            io: raw.io,
            state_since_ns: row.state_since_ns,
            accumulated: bytes.map(|_| acc.io),
            accumulated_major_faults: acc.major_faults,
            accumulated_io_delay_ns: raw.delays.map(|_| acc.blkio_ns),
            accumulated_swapin_delay_ns: raw.delays.and_then(|d| d.swapin_ns).map(|_| acc.swapin_ns),
        }
    }

    /// Who the row is about.
    pub fn key(&self) -> TaskKey {
        TaskKey { pid: self.pid, tid: self.tid, starttime: self.starttime }
    }
}

/// A command line, cleaned; of kernel threads, and where it is empty, the name in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine<'a> {
    text: Cow<'a, str>,
    in_brackets: bool,
}

impl<'a> CommandLine<'a> {
    fn from_row(row: &'a StoredRow) -> Option<Self> {
        let cmdline = row.names.as_ref().and_then(|names| names.cmdline.as_deref());
        let in_brackets = row.raw.kernel_thread || cmdline.is_some_and(<[u8]>::is_empty);
        let text = if in_brackets { row.raw.comm() } else { cmdline? };
        Some(Self { text: sanitize::sanitize_cow(text), in_brackets })
    }
}

impl std::fmt::Display for CommandLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.in_brackets {
            return f.write_str(&self.text);
        }
        f.write_str("[")?;
        f.write_str(&self.text)?;
        f.write_str("]")
    }
}

impl Serialize for CommandLine<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
