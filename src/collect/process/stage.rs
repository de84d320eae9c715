//! A look at all tasks, taken in steps.
//!
//! Between two steps nothing is held but [`Tasks`], so whichever thread has it can take the next one. Only
//! the [`Job`]s between them touch files that may not return.

use super::entry::Delays;
use super::guard::MAX_STUCK;
use super::probe::{Ask, Probed};
use super::reader::{ReadJob, Reader, Reading};
use super::stuck::StuckRead;
use super::tasks::Tasks;
use super::taskstats::Answer;
use super::{Wants, guard};
use crate::collect::clock;
use crate::model::process::ProcUpdate;
use crate::model::section::{Section, describe};
use crate::trace::tasks::Walks;
use std::os::fd::AsFd;

/// Tasks whose names are fetched in one look; on a large machine the first table is there sooner.
const NAMES: usize = 3_000;

/// What a look has come to.
pub struct Pass {
    pub(super) wants: Wants,
    pub(super) delays: Delays,
    /// There may be new tasks.
    pub(super) born: bool,
    /// The kernel tells all tasks itself.
    walks: Option<Walks>,
    stage: Stage,
    /// Next ask or read job of this stage.
    at: usize,
    /// Next place to probe.
    place: usize,
    pub(super) update: ProcUpdate,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Walk,
    Probe,
    Read,
    ProbeThreads,
    ReadThreads,
    Names,
}

/// What may not return.
#[derive(Clone, Copy)]
#[allow(clippy::large_enum_variant)] // one question for 64 tasks, copied once
pub enum Job {
    /// A question to taskstats.
    Ask(Ask),
    /// Files of one task.
    Read(ReadJob),
}

impl Tasks {
    /// Begins a look.
    pub(super) fn begin(&mut self, wants: Wants) -> std::io::Result<()> {
        self.proc()?;
        let at = clock::now();
        let reset = self.seq == 0 || wants.threads != self.threads;
        if reset {
            self.entries.clear();
            self.users.retell();
            self.prev = None;
            self.threads = wants.threads;
        }
        if wants.full {
            self.users.retell();
        }
        self.seq += 1;
        let mut update = ProcUpdate {
            seq: self.seq,
            at,
            prev: self.prev,
            threads: self.threads,
            reset: reset || wants.full,
            ..ProcUpdate::default()
        };
        let walks = self.walks();
        let delays = self.delays(&wants, walks.is_some(), &mut update);
        self.forget_returned();
        let born = walks.is_none() && (self.newborn.any() || reset);
        if born {
            self.list_processes()?;
        }
        self.mark_focus(&wants);
        let stage = if walks.is_some() { Stage::Walk } else { Stage::Probe };
        self.pass = Some(Box::new(Pass { wants, delays, born, walks, stage, at: 0, place: 0, update }));
        if stage == Stage::Probe {
            self.not_walked();
            self.plan_probe(false);
        }
        Ok(())
    }

    /// Whether a look is under way.
    pub(super) fn is_looking(&self) -> bool {
        self.pass.is_some()
    }

    /// Goes on until there is something to do that may not return; `None`: the look is taken.
    pub(super) fn next(&mut self) -> Option<Job> {
        let mut pass = self.pass.take()?;
        let job = loop {
            let job = match pass.stage {
                Stage::Walk => None,
                Stage::Probe | Stage::ProbeThreads => self.asks.get(pass.at).copied().map(Job::Ask),
                _ => self.jobs.get(pass.at).copied().map(Job::Read),
            };
            if job.is_some() || !self.turn(&mut pass) {
                break job;
            }
        };
        self.pass = Some(pass);
        job
    }

    /// To the next stage; false after the last.
    fn turn(&mut self, pass: &mut Pass) -> bool {
        pass.at = 0;
        pass.place = 0;
        pass.stage = match pass.stage {
            Stage::Walk => match pass.walks.take().filter(|walks| self.walked(walks, pass)) {
                None => {
                    self.by_files(pass);
                    Stage::Probe
                }
                walks => {
                    pass.walks = walks;
                    Stage::Read
                }
            },
            Stage::Probe => {
                self.plan(pass.update.seq, pass.wants.waits);
                Stage::Read
            }
            Stage::Read if self.threads && pass.born && self.list_threads(pass.walks.is_some()) => {
                self.plan_probe_with(pass, true);
                Stage::ProbeThreads
            }
            Stage::ProbeThreads => {
                self.plan_unknown();
                Stage::ReadThreads
            }
            Stage::Read | Stage::ReadThreads => {
                let most = if pass.wants.all_names { usize::MAX } else { NAMES };
                self.plan_names(most, pass.walks.is_some());
                Stage::Names
            }
            Stage::Names => return false,
        };
        true
    }

