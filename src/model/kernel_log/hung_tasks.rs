//! Finds hung tasks that the kernel does not report.
//!
//! The kernel's detector stops after `kernel.hung_task_warnings` reports (10 by default), runs every 120 s, and never
//! reports a task that wakes up now and then to check, as `blk_io_schedule` does for direct readers of a dead disk.
//! This detector gets all tasks in D state of every scan, and reports those that stay there without making progress.

use super::{KernelLogClass, LogClock, LogEntry, LogOrigin};
use crate::model::process::TaskKey;
use crate::model::wait_channel::is_frozen;
use std::borrow::Cow;
use std::collections::HashMap;

/// A task in D state.
#[derive(Debug, Clone)]
pub(crate) struct DStateTask<'a> {
    pub key: TaskKey,
    pub comm: Cow<'a, str>,
    /// Kernel function it sleeps in, if known.
    pub wchan: Option<&'a str>,
    /// How often it was scheduled (third field of schedstat, or context switches of status). A task that makes progress
    /// may be in D state at every scan; this number tells it from a hung one.
    pub timeslices: Option<u64>,
}

/// A task that has been in D state for longer than the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HungTask {
    pub key: TaskKey,
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

/// Time in D state (ns) from which on a task is hung.
pub(crate) const LIMIT_NS: u64 = 5_000_000_000;

/// Tracks tasks in D state from scan to scan.
#[derive(Debug, Default)]
pub(crate) struct HungTaskDetector {
    /// CLOCK_BOOTTIME in ns of the first scan that found a task in D state, and its timeslices then.
    first_seen: HashMap<TaskKey, (u64, Option<u64>)>,
}

impl HungTaskDetector {
    /// Takes all tasks in D state at `now_boot_ns` (CLOCK_BOOTTIME) and returns the hung ones, longest first. Tasks that
    /// are not listed have left D state.
    pub(crate) fn scan<'a>(
        &mut self,
        now_boot_ns: u64,
        tasks: impl IntoIterator<Item = DStateTask<'a>>,
    ) -> Vec<HungTask> {
        let (mut first_seen, mut hung) = (HashMap::new(), Vec::new());
        for task in tasks.into_iter().filter(|task| !task.wchan.is_some_and(is_frozen)) {
            let known = self.first_seen.get(&task.key).copied().filter(|(since, before)| {
                let allowed = now_boot_ns.saturating_sub(*since) / MIN_PROGRESS_INTERVAL_NS + 1;
                before.zip(task.timeslices).is_none_or(|(a, b)| b.checked_sub(a).is_some_and(|runs| runs <= allowed))
            });
            let first = known.unwrap_or((now_boot_ns, task.timeslices));
            first_seen.insert(task.key, first);
            let duration_ns = now_boot_ns.saturating_sub(first.0);
            if duration_ns >= LIMIT_NS {
                let (comm, wchan) = (task.comm.into_owned(), task.wchan.map(str::to_owned));
                hung.push(HungTask { key: task.key, comm, wchan, since_boot_ns: first.0, duration_ns });
            }
        }
        self.first_seen = first_seen;
        hung.sort_by_key(|task| (std::cmp::Reverse(task.duration_ns), task.key.tid));
        hung
    }
}

impl HungTask {
    /// As an entry of the kernel log. `warnings` is `kernel.hung_task_warnings`, if it could be read.
    pub fn to_log_entry(&self, clock: LogClock, warnings: Option<i64>) -> LogEntry {
        let TaskKey { pid, tid, .. } = self.key;
        let thread = if tid == pid { String::new() } else { format!(" (thread {tid})") };
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
            level: 3,
            class: KernelLogClass::HungTask,
            pid: Some(pid),
            comm: Some(self.comm.clone()),
            count: 1,
            message: format!(
                "task {}:{pid}{thread} in state D for {} s{wait} (seen by iotop-plus{why})",
                self.comm,
                self.duration_ns / 1_000_000_000,
            ),
            origin: LogOrigin::Detector,
            ..LogEntry::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn task(tid: u32, runs: Option<u64>) -> DStateTask<'static> {
        let key = TaskKey { pid: 7, tid, starttime: 100 };
        DStateTask { key, comm: "dd".into(), wchan: Some("submit_bio_wait"), timeslices: runs }
    }

    #[test]
    fn a_hung_task_is_reported_until_it_leaves_d_state() {
        let mut w = HungTaskDetector::default();
        assert_eq!(w.scan(10 * S, [task(7, Some(3))]), []);
        assert_eq!(w.scan(14 * S, [task(7, Some(3))]), []);
        assert_eq!(w.scan(15 * S, [task(7, Some(3))])[0].duration_ns, 5 * S);
        assert_eq!(w.scan(20 * S, [task(7, Some(3))])[0].duration_ns, 10 * S);
        assert_eq!(w.scan(21 * S, []), []);
        assert_eq!(w.scan(22 * S, [task(7, Some(3))]), []);
    }

    #[test]
    fn a_busy_task_is_not_hung_and_one_that_rarely_wakes_is() {
        let mut w = HungTaskDetector::default();
        for s in 0..60 {
            assert_eq!(w.scan(s * S, [task(7, Some(s * 60))]), []);
        }
        let mut w = HungTaskDetector::default();
        let last = (0..60).map(|s| w.scan(s * S, [task(7, Some(s / 3))])).last().unwrap();
        assert_eq!(last[0].duration_ns, 59 * S, "blk_io_schedule's own wake-ups are not progress");
    }

    #[test]
    fn progress_ends_the_hang() {
        let mut w = HungTaskDetector::default();
        w.scan(0, [task(7, Some(1))]);
        assert_eq!(w.scan(9 * S, [task(7, Some(1))]).len(), 1);
        assert_eq!(w.scan(10 * S, [task(7, Some(500))]), []);
    }

    #[test]
    fn a_task_that_was_frozen_on_purpose_does_not_hang() {
        let mut w = HungTaskDetector::default();
        let frozen = || DStateTask { wchan: Some("__refrigerator"), ..task(7, Some(3)) };
        assert_eq!((0..60).flat_map(|s| w.scan(s * S, [frozen()])).count(), 0);
        assert_eq!(w.scan(61 * S, [task(7, Some(3))]), [], "the time it was frozen does not count");
    }

    #[test]
    fn a_reused_tid_is_another_task() {
        let mut w = HungTaskDetector::default();
        w.scan(0, [task(7, None)]);
        let key = TaskKey { starttime: 999, ..task(7, None).key };
        assert_eq!(w.scan(20 * S, [DStateTask { key, ..task(7, None) }]), []);
    }

    #[test]
    fn the_log_line_names_its_source_and_why_the_kernel_was_silent() {
        let mut w = HungTaskDetector::default();
        w.scan(0, [task(8, None)]);
        let hung = w.scan(9 * S, [task(8, None)]);
        let clock = LogClock { mono_ns: 9 * S, wall_ns: 50 * S as i64 };
        let e = hung[0].to_log_entry(clock, Some(0));
        assert_eq!(
            (e.class, e.pid, e.origin, e.seq, e.first_wall_ns),
            (KernelLogClass::HungTask, Some(7), LogOrigin::Detector, None, 41 * S as i64)
        );
        assert_eq!(
            e.message,
            "task dd:7 (thread 8) in state D for 9 s in submit_bio_wait (seen by iotop-plus; the kernel has gone silent: kernel.hung_task_warnings = 0)"
        );
        assert!(!hung[0].to_log_entry(clock, Some(-1)).message.contains("silent"));
    }
}
