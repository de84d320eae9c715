//! Tasks stuck in state D that the kernel does not report.
//!
//! The kernel's own detector reports ten hung tasks and then says no more (`kernel.hung_task_warnings`),
//! looks every 120 s, and never reports a task whose wait wakes up now and then to look again, as
//! `blk_io_schedule` does for direct readers of a dead disk. So whoever reads the process table shows the
//! tasks in D to this watcher on every tick, and what stays there is called stuck.

use super::{Class, LogClock, LogEntry, Origin};
use std::collections::HashMap;

/// A task seen in state D.
#[derive(Debug, Clone, Copy)]
pub struct InD<'a> {
    /// Process.
    pub pid: u32,
    /// Thread; the same as `pid` for the first one.
    pub tid: u32,
    /// Field 22 of stat: with `tid` it names the task even when the number is used again.
    pub starttime: u64,
    /// Command name, raw.
    pub comm: &'a str,
    /// Kernel function it sleeps in, if it can be read.
    pub wchan: Option<&'a str>,
    /// CLOCK_BOOTTIME (ns) since when it is known to be in D without a break; `None`: this watcher's own
    /// first sight counts.
    pub since_boot_ns: Option<u64>,
    /// How often it has been scheduled (third field of schedstat, or the context switches of status). A
    /// task that runs is found in D on every look without being stuck; this tells the two apart.
    pub runs: Option<u64>,
}

/// A task that has been in D for longer than the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Field 22 of stat.
    pub starttime: u64,
    /// Command name, raw.
    pub comm: String,
    /// Kernel function it sleeps in.
    pub wchan: Option<String>,
    /// CLOCK_BOOTTIME, ns: in D since then.
    pub since_boot_ns: u64,
    /// How long that is now, ns.
    pub duration_ns: u64,
}

/// A task that wakes no oftener than this (ns) only looks whether it may go on: the kernel's own such
/// waits last half of `hung_task_timeout_secs`. A request served each time would show as more runs.
const WAKE_NS: u64 = 2_000_000_000;

#[derive(Debug)]
struct Watched {
    first_ns: u64,
    first_runs: Option<u64>,
    seen: u64,
    stuck: Option<Stuck>,
}

/// What changed at a look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Stuck as of this look.
    pub started: Vec<Stuck>,
    /// No longer in D (or gone); with the duration last seen.
    pub ended: Vec<Stuck>,
}

/// Watches the tasks in D from tick to tick.
#[derive(Debug)]
pub struct Watcher {
    limit_ns: u64,
    look: u64,
    tasks: HashMap<(u32, u64), Watched>,
}

impl Default for Watcher {
    /// Five seconds.
    fn default() -> Self {
        Self::new(5_000_000_000)
    }
}

impl Watcher {
    /// Calls a task stuck after `limit_ns` in D.
    pub fn new(limit_ns: u64) -> Self {
        Self { limit_ns, look: 0, tasks: HashMap::new() }
    }

    /// One look: all tasks that are in D at `now_boot_ns` (CLOCK_BOOTTIME). A task that is not among them
    /// has left D.
    pub fn look<'a>(&mut self, now_boot_ns: u64, tasks: impl IntoIterator<Item = InD<'a>>) -> Changes {
        self.look += 1;
        let mut changes = Changes::default();
        for task in tasks {
            let watched = self.tasks.entry((task.tid, task.starttime)).or_insert_with(|| Watched {
                first_ns: now_boot_ns,
                first_runs: task.runs,
                seen: 0,
                stuck: None,
            });
            watched.seen = self.look;
            if let (Some(first), Some(runs)) = (watched.first_runs, task.runs) {
                let waited = now_boot_ns.saturating_sub(watched.first_ns);
                if runs < first || runs - first > waited / WAKE_NS + 1 {
                    watched.first_ns = now_boot_ns;
                    watched.first_runs = task.runs;
                    changes.ended.extend(watched.stuck.take());
                }
            }
            let since = task.since_boot_ns.unwrap_or(watched.first_ns);
            let duration_ns = now_boot_ns.saturating_sub(since);
            if duration_ns < self.limit_ns {
                changes.ended.extend(watched.stuck.take());
                continue;
            }
            match &mut watched.stuck {
                Some(stuck) => {
                    stuck.duration_ns = duration_ns;
                    if stuck.wchan.as_deref() != task.wchan {
                        stuck.wchan = task.wchan.map(str::to_owned);
                    }
                }
                None => {
                    let stuck = Stuck {
                        pid: task.pid,
                        tid: task.tid,
                        starttime: task.starttime,
                        comm: task.comm.to_owned(),
                        wchan: task.wchan.map(str::to_owned),
                        since_boot_ns: since,
                        duration_ns,
                    };
                    changes.started.push(stuck.clone());
                    watched.stuck = Some(stuck);
                }
            }
        }
        let look = self.look;
        self.tasks.retain(|_, watched| {
            let here = watched.seen == look;
            if !here {
                changes.ended.extend(watched.stuck.take());
            }
            here
        });
        changes
    }

    /// The tasks stuck now, longest first.
    pub fn stuck(&self) -> Vec<&Stuck> {
        let mut all: Vec<_> = self.tasks.values().filter_map(|w| w.stuck.as_ref()).collect();
        all.sort_by_key(|s| (std::cmp::Reverse(s.duration_ns), s.tid));
        all
    }
}

