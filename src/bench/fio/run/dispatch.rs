//! Which clones of a segment start, and which are ended: `wait_for`, `exitall`, `steadystate`, failures.

use super::super::job::{ExitScope, FioJob};
use super::super::layout::CloneFiles;
use super::super::steady::{SteadySums, SteadyWindow};
use crate::bench::engine::monotonic_ns;
use crate::bench::measure::recorder::{OpKind, OpRecorder};
use crate::bench::run_progress::RunProgress;
use crate::bench::session::RunError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// A clone of a job that runs, is to run, or has ended.
pub(super) struct CloneRun<'a> {
    pub(super) job: &'a FioJob,
    /// Index of the job.
    pub(super) index: usize,
    pub(super) files: &'a CloneFiles,
    /// Number among all clones of the file: its random sequences.
    pub(super) number: u64,
    pub(super) recorder: Arc<OpRecorder>,
    pub(super) stop: AtomicBool,
    /// Ended by another job or by a steady state, which is no failure.
    pub(super) is_released: AtomicBool,
    pub(super) latency_depth: OnceLock<u32>,
    pub(super) is_steady: OnceLock<bool>,
}

impl CloneRun<'_> {
    fn release(&self) {
        self.is_released.store(true, Relaxed);
        self.stop.store(true, Relaxed);
    }
}

/// Decides which clones start and which are ended.
pub(super) struct Dispatcher<'a> {
    clones: &'a [CloneRun<'a>],
    jobs: &'a [FioJob],
    /// fio's reporting group of each job.
    groups: &'a [usize],
    progress: &'a RunProgress,
    started: Vec<bool>,
    ended: Vec<Option<Result<(), RunError>>>,
    /// No further job is to run.
    pub(super) stops_all: bool,
    steady: Vec<SteadyCheck>,
}

/// Clones whose figures are watched together.
struct SteadyCheck {
    clones: Vec<usize>,
    window: Option<SteadyWindow>,
    next_ns: u64,
}

impl<'a> Dispatcher<'a> {
    pub(super) fn new(
        clones: &'a [CloneRun<'a>],
        jobs: &'a [FioJob],
        groups: &'a [usize],
        progress: &'a RunProgress,
    ) -> Self {
        let n = clones.len();
        let mut steady: Vec<(usize, SteadyCheck)> = Vec::new();
        for (number, clone) in clones.iter().enumerate().filter(|(_, clone)| clone.job.steady.is_some()) {
            let group = if clone.job.group_reporting { groups[clone.index] } else { usize::MAX - number };
            match steady.iter_mut().find(|(of, _)| *of == group) {
                Some((_, check)) => check.clones.push(number),
                None => steady.push((group, SteadyCheck { clones: vec![number], window: None, next_ns: 0 })),
            }
        }
        let steady = steady.into_iter().map(|(_, check)| check).collect();
        Self { clones, jobs, groups, progress, started: vec![false; n], ended: vec![None; n], stops_all: false, steady }
    }

    /// The clones whose `wait_for` is over.
    pub(super) fn start_ready(&mut self) -> Vec<usize> {
        if self.stops_all || self.ended.iter().flatten().any(Result::is_err) {
            return Vec::new();
        }
        let ready = |clone: &CloneRun<'_>| {
            let waits_for = &clone.job.wait_for;
            let earlier = self.clones.iter().enumerate().filter(|(_, other)| other.index < clone.index);
            waits_for.is_empty()
                || earlier.filter(|(_, o)| o.job.name == *waits_for).all(|(n, _)| self.ended[n].is_some())
        };
        let clones = self.clones.iter().enumerate();
        let all: Vec<usize> = clones.filter(|(n, c)| !self.started[*n] && ready(c)).map(|(n, _)| n).collect();
        all.iter().for_each(|n| self.started[*n] = true);
        all
    }

    pub(super) fn is_finished(&self) -> bool {
        let stops = self.stops_all || self.ended.iter().flatten().any(Result::is_err);
        self.ended.iter().zip(&self.started).all(|(ended, started)| ended.is_some() || (stops && !started))
    }

    /// A failure stops the other clones, so it comes first.
    pub(super) fn result(&self) -> Result<(), RunError> {
        let errors = || self.ended.iter().flatten().filter_map(|end| end.as_ref().err());
        let failed = errors().find(|e| !matches!(e, RunError::Cancelled)).or(errors().next());
        failed.map_or(Ok(()), |e| Err(e.clone()))
    }

    pub(super) fn clone_ended(&mut self, number: usize, end: Result<(), RunError>) {
        let ended = &self.clones[number];
        let failed = end.is_err();
        self.ended[number] = Some(end);
        if failed {
            self.clones.iter().for_each(|clone| clone.stop.store(true, Relaxed));
        } else if self.jobs.iter().any(|job| job.exitall) && !ended.is_released.load(Relaxed) {
            let scope = ended.job.exit_what;
            self.stops_all |= scope == ExitScope::All;
            let group = self.groups[ended.index];
            let same = |clone: &&CloneRun<'_>| scope != ExitScope::Group || self.groups[clone.index] == group;
            self.clones.iter().filter(same).for_each(CloneRun::release);
        }
    }

    /// Passes a stop of the run on, and ends what is steady.
    pub(super) fn supervise(&mut self) {
        let clones = self.clones;
        if self.progress.stop_requested.load(Relaxed) {
            clones.iter().for_each(|clone| clone.stop.store(true, Relaxed));
        }
        let now = monotonic_ns();
        for check in &mut self.steady {
            let job = clones[check.clones[0]].job;
            let began = check.clones.iter().filter_map(|n| clones[*n].recorder.counting_since()).min();
            let Some((began, rule)) = began.zip(job.steady) else { continue };
            if now < began + job.steady_ramp_us * 1000 || now < check.next_ns {
                continue;
            }
            check.next_ns = now + job.steady_interval_us * 1000;
            let sums = check.clones.iter().fold(SteadySums::default(), |sums, n| add_sums(sums, &clones[*n].recorder));
            let Some(window) = &mut check.window else {
                let (duration, interval) = (job.steady_duration_us, job.steady_interval_us);
                check.window = Some(SteadyWindow::new(rule, duration, interval, now, sums));
                continue;
            };
            if window.add(now, sums) {
                for n in check.clones.iter().filter(|n| self.ended[**n].is_none()) {
                    let _ = clones[*n].is_steady.set(true);
                    clones[*n].release();
                }
            }
        }
    }
}

fn add_sums(mut sums: SteadySums, recorder: &OpRecorder) -> SteadySums {
    for kind in [OpKind::Read, OpKind::Write, OpKind::Trim] {
        let stats = recorder.direction_stats(kind);
        sums.operations += stats.ios;
        sums.bytes += stats.bytes;
        sums.latency_ns += stats.clat.mean_ns * stats.ios as f64;
    }
    sums
}
