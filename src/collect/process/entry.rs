//! What the collector remembers of one task between two looks.

use super::parse::{StatLine, StatusLines};
use super::path::Place;
use super::reader::Reading;
use crate::model::process::{DelayRaw, IoPrio, IoRaw, Names, TaskKey, TaskRaw};
use std::sync::Arc;

/// One task.
#[derive(Debug, Clone)]
pub struct Entry {
    /// As last read.
    pub raw: TaskRaw,
    /// Run counts of the last probe.
    pub runs: [u64; 3],
    /// The last look, whether it found anything new or not, CLOCK_BOOTTIME in ns.
    pub looked_ns: u64,
    /// Its names, once they were fetched.
    pub names: Option<Arc<Names>>,
    pub(super) startstack: u64,
    pub(super) default_prio: IoPrio,
    /// Hash of the last `io` text.
    pub io_hash: u64,
    /// The row is one thread.
    pub thread: bool,
    /// `raw` holds a reading.
    pub known: bool,
    /// It ran (or may have) and was not read since.
    pub ran: bool,
    /// Looks in a row at which that was so.
    pub streak: u8,
    /// The probe speaks for one of several threads: `io` must tell.
    pub doubtful: bool,
    /// A visible row.
    pub focus: bool,
    /// `io` was refused; not asked again before the next exec.
    pub io_denied: bool,
    /// Everything was refused (hidepid).
    pub denied: bool,
    /// A read of it does not return.
    pub stuck: bool,
    /// Its command line does not return; the rest does.
    pub names_stuck: bool,
    /// Names, uid and swap are to be fetched.
    pub names_wanted: bool,
    /// Its wait channel was told since it last ran.
    pub wait_told: bool,
    /// It ended.
    pub gone: bool,
    /// Where in this look's changes it is told already; `u32::MAX` if it is not.
    pub told: u32,
    pub(super) forked: bool,
    /// Walks leave it out though it is there.
    pub untold: bool,
    /// The walk that told it last, by the number of the look.
    pub seen: u64,
    /// Programs executed, as a walk told.
    pub exec: Option<u32>,
    /// Its control group by number, as a walk told.
    pub group: Option<u64>,
    /// The name of its group is to be fetched.
    pub group_wanted: bool,
    /// CPU time as a walk told, in ns.
    pub runtime_ns: u64,
    /// Swapped-out memory as a walk told, bytes; `None`: it has no memory, or its files were read.
    pub swap_told: Option<u64>,
    /// What a walk tells of it is exact.
    pub swap_exact: bool,
    /// What `status` said more than the walk before it; `None`: never read.
    pub swap_off: Option<i64>,
}

/// What a reading changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// The row differs from what was told, or is new.
    pub row: bool,
    /// Another task has this number now; the old one, as it was known.
    pub replaced: Option<TaskKey>,
    /// A first reading.
    pub first: bool,
}

