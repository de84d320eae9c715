//! A look at all tasks, taken in steps.
//!
//! Between two steps nothing is held but [`Tasks`], so whichever thread has it can take the next one. Only
//! the [`Job`]s between them touch files that may not return.

use super::activity_filter::{ProbeResult, TaskstatsQuery};
use super::file_reader::{ReadJob, TaskFileReader, TaskFiles};
use super::stuck_read::{MAX_STUCK_THREADS, StuckRead};
use super::task_scanner::TaskScanner;
use super::task_state::DelaySource;
use super::taskstats::TaskstatsAnswer;
use super::{ScanOptions, deadline_executor};
use crate::bpf::task_iter::TaskIter;
use crate::collect::clock;
use crate::model::process::ProcessUpdate;
use crate::model::reading::{Reading, describe_io_error};
use std::os::fd::AsFd;

/// Tasks whose names are fetched in one look; on a large machine the first table is there sooner.
const MAX_NAMES_PER_SCAN: usize = 3_000;

/// What a look has come to.
pub struct TaskScan {
    pub(super) options: ScanOptions,
    pub(super) delay_source: DelaySource,
    /// There may be new tasks.
    pub(super) may_have_new_tasks: bool,
    /// The kernel tells all tasks itself.
    task_iter: Option<TaskIter>,
    phase: ScanPhase,
    /// Next ask or read job of this stage.
    job_index: usize,
    /// Next place to probe.
    target_index: usize,
    pub(super) update: ProcessUpdate,
}

#[derive(Clone, Copy, PartialEq)]
enum ScanPhase {
    Iterate,
    Probe,
    Read,
    ProbeThreads,
    ReadThreads,
    ReadNames,
}

/// What may not return.
#[derive(Clone, Copy)]
#[allow(clippy::large_enum_variant)] // one question for 64 tasks, copied once
pub enum ScanJob {
    /// A question to taskstats.
    Taskstats(TaskstatsQuery),
    /// Files of one task.
    Files(ReadJob),
}

impl TaskScanner {
    /// Begins a look.
    pub(super) fn begin_scan(&mut self, wants: ScanOptions) -> std::io::Result<()> {
        self.open_proc()?;
        let at = clock::now();
        let reset = self.seq == 0 || wants.threads != self.is_per_thread;
        if reset {
            self.tasks.clear();
            self.user_names.forget_reported();
            self.previous_clock = None;
            self.is_per_thread = wants.threads;
        }
        if wants.full_update {
            self.user_names.forget_reported();
        }
        self.seq += 1;
        let mut update = ProcessUpdate {
            seq: self.seq,
            time: at,
            previous_time: self.previous_clock,
            rows_are_threads: self.is_per_thread,
            reset: reset || wants.full_update,
            ..ProcessUpdate::default()
        };
        let walks = self.task_iter();
        let delays = self.choose_delay_source(&wants, walks.is_some(), &mut update);
        self.clear_returned_jobs();
        let born = walks.is_none() && (self.fork_detector.may_have_new_tasks() || reset);
        if born {
            self.list_processes()?;
        }
        self.mark_visible(&wants);
        let stage = if walks.is_some() { ScanPhase::Iterate } else { ScanPhase::Probe };
        self.scan = Some(Box::new(TaskScan {
            options: wants,
            delay_source: delays,
            may_have_new_tasks: born,
            task_iter: walks,
            phase: stage,
            job_index: 0,
            target_index: 0,
            update,
        }));
        if stage == ScanPhase::Probe {
            self.reset_iter_state();
            self.plan_scan_probe(false);
        }
        Ok(())
    }

    /// Whether a look is under way.
    pub(super) fn is_scanning(&self) -> bool {
        self.scan.is_some()
    }

    /// Goes on until there is something to do that may not return; `None`: the look is taken.
    pub(super) fn next_job(&mut self) -> Option<ScanJob> {
        let mut pass = self.scan.take()?;
        let job = loop {
            let job = match pass.phase {
                ScanPhase::Iterate => None,
                ScanPhase::Probe | ScanPhase::ProbeThreads => {
                    self.queries.get(pass.job_index).copied().map(ScanJob::Taskstats)
                }
                _ => self.jobs.get(pass.job_index).copied().map(ScanJob::Files),
            };
            if job.is_some() || !self.advance_phase(&mut pass) {
                break job;
            }
        };
        self.scan = Some(pass);
        job
    }

    /// To the next stage; false after the last.
    fn advance_phase(&mut self, pass: &mut TaskScan) -> bool {
        pass.job_index = 0;
        pass.target_index = 0;
        pass.phase = match pass.phase {
            ScanPhase::Iterate => match pass.task_iter.take().filter(|walks| self.scan_by_iter(walks, pass)) {
                None => {
                    self.fall_back_to_files(pass);
                    ScanPhase::Probe
                }
                walks => {
                    pass.task_iter = walks;
                    ScanPhase::Read
                }
            },
            ScanPhase::Probe => {
                self.plan_reads(pass.update.seq, pass.options.wait_channels);
                ScanPhase::Read
            }
            ScanPhase::Read
                if self.is_per_thread && pass.may_have_new_tasks && self.list_threads(pass.task_iter.is_some()) =>
            {
                self.plan_probe(pass, true);
                ScanPhase::ProbeThreads
            }
            ScanPhase::ProbeThreads => {
                self.plan_first_reads();
                ScanPhase::ReadThreads
            }
            ScanPhase::Read | ScanPhase::ReadThreads => {
                let most = if pass.options.all_names { usize::MAX } else { MAX_NAMES_PER_SCAN };
                self.plan_names(most, pass.task_iter.is_some());
                ScanPhase::ReadNames
            }
            ScanPhase::ReadNames => return false,
        };
        true
    }