impl Stuck {
    /// As a line of the kernel pane. `warnings` is `kernel.hung_task_warnings`, if it could be read.
    pub fn to_entry(&self, clock: LogClock, warnings: Option<i64>) -> LogEntry {
        let thread = if self.tid == self.pid { String::new() } else { format!(" (thread {})", self.tid) };
        let wait = self.wchan.as_deref().filter(|w| !w.is_empty() && *w != "0");
        let wait = wait.map_or(String::new(), |w| format!(" in {w}"));
        let why = match warnings {
            Some(0) => "; the kernel has gone silent: kernel.hung_task_warnings = 0",
            _ => "",
        };
        let age = i64::try_from(self.duration_ns).unwrap_or(i64::MAX);
        LogEntry {
            time: clock.wall_ns,
            first_time: clock.wall_ns.saturating_sub(age),
            boot_us: clock.boot_us(),
            seq: None,
            level: 3,
            class: Class::HungTask,
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
            origin: Origin::Watch,
            suppressed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn task(tid: u32, runs: Option<u64>) -> InD<'static> {
        InD {
            pid: 7,
            tid,
            starttime: 100,
            comm: "dd",
            wchan: Some("submit_bio_wait"),
            since_boot_ns: None,
            runs,
        }
    }

    #[test]
    fn stuck_is_told_once_updated_and_ended() {
        let mut w = Watcher::default();
        assert_eq!(w.look(10 * S, [task(7, Some(3))]), Changes::default());
        assert_eq!(w.look(14 * S, [task(7, Some(3))]), Changes::default());
        let changes = w.look(15 * S, [task(7, Some(3))]);
        assert_eq!((changes.started.len(), changes.ended.len()), (1, 0));
        assert_eq!(w.look(20 * S, [task(7, Some(3))]), Changes::default());
        assert_eq!(w.stuck()[0].duration_ns, 10 * S);
        let changes = w.look(21 * S, []);
        assert_eq!((changes.started.len(), changes.ended.len(), w.stuck().len()), (0, 1, 0));
    }

    #[test]
    fn a_busy_task_is_not_stuck_and_a_rare_waker_is() {
        let mut w = Watcher::default();
        for s in 0..60 {
            assert_eq!(w.look(s * S, [task(7, Some(s * 60))]), Changes::default());
        }
        let mut w = Watcher::default();
        for s in 0..60 {
            w.look(s * S, [task(7, Some(s / 3))]);
        }
        assert_eq!(w.stuck()[0].duration_ns, 59 * S, "blk_io_schedule's own wake-ups are not progress");
    }

    #[test]
    fn progress_ends_it() {
        let mut w = Watcher::default();
        w.look(0, [task(7, Some(1))]);
        assert_eq!(w.look(9 * S, [task(7, Some(1))]).started.len(), 1);
        let changes = w.look(10 * S, [task(7, Some(500))]);
        assert_eq!((changes.ended.len(), w.stuck().len()), (1, 0));
    }

    #[test]
    fn a_number_used_again_is_another_task() {
        let mut w = Watcher::default();
        w.look(0, [task(7, None)]);
        let again = InD { starttime: 999, ..task(7, None) };
        assert_eq!(w.look(20 * S, [again]), Changes::default());
    }

    #[test]
    fn a_known_beginning_counts_at_once() {
        let mut w = Watcher::default();
        let known = InD { since_boot_ns: Some(2 * S), ..task(7, None) };
        assert_eq!(w.look(20 * S, [known]).started[0].duration_ns, 18 * S);
    }

    #[test]
    fn the_line_says_who_saw_it_and_why_the_kernel_did_not() {
        let mut w = Watcher::default();
        w.look(0, [task(8, None)]);
        w.look(9 * S, [task(8, None)]);
        let clock = LogClock { mono_ns: 9 * S, wall_ns: 50 * S as i64 };
        let e = w.stuck()[0].to_entry(clock, Some(0));
        assert_eq!(
            (e.class, e.pid, e.origin, e.seq, e.first_time),
            (Class::HungTask, Some(7), Origin::Watch, None, 41 * S as i64)
        );
        assert_eq!(
            e.message,
            "task dd:7 (thread 8) in state D for 9 s in submit_bio_wait (seen by iotop-plus; the kernel has gone silent: kernel.hung_task_warnings = 0)"
        );
        assert!(!w.stuck()[0].to_entry(clock, Some(-1)).message.contains("silent"));
    }
}
