//! Details of one process, read on demand.

use super::task::{TaskDelays, TaskKey};
use crate::model::reading::Reading;
use serde::{Deserialize, Serialize};

/// One line of `/proc/PID/limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    /// The kernel's name: `Max open files`.
    pub name: String,
    /// Soft limit; `None` if unlimited.
    pub soft: Option<u64>,
    /// Hard limit; `None` if unlimited.
    pub hard: Option<u64>,
    /// The kernel's unit; may be empty.
    pub unit: String,
}

/// What the detail page shows in addition to the row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDetail {
    pub key: TaskKey,
    /// Resource limits (getrlimit(2)).
    pub limits: Reading<Vec<ResourceLimit>>,
    /// Control groups, one `hierarchy:controllers:path` line each, sanitized.
    pub cgroups: Reading<Vec<String>>,
    /// Ancestors, parent first: process id and sanitized name.
    pub parents: Vec<(u32, String)>,
    /// Its number in its own PID namespace, as in its container; `None`: in that of this `/proc`, or not known.
    #[serde(default)]
    pub namespace_pid: Option<u32>,
    /// Badness for the OOM killer, 0 to about 2,000 (proc_pid_oom_score(5)).
    pub oom_score: Option<i64>,
    /// Adjustment that was added to that score.
    pub oom_score_adj: Option<i64>,
    /// Delays over all its threads.
    pub delays: Reading<TaskDelays>,
}

impl TaskDetail {
    pub fn open_files_limit(&self) -> Option<&ResourceLimit> {
        self.limits.ok()?.iter().find(|limit| limit.name == "Max open files")
    }
}

/// One mapping of a process (proc_pid_smaps(5)), sizes in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMapping {
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// Permissions as in `rwxp`.
    pub perms: String,
    /// File, `[heap]` or the like, or empty; sanitized.
    pub name: String,
    /// Size of the address range.
    pub size: u64,
    pub rss: u64,
    /// Proportional share: shared pages divided by the number of their users.
    pub pss: Option<u64>,
    /// Swapped out, including shared memory, unlike VmSwap.
    pub swap: Option<u64>,
}

/// Sums over all mappings of a process, and its largest mappings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingSummary {
    pub count: usize,
    /// Sum of sizes, bytes.
    pub size: u64,
    /// Sum of resident sizes, bytes.
    pub rss: u64,
    /// Sum of proportional shares, bytes; `None` where the kernel does not report them.
    pub pss: Option<u64>,
    /// Sum in swap including shared memory, bytes; `None` where the kernel does not report it.
    pub swap: Option<u64>,
    /// The largest mappings, by size in swap, then by resident size.
    pub largest: Vec<MemoryMapping>,
}

impl MappingSummary {
    /// Sums up all mappings and keeps the `most` largest.
    pub fn summarize(mut all: Vec<MemoryMapping>, most: usize) -> Self {
        let sum = |get: fn(&MemoryMapping) -> Option<u64>| all.iter().map(get).sum::<Option<u64>>();
        let (count, pss, swap) = (all.len(), sum(|m| m.pss), sum(|m| m.swap));
        let (size, rss) = (all.iter().map(|m| m.size).sum(), all.iter().map(|m| m.rss).sum());
        all.sort_by_key(|m| std::cmp::Reverse((m.swap, m.rss, m.size)));
        all.truncate(most);
        Self { count, size, rss, pss, swap, largest: all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_swapped_come_first_and_sums_cover_all_mappings() {
        let map = |rss, swap| MemoryMapping {
            start: 0,
            end: 0,
            perms: "rw-p".into(),
            name: String::new(),
            size: 100,
            rss,
            pss: Some(rss),
            swap,
        };
        let m = MappingSummary::summarize(vec![map(50, Some(0)), map(1, Some(30)), map(2, Some(5))], 2);
        assert_eq!((m.count, m.size, m.rss, m.swap), (3, 300, 53, Some(35)));
        assert_eq!(m.largest.iter().map(|m| m.swap).collect::<Vec<_>>(), [Some(30), Some(5)]);
        assert_eq!(MappingSummary::summarize(vec![map(1, None), map(1, Some(1))], 9).swap, None, "unread is not 0");
    }
}
