//! A task as it is stored, and as it is displayed or exported.

use super::task::{IoBytes, IoPrio, TaskKey, TaskNames, TaskRaw};
use crate::model::io_accounting::IoRates;
use crate::sanitize::sanitize_cow;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// No entry in a side table.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// One task. Rates and accumulated counters are in side tables, because few rows have them at any time.
#[derive(Debug, Clone)]
pub(super) struct StoredRow {
    pub raw: TaskRaw,
    pub names: Option<Arc<TaskNames>>,
    /// CLOCK_BOOTTIME in ns when the present state was first seen.
    pub state_since_ns: u64,
    pub rates_slot: u32,
    pub accumulated_slot: u32,
    pub exited: bool,
    pub blocked: bool,
}

impl StoredRow {
    pub(super) fn new(raw: TaskRaw, state_since_ns: u64) -> Self {
        Self {
            raw,
            names: None,
            state_since_ns,
            rates_slot: NO_SLOT,
            accumulated_slot: NO_SLOT,
            exited: false,
            blocked: false,
        }
    }

    /// The command line as raw bytes, arguments separated by blanks.
    pub(super) fn cmdline(&self) -> Option<&[u8]> {
        self.names.as_ref()?.cmdline.as_deref()
    }
}

/// Rates of a row that changed in the last update; `None` if unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TaskRates {
    /// Index of the row.
    pub row: u32,
    pub read: Option<f64>,
    pub write: Option<f64>,
    pub cancelled: Option<f64>,
    pub io_delay_pct: Option<f64>,
    pub swapin_delay_pct: Option<f64>,
    pub major_faults: Option<f64>,
    /// Dirty throttling and direct reclaim, percent of the interval.
    pub stalled_pct: [Option<f64>; 2],
}

/// Activity of a row since the counters were reset.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AccumulatedCounters {
    pub io: IoBytes,
    pub major_faults: u64,
    pub blkio_ns: u64,
    pub swapin_ns: u64,
}

impl AccumulatedCounters {
    /// Adds the counts of `more`; saturates, because counters of a recording are untrusted.
    pub(super) fn add(&mut self, more: &Self) {
        self.io.add(more.io);
        self.major_faults = self.major_faults.saturating_add(more.major_faults);
        self.blkio_ns = self.blkio_ns.saturating_add(more.blkio_ns);
        self.swapin_ns = self.swapin_ns.saturating_add(more.swapin_ns);
    }

    pub(super) fn is_zero(&self) -> bool {
        self.io == IoBytes::default() && (self.major_faults, self.blkio_ns, self.swapin_ns) == (0, 0, 0)
    }
}

/// One task for display and sorting. Values that could not be read are `None`. Making one neither formats nor
/// allocates; its texts are sanitized when they are asked for.
#[derive(Debug, Clone, Copy)]
pub struct ProcessRow<'a> {
    stored: &'a StoredRow,
    user: Option<&'a str>,
    /// Process id.
    pub pid: u32,
    /// Thread id; equals the process id where rows are processes.
    pub tid: u32,
    /// Start time in 1/100 s since boot.
    pub starttime: u64,
    /// State letter.
    pub state: char,
    /// The kernel function it waits in, if that was requested.
    pub wchan: Option<&'a str>,
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
    pub throttled_pct: Option<f64>,
    /// Time in direct reclaim, percent of the interval, summed over threads. From tracing.
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
    pub container: Option<&'a str>,
    /// Parent process.
    pub ppid: u32,
    /// Number of threads.
    pub num_threads: u32,
    /// Whether it is a kernel thread.
    pub kernel_thread: bool,
    /// It exited in the last interval; the values are the last ones read.
    pub exited: bool,
    /// A read of its counters does not return; the values are old.
    pub blocked: bool,
    /// I/O attributed to the process by tracing; `None` if not traced.
    pub attributed_io: Option<IoRates>,
    /// CLOCK_BOOTTIME in ns when it was first seen in its present state.
    pub state_since_ns: u64,
    /// Bytes since the counters were reset (iotop -a); `None` if they cannot be read.
    pub accumulated: Option<IoBytes>,
    /// Time waiting for block I/O since the counters were reset, ns.
    pub accumulated_io_delay_ns: Option<u64>,
    /// Time waiting for swap since the counters were reset, ns.
    pub accumulated_swapin_delay_ns: Option<u64>,
}

