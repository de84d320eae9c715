//! State of one task, kept between scans.

use super::file_reader::TaskFiles;
use super::ionice::default_priority;
use super::path::TaskPath;
use crate::model::process::{IoPrio, TaskDelays, TaskIoRaw, TaskKey, TaskNames, TaskRaw};
use crate::parse::task::{StatLine, StatusLines};
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub(super) struct TaskState {
    /// Values of the last reading.
    pub raw: TaskRaw,
    /// Run counts of the last activity check.
    pub run_counts: [u64; 3],
    /// Last scan, whether it found a change or not, CLOCK_BOOTTIME in ns.
    pub scanned_ns: u64,
    /// Names, once they are read.
    pub names: Option<Arc<TaskNames>>,
    pub(super) start_stack: u64,
    pub(super) default_prio: IoPrio,
    /// Hash of the last `io` text.
    pub io_hash: u64,
    pub is_thread: bool,
    /// `raw` is valid.
    pub has_been_read: bool,
    /// It ran, or may have run, and has not been read since.
    pub has_run: bool,
    /// The activity check covers only one of several threads: compare `io`.
    pub needs_io_check: bool,
    pub is_visible: bool,
    /// Access to `io` was denied; not tried again before the next exec.
    pub is_io_denied: bool,
    /// All access was denied (hidepid).
    pub is_denied: bool,
    pub is_stuck: bool,
    /// Only its command line hangs.
    pub is_cmdline_stuck: bool,
    pub needs_names: bool,
    /// Its wait channel was reported since it last ran.
    pub is_wait_reported: bool,
    pub has_exited: bool,
    /// Index in the changes of this scan; `u32::MAX` if it is not among them.
    pub change_index: u32,
    pub(super) is_forked: bool,
    /// The iterator leaves it out although it exists.
    pub is_missing_from_iter: bool,
    /// Number of the last scan in which the iterator reported it.
    pub last_iter_seq: u64,
    /// Number of execs, from the iterator.
    pub exec_count: Option<u32>,
    /// Control group ID, from the iterator.
    pub cgroup_id: Option<u64>,
    /// The control group path must be read.
    pub needs_cgroup: bool,
    /// CPU time from the iterator, ns.
    pub runtime_ns: u64,
    /// Swapped-out memory from the iterator, bytes; `None` without memory, or if the task was read from files.
    pub iter_swap_bytes: Option<u64>,
    /// The swap value of the iterator is exact.
    pub is_iter_swap_exact: bool,
    /// Difference between `status` and the iterator before it, bytes; `None` if `status` was never read.
    pub swap_correction: Option<i64>,
}

/// What applying a reading changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TaskChanges {
    /// The row is new or differs from the one reported.
    pub has_row_changed: bool,
    /// Key of an earlier task with the same ID.
    pub replaced_key: Option<TaskKey>,
    /// First reading of the task.
    pub is_first: bool,
}

impl TaskState {
    pub(super) fn new(pid: u32, tid: u32, is_thread: bool) -> Self {
        let raw = TaskRaw { key: TaskKey { pid, tid, starttime: 0 }, state: b'?', ..TaskRaw::default() };
        let default_prio = IoPrio { class: 2, level: 4 };
        Self {
            raw,
            is_thread,
            default_prio,
            has_run: true,
            needs_names: true,
            change_index: u32::MAX,
            ..Self::default()
        }
    }

    pub(super) fn ids(&self) -> (u32, u32) {
        (self.raw.key.pid, self.raw.key.tid)
    }

    pub(super) fn path(&self) -> TaskPath {
        TaskPath { pid: self.raw.key.pid, tid: self.raw.key.tid, is_thread: self.is_thread }
    }

    /// Whether it is a thread other than the main thread: it has the names of its process.
    pub(super) fn is_secondary_thread(&self) -> bool {
        self.raw.key.pid != self.raw.key.tid
    }

