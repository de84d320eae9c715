//! Which tasks ran since the last look: the filter before anything is read of them.
//!
//! A task that was not given a CPU has done no I/O of its own. taskstats tells it for a whole process
//! and many at once; without it, `schedstat` of each, which speaks for its main thread only; without
//! that, nothing is filtered. The order matters: run counts are taken before the counters are read,
//! so what a task does in between shows as a run at the next look.

use super::path::{self, ProcPath, TaskPath};
use super::taskstats::{MAX_IDS_PER_QUERY, TaskStats, TaskstatsAnswer, TaskstatsSocket};
use crate::model::process::TaskDelays;
use crate::model::reading::Reading;
use crate::parse::task;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Why taskstats is not even asked.
const FOREIGN_PROC: &str = "this /proc is not our own pid namespace's, so taskstats cannot be asked about its tasks";

/// Looks without taskstats before it is tried again after it hung.
const PAUSE_SCANS: u32 = 60;

/// What the probe of one task says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeResult {
    /// Run counts (see [`Stats::runs`]) and, from taskstats, waiting times; `whole` when they speak for
    /// every thread of what was asked for.
    RunCounts { counts: [u64; 3], delays: Option<TaskDelays>, covers_all_threads: bool },
    /// It is no more.
    Exited,
    /// Nothing known: read it.
    Unknown,
}

impl ProbeResult {
    /// What taskstats says.
    pub fn from_stats(stats: &TaskStats) -> Self {
        ProbeResult::RunCounts { counts: stats.runs, delays: Some(stats.delays), covers_all_threads: true }
    }
}

/// A question about several tasks. The kernel answers it under a lock that other users of generic netlink
/// hold while they wait for a device (nbd does), so it may not return.
#[derive(Clone, Copy)]
pub struct TaskstatsQuery {
    ids: [u32; MAX_IDS_PER_QUERY],
    count: u8,
    are_threads: bool,
}

impl TaskstatsQuery {
    /// Tasks asked about.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }
}

/// Asks taskstats; every thread has its own socket, opened when it first asks.
#[derive(Default)]
pub struct TaskstatsClient {
    socket: Option<TaskstatsSocket>,
    has_failed: bool,
}

impl TaskstatsClient {
    /// Asks; fewer answers than questions if that fails.
    pub fn query(&mut self, ask: &TaskstatsQuery, answers: &mut Vec<TaskstatsAnswer>) {
        answers.clear();
        if self.socket.is_none() && !self.has_failed {
            self.socket = TaskstatsSocket::open().ok();
            self.has_failed = self.socket.is_none();
        }
        let ids = &ask.ids[..ask.len()];
        if self.socket.as_mut().is_some_and(|s| s.query(ids, ask.are_threads, answers).is_err()) {
            answers.clear();
        }
    }
}

/// Says how tasks are probed.
pub struct ActivityFilter {
    /// Whether taskstats works, and why not.
    pub taskstats: Reading<()>,
    paused_scans: u32,
    buf: Vec<u8>,
}

impl ActivityFilter {
    /// Tries taskstats where `live` says that the tasks are this machine's own.
    pub fn new(live: bool) -> Self {
        let taskstats = if live { check_taskstats() } else { Reading::Absent(FOREIGN_PROC.into()) };
        Self { taskstats, paused_scans: 0, buf: vec![0; 256] }
    }

    /// Never uses taskstats.
    pub fn without_taskstats() -> Self {
        Self::new(false)
    }

    /// The questions about these places, in order; none if taskstats is not to be asked.
    pub fn plan_queries(&mut self, places: &[TaskPath], asks: &mut Vec<TaskstatsQuery>) {
        asks.clear();
        self.paused_scans = self.paused_scans.saturating_sub(1);
        if self.taskstats.ok().is_none() || self.paused_scans > 0 {
            return;
        }
        for chunk in places.chunks(MAX_IDS_PER_QUERY) {
            let mut ids = [0; MAX_IDS_PER_QUERY];
            ids.iter_mut().zip(chunk).for_each(|(id, place)| *id = place.tid);
            asks.push(TaskstatsQuery { ids, count: chunk.len() as u8, are_threads: chunk[0].is_thread });
        }
    }

    /// It hung: left alone for a while.
    pub fn pause_taskstats(&mut self) {
        self.paused_scans = PAUSE_SCANS;
    }

    /// What `schedstat` says; never blocks.
    pub fn read_schedstat(&mut self, proc: BorrowedFd<'_>, place: TaskPath) -> ProbeResult {
        read_schedstat(proc, place, &mut self.buf)
    }
}

fn read_schedstat(proc: BorrowedFd<'_>, place: TaskPath, buf: &mut [u8]) -> ProbeResult {
    match path::read_at(proc, &ProcPath::for_task(place, "schedstat"), buf) {
        Ok(text) => match task::schedstat(text) {
            Some(runs) => ProbeResult::RunCounts { counts: runs, delays: None, covers_all_threads: place.is_thread },
            None => ProbeResult::Unknown,
        },
        // Without CONFIG_SCHED_INFO the file is missing while the task is there.
        Err(err) if path::is_gone(err) => match path::read_at(proc, &ProcPath::for_task(place, "comm"), buf) {
            Err(err) if path::is_gone(err) => ProbeResult::Exited,
            _ => ProbeResult::Unknown,
        },
        Err(_) => ProbeResult::Unknown,
    }
}

/// Asks for ourselves: says whether it is allowed, reachable, and whether run counts are kept.
fn check_taskstats() -> Reading<()> {
    let mut stats = match TaskstatsSocket::open() {
        Ok(stats) => stats,
        Err(Errno::NOENT) => {
            return Reading::Absent(
                "taskstats is not in this kernel or not reachable from this network namespace".into(),
            );
        }
        Err(err) => return Reading::from_io_error("taskstats", &err.into()),
    };
    let mut answers = Vec::new();
    let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
    if let Err(err) = stats.query(&[own], false, &mut answers) {
        return Reading::from_io_error("taskstats", &err.into());
    }
    match answers.first() {
        Some(TaskstatsAnswer::Stats(stats)) if stats.runs[2] > 0 => Reading::Ok(()),
        Some(TaskstatsAnswer::Failed(code)) if *code == Errno::PERM.raw_os_error() => {
            Reading::Denied("taskstats needs CAP_NET_ADMIN: run as root".into())
        }
        _ => Reading::Absent("taskstats of this kernel has no run counts (CONFIG_TASK_DELAY_ACCT)".into()),
    }
}
