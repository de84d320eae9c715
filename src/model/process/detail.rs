//! One process looked at closely, on demand.

use super::task::{DelayRaw, TaskKey};
use crate::model::section::Section;
use serde::{Deserialize, Serialize};

/// What the detail pane shows besides the row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Who.
    pub key: TaskKey,
    /// Whether the start time was compared: not possible for a task whose `stat` does not return.
    pub verified: bool,
    /// Resource limits (getrlimit(2)).
    pub limits: Section<Vec<Limit>>,
    /// Control groups, one `hierarchy:controllers:path` line each, cleaned.
    pub cgroups: Section<Vec<String>>,
    /// Ancestors, parent first: process id and cleaned name.
    pub parents: Vec<(u32, String)>,
    /// How likely the kernel is to kill it for memory, 0 to about 2,000 (proc_pid_oom_score(5)).
    pub oom_score: Option<i64>,
    /// What was added to that score by hand.
    pub oom_score_adj: Option<i64>,
    /// Times waited, over all its threads.
    pub delays: Section<DelayRaw>,
}

impl Detail {
    /// The limit on open files, soft and hard; `None` inside stands for unlimited.
    pub fn open_files(&self) -> Option<&Limit> {
        self.limits.ok()?.iter().find(|limit| limit.name == "Max open files")
    }
}

/// One line of `/proc/PID/limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The kernel's name for it: `Max open files`.
    pub name: String,
    /// Soft limit; `None`: unlimited.
    pub soft: Option<u64>,
    /// Hard limit; `None`: unlimited.
    pub hard: Option<u64>,
    /// Its unit, as the kernel writes it; may be empty.
    pub unit: String,
}

/// One mapping of a process (proc_pid_smaps(5)), sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// `rwxp` letters.
    pub perms: String,
    /// File, `[heap]` and the like, or empty; cleaned.
    pub name: String,
    /// Address space.
    pub size: u64,
    /// In memory.
    pub rss: u64,
    /// In memory, shared pages divided by their users.
    pub pss: Option<u64>,
    /// Swapped out, shared memory included, unlike VmSwap.
    pub swap: Option<u64>,
}