impl Entry {
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
            runs: 0,
            rss_bytes: 0,
            swap_bytes: None,
            io: IoRaw::Absent,
            delays: None,
        };
        Self {
            raw,
            runs: [0; 3],
            looked_ns: 0,
            names: None,
            startstack: 0,
            default_prio: IoPrio { class: 2, level: 4 },
            io_hash: 0,
            thread,
            known: false,
            ran: true,
            streak: 0,
            doubtful: false,
            focus: false,
            io_denied: false,
            denied: false,
            stuck: false,
            names_stuck: false,
            names_wanted: true,
            wait_told: false,
            gone: false,
            told: u32::MAX,
            forked: false,
            untold: false,
            seen: 0,
            exec: None,
            group: None,
            group_wanted: false,
            runtime_ns: 0,
            swap_told: None,
            swap_exact: false,
            swap_off: None,
        }
    }

    /// Where its files are.
    pub fn place(&self) -> Place {
        Place { pid: self.raw.key.pid, tid: self.raw.key.tid, thread: self.thread }
    }

    /// A thread other than the main one: it borrows the names of its process.
    pub fn is_side_thread(&self) -> bool {
        self.raw.key.pid != self.raw.key.tid
    }

    /// Takes in what was read.
    pub fn merge(&mut self, got: &Reading, delays: Delays, page_size: u64) -> Changes {
        let mut changes = Changes::default();
        if let Some(stat) = &got.stat {
            if self.known && stat.starttime != self.raw.key.starttime {
                changes.replaced = Some(self.raw.key);
                let (delays, runs) = (self.raw.delays, self.runs);
                *self = Self {
                    focus: self.focus,
                    runs,
                    ..Self::new(self.raw.key.pid, self.raw.key.tid, self.thread)
                };
                self.raw.delays = delays;
            }
            self.take_exec(stat);
        }
        let before = self.known.then_some(self.raw);
        changes.first = before.is_none();
        if let Some(stat) = &got.stat {
            self.take_stat(stat, delays, page_size);
        }
        if let Some(io) = got.io {
            self.raw.io = io;
            self.io_hash = got.io_hash;
            self.io_denied = io == IoRaw::Denied;
        }
        if let Some(status) = &got.status {
            self.take_status(status);
        }
        if got.unblockable {
            self.take_unblockable(got);
        }
        if let Some(prio) = got.prio {
            self.raw.ioprio = Some(if prio.class == 0 { self.default_prio } else { prio });
        }
        self.raw.runs = self.runs[2];
        if got.stat.is_some() || got.unblockable {
            self.ran = got.unblockable;
            self.known = true;
        }
        if got.unchanged {
            self.ran = false;
        }
        changes.row = self.known && before != Some(self.raw);
        changes
    }

    /// A new name, another stack or the end of "forked, not exec'd" is an exec: names, uid and the
    /// right to read it may have changed.
    fn take_exec(&mut self, stat: &StatLine) {
        let same =
            self.raw.comm == stat.comm && self.startstack == stat.startstack && self.forked == stat.forked;
        if self.known && !same {
            self.names_wanted = true;
            self.io_denied = false;
        }
        self.startstack = stat.startstack;
        self.forked = stat.forked;
    }

    fn take_stat(&mut self, stat: &StatLine, delays: Delays, page_size: u64) {
        let raw = &mut self.raw;
        raw.key.starttime = stat.starttime;
        raw.comm = stat.comm;
        raw.state = stat.state;
        raw.kernel_thread = stat.kernel_thread;
        raw.ppid = stat.ppid;
        raw.num_threads = stat.num_threads;
        raw.majflt = stat.majflt;
        self.default_prio = stat.default_prio;
        raw.cpu_ticks = stat.cpu_ticks;
        raw.rss_bytes = stat.rss_pages.saturating_mul(page_size);
        self.swap_told = None;
        if stat.kernel_thread {
            raw.uid = Some(0);
        }
        match delays {
            Delays::Taskstats => {}
            Delays::Ticks => {
                let blkio_ns =
                    stat.blkio_ticks.saturating_mul(1_000_000_000 / crate::model::process::USER_HZ);
                raw.delays = Some(DelayRaw { blkio_ns, swapin_ns: None });
            }
            Delays::Off => raw.delays = None,
        }
    }

    fn take_status(&mut self, status: &StatusLines) {
        self.raw.uid = status.uid.or(self.raw.uid);
        self.raw.swap_bytes = status.swap_bytes;
        if let Some((exact, told)) = status.swap_bytes.zip(self.swap_told) {
            // Resident memory is told by walks as `stat` has it.
            self.swap_off = Some(exact.wrapping_sub(told) as i64);
            return;
        }
        self.raw.rss_bytes = status.rss_bytes.unwrap_or(self.raw.rss_bytes);
    }

    fn take_unblockable(&mut self, got: &Reading) {
        let Some(status) = got.status else { return };
        self.raw.state = status.state.unwrap_or(self.raw.state);
        self.raw.ppid = status.ppid.unwrap_or(self.raw.ppid);
        self.raw.num_threads = status.num_threads.unwrap_or(self.raw.num_threads);
        self.raw.comm = got.comm.unwrap_or(self.raw.comm);
        self.raw.io = IoRaw::Blocked;
    }
}

/// Where waiting times come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delays {
    /// taskstats.
    Taskstats,
    /// The ticks in `stat`: block I/O only, in steps of 10 ms.
    Ticks,
    /// Not counted by the kernel.
    Off,
}