    /// Begins with the files of tasks, where it was meant to be done without.
    fn by_files(&mut self, pass: &mut Pass) {
        if let Err(err) = self.list_processes() {
            pass.update.notes.push(format!("listing /proc: {}", describe(&err.into())));
        }
        self.not_walked();
        pass.born = true;
        pass.delays = self.delays(&pass.wants, false, &mut pass.update);
        self.plan_probe_with(pass, false);
    }

    /// The answers to the ask that was next; too few where taskstats failed.
    pub(super) fn answered(&mut self, answers: &[Answer]) {
        let Some(mut pass) = self.pass.take() else { return };
        let (Some(ask), Some(proc)) = (self.asks.get(pass.at).copied(), self.proc.clone()) else { return };
        let now = clock::boot_ns();
        for n in 0..ask.len() {
            let probed = match answers.get(n) {
                Some(Answer::Is(stats)) => Probed::from_stats(stats),
                Some(Answer::Gone) => Probed::Gone,
                Some(Answer::Failed(_)) | None => {
                    self.prober.by_schedstat(proc.as_fd(), self.places[pass.place])
                }
            };
            self.apply_probe(pass.place, probed, pass.delays, now);
            pass.place += 1;
        }
        pass.at += 1;
        self.pass = Some(pass);
    }

    /// What the read that was next has brought.
    pub(super) fn read(&mut self, reading: Reading) {
        let Some(mut pass) = self.pass.take() else { return };
        if let Some(job) = self.jobs.get(pass.at).copied() {
            self.take(&job, reading, &mut pass);
        }
        pass.at += 1;
        self.pass = Some(pass);
    }

    /// The job that was next does not return: not in this step, on the thread with this id.
    pub(super) fn give_up(&mut self, job: &Job, step: usize, thread: u32) {
        match job {
            Job::Ask(_) => {
                // The other questions would hang as well.
                self.prober.pause();
                for _ in self.pass.as_ref().map_or(0, |pass| pass.at)..self.asks.len() {
                    self.answered(&[]);
                }
            }
            Job::Read(job) => {
                let since = clock::boot_ns().saturating_sub(guard::DEADLINE.as_nanos() as u64);
                let stuck = StuckRead::new(job.place, step, thread, since);
                let entry = &mut self.entries[job.at as usize];
                entry.names_stuck = stuck.is_names_only();
                entry.stuck = !entry.names_stuck;
                let hides_counters = entry.stuck;
                self.stuck.push(stuck);
                match hides_counters {
                    true => self.refused(&Job::Read(*job)),
                    false => self.skip(),
                }
            }
        }
    }

    /// The job that was next is not begun, because too many hang.
    pub(super) fn refused(&mut self, job: &Job) {
        match (job, self.proc.clone()) {
            (Job::Ask(_), _) => self.answered(&[]),
            (Job::Read(job), Some(proc)) => self.read(Reader::new(proc, false).safely(job)),
            (Job::Read(_), None) => self.skip(),
        }
    }

    fn skip(&mut self) {
        if let Some(pass) = &mut self.pass {
            pass.at += 1;
        }
    }

    /// The look, taken.
    pub(super) fn end(&mut self) -> Section<ProcUpdate> {
        let Some(pass) = self.pass.take() else {
            return Section::Absent("no look at the tasks was begun".into());
        };
        let Pass { wants, walks, mut update, .. } = *pass;
        self.borrow_names(&mut update);
        self.finish(&wants, walks.is_some(), &mut update);
        if self.hanging >= MAX_STUCK {
            update
                .notes
                .push(format!("{MAX_STUCK} reads hang: I/O of other tasks is not read until one returns"));
        }
        self.prev = Some(update.at);
        update.took_ns = clock::boot_ns().saturating_sub(update.at.boot_ns);
        Section::Ok(update)
    }

    /// Who is to be probed; `unknown` restricts it to tasks never read. What taskstats is not asked about
    /// is probed at once.
    fn plan_probe(&mut self, unknown: bool) {
        if let Some(mut pass) = self.pass.take() {
            self.plan_probe_with(&mut pass, unknown);
            self.pass = Some(pass);
        }
    }

    fn plan_probe_with(&mut self, pass: &mut Pass, unknown: bool) {
        self.list_places(unknown);
        self.prober.plan(&self.places, &mut self.asks);
        let Some(proc) = self.proc.clone().filter(|_| self.asks.is_empty()) else { return };
        let mut now = clock::boot_ns();
        for at in 0..self.places.len() {
            // Tasks probed between two looks at the clock.
            if at % 64 == 0 {
                now = clock::boot_ns();
            }
            let probed = self.prober.by_schedstat(proc.as_fd(), self.places[at]);
            self.apply_probe(at, probed, pass.delays, now);
        }
    }
}
