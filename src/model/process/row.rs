//! One row as it is displayed or exported, with the field names of the JSON output.

use super::table::{AccumulatedCounters, StoredRow, TaskRates};
use super::task::{IoBytes, TaskIoRaw, TaskKey};
use crate::model::io_accounting::IoRates;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::sanitize;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// One task for display: text is sanitized, unreadable values are `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessRow<'a> {
    /// Process id.
    pub pid: u32,
    /// Thread id; equals the process id where rows are processes.
    pub tid: u32,
    /// Start time in 1/100 s since boot.
    pub starttime: u64,
    /// Command name, sanitized.
    pub comm: Cow<'a, str>,
    /// The command line; `None` until it was read.
    pub command: Option<CommandLine<'a>>,
    /// The user's name, or the uid if it has none.
    pub user: Option<Cow<'a, str>>,
    /// State letter.
    pub state: char,
    /// The kernel function it waits in, if that was requested.
    pub wchan: Option<&'a str>,
    /// I/O class and level in iotop's format.
    pub ionice: Option<Cow<'static, str>>,
    /// Bytes read from storage per second.
    pub read_bytes_per_s: Option<f64>,
    /// Bytes dirtied for storage per second.
    pub write_bytes_per_s: Option<f64>,
    /// Dirtied bytes that were truncated before they were written, per second.
    pub cancelled_bytes_per_s: Option<f64>,
    /// Bytes read since the task started.
    pub read_bytes_total: Option<u64>,
    /// Bytes dirtied since the task started.
    pub write_bytes_total: Option<u64>,
    /// Time waiting for block I/O, percent of the interval. For a process the sum over its threads, up to 100 for
    /// each thread.
    pub io_delay_pct: Option<f64>,
    /// Time waiting for pages from swap, percent of the interval.
    pub swapin_delay_pct: Option<f64>,
    /// Time throttled because too many pages were dirty, percent of the interval, summed over threads. From tracing.
    #[serde(skip)]
    pub throttled_pct: Option<f64>,
    /// Time in direct reclaim, percent of the interval, summed over threads. From tracing.
    #[serde(skip)]
    pub reclaim_pct: Option<f64>,
    /// Swapped-out private memory (VmSwap), bytes.
    pub swap_bytes: Option<u64>,
    /// Resident memory, bytes.
    pub rss_bytes: u64,
    /// Major page faults per second.
    pub major_faults_per_s: Option<f64>,
    /// Control group path.
    pub cgroup: Option<&'a str>,
    /// The container of its control group.
    #[serde(skip)]
    pub container: Option<&'a str>,
    /// User id.
    #[serde(skip)]
    pub uid: Option<u32>,
    /// Parent process.
    #[serde(skip)]
    pub ppid: u32,
    /// Number of threads.
    #[serde(skip)]
    pub num_threads: u32,
    /// Whether it is a kernel thread.
    #[serde(skip)]
    pub kernel_thread: bool,
    /// It exited in the last interval; the values are the last ones read.
    #[serde(skip)]
    pub exited: bool,
    /// A read of its counters does not return; the values are old.
    #[serde(skip)]
    pub blocked: bool,
    /// I/O attributed to the process by tracing; `None` if not traced.
    #[serde(skip)]
    pub attributed_io: Option<IoRates>,
    /// Raw counters, or why there are none.
    #[serde(skip)]
    pub io: TaskIoRaw,
    /// CLOCK_BOOTTIME in ns when it was first seen in its present state.
    #[serde(skip)]
    pub state_since_ns: u64,
    /// Bytes since the counters were reset (iotop -a); `None` if they cannot be read.
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

    /// Identity of the task.
    pub fn key(&self) -> TaskKey {
        TaskKey { pid: self.pid, tid: self.tid, starttime: self.starttime }
    }
}

/// A command line, sanitized. For kernel threads, and where it is empty, the command name in brackets.
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
