//! Finds hung tasks that the kernel does not report.
//!
//! The kernel's detector stops after `kernel.hung_task_warnings` reports (10 by default), runs every 120 s, and never
//! reports a task that wakes up now and then to check, as `blk_io_schedule` does for direct readers of a dead disk.
//! This detector gets all tasks in D state of every scan, and reports those that stay there without making progress.

use super::{KernelLogClass, LogClock, LogEntry, LogOrigin};
use crate::model::process::TaskKey;
use std::borrow::Cow;
use std::collections::HashMap;

/// A task in D state.
#[derive(Debug, Clone)]
pub struct DStateTask<'a> {
    /// Process id.
    pub pid: u32,
    /// Thread id; equals `pid` for the main thread.
    pub tid: u32,
    /// Field 22 of stat. With `tid` it identifies the task even if the tid is reused.
    pub starttime: u64,
    /// Command name, raw.
    pub comm: Cow<'a, str>,
    /// Kernel function it sleeps in, if known.
    pub wchan: Option<&'a str>,
    /// CLOCK_BOOTTIME in ns since when it is in D state without interruption; `None` to count from the first scan that
    /// found it there.
    pub since_boot_ns: Option<u64>,
    /// How often it was scheduled (third field of schedstat, or context switches of status). A task that makes progress
    /// may be in D state at every scan; this number tells it from a hung one.
    pub timeslices: Option<u64>,
}

/// A task that has been in D state for longer than the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HungTask {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Field 22 of stat.
    pub starttime: u64,
    /// Command name, raw.
    pub comm: String,
    /// Kernel function it sleeps in.
    pub wchan: Option<String>,
    /// In D state since this CLOCK_BOOTTIME, in ns.
    pub since_boot_ns: u64,
    /// Time in D state so far, in ns.
    pub duration_ns: u64,
}

/// A task that wakes less often than this (ns) only re-checks its condition: the kernel's own periodic waits last half
/// of `hung_task_timeout_secs`. A task whose requests complete wakes more often.
const MIN_PROGRESS_INTERVAL_NS: u64 = 2_000_000_000;

#[derive(Debug)]
struct TrackedTask {
    first_seen_ns: u64,
    first_seen_timeslices: Option<u64>,
    last_scan: u64,
    hung: Option<HungTask>,
}

/// What a scan changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HungTaskChanges {
    /// Tasks that are hung since this scan.
    pub started: Vec<HungTask>,
    /// Tasks that have left D state or exited, with their last duration.
    pub ended: Vec<HungTask>,
}

/// Tracks tasks in D state from scan to scan.
#[derive(Debug)]
pub struct HungTaskDetector {
    limit_ns: u64,
    scan_count: u64,
    tasks: HashMap<(u32, u64), TrackedTask>,
}

impl Default for HungTaskDetector {
    /// With a limit of five seconds.
    fn default() -> Self {
        Self::new(5_000_000_000)
    }
}

impl HungTaskDetector {
    /// Reports tasks after `limit_ns` in D state.
    pub fn new(limit_ns: u64) -> Self {
        Self { limit_ns, scan_count: 0, tasks: HashMap::new() }
    }

    /// Takes all tasks in D state at `now_boot_ns` (CLOCK_BOOTTIME). Tasks that are not listed have left D state.
    pub fn scan<'a>(&mut self, now_boot_ns: u64, tasks: impl IntoIterator<Item = DStateTask<'a>>) -> HungTaskChanges {
        self.scan_count += 1;
        let mut changes = HungTaskChanges::default();
        for task in tasks {
            let tracked = self.tasks.entry((task.tid, task.starttime)).or_insert_with(|| TrackedTask {
                first_seen_ns: now_boot_ns,
                first_seen_timeslices: task.timeslices,
                last_scan: 0,
                hung: None,
            });
            tracked.last_scan = self.scan_count;
            if let (Some(first), Some(runs)) = (tracked.first_seen_timeslices, task.timeslices) {
                let waited = now_boot_ns.saturating_sub(tracked.first_seen_ns);
                if runs < first || runs - first > waited / MIN_PROGRESS_INTERVAL_NS + 1 {
                    tracked.first_seen_ns = now_boot_ns;
                    tracked.first_seen_timeslices = task.timeslices;
                    changes.ended.extend(tracked.hung.take());
                }
            }
            let since = task.since_boot_ns.unwrap_or(tracked.first_seen_ns);
            let duration_ns = now_boot_ns.saturating_sub(since);
            if duration_ns < self.limit_ns {
                changes.ended.extend(tracked.hung.take());
                continue;
            }
            match &mut tracked.hung {
                Some(hung) => {
                    hung.duration_ns = duration_ns;
                    if hung.wchan.as_deref() != task.wchan {
                        hung.wchan = task.wchan.map(str::to_owned);
                    }
                }
                None => {
                    let hung = HungTask {
                        pid: task.pid,
                        tid: task.tid,
                        starttime: task.starttime,
                        comm: task.comm.into_owned(),
                        wchan: task.wchan.map(str::to_owned),
                        since_boot_ns: since,
                        duration_ns,
                    };
                    changes.started.push(hung.clone());
                    tracked.hung = Some(hung);
                }
            }
        }
        let scan = self.scan_count;
        self.tasks.retain(|_, tracked| {
            let is_present = tracked.last_scan == scan;
            if !is_present {
                changes.ended.extend(tracked.hung.take());
            }
            is_present
        });
        changes
    }

    /// The hung tasks, longest first.
    pub fn hung_tasks(&self) -> Vec<&HungTask> {
        let mut all: Vec<_> = self.tasks.values().filter_map(|w| w.hung.as_ref()).collect();
        all.sort_by_key(|s| (std::cmp::Reverse(s.duration_ns), s.tid));
        all
    }
}