impl<'a> ProcessRow<'a> {
    pub(super) fn new(row: &'a StoredRow, rates: TaskRates, acc: AccumulatedCounters) -> Self {
        let raw = &row.raw;
        let bytes = raw.io.bytes();
        let names = row.names.as_deref();
        let [throttled_pct, reclaim_pct] = rates.stalled_pct;
        Self {
            stored: row,
            user: None,
            pid: raw.key.pid,
            tid: raw.key.tid,
            starttime: raw.key.starttime,
            state: raw.state as char,
            wchan: None,
            read_bytes_per_s: rates.read,
            write_bytes_per_s: rates.write,
            cancelled_bytes_per_s: rates.cancelled,
            read_bytes_total: bytes.map(|b| b.read),
            write_bytes_total: bytes.map(|b| b.write),
            io_delay_pct: rates.io_delay_pct,
            swapin_delay_pct: rates.swapin_delay_pct,
            throttled_pct,
            reclaim_pct,
            swap_bytes: raw.swap_bytes,
            rss_bytes: raw.rss_bytes,
            major_faults_per_s: rates.major_faults,
            cgroup: names.map(|n| &*n.cgroup).filter(|c| !c.is_empty()),
            container: names.and_then(|n| n.container.as_deref()),
            ppid: raw.ppid,
            num_threads: raw.num_threads,
            kernel_thread: raw.kernel_thread,
            exited: row.exited,
            blocked: row.blocked,
            attributed_io: None,
            state_since_ns: row.state_since_ns,
            accumulated: bytes.map(|_| acc.io),
            accumulated_io_delay_ns: raw.delays.map(|_| acc.blkio_ns),
            accumulated_swapin_delay_ns: raw.delays.and_then(|d| d.swapin_ns).map(|_| acc.swapin_ns),
        }
    }

    /// The same with its wait channel and its user's name.
    pub(super) fn with_names(self, wchan: Option<&'a Arc<str>>, user: Option<&'a Arc<str>>) -> Self {
        Self { wchan: wchan.map(|w| &**w), user: user.map(|u| &**u), ..self }
    }

    /// Identity of the task.
    pub fn key(&self) -> TaskKey {
        self.stored.raw.key
    }

    /// Command name, sanitized.
    pub fn comm(&self) -> Cow<'a, str> {
        sanitize_cow(self.stored.raw.comm())
    }

    /// The command line; `None` until it was read.
    pub fn command(&self) -> Option<CommandLine<'a>> {
        let cmdline = self.raw_cmdline();
        let in_brackets = self.kernel_thread || cmdline.is_some_and(<[u8]>::is_empty);
        let text = if in_brackets { self.stored.raw.comm() } else { cmdline? };
        Some(CommandLine { text: sanitize_cow(text), in_brackets })
    }

    /// The user's name as it is in `/etc/passwd`.
    pub(crate) fn user_name(&self) -> Option<&'a str> {
        self.user
    }

    /// Real user id.
    pub(crate) fn uid(&self) -> Option<u32> {
        self.stored.raw.uid
    }

    /// I/O class and level.
    pub(crate) fn io_priority(&self) -> Option<IoPrio> {
        self.stored.raw.ioprio
    }

    /// The command line as raw bytes.
    pub(crate) fn raw_cmdline(&self) -> Option<&'a [u8]> {
        self.stored.cmdline()
    }

    /// The user's name, sanitized, or the uid if it has none.
    pub fn user(&self) -> Option<Cow<'a, str>> {
        let name = self.user.map(|user| sanitize_cow(user.as_bytes()));
        name.or_else(|| Some(self.uid()?.to_string().into()))
    }

    /// I/O class and level in iotop's format.
    pub fn ionice(&self) -> Option<String> {
        self.io_priority().map(|prio| prio.to_string())
    }
}

/// A command line, sanitized. For kernel threads, and where it is empty, the command name in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine<'a> {
    text: Cow<'a, str>,
    in_brackets: bool,
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