    pub(super) fn apply_files(&mut self, files: &TaskFiles, delays: DelaySource, page_size: u64) -> TaskChanges {
        let mut changes = TaskChanges::default();
        if let Some(stat) = &files.stat {
            if self.has_been_read && stat.starttime != self.raw.key.starttime {
                changes.replaced_key = Some(self.raw.key);
                let (delays, runs) = (self.raw.delays, self.run_counts);
                *self = Self {
                    is_visible: self.is_visible,
                    run_counts: runs,
                    ..Self::new(self.raw.key.pid, self.raw.key.tid, self.is_thread)
                };
                self.raw.delays = delays;
            }
            self.detect_exec(stat);
        }
        let before = self.has_been_read.then_some(self.raw);
        changes.is_first = before.is_none();
        if let Some(stat) = &files.stat {
            self.apply_stat(stat, delays, page_size);
        }
        if let Some(io) = files.io {
            self.raw.io = io;
            self.io_hash = files.io_hash;
            self.is_io_denied = io == TaskIoRaw::Denied;
        }
        if let Some(status) = &files.status {
            self.apply_status(status);
        }
        if files.nonblocking_only {
            self.apply_nonblocking(files);
        }
        if let Some(prio) = files.ioprio {
            self.raw.ioprio = Some(if prio.class == 0 { self.default_prio } else { prio });
        }
        self.raw.timeslices = self.run_counts[2];
        if files.stat.is_some() || files.nonblocking_only {
            self.has_run = files.nonblocking_only;
            self.has_been_read = true;
        }
        if files.is_io_unchanged {
            self.has_run = false;
        }
        changes.has_row_changed = self.has_been_read && before != Some(self.raw);
        changes
    }

    /// Detects an exec: another name or stack, or no longer "forked without exec". Names, uid and permissions may have
    /// changed.
    fn detect_exec(&mut self, stat: &StatLine) {
        let same =
            self.raw.comm == stat.comm && self.start_stack == stat.start_stack && self.is_forked == stat.is_forked;
        if self.has_been_read && !same {
            self.needs_names = true;
            self.is_io_denied = false;
        }
        self.start_stack = stat.start_stack;
        self.is_forked = stat.is_forked;
    }

    fn apply_stat(&mut self, stat: &StatLine, delays: DelaySource, page_size: u64) {
        let raw = &mut self.raw;
        raw.key.starttime = stat.starttime;
        raw.comm = stat.comm;
        raw.state = stat.state;
        raw.kernel_thread = stat.is_kernel_thread;
        raw.ppid = stat.ppid;
        raw.num_threads = stat.num_threads;
        raw.majflt = stat.majflt;
        self.default_prio = default_priority(stat.nice, stat.policy);
        raw.cpu_ticks = stat.cpu_ticks;
        raw.rss_bytes = stat.rss_pages.saturating_mul(page_size);
        self.iter_swap_bytes = None;
        if stat.is_kernel_thread {
            raw.uid = Some(0);
        }
        match delays {
            DelaySource::Taskstats => {}
            DelaySource::Ticks => {
                let blkio_ns = stat.blkio_ticks.saturating_mul(1_000_000_000 / crate::model::process::USER_HZ);
                raw.delays = Some(TaskDelays { blkio_ns, swapin_ns: None });
            }
            DelaySource::Off => raw.delays = None,
        }
    }

    fn apply_status(&mut self, status: &StatusLines) {
        self.raw.uid = status.uid.or(self.raw.uid);
        self.raw.swap_bytes = status.swap_bytes;
        if let Some((exact, iter_bytes)) = status.swap_bytes.zip(self.iter_swap_bytes) {
            // The iterator reports resident memory as `stat` does.
            self.swap_correction = Some(exact.wrapping_sub(iter_bytes) as i64);
            return;
        }
        self.raw.rss_bytes = status.rss_bytes.unwrap_or(self.raw.rss_bytes);
    }

    fn apply_nonblocking(&mut self, files: &TaskFiles) {
        let Some(status) = files.status else { return };
        self.raw.state = status.state.unwrap_or(self.raw.state);
        self.raw.ppid = status.ppid.unwrap_or(self.raw.ppid);
        self.raw.num_threads = status.num_threads.unwrap_or(self.raw.num_threads);
        self.raw.comm = files.comm.unwrap_or(self.raw.comm);
        self.raw.io = TaskIoRaw::Blocked;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelaySource {
    /// taskstats, or the iterator.
    Taskstats,
    /// Ticks in `stat`: block I/O only, in steps of 10 ms.
    Ticks,
    /// The kernel does not count them.
    Off,
}
