//! Detects which tasks ran since the last scan, so that only those are read.
//!
//! A task that was not given a CPU has done no I/O of its own. taskstats reports run counts for a whole process and for
//! many processes at once; without it, `schedstat` is read per task, which covers the main thread only; without that,
//! every task is read. Run counts are taken before the counters are read: what a task does in between shows up as a run
//! in the next scan.

use super::path::{self, ProcPath, TaskPath};
use super::taskstats::{MAX_IDS_PER_QUERY, TaskstatsAnswer, TaskstatsSocket};
use crate::model::process::TaskDelays;
use crate::model::reading::Reading;
use crate::parse::task;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Why taskstats is not queried at all.
const FOREIGN_PROC: &str = "this /proc is not our own pid namespace's, so taskstats cannot be asked about its tasks";

/// Scans without taskstats after a query hung.
const PAUSE_SCANS: u32 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// Run counts (see [`TaskStats::runs`](super::taskstats::TaskStats::runs)) and, from taskstats, delays; `covers_all_threads` if they include every
    /// thread.
    RunCounts {
        counts: [u64; 3],
        delays: Option<TaskDelays>,
        covers_all_threads: bool,
    },
    Exited,
    /// Unknown: read the task.
    Unknown,
}

/// A query for several tasks. The kernel answers it under a lock that other users of generic netlink hold while they
/// wait for a device (nbd does), so it may not return.
#[derive(Clone, Copy)]
pub(crate) struct TaskstatsQuery {
    ids: [u32; MAX_IDS_PER_QUERY],
    count: u8,
    are_threads: bool,
}

impl TaskstatsQuery {
    /// Number of tasks queried.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.count)
    }
}

/// Queries taskstats. Every thread has its own socket, opened at the first query.
#[derive(Default)]
pub(super) struct TaskstatsClient {
    socket: Option<TaskstatsSocket>,
    has_failed: bool,
}

impl TaskstatsClient {
    /// Sends the query. On an error there are fewer answers than IDs.
    pub(super) fn query(&mut self, query: &TaskstatsQuery, answers: &mut Vec<TaskstatsAnswer>) {
        answers.clear();
        if self.socket.is_none() && !self.has_failed {
            self.socket = TaskstatsSocket::open().ok();
            self.has_failed = self.socket.is_none();
        }
        let ids = &query.ids[..query.len()];
        if self.socket.as_mut().is_some_and(|s| s.query(ids, query.are_threads, answers).is_err()) {
            answers.clear();
        }
    }
}

/// Decides how activity is detected.
pub(super) struct ActivityFilter {
    /// Whether taskstats works, or why it does not.
    pub taskstats: Reading<()>,
    paused_scans: u32,
    buf: Vec<u8>,
}

impl ActivityFilter {
    /// Tries taskstats if `is_live`: if the task IDs are valid on this machine.
    pub(super) fn new(is_live: bool) -> Self {
        let taskstats = if is_live { check_taskstats() } else { Reading::Absent(FOREIGN_PROC.into()) };
        Self { taskstats, paused_scans: 0, buf: vec![0; 256] }
    }

    /// Builds the queries for these tasks, in order; none if taskstats is unavailable or paused.
    pub(super) fn plan_queries(&mut self, targets: &[(u32, TaskPath)], queries: &mut Vec<TaskstatsQuery>) {
        queries.clear();
        self.paused_scans = self.paused_scans.saturating_sub(1);
        if self.taskstats.ok().is_none() || self.paused_scans > 0 {
            return;
        }
        for chunk in targets.chunks(MAX_IDS_PER_QUERY) {
            let mut ids = [0; MAX_IDS_PER_QUERY];
            ids.iter_mut().zip(chunk).for_each(|(id, (_, path))| *id = path.tid);
            queries.push(TaskstatsQuery { ids, count: chunk.len() as u8, are_threads: chunk[0].1.is_thread });
        }
    }

    /// Stops using taskstats for a while, because a query hung.
    pub(super) fn pause_taskstats(&mut self) {
        self.paused_scans = PAUSE_SCANS;
    }

    /// Reads `schedstat`, which never blocks.
    pub(super) fn read_schedstat(&mut self, proc: BorrowedFd<'_>, location: TaskPath) -> ProbeResult {
        match path::read_at(proc, &ProcPath::for_task(location, "schedstat"), &mut self.buf) {
            Ok(text) => match task::schedstat(text) {
                Some(counts) => ProbeResult::RunCounts { counts, delays: None, covers_all_threads: location.is_thread },
                None => ProbeResult::Unknown,
            },
            // Without CONFIG_SCHED_INFO the file is missing although the task exists.
            Err(err) if path::is_gone(err) => {
                match path::read_at(proc, &ProcPath::for_task(location, "comm"), &mut self.buf) {
                    Err(err) if path::is_gone(err) => ProbeResult::Exited,
                    _ => ProbeResult::Unknown,
                }
            }
            Err(_) => ProbeResult::Unknown,
        }
    }
}

/// Queries our own process: is taskstats permitted and reachable, and does it report run counts?
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