    /// Begins with the files of tasks, where it was meant to be done without.
    fn fall_back_to_files(&mut self, pass: &mut TaskScan) {
        if let Err(err) = self.list_processes() {
            pass.update.notes.push(format!("listing /proc: {}", describe_io_error(&err.into())));
        }
        self.reset_iter_state();
        pass.may_have_new_tasks = true;
        pass.delay_source = self.choose_delay_source(&pass.options, false, &mut pass.update);
        self.plan_probe(pass, false);
    }

    /// The answers to the ask that was next; too few where taskstats failed.
    pub(super) fn apply_answers(&mut self, answers: &[TaskstatsAnswer]) {
        let Some(mut pass) = self.scan.take() else { return };
        let (Some(ask), Some(proc)) = (self.queries.get(pass.job_index).copied(), self.proc_fd.clone()) else {
            return;
        };
        let now = clock::boot_ns();
        for n in 0..ask.len() {
            let probed = match answers.get(n) {
                Some(TaskstatsAnswer::Stats(stats)) => ProbeResult::from_stats(stats),
                Some(TaskstatsAnswer::Exited) => ProbeResult::Exited,
                Some(TaskstatsAnswer::Failed(_)) | None => {
                    self.activity_filter.read_schedstat(proc.as_fd(), self.probe_targets[pass.target_index])
                }
            };
            self.apply_probe(pass.target_index, probed, pass.delay_source, now);
            pass.target_index += 1;
        }
        pass.job_index += 1;
        self.scan = Some(pass);
    }

    /// What the read that was next has brought.
    pub(super) fn apply_read(&mut self, reading: TaskFiles) {
        let Some(mut pass) = self.scan.take() else { return };
        if let Some(job) = self.jobs.get(pass.job_index).copied() {
            self.apply_files(&job, reading, &mut pass);
        }
        pass.job_index += 1;
        self.scan = Some(pass);
    }

    /// The job that was next does not return: not in this step, on the thread with this id.
    pub(super) fn abandon_job(&mut self, job: &ScanJob, step: usize, thread: u32) {
        match job {
            ScanJob::Taskstats(_) => {
                // The other questions would hang as well.
                self.activity_filter.pause_taskstats();
                for _ in self.scan.as_ref().map_or(0, |pass| pass.job_index)..self.queries.len() {
                    self.apply_answers(&[]);
                }
            }
            ScanJob::Files(job) => {
                let since = clock::boot_ns().saturating_sub(deadline_executor::DEADLINE.as_nanos() as u64);
                let stuck = StuckRead::new(job.path, step, thread, since);
                let entry = &mut self.tasks[job.task_index as usize];
                entry.is_cmdline_stuck = stuck.is_cmdline_only();
                entry.is_stuck = !entry.is_cmdline_stuck;
                let hides_counters = entry.is_stuck;
                self.stuck_reads.push(stuck);
                match hides_counters {
                    true => self.refuse_job(&ScanJob::Files(*job)),
                    false => self.skip_job(),
                }
            }
        }
    }

    /// The job that was next is not begun, because too many hang.
    pub(super) fn refuse_job(&mut self, job: &ScanJob) {
        match (job, self.proc_fd.clone()) {
            (ScanJob::Taskstats(_), _) => self.apply_answers(&[]),
            (ScanJob::Files(job), Some(proc)) => {
                self.apply_read(TaskFileReader::new(proc, false).read_nonblocking(job))
            }
            (ScanJob::Files(_), None) => self.skip_job(),
        }
    }

    fn skip_job(&mut self) {
        if let Some(pass) = &mut self.scan {
            pass.job_index += 1;
        }
    }

    /// The look, taken.
    pub(super) fn finish_scan(&mut self) -> Reading<ProcessUpdate> {
        let Some(pass) = self.scan.take() else {
            return Reading::Absent("no look at the tasks was begun".into());
        };
        let TaskScan { options: wants, task_iter: walks, mut update, .. } = *pass;
        self.copy_names_to_threads(&mut update);
        self.finish_update(&wants, walks.is_some(), &mut update);
        if self.hung_threads >= MAX_STUCK_THREADS {
            update
                .notes
                .push(format!("{MAX_STUCK_THREADS} reads hang: I/O of other tasks is not read until one returns"));
        }
        self.previous_clock = Some(update.time);
        update.duration_ns = clock::boot_ns().saturating_sub(update.time.boot_ns);
        Reading::Ok(update)
    }

    /// Who is to be probed; `unknown` restricts it to tasks never read. What taskstats is not asked about
    /// is probed at once.
    fn plan_scan_probe(&mut self, unknown: bool) {
        if let Some(mut pass) = self.scan.take() {
            self.plan_probe(&mut pass, unknown);
            self.scan = Some(pass);
        }
    }

    fn plan_probe(&mut self, pass: &mut TaskScan, unknown: bool) {
        self.list_probe_targets(unknown);
        self.activity_filter.plan_queries(&self.probe_targets, &mut self.queries);
        let Some(proc) = self.proc_fd.clone().filter(|_| self.queries.is_empty()) else { return };
        let mut now = clock::boot_ns();
        for at in 0..self.probe_targets.len() {
            // Tasks probed between two looks at the clock.
            if at % 64 == 0 {
                now = clock::boot_ns();
            }
            let probed = self.activity_filter.read_schedstat(proc.as_fd(), self.probe_targets[at]);
            self.apply_probe(at, probed, pass.delay_source, now);
        }
    }
}
