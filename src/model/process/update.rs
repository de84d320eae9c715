//! What one look at the processes brought, as it travels from the collecting thread to the table and
//! into a recording.

use super::task::{Names, TaskKey, TaskRaw};
use crate::model::clock::Clock;
use crate::model::section::Section;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A task whose counters differ from the last look, or that is new.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The counters now.
    pub raw: TaskRaw,
    /// CLOCK_BOOTTIME of this look, in ns.
    pub at_ns: u64,
    /// CLOCK_BOOTTIME of the look before, also when that one found nothing new; 0 at first sight.
    pub since_ns: u64,
}

/// A task one of whose files is being read and does not return.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedTask {
    /// Who.
    pub key: TaskKey,
    /// CLOCK_BOOTTIME at which the read began, in ns.
    pub since_boot_ns: u64,
    /// The file, and what our reader waits on in the kernel, as far as known.
    pub on: String,
    /// Only its command line hangs; its counters are read as ever.
    pub counters_readable: bool,
}

/// One look at all processes (or threads): only the differences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcUpdate {
    /// Counts up from 1.
    pub seq: u64,
    /// When the look began.
    pub at: Clock,
    /// When the look before began; `None` for the first (or the first after `reset`).
    pub prev: Option<Clock>,
    /// How long the look took, in ns of CLOCK_BOOTTIME.
    pub took_ns: u64,
    /// Rows are threads (`tid` means that thread) instead of whole processes.
    pub threads: bool,
    /// Everything known before is void: the first look, or processes and threads were switched.
    pub reset: bool,
    /// New or changed tasks.
    pub changed: Vec<Change>,
    /// Tasks that ended.
    pub gone: Vec<TaskKey>,
    /// Names fetched in this look.
    pub names: Vec<(TaskKey, Arc<Names>)>,
    /// User names seen for the first time or changed, by uid.
    pub users: Vec<(u32, Arc<str>)>,
    /// Wait channels of tasks in state D and of the rows asked for. A row in `changed` that is not
    /// here has none that is known.
    pub waits: Vec<(TaskKey, Arc<str>)>,
    /// Rows there are.
    pub total: usize,
    /// Rows whose counters the kernel refuses to show us.
    pub hidden: usize,
    /// Tasks with a read that does not return, all of them each time.
    pub blocked: Vec<BlockedTask>,
    /// Whether waiting times are known, and if not, why and what would give them.
    pub delays: Section<()>,
    /// Anything a person should know about this look.
    pub notes: Vec<String>,
}
