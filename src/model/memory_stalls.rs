//! Time that processes lose to memory: writers throttled because too many pages are dirty, and tasks in direct reclaim.
//! Counted by `assets/trace/stalls.bpf.c`.

use super::disk::DevId;
use super::process::TaskKey;
use serde::{Deserialize, Serialize};

// Indexes of the kinds of stalls. Waiting for pages from swap has no tracepoint; it is part of delay accounting, see
// `TaskRates::swapin_delay_pct`.
/// Dirty throttling: pauses of balance_dirty_pages().
pub const THROTTLE: usize = 0;
/// Direct reclaim, for the whole machine or for a control group.
pub const RECLAIM: usize = 1;

/// Stalls of one kind since the process first stalled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallCounter {
    /// Number of stalls.
    pub count: u64,
    /// Total time in ns, over all threads.
    pub total_ns: u64,
    /// Longest stall since the previous reading, in ns.
    pub max_ns: u64,
}

/// Stall counters of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStallCounters {
    /// Process id.
    pub pid: u32,
    /// Start time in 1/100 s since boot, as [`TaskKey::starttime`].
    pub starttime: u64,
    /// Its name, raw, without trailing zeros.
    pub comm: Vec<u8>,
    /// The kernel's name of the backing device that it was last throttled for: a device number (`8:0`), or a file
    /// system.
    pub bdi: Vec<u8>,
    /// By [`THROTTLE`] and [`RECLAIM`].
    pub counters: [StallCounter; 2],
}

impl TaskStallCounters {
    /// Identity of the process.
    pub fn key(&self) -> TaskKey {
        TaskKey { pid: self.pid, tid: self.pid, starttime: self.starttime }
    }
}

/// One reading of all counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStallsRaw {
    /// CLOCK_BOOTTIME when tracing began, ns; 0 in recordings of versions that did not store it.
    #[serde(default)]
    pub tracing_started_ns: u64,
    /// Processes that stalled recently, by pid and start time.
    pub tasks: Vec<TaskStallCounters>,
    /// Whether [`THROTTLE`] and [`RECLAIM`] are counted.
    pub is_counted: [bool; 2],
    /// Stalls that were not counted because the table was full.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

/// Stalls of one kind in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StallRate {
    /// Number of stalls.
    pub count: u64,
    /// Milliseconds per second over all threads, so it may exceed 1000. A pause counts in full when it begins, a
    /// reclaim when it ends.
    pub ms_per_s: f64,
    /// The longest, in milliseconds.
    #[serde(rename = "longest_ms")]
    pub max_ms: f64,
}

impl StallRate {
    fn between(before: StallCounter, now: StallCounter, secs: f64) -> Self {
        // A counter that decreased was restarted.
        let before =
            if before.count > now.count || before.total_ns > now.total_ns { StallCounter::default() } else { before };
        let count = now.count - before.count;
        Self {
            count,
            ms_per_s: (now.total_ns - before.total_ns) as f64 / 1e6 / secs.max(1e-9),
            max_ms: if count > 0 { now.max_ns as f64 / 1e6 } else { 0.0 },
        }
    }

    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.ms_per_s += other.ms_per_s;
        self.max_ms = self.max_ms.max(other.max_ms);
    }
}

/// Stalls of a process in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStalls {
    /// The process; it may have exited since.
    pub key: TaskKey,
    /// Its name, sanitized.
    pub comm: String,
    /// The backing device that it was last throttled for, sanitized: a device number (`8:0`), or the name of a file
    /// system.
    pub bdi: String,
    /// By [`THROTTLE`] and [`RECLAIM`].
    pub rates: [StallRate; 2],
}

impl ProcessStalls {
    /// Milliseconds per second, all kinds together.
    pub fn ms_per_s(&self) -> f64 {
        self.rates.iter().map(|k| k.ms_per_s).sum()
    }

    /// `dd (1234)`.
    pub fn label(&self) -> String {
        format!("{} ({})", self.comm, self.key.pid)
    }

    /// The device that it was last throttled for, if it was a device.
    pub fn device(&self) -> Option<DevId> {
        // FUSE appends the file system type: "0:52-fuseblk".
        let number = self.bdi.split_once('-').map_or(&*self.bdi, |(number, _)| number);
        DevId::parse(number.as_bytes())
    }
}

/// Stalls of an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryStalls {
    /// By process, the longest stalled first.
    pub processes: Vec<ProcessStalls>,
    /// Sums by [`THROTTLE`] and [`RECLAIM`]; `None` for a kind that is not counted.
    pub totals: [Option<StallRate>; 2],
    /// Stalls that were not counted because the table was full.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

