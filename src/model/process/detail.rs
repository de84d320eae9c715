//! One process looked at closely, on demand.

use super::task::{TaskDelays, TaskKey};
use crate::model::reading::Reading;
use serde::{Deserialize, Serialize};

/// What the detail pane shows besides the row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDetail {
    /// Who.
    pub key: TaskKey,
    /// Whether the start time was compared: not possible for a task whose `stat` does not return.
    pub verified: bool,
    /// Resource limits (getrlimit(2)).
    pub limits: Reading<Vec<ResourceLimit>>,
    /// Control groups, one `hierarchy:controllers:path` line each, cleaned.
    pub cgroups: Reading<Vec<String>>,
    /// Ancestors, parent first: process id and cleaned name.
    pub parents: Vec<(u32, String)>,
    /// How likely the kernel is to kill it for memory, 0 to about 2,000 (proc_pid_oom_score(5)).
    pub oom_score: Option<i64>,
    /// What was added to that score by hand.
    pub oom_score_adj: Option<i64>,
    /// Times waited, over all its threads.
    pub delays: Reading<TaskDelays>,
}

impl TaskDetail {
    /// The limit on open files, soft and hard; `None` inside stands for unlimited.
    pub fn open_files_limit(&self) -> Option<&ResourceLimit> {
        self.limits.ok()?.iter().find(|limit| limit.name == "Max open files")
    }
}

/// One line of `/proc/PID/limits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
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
pub struct MemoryMapping {
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

/// The mappings of a process, summed up: all of them counted, the largest kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingSummary {
    /// Mappings there are.
    pub count: usize,
    /// Sum of sizes, bytes.
    pub size: u64,
    /// Sum in memory, bytes.
    pub rss: u64,
    /// Sum of shares in memory, bytes; `None` where the kernel does not tell.
    pub pss: Option<u64>,
    /// Sum in swap, shared memory included, bytes; `None` where the kernel does not tell.
    pub swap: Option<u64>,
    /// Those with most in swap, then in memory, first.
    pub largest: Vec<MemoryMapping>,
}

impl MappingSummary {
    /// Sums up, and keeps the `most` largest.
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
