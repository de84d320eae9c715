//! A scan of all tasks, in phases.
//!
//! Between two jobs all state is in [`TaskScanner`], so any thread that holds it can continue. Only [`ScanJob`]s touch
//! files that may not return.

use super::activity_filter::ProbeResult;
use super::file_reader::{FileSet, ReadJob, TaskFileReader, TaskFiles};
use super::stuck_read::{DEADLINE, MAX_STUCK_THREADS, StuckRead};
use super::task_scanner::{ScanJob, ScanOptions, ScanPhase, TaskScan, TaskScanner};
use super::taskstats::{TaskStats, TaskstatsAnswer};
use crate::collect::clock;
use crate::model::process::ProcessUpdate;
use crate::model::reading::{Reading, describe_io_error};
use std::os::fd::AsFd;

/// Tasks whose names are read in one scan, so that the first table of a large machine appears sooner.
const MAX_NAMES_PER_SCAN: usize = 3_000;

impl TaskScanner {
    /// Starts a scan.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be opened or listed.
    pub(super) fn begin_scan(&mut self, options: ScanOptions) -> std::io::Result<()> {
        self.open_proc()?;
        let now = clock::now();
        let reset = self.seq == 0 || options.threads != self.is_per_thread;
        if reset {
            self.tasks.clear();
            self.user_names.forget_reported();
            self.previous_clock = None;
            self.is_per_thread = options.threads;
        }
        if options.full_update {
            self.user_names.forget_reported();
        }
        self.seq += 1;
        let mut update = ProcessUpdate {
            seq: self.seq,
            time: now,
            previous_time: self.previous_clock,
            rows_are_threads: self.is_per_thread,
            reset: reset || options.full_update,
            ..ProcessUpdate::default()
        };
        let task_iter = self.task_iter();
        let delay_source = self.choose_delay_source(&options, task_iter.is_some(), &mut update);
        self.clear_returned_jobs();
        let may_have_new_tasks = task_iter.is_none() && (self.fork_detector.may_have_new_tasks() || reset);
        if may_have_new_tasks {
            self.list_processes()?;
        }
        self.mark_visible(&options);
        let phase = if task_iter.is_some() { ScanPhase::Iterate } else { ScanPhase::Probe };
        let mut scan = Box::new(TaskScan {
            options,
            delay_source,
            may_have_new_tasks,
            task_iter,
            phase,
            job_index: 0,
            target_index: 0,
            update,
        });
        if phase == ScanPhase::Probe {
            self.reset_iter_state();
            self.plan_probe(&mut scan, false);
        }
        self.scan = Some(scan);
        Ok(())
    }

    pub(super) fn is_scanning(&self) -> bool {
        self.scan.is_some()
    }

    /// Advances to the next job that may not return; `None` when the scan is complete.
    pub(super) fn next_job(&mut self) -> Option<ScanJob> {
        let mut scan = self.scan.take()?;
        let job = loop {
            let job = match scan.phase {
                ScanPhase::Iterate => None,
                ScanPhase::Probe | ScanPhase::ProbeThreads => {
                    self.queries.get(scan.job_index).copied().map(ScanJob::Taskstats)
                }
                _ => self.jobs.get(scan.job_index).copied().map(ScanJob::Files),
            };
            if job.is_some() || !self.advance_phase(&mut scan) {
                break job;
            }
        };
        self.scan = Some(scan);
        job
    }

    /// Starts the next phase; false after the last one.
    fn advance_phase(&mut self, scan: &mut TaskScan) -> bool {
        scan.job_index = 0;
        scan.target_index = 0;
        scan.phase = match scan.phase {
            ScanPhase::Iterate => match scan.task_iter.take().filter(|task_iter| self.scan_by_iter(task_iter, scan)) {
                None => {
                    self.fall_back_to_files(scan);
                    ScanPhase::Probe
                }
                task_iter => {
                    scan.task_iter = task_iter;
                    ScanPhase::Read
                }
            },
            ScanPhase::Probe => {
                self.plan_reads(scan.update.seq, scan.options.wait_channels);
                ScanPhase::Read
            }
            ScanPhase::Read
                if self.is_per_thread && scan.may_have_new_tasks && self.list_threads(scan.task_iter.is_some()) =>
            {
                self.plan_probe(scan, true);
                ScanPhase::ProbeThreads
            }
            ScanPhase::ProbeThreads => {
                self.plan_first_reads();
                ScanPhase::ReadThreads
            }
            ScanPhase::Read | ScanPhase::ReadThreads => {
                let limit = if scan.options.all_names { usize::MAX } else { MAX_NAMES_PER_SCAN };
                self.plan_names(limit, scan.task_iter.is_some());
                ScanPhase::ReadNames
            }
            ScanPhase::ReadNames => return false,
        };
        true
    }

    /// Reads files although the scan began with the iterator, because the iterator failed.
    fn fall_back_to_files(&mut self, scan: &mut TaskScan) {
        if let Err(err) = self.list_processes() {
            scan.update.notes.push(format!("listing /proc: {}", describe_io_error(&err.into())));
        }
        self.reset_iter_state();
        scan.may_have_new_tasks = true;
        scan.delay_source = self.choose_delay_source(&scan.options, false, &mut scan.update);
        self.plan_probe(scan, false);
    }

