//! What the collector remembers of one task between two looks.

use super::file_reader::TaskFiles;
use super::ionice::default_priority;
use super::path::TaskPath;
use crate::model::process::{IoPrio, TaskDelays, TaskIoRaw, TaskKey, TaskNames, TaskRaw};
use crate::parse::task::{StatLine, StatusLines};
use std::sync::Arc;

/// One task.
#[derive(Debug, Clone)]
pub struct TaskState {
    /// As last read.
    pub raw: TaskRaw,
    /// Run counts of the last probe.
    pub run_counts: [u64; 3],
    /// The last look, whether it found anything new or not, CLOCK_BOOTTIME in ns.
    pub scanned_ns: u64,
    /// Its names, once they were fetched.
    pub names: Option<Arc<TaskNames>>,
    pub(super) start_stack: u64,
    pub(super) default_prio: IoPrio,
    /// Hash of the last `io` text.
    pub io_hash: u64,
    /// The row is one thread.
    pub is_thread: bool,
    /// `raw` holds a reading.
    pub has_been_read: bool,
    /// It ran (or may have) and was not read since.
    pub has_run: bool,
    /// Looks in a row at which that was so.
    pub run_streak: u8,
    /// The probe speaks for one of several threads: `io` must tell.
    pub needs_io_check: bool,
    /// A visible row.
    pub is_visible: bool,
    /// `io` was refused; not asked again before the next exec.
    pub is_io_denied: bool,
    /// Everything was refused (hidepid).
    pub is_denied: bool,
    /// A read of it does not return.
    pub is_stuck: bool,
    /// Its command line does not return; the rest does.
    pub is_cmdline_stuck: bool,
    /// Names, uid and swap are to be fetched.
    pub needs_names: bool,
    /// Its wait channel was told since it last ran.
    pub is_wait_reported: bool,
    /// It ended.
    pub has_exited: bool,
    /// Where in this look's changes it is told already; `u32::MAX` if it is not.
    pub change_index: u32,
    pub(super) is_forked: bool,
    /// Walks leave it out though it is there.
    pub is_missing_from_iter: bool,
    /// The walk that told it last, by the number of the look.
    pub last_iter_seq: u64,
    /// Programs executed, as a walk told.
    pub exec_count: Option<u32>,
    /// Its control group by number, as a walk told.
    pub cgroup_id: Option<u64>,
    /// The name of its group is to be fetched.
    pub needs_cgroup: bool,
    /// CPU time as a walk told, in ns.
    pub runtime_ns: u64,
    /// Swapped-out memory as a walk told, bytes; `None`: it has no memory, or its files were read.
    pub iter_swap_bytes: Option<u64>,
    /// What a walk tells of it is exact.
    pub is_iter_swap_exact: bool,
    /// What `status` said more than the walk before it; `None`: never read.
    pub swap_correction: Option<i64>,
}

/// What a reading changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskChanges {
    /// The row differs from what was told, or is new.
    pub has_row_changed: bool,
    /// Another task has this number now; the old one, as it was known.
    pub replaced_key: Option<TaskKey>,
    /// A first reading.
    pub is_first: bool,
}

impl TaskState {
    /// A task not read yet.
    pub fn new(pid: u32, tid: u32, thread: bool) -> Self {
        let raw = TaskRaw {
            key: TaskKey { pid, tid, starttime: 0 },
            comm: [0; 16],
            state: b'?',
            kernel_thread: false,
            ioprio: None,
            ppid: 0,
            uid: None,
            num_threads: 0,
            majflt: 0,
            cpu_ticks: 0,
            timeslices: 0,
            rss_bytes: 0,
            swap_bytes: None,
            io: TaskIoRaw::Absent,
            delays: None,
        };
        Self {
            raw,
            run_counts: [0; 3],
            scanned_ns: 0,
            names: None,
            start_stack: 0,
            default_prio: IoPrio { class: 2, level: 4 },
            io_hash: 0,
            is_thread: thread,
            has_been_read: false,
            has_run: true,
            run_streak: 0,
            needs_io_check: false,
            is_visible: false,
            is_io_denied: false,
            is_denied: false,
            is_stuck: false,
            is_cmdline_stuck: false,
            needs_names: true,
            is_wait_reported: false,
            has_exited: false,
            change_index: u32::MAX,
            is_forked: false,
            is_missing_from_iter: false,
            last_iter_seq: 0,
            exec_count: None,
            cgroup_id: None,
            needs_cgroup: false,
            runtime_ns: 0,
            iter_swap_bytes: None,
            is_iter_swap_exact: false,
            swap_correction: None,
        }
    }

    /// Where its files are.
    pub fn path(&self) -> TaskPath {
        TaskPath { pid: self.raw.key.pid, tid: self.raw.key.tid, is_thread: self.is_thread }
    }

    /// A thread other than the main one: it borrows the names of its process.
    pub fn is_secondary_thread(&self) -> bool {
        self.raw.key.pid != self.raw.key.tid
    }

    /// Takes in what was read.
    pub fn apply_files(&mut self, got: &TaskFiles, delays: DelaySource, page_size: u64) -> TaskChanges {
        let mut changes = TaskChanges::default();
        if let Some(stat) = &got.stat {
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
        if let Some(stat) = &got.stat {
            self.apply_stat(stat, delays, page_size);
        }
        if let Some(io) = got.io {
            self.raw.io = io;
            self.io_hash = got.io_hash;
            self.is_io_denied = io == TaskIoRaw::Denied;
        }
        if let Some(status) = &got.status {
            self.apply_status(status);
        }
        if got.nonblocking_only {
            self.apply_nonblocking(got);
        }
        if let Some(prio) = got.ioprio {
            self.raw.ioprio = Some(if prio.class == 0 { self.default_prio } else { prio });
        }
        self.raw.timeslices = self.run_counts[2];
        if got.stat.is_some() || got.nonblocking_only {
            self.has_run = got.nonblocking_only;
            self.has_been_read = true;
        }
        if got.is_io_unchanged {
            self.has_run = false;
        }
        changes.has_row_changed = self.has_been_read && before != Some(self.raw);
        changes
    }

    /// A new name, another stack or the end of "forked, not exec'd" is an exec: names, uid and the
    /// right to read it may have changed.
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
        if let Some((exact, told)) = status.swap_bytes.zip(self.iter_swap_bytes) {
            // Resident memory is told by walks as `stat` has it.
            self.swap_correction = Some(exact.wrapping_sub(told) as i64);
            return;
        }
        self.raw.rss_bytes = status.rss_bytes.unwrap_or(self.raw.rss_bytes);
    }

    fn apply_nonblocking(&mut self, got: &TaskFiles) {
        let Some(status) = got.status else { return };
        self.raw.state = status.state.unwrap_or(self.raw.state);
        self.raw.ppid = status.ppid.unwrap_or(self.raw.ppid);
        self.raw.num_threads = status.num_threads.unwrap_or(self.raw.num_threads);
        self.raw.comm = got.comm.unwrap_or(self.raw.comm);
        self.raw.io = TaskIoRaw::Blocked;
    }
}

/// Where waiting times come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelaySource {
    /// taskstats.
    Taskstats,
    /// The ticks in `stat`: block I/O only, in steps of 10 ms.
    Ticks,
    /// Not counted by the kernel.
    Off,
}
