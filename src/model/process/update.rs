//! The result of one scan of the tasks, as the collector sends it to the table and as recordings
//! store it.

use super::task::{TaskKey, TaskNames, TaskRaw};
use crate::model::reading::Reading;
use crate::model::timestamp::Timestamp;
use crate::model::wait_channel::is_frozen;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A new task, or one whose counters changed since the previous scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskChange {
    /// The counters.
    pub raw: TaskRaw,
    /// CLOCK_BOOTTIME of this scan of the task, in ns.
    pub scanned_ns: u64,
    /// CLOCK_BOOTTIME of the previous scan of the task, in ns, whether or not it found a change; 0 for a new task.
    pub previous_scan_ns: u64,
}

/// A task with a file whose read does not return.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedTask {
    pub key: TaskKey,
    /// CLOCK_BOOTTIME at which the read began, in ns.
    pub since_boot_ns: u64,
    /// The file, and what the read waits on in the kernel, if known.
    pub waiting_on: String,
    /// Only its command line blocks; its counters are still read.
    pub counters_readable: bool,
}

/// A thread in D state that is no row, because rows are processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UninterruptibleThread {
    /// Its own id, with the process id and the start time of its process.
    pub key: TaskKey,
    /// Command name, padded with NUL.
    pub comm: [u8; 16],
    /// How often it was scheduled.
    pub timeslices: u64,
    /// Kernel function it sleeps in, sanitized, if known.
    pub wait_channel: Option<Arc<str>>,
}

impl UninterruptibleThread {
    /// It was not frozen on purpose.
    pub(crate) fn may_hang(&self) -> bool {
        !self.wait_channel.as_deref().is_some_and(is_frozen)
    }

    /// The command name without its padding.
    pub(crate) fn comm(&self) -> &[u8] {
        let end = self.comm.iter().position(|b| *b == 0).unwrap_or(self.comm.len());
        &self.comm[..end]
    }
}

/// One scan of all processes (or threads): only the differences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUpdate {
    /// Counts from 1.
    pub seq: u64,
    /// When the scan started.
    pub time: Timestamp,
    /// When the previous scan started; `None` for the first one and after `reset`.
    pub previous_time: Option<Timestamp>,
    /// Duration of the scan in ns of CLOCK_BOOTTIME.
    pub duration_ns: u64,
    /// Rows are threads instead of whole processes.
    pub rows_are_threads: bool,
    /// Discard everything known before: the first scan, or a switch between processes and threads.
    pub reset: bool,
    /// New or changed tasks.
    pub changed: Vec<TaskChange>,
    /// Tasks that exited.
    pub exited: Vec<TaskKey>,
    /// Names read in this scan.
    pub names: Vec<(TaskKey, Arc<TaskNames>)>,
    /// New or changed user names, by uid.
    pub users: Vec<(u32, Arc<str>)>,
    /// Wait channels of tasks in D state and of requested rows. A row in `changed` that is not listed here has none.
    pub wait_channels: Vec<(TaskKey, Arc<str>)>,
    /// Threads in D state that have hardly run since the previous scan, without main threads, which are rows.
    #[serde(default)]
    pub uninterruptible_threads: Vec<UninterruptibleThread>,
    /// Every other thread has run since the previous scan, or is not in D state.
    #[serde(default)]
    pub all_threads_known: bool,
    /// Number of rows.
    pub total: usize,
    /// Number of rows whose I/O counters the kernel does not let us read.
    pub hidden_count: usize,
    /// All tasks with a read that does not return.
    pub blocked: Vec<BlockedTask>,
    /// Whether delays can be read, and if not, why and what to do.
    pub delays: Reading<()>,
    /// Notes about this scan for the user.
    pub notes: Vec<String>,
}