impl MemoryStalls {
    /// Stalls between two readings; without `before`, since counting began.
    pub fn derive(before: Option<&MemoryStallsRaw>, now: &MemoryStallsRaw, secs: f64) -> Self {
        let old = before.map(|b| b.tasks.as_slice()).unwrap_or_default();
        let mut all = now.is_counted.map(|counted| counted.then(StallRate::default));
        let mut tasks = Vec::new();
        for task in &now.tasks {
            let was = old.binary_search_by_key(&task.key(), TaskStallCounters::key).ok().map(|at| old[at].counters);
            let was = was.unwrap_or_default();
            let rates: [StallRate; 2] = std::array::from_fn(|k| StallRate::between(was[k], task.counters[k], secs));
            if rates.iter().all(|k| k.count == 0) {
                continue;
            }
            all.iter_mut().zip(&rates).for_each(|(sum, one)| sum.iter_mut().for_each(|sum| sum.add(one)));
            let (comm, bdi) = (crate::sanitize::sanitize(&*task.comm), crate::sanitize::sanitize(&*task.bdi));
            tasks.push(ProcessStalls { key: task.key(), comm, bdi, rates });
        }
        tasks.sort_by(|a, b| b.ms_per_s().total_cmp(&a.ms_per_s()));
        let lost = now.dropped.saturating_sub(before.map_or(0, |b| b.dropped));
        Self { processes: tasks, totals: all, dropped: lost, unavailable: now.unavailable.clone() }
    }

    /// Whether there were stalls of a kind.
    pub fn has_stalls(&self, kind: usize) -> bool {
        self.totals[kind].is_some_and(|s| s.count > 0)
    }

    /// Processes with stalls of a kind, the longest stalled first.
    pub fn processes_by_kind(&self, kind: usize) -> Vec<&ProcessStalls> {
        let mut out: Vec<_> = self.processes.iter().filter(|t| t.rates[kind].count > 0).collect();
        out.sort_by(|a, b| b.rates[kind].ms_per_s.total_cmp(&a.rates[kind].ms_per_s));
        out
    }

    /// Estimated size in bytes, without `self`.
    pub fn heap_bytes(&self) -> usize {
        self.processes.iter().map(|t| size_of::<ProcessStalls>() + t.comm.len() + t.bdi.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(pid: u32, throttle: (u64, u64, u64), reclaim: (u64, u64, u64)) -> TaskStallCounters {
        let kinds = [throttle, reclaim].map(|(count, ms, longest)| StallCounter {
            count,
            total_ns: ms * 1_000_000,
            max_ns: longest * 1_000_000,
        });
        TaskStallCounters { pid, starttime: 7, comm: b"d\x1bd".to_vec(), bdi: b"8:0".to_vec(), counters: kinds }
    }

    fn stalls_raw(tasks: Vec<TaskStallCounters>) -> MemoryStallsRaw {
        MemoryStallsRaw { tasks, is_counted: [true; 2], ..MemoryStallsRaw::default() }
    }

    #[test]
    fn only_new_stalls_count_and_the_longest_stalled_is_first() {
        let before = stalls_raw(vec![counters(1, (5, 1000, 200), (0, 0, 0)), counters(2, (1, 10, 10), (0, 0, 0))]);
        let mut now = stalls_raw(vec![
            counters(1, (9, 1800, 200), (1, 100, 100)),
            counters(2, (1, 10, 10), (0, 0, 0)),
            counters(3, (0, 0, 0), (40, 1400, 300)),
        ]);
        now.dropped = 3;
        let s = MemoryStalls::derive(Some(&before), &now, 2.0);
        assert_eq!(s.processes.iter().map(|t| t.key.pid).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(s.processes[1].rates[THROTTLE], StallRate { count: 4, ms_per_s: 400.0, max_ms: 200.0 });
        assert_eq!(s.totals[THROTTLE], Some(StallRate { count: 4, ms_per_s: 400.0, max_ms: 200.0 }));
        assert_eq!(s.totals[RECLAIM], Some(StallRate { count: 41, ms_per_s: 750.0, max_ms: 300.0 }));
        assert_eq!((s.dropped, s.processes[1].comm.as_str()), (3, "d\\x1bd"));
        assert_eq!(s.processes_by_kind(THROTTLE).len(), 1);
    }

    #[test]
    fn restarted_counts_and_uncounted_kinds_differ_from_zero() {
        let before = stalls_raw(vec![counters(1, (50, 9000, 200), (0, 0, 0))]);
        let mut now = stalls_raw(vec![counters(1, (2, 300, 200), (0, 0, 0))]);
        now.is_counted[RECLAIM] = false;
        let s = MemoryStalls::derive(Some(&before), &now, 1.0);
        assert_eq!(s.totals, [Some(StallRate { count: 2, ms_per_s: 300.0, max_ms: 200.0 }), None]);
        let none = MemoryStalls::derive(Some(&now), &now, 1.0);
        assert_eq!((none.processes.len(), none.totals), (0, [Some(StallRate::default()), None]));
    }

    #[test]
    fn devices_are_parsed_from_bdi_names() {
        let held = |bdi: &str| ProcessStalls { bdi: bdi.into(), ..ProcessStalls::default() }.device();
        assert_eq!(held("259:3"), Some(DevId { major: 259, minor: 3 }));
        assert_eq!(held("0:52-fuseblk"), Some(DevId { major: 0, minor: 52 }));
        assert_eq!((held("btrfs-1"), held("")), (None, None));
    }
}