impl HungTask {
    pub(crate) fn key(&self) -> TaskKey {
        TaskKey { pid: self.pid, tid: self.tid, starttime: self.starttime }
    }

    /// As an entry of the kernel log. `warnings` is `kernel.hung_task_warnings`, if it could be read.
    pub fn to_log_entry(&self, clock: LogClock, warnings: Option<i64>) -> LogEntry {
        let thread = if self.tid == self.pid { String::new() } else { format!(" (thread {})", self.tid) };
        let wait = self.wchan.as_deref().filter(|w| !w.is_empty() && *w != "0");
        let wait = wait.map_or(String::new(), |w| format!(" in {w}"));
        let why = match warnings {
            Some(0) => "; the kernel has gone silent: kernel.hung_task_warnings = 0",
            _ => "",
        };
        let age = i64::try_from(self.duration_ns).unwrap_or(i64::MAX);
        LogEntry {
            wall_ns: clock.wall_ns,
            first_wall_ns: clock.wall_ns.saturating_sub(age),
            boot_us: clock.boot_us(),
            seq: None,
            level: 3,
            class: KernelLogClass::HungTask,
            device: None,
            devno: None,
            pid: Some(self.pid),
            comm: Some(self.comm.clone()),
            count: 1,
            message: format!(
                "task {}:{}{thread} in state D for {} s{wait} (seen by iotop-plus{why})",
                self.comm,
                self.pid,
                self.duration_ns / 1_000_000_000,
            ),
            folded: Vec::new(),
            folded_dropped: 0,
            origin: LogOrigin::Detector,
            suppressed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn task(tid: u32, runs: Option<u64>) -> DStateTask<'static> {
        DStateTask {
            pid: 7,
            tid,
            starttime: 100,
            comm: "dd".into(),
            wchan: Some("submit_bio_wait"),
            since_boot_ns: None,
            timeslices: runs,
        }
    }

    #[test]
    fn a_hung_task_is_reported_once_then_updated_then_ended() {
        let mut w = HungTaskDetector::default();
        assert_eq!(w.scan(10 * S, [task(7, Some(3))]), HungTaskChanges::default());
        assert_eq!(w.scan(14 * S, [task(7, Some(3))]), HungTaskChanges::default());
        let changes = w.scan(15 * S, [task(7, Some(3))]);
        assert_eq!((changes.started.len(), changes.ended.len()), (1, 0));
        assert_eq!(w.scan(20 * S, [task(7, Some(3))]), HungTaskChanges::default());
        assert_eq!(w.hung_tasks()[0].duration_ns, 10 * S);
        let changes = w.scan(21 * S, []);
        assert_eq!((changes.started.len(), changes.ended.len(), w.hung_tasks().len()), (0, 1, 0));
    }

    #[test]
    fn a_busy_task_is_not_hung_and_one_that_rarely_wakes_is() {
        let mut w = HungTaskDetector::default();
        for s in 0..60 {
            assert_eq!(w.scan(s * S, [task(7, Some(s * 60))]), HungTaskChanges::default());
        }
        let mut w = HungTaskDetector::default();
        for s in 0..60 {
            w.scan(s * S, [task(7, Some(s / 3))]);
        }
        assert_eq!(w.hung_tasks()[0].duration_ns, 59 * S, "blk_io_schedule's own wake-ups are not progress");
    }

    #[test]
    fn progress_ends_the_hang() {
        let mut w = HungTaskDetector::default();
        w.scan(0, [task(7, Some(1))]);
        assert_eq!(w.scan(9 * S, [task(7, Some(1))]).started.len(), 1);
        let changes = w.scan(10 * S, [task(7, Some(500))]);
        assert_eq!((changes.ended.len(), w.hung_tasks().len()), (1, 0));
    }

    #[test]
    fn a_reused_tid_is_another_task() {
        let mut w = HungTaskDetector::default();
        w.scan(0, [task(7, None)]);
        let again = DStateTask { starttime: 999, ..task(7, None) };
        assert_eq!(w.scan(20 * S, [again]), HungTaskChanges::default());
    }

    #[test]
    fn a_known_start_time_counts_from_the_first_scan() {
        let mut w = HungTaskDetector::default();
        let known = DStateTask { since_boot_ns: Some(2 * S), ..task(7, None) };
        assert_eq!(w.scan(20 * S, [known]).started[0].duration_ns, 18 * S);
    }

    #[test]
    fn the_log_line_names_its_source_and_why_the_kernel_was_silent() {
        let mut w = HungTaskDetector::default();
        w.scan(0, [task(8, None)]);
        w.scan(9 * S, [task(8, None)]);
        let clock = LogClock { mono_ns: 9 * S, wall_ns: 50 * S as i64 };
        let e = w.hung_tasks()[0].to_log_entry(clock, Some(0));
        assert_eq!(
            (e.class, e.pid, e.origin, e.seq, e.first_wall_ns),
            (KernelLogClass::HungTask, Some(7), LogOrigin::Detector, None, 41 * S as i64)
        );
        assert_eq!(
            e.message,
            "task dd:7 (thread 8) in state D for 9 s in submit_bio_wait (seen by iotop-plus; the kernel has gone silent: kernel.hung_task_warnings = 0)"
        );
        assert!(!w.hung_tasks()[0].to_log_entry(clock, Some(-1)).message.contains("silent"));
    }
}
