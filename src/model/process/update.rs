//! What one look at the processes brought, as it travels from the collecting thread to the table and
//! into a recording.

use super::task::{TaskKey, TaskNames, TaskRaw};
use crate::model::reading::Reading;
use crate::model::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A task whose counters differ from the last look, or that is new.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TaskChange {
    /// The counters now.
    pub raw: TaskRaw,
    /// CLOCK_BOOTTIME of this look, in ns.
    #[serde(rename = "at_ns")]
    pub scanned_ns: u64,
    /// CLOCK_BOOTTIME of the look before, also when that one found nothing new; 0 at first sight.
    #[serde(rename = "since_ns")]
    pub previous_scan_ns: u64,
}

/// A task one of whose files is being read and does not return.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedTask {
    /// Who.
    pub key: TaskKey,
    /// CLOCK_BOOTTIME at which the read began, in ns.
    pub since_boot_ns: u64,
    /// The file, and what our reader waits on in the kernel, as far as known.
    #[serde(rename = "on")]
    pub waiting_on: String,
    /// Only its command line hangs; its counters are read as ever.
    pub counters_readable: bool,
}

/// One look at all processes (or threads): only the differences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUpdate {
    /// Counts up from 1.
    pub seq: u64,
    /// When the look began.
    #[serde(rename = "at")]
    pub time: Timestamp,
    /// When the look before began; `None` for the first (or the first after `reset`).
    #[serde(rename = "prev")]
    pub previous_time: Option<Timestamp>,
    /// How long the look took, in ns of CLOCK_BOOTTIME.
    #[serde(rename = "took_ns")]
    pub duration_ns: u64,
    /// Rows are threads (`tid` means that thread) instead of whole processes.
    #[serde(rename = "threads")]
    pub rows_are_threads: bool,
    /// Everything known before is void: the first look, or processes and threads were switched.
    pub reset: bool,
    /// New or changed tasks.
    pub changed: Vec<TaskChange>,
    /// Tasks that ended.
    #[serde(rename = "gone")]
    pub exited: Vec<TaskKey>,
    /// Names fetched in this look.
    pub names: Vec<(TaskKey, Arc<TaskNames>)>,
    /// User names seen for the first time or changed, by uid.
    pub users: Vec<(u32, Arc<str>)>,
    /// Wait channels of tasks in state D and of the rows asked for. A row in `changed` that is not
    /// here has none that is known.
    #[serde(rename = "waits")]
    pub wait_channels: Vec<(TaskKey, Arc<str>)>,
    /// Rows there are.
    pub total: usize,
    /// Rows whose counters the kernel refuses to show us.
    #[serde(rename = "hidden")]
    pub hidden_count: usize,
    /// Tasks with a read that does not return, all of them each time.
    pub blocked: Vec<BlockedTask>,
    /// Whether waiting times are known, and if not, why and what would give them.
    pub delays: Reading<()>,
    /// Anything a person should know about this look.
    pub notes: Vec<String>,
}