    /// Applies the answers to the current query; there are too few of them if taskstats failed.
    pub(super) fn apply_answers(&mut self, answers: &[TaskstatsAnswer]) {
        let Some(mut scan) = self.scan.take() else { return };
        let (Some(query), Some(proc)) = (self.queries.get(scan.job_index).copied(), self.proc_fd.clone()) else {
            return;
        };
        let now = clock::boot_ns();
        for n in 0..query.len() {
            let activity = match answers.get(n) {
                Some(TaskstatsAnswer::Stats(TaskStats { runs, delays })) => {
                    ProbeResult::RunCounts { counts: *runs, delays: Some(*delays), covers_all_threads: true }
                }
                Some(TaskstatsAnswer::Exited) => ProbeResult::Exited,
                Some(TaskstatsAnswer::Failed(_)) | None => {
                    self.activity_filter.read_schedstat(proc.as_fd(), self.probe_targets[scan.target_index].1)
                }
            };
            self.apply_probe(scan.target_index, activity, scan.delay_source, now);
            scan.target_index += 1;
        }
        scan.job_index += 1;
        self.scan = Some(scan);
    }

    pub(super) fn apply_read(&mut self, reading: TaskFiles) {
        let Some(mut scan) = self.scan.take() else { return };
        if let Some(job) = self.jobs.get(scan.job_index).copied() {
            self.apply_files(&job, reading, &mut scan);
        }
        scan.job_index += 1;
        self.scan = Some(scan);
    }

    /// Gives up the current job, which hangs in this file on this thread.
    pub(super) fn abandon_job(&mut self, job: &ScanJob, file_index: usize, thread_id: u32) {
        match job {
            ScanJob::Taskstats(_) => {
                // The remaining queries would hang as well.
                self.activity_filter.pause_taskstats();
                for _ in self.scan.as_ref().map_or(0, |scan| scan.job_index)..self.queries.len() {
                    self.apply_answers(&[]);
                }
            }
            ScanJob::Files(job) => {
                let since = clock::boot_ns().saturating_sub(DEADLINE.as_nanos() as u64);
                let stuck = StuckRead::new(job.path, file_index, thread_id, since);
                let task = &mut self.tasks[job.task_index as usize];
                task.is_cmdline_stuck = stuck.is_cmdline_only();
                task.is_stuck = !task.is_cmdline_stuck;
                let hides_counters = task.is_stuck;
                self.stuck_reads.push(stuck);
                match hides_counters {
                    true => self.refuse_job(&ScanJob::Files(*job)),
                    false => self.skip_job(),
                }
            }
        }
    }

    /// Skips the blocking part of the current job, because too many threads hang.
    pub(super) fn refuse_job(&mut self, job: &ScanJob) {
        match (job, self.proc_fd.clone()) {
            (ScanJob::Taskstats(_), _) => self.apply_answers(&[]),
            (ScanJob::Files(job), Some(proc)) => {
                let files = FileSet { nonblocking_only: true, ..job.files };
                let job = ReadJob { files, ..*job };
                self.apply_read(TaskFileReader::new(proc, false).run(&job))
            }
            (ScanJob::Files(_), None) => self.skip_job(),
        }
    }

    fn skip_job(&mut self) {
        if let Some(scan) = &mut self.scan {
            scan.job_index += 1;
        }
    }

    pub(super) fn finish_scan(&mut self) -> Reading<ProcessUpdate> {
        let Some(scan) = self.scan.take() else {
            return Reading::Absent("no scan was started".into());
        };
        let TaskScan { options, task_iter, mut update, .. } = *scan;
        self.copy_names_to_threads(&mut update);
        self.report_thread_states(task_iter.is_some(), &mut update);
        self.finish_update(&options, task_iter.is_some(), &mut update);
        if self.hung_threads >= MAX_STUCK_THREADS {
            update.notes.push(format!(
                "{MAX_STUCK_THREADS} reads hang: I/O of other tasks is not read until one of them returns"
            ));
        }
        update.notes.extend_from_slice(&self.visibility_notes);
        self.previous_clock = Some(update.time);
        update.duration_ns = clock::boot_ns().saturating_sub(update.time.boot_ns);
        Reading::Ok(update)
    }

    /// Lists the tasks to check for activity; `unknown` restricts it to tasks never read. Without taskstats they are
    /// checked right away.
    fn plan_probe(&mut self, scan: &mut TaskScan, unknown: bool) {
        self.list_probe_targets(unknown);
        self.activity_filter.plan_queries(&self.probe_targets, &mut self.queries);
        let Some(proc) = self.proc_fd.clone().filter(|_| self.queries.is_empty()) else { return };
        for index in 0..self.probe_targets.len() {
            let now = clock::boot_ns();
            let activity = self.activity_filter.read_schedstat(proc.as_fd(), self.probe_targets[index].1);
            self.apply_probe(index, activity, scan.delay_source, now);
        }
    }
}
