//! Which tasks ran since the last look: the filter before anything is read of them.
//!
//! A task that was not given a CPU has done no I/O of its own. taskstats tells it for a whole process
//! and many at once; without it, `schedstat` of each, which speaks for its main thread only; without
//! that, nothing is filtered. The order matters: run counts are taken before the counters are read,
//! so what a task does in between shows as a run at the next look.

use super::parse;
use super::path::{self, Path, Place};
use super::taskstats::{Answer, CHUNK, Stats, Taskstats};
use crate::model::process::DelayRaw;
use crate::model::section::Section;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Why taskstats is not even asked.
const FOREIGN: &str =
    "this /proc is not our own pid namespace's, so taskstats cannot be asked about its tasks";

/// Looks without taskstats before it is tried again after it hung.
const PAUSE: u32 = 60;

/// What the probe of one task says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probed {
    /// Run counts (see [`Stats::runs`]) and, from taskstats, waiting times; `whole` when they speak for
    /// every thread of what was asked for.
    Runs { runs: [u64; 3], delays: Option<DelayRaw>, whole: bool },
    /// It is no more.
    Gone,
    /// Nothing known: read it.
    Unknown,
}

impl Probed {
    /// What taskstats says.
    pub fn from_stats(stats: &Stats) -> Self {
        Probed::Runs { runs: stats.runs, delays: Some(stats.delays), whole: true }
    }
}

/// A question about several tasks. The kernel answers it under a lock that other users of generic netlink
/// hold while they wait for a device (nbd does), so it may not return.
#[derive(Clone, Copy)]
pub struct Ask {
    ids: [u32; CHUNK],
    n: u8,
    threads: bool,
}

impl Ask {
    /// Tasks asked about.
    pub fn len(&self) -> usize {
        usize::from(self.n)
    }
}

/// Asks taskstats; every thread has its own socket, opened when it first asks.
#[derive(Default)]
pub struct Asker {
    socket: Option<Taskstats>,
    failed: bool,
}

impl Asker {
    /// Asks; fewer answers than questions if that fails.
    pub fn ask(&mut self, ask: &Ask, answers: &mut Vec<Answer>) {
        answers.clear();
        if self.socket.is_none() && !self.failed {
            self.socket = Taskstats::open().ok();
            self.failed = self.socket.is_none();
        }
        let ids = &ask.ids[..ask.len()];
        if self.socket.as_mut().is_some_and(|s| s.ask(ids, ask.threads, answers).is_err()) {
            answers.clear();
        }
    }
}

/// Says how tasks are probed.
pub struct Prober {
    /// Whether taskstats works, and why not.
    pub taskstats: Section<()>,
    pause: u32,
    buf: Vec<u8>,
}

impl Prober {
    /// Tries taskstats where `live` says that the tasks are this machine's own.
    pub fn new(live: bool) -> Self {
        let taskstats = if live { usable() } else { Section::Absent(FOREIGN.into()) };
        Self { taskstats, pause: 0, buf: vec![0; 256] }
    }

    /// Never uses taskstats.
    pub fn without_taskstats() -> Self {
        Self::new(false)
    }

    /// The questions about these places, in order; none if taskstats is not to be asked.
    pub fn plan(&mut self, places: &[Place], asks: &mut Vec<Ask>) {
        asks.clear();
        self.pause = self.pause.saturating_sub(1);
        if self.taskstats.ok().is_none() || self.pause > 0 {
            return;
        }
        for chunk in places.chunks(CHUNK) {
            let mut ids = [0; CHUNK];
            ids.iter_mut().zip(chunk).for_each(|(id, place)| *id = place.tid);
            asks.push(Ask { ids, n: chunk.len() as u8, threads: chunk[0].thread });
        }
    }

    /// It hung: left alone for a while.
    pub fn pause(&mut self) {
        self.pause = PAUSE;
    }

    /// What `schedstat` says; never blocks.
    pub fn by_schedstat(&mut self, proc: BorrowedFd<'_>, place: Place) -> Probed {
        by_schedstat(proc, place, &mut self.buf)
    }
}

fn by_schedstat(proc: BorrowedFd<'_>, place: Place, buf: &mut [u8]) -> Probed {
    match path::read_at(proc, &Path::of(place, "schedstat"), buf) {
        Ok(text) => match parse::schedstat(text) {
            Some(runs) => Probed::Runs { runs, delays: None, whole: place.thread },
            None => Probed::Unknown,
        },
        // Without CONFIG_SCHED_INFO the file is missing while the task is there.
        Err(err) if path::is_gone(err) => match path::read_at(proc, &Path::of(place, "comm"), buf) {
            Err(err) if path::is_gone(err) => Probed::Gone,
            _ => Probed::Unknown,
        },
        Err(_) => Probed::Unknown,
    }
}

/// Asks for ourselves: says whether it is allowed, reachable, and whether run counts are kept.
fn usable() -> Section<()> {
    let mut stats = match Taskstats::open() {
        Ok(stats) => stats,
        Err(Errno::NOENT) => {
            return Section::Absent(
                "taskstats is not in this kernel or not reachable from this network namespace".into(),
            );
        }
        Err(err) => return Section::from_io("taskstats", &err.into()),
    };
    let mut answers = Vec::new();
    let own = rustix::process::getpid().as_raw_nonzero().get() as u32;
    if let Err(err) = stats.ask(&[own], false, &mut answers) {
        return Section::from_io("taskstats", &err.into());
    }
    match answers.first() {
        Some(Answer::Is(stats)) if stats.runs[2] > 0 => Section::Ok(()),
        Some(Answer::Failed(code)) if *code == Errno::PERM.raw_os_error() => {
            Section::Denied("taskstats needs CAP_NET_ADMIN: run as root".into())
        }
        _ => Section::Absent("taskstats of this kernel has no run counts (CONFIG_TASK_DELAY_ACCT)".into()),
    }
}
