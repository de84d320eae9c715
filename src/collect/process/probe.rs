//! Which tasks ran since the last look: the filter before anything is read of them.
//!
//! A task that was not given a CPU has done no I/O of its own. taskstats tells it for a whole process
//! and many at once; without it, `schedstat` of each, which speaks for its main thread only; without
//! that, nothing is filtered. The order matters: run counts are taken before the counters are read,
//! so what a task does in between shows as a run at the next look.

use super::guard::{DEADLINE, Guard, Hand, Outcome, Step};
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

#[derive(Clone, Copy)]
struct Ask {
    ids: [u32; CHUNK],
    n: u8,
    threads: bool,
}

struct Asker(Taskstats);

impl Hand for Asker {
    type Job = Ask;
    type Out = Vec<Answer>;

    fn run(&mut self, job: &Ask, _step: &Step) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(CHUNK);
        if self.0.ask(&job.ids[..job.n as usize], job.threads, &mut answers).is_err() {
            answers.clear();
            answers.resize(job.n as usize, Answer::Failed(0));
        }
        answers
    }
}

/// Probes many tasks.
pub struct Prober {
    guard: Option<Guard<MaybeAsker>>,
    /// Whether taskstats works, and why not.
    pub taskstats: Section<()>,
    asks: Vec<Ask>,
    pause: u32,
    buf: Vec<u8>,
}

/// An asker whose socket may have failed to open on a fresh thread.
struct MaybeAsker(Option<Asker>);

impl Hand for MaybeAsker {
    type Job = Ask;
    type Out = Vec<Answer>;

    fn run(&mut self, job: &Ask, step: &Step) -> Vec<Answer> {
        match &mut self.0 {
            Some(asker) => asker.run(job, step),
            None => vec![Answer::Failed(0); job.n as usize],
        }
    }
}

impl Prober {
    /// Tries taskstats where `live` says that the tasks are this machine's own.
    pub fn new(live: bool) -> Self {
        let taskstats = if live { usable() } else { Section::Absent(FOREIGN.into()) };
        let make = || MaybeAsker(Taskstats::open().ok().map(Asker));
        let guard = taskstats.ok().map(|()| Guard::new(DEADLINE, make));
        Self { guard, taskstats, asks: Vec::new(), pause: 0, buf: vec![0; 256] }
    }

    /// Never uses taskstats.
    pub fn without_taskstats() -> Self {
        Self::new(false)
    }

    /// Probes every place and hands position and answer to `take`, in order.
    pub fn probe(
        &mut self,
        proc: BorrowedFd<'_>,
        places: &[Place],
        alive: impl FnMut(u32) -> bool,
        mut take: impl FnMut(usize, Probed),
    ) {
        self.pause = self.pause.saturating_sub(1);
        if self.guard.is_some() && self.pause == 0 {
            self.by_taskstats(proc, places, alive, take);
        } else {
            for (at, place) in places.iter().enumerate() {
                take(at, by_schedstat(proc, *place, &mut self.buf));
            }
        }
    }

    fn by_taskstats(
        &mut self,
        proc: BorrowedFd<'_>,
        places: &[Place],
        alive: impl FnMut(u32) -> bool,
        mut take: impl FnMut(usize, Probed),
    ) {
        self.asks.clear();
        for chunk in places.chunks(CHUNK) {
            let mut ids = [0; CHUNK];
            ids.iter_mut().zip(chunk).for_each(|(id, place)| *id = place.tid);
            self.asks.push(Ask { ids, n: chunk.len() as u8, threads: chunk[0].thread });
        }
        let Some(guard) = &mut self.guard else { return };
        let (mut at, mut hung, buf) = (0, false, &mut self.buf);
        guard.run(&self.asks, alive, |job, outcome| {
            let answers = match outcome {
                Outcome::Done(answers) => answers,
                Outcome::Stuck { .. } | Outcome::Refused => {
                    hung = true;
                    Vec::new()
                }
            };
            for n in 0..job.n as usize {
                let probed = match answers.get(n) {
                    Some(Answer::Is(stats)) => from_stats(stats),
                    Some(Answer::Gone) => Probed::Gone,
                    Some(Answer::Failed(_)) | None => by_schedstat(proc, places[at], buf),
                };
                take(at, probed);
                at += 1;
            }
        });
        if hung {
            self.pause = PAUSE;
        }
    }
}

fn from_stats(stats: &Stats) -> Probed {
    Probed::Runs { runs: stats.runs, delays: Some(stats.delays), whole: true }
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
