//! Steps of a scan: list tasks, check activity, plan reads, apply results.

use super::activity_filter::ProbeResult;
use super::file_reader::{FileSet, ReadJob, TaskFiles};
use super::stuck_read::MAX_STUCK_THREADS;
use super::task_list;
use super::task_scanner::{ScanOptions, TaskScan, TaskScanner};
use super::task_state::{DelaySource, TaskState};
use super::thread_states::ThreadStates;
use crate::model::process::{ProcessUpdate, TaskChange, TaskIoRaw, TaskKey, TaskNames};
use crate::model::reading::Reading;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Scans between two attempts to read a task to which all access was denied.
const DENIED_RETRY_SCANS: u64 = 60;

/// Number of hung threads from which on tasks in state D are no longer read.
pub(super) const CAUTIOUS_FROM: usize = MAX_STUCK_THREADS - 2;

impl TaskScanner {
    /// Chooses the source of delays and reports it in the update.
    pub(super) fn choose_delay_source(
        &mut self,
        options: &ScanOptions,
        has_iter: bool,
        update: &mut ProcessUpdate,
    ) -> DelaySource {
        let is_enabled = self.delayacct_file.read(&mut self.buf).ok().map(|text| text.trim_ascii() != b"0");
        let is_off = is_enabled == Some(false);
        if is_off {
            update.delays = Reading::Absent(super::detail::DELAYACCT_OFF.into());
            return DelaySource::Off;
        }
        if !options.delays {
            update.delays = Reading::Absent("delays were not requested".into());
            return DelaySource::Off;
        }
        update.delays = Reading::Ok(());
        if self.activity_filter.taskstats.ok().is_some() || has_iter && is_enabled.is_some() {
            return DelaySource::Taskstats;
        }
        if is_enabled.is_none() {
            update.delays = self.activity_filter.taskstats.clone();
            return DelaySource::Off;
        }
        if let Some(why) = self.activity_filter.taskstats.unavailable_reason(update.time.boot_ns) {
            update.notes.push(format!("no swap-in delays; I/O delays in steps of 10 ms: {why}"));
        }
        DelaySource::Ticks
    }

    pub(super) fn clear_returned_jobs(&mut self) {
        for job in std::mem::take(&mut self.returned_jobs) {
            self.stuck_reads.retain(|stuck| stuck.path != job.path);
            if let Some(task) = find_task(&mut self.tasks, job.path.pid, job.path.tid) {
                task.has_run |= task.is_stuck;
                task.is_stuck = false;
                task.needs_names |= task.is_cmdline_stuck;
                task.is_cmdline_stuck = false;
            }
        }
    }

    pub(super) fn list_processes(&mut self) -> Result<(), Errno> {
        let Some(proc) = self.proc_fd.clone() else { return Ok(()) };
        task_list::list_ids(proc.as_fd(), &mut self.dir_buf, &mut self.ids)?;
        let (known, mut index) = (self.tasks.len(), 0);
        for id_index in 0..self.ids.len() {
            let pid = self.ids[id_index];
            while index < known && self.tasks[index].raw.key.pid < pid {
                index += 1;
            }
            if index == known || self.tasks[index].raw.key.pid != pid {
                self.tasks.push(TaskState::new(pid, pid, self.is_per_thread));
            }
        }
        self.sort_new_tasks(known);
        Ok(())
    }

    /// Adds the threads of multi-threaded processes. With the iterator only those of processes that it leaves out.
    /// Returns whether there were new ones.
    pub(super) fn list_threads(&mut self, has_iter: bool) -> bool {
        let Some(proc) = self.proc_fd.clone() else { return false };
        let known = self.tasks.len();
        for index in 0..known {
            let task = &self.tasks[index];
            let pid = task.raw.key.pid;
            if task.is_secondary_thread()
                || task.has_exited
                || task.raw.num_threads < 2
                || has_iter && !task.is_missing_from_iter
            {
                continue;
            }
            if task_list::list_thread_ids(proc.as_fd(), pid, &mut self.dir_buf, &mut self.ids).is_err() {
                continue;
            }
            for id_index in 0..self.ids.len() {
                let tid = self.ids[id_index];
                if find_task(&mut self.tasks[..known], pid, tid).is_none() {
                    self.tasks.push(TaskState { is_missing_from_iter: has_iter, ..TaskState::new(pid, tid, true) });
                }
            }
        }
        self.sort_new_tasks(known)
    }

    /// Sorts the tasks if there are more than were `known`; returns whether there are.
    pub(super) fn sort_new_tasks(&mut self, known: usize) -> bool {
        let has_new = self.tasks.len() > known;
        if has_new {
            self.tasks.sort_by_key(TaskState::ids);
        }
        has_new
    }

    pub(super) fn mark_visible(&mut self, options: &ScanOptions) {
        for task in &mut self.tasks {
            task.is_visible = options.all_visible;
            task.change_index = u32::MAX;
        }
        for key in &options.visible {
            if let Some(task) = find_task(&mut self.tasks, key.pid, key.tid) {
                task.is_visible = true;
            }
        }
    }

    /// Lists the tasks to check for activity; `unknown` restricts it to tasks never read.
    pub(super) fn list_probe_targets(&mut self, unknown: bool) {
        let is_wanted = |task: &TaskState| !(task.has_exited || unknown && task.has_been_read);
        let wanted = self.tasks.iter().zip(0..).filter(|(task, _)| is_wanted(task));
        self.probe_targets.clear();
        self.probe_targets.extend(wanted.map(|(task, index)| (index, task.path())));
    }

    pub(super) fn apply_probe(&mut self, target: usize, activity: ProbeResult, delays: DelaySource, now: u64) {
        let task = &mut self.tasks[self.probe_targets[target].0 as usize];
        task.needs_io_check = false;
        match activity {
            ProbeResult::Exited => task.has_exited = true,
            ProbeResult::Unknown => task.has_run = true,
            ProbeResult::RunCounts { counts: runs, delays: waited, covers_all_threads: whole } => {
                task.needs_io_check = !whole && task.raw.num_threads > 1;
                if delays == DelaySource::Taskstats {
                    task.raw.delays = waited;
                }
                if runs != task.run_counts {
                    task.run_counts = runs;
                    task.has_run = true;
                    task.is_wait_reported = false;
                } else if !task.has_run && !task.needs_io_check && task.has_been_read {
                    task.scanned_ns = now;
                }
            }
        }
    }

    pub(super) fn plan_reads(&mut self, seq: u64, wait_channels: bool) {
        let has_swap_activity = self.swap_activity.has_changed();
        let is_cautious = self.hung_threads >= CAUTIOUS_FROM;
        let len = self.tasks.len();
        let budget = if has_swap_activity { (len / 10).clamp(50, 2_000) } else { (len / 200).clamp(1, 100) };
        let round_start = self.round_position % len.max(1);
        self.round_position = round_start + budget;
        self.jobs.clear();
        for (index, task) in self.tasks.iter_mut().enumerate() {
            if task.has_exited || task.is_denied && !seq.is_multiple_of(DENIED_RETRY_SCANS) {
                continue;
            }
            let is_due = index.wrapping_sub(round_start) < budget || index + len - round_start < budget;
            let mut files = FileSet { check_state_first: is_cautious, ..FileSet::default() };
            if task.is_stuck {
                files.nonblocking_only = true;
            } else if task.has_run || task.needs_io_check {
                files.stat = true;
                files.io = !task.is_io_denied;
                files.ioprio = task.raw.ioprio.is_none() || seq.is_multiple_of(5);
                files.wchan = task.is_visible && wait_channels;
                files.status = task.is_visible && has_swap_activity;
            }
            if !task.is_stuck && task.has_been_read && !task.is_secondary_thread() && !task.raw.kernel_thread {
                // Swap of a task changes with the swap counters of the machine, or when the task runs and frees memory.
                files.status |=
                    is_due || task.is_visible && (has_swap_activity || task.has_run && seq.is_multiple_of(5));
                files.cgroup = is_due;
            }
            if task.is_visible && task.has_been_read && !task.is_stuck {
                // Others may change the priority, but not every second.
                files.ioprio |= task.raw.ioprio.is_none() || seq.is_multiple_of(5);
                files.wchan |= wait_channels && !task.is_wait_reported;
            }
            if files != (FileSet { check_state_first: is_cautious, ..FileSet::default() }) {
                let skip_if_io_hash = (task.needs_io_check && !task.has_run && files.io).then_some(task.io_hash);
                self.jobs.push(ReadJob { skip_if_io_hash, ..ReadJob::once(index, task.path(), files) });
            }
        }
    }

    pub(super) fn plan_first_reads(&mut self) {
        self.jobs.clear();
        let files = FileSet { stat: true, io: true, ioprio: true, ..FileSet::default() };
        for (index, task) in self.tasks.iter().enumerate() {
            if !(task.has_been_read || task.has_exited || task.is_denied || task.is_stuck) {
                self.jobs.push(ReadJob::once(index, task.path(), files));
            }
        }
    }

    /// Plans reading names, uid and swap of tasks that are new or have called exec, visible ones first.
    pub(super) fn plan_names(&mut self, limit: usize, has_iter: bool) {
        self.jobs.clear();
        // The command line is a job of its own, because it may hang where the rest does not.
        let cmdline = FileSet { cmdline: true, ..FileSet::default() };
        for is_visible in [true, false] {
            for (index, task) in self.tasks.iter_mut().enumerate() {
                let needs_names = task.needs_names
                    && task.has_been_read
                    && !(task.has_exited || task.is_stuck || task.is_cmdline_stuck);
                if !needs_names
                    || task.is_visible != is_visible
                    || task.is_secondary_thread()
                    || self.jobs.len() / 2 >= limit
                {
                    continue;
                }
                if task.raw.kernel_thread {
                    task.needs_names = false;
                    continue;
                }
                let status_and_cgroup =
                    FileSet { status: !has_iter || task.is_missing_from_iter, cgroup: true, ..FileSet::default() };
                self.jobs.push(ReadJob::once(index, task.path(), status_and_cgroup));
                self.jobs.push(ReadJob::once(index, task.path(), cmdline));
            }
        }
    }

    pub(super) fn apply_files(&mut self, job: &ReadJob, files: TaskFiles, scan: &mut TaskScan) {
        let (delays, update) = (scan.delay_source, &mut scan.update);
        let task = &mut self.tasks[job.task_index as usize];
        task.has_exited |= files.has_exited;
        task.is_denied = files.is_denied;
        if files.has_exited || files.is_denied {
            return;
        }
        let since_ns = task.scanned_ns;
        let changes = task.apply_files(&files, delays, self.page_size);
        update.exited.extend(changes.replaced_key);
        if files.io.is_some() || files.stat.is_some() {
            task.scanned_ns = files.at_ns;
        }
        if changes.has_row_changed {
            let since_ns = if changes.is_first { 0 } else { since_ns };
            push_change(task, &mut update.changed, files.at_ns, since_ns);
        }
        if files.stat.is_some() || job.files.wchan {
            task.is_wait_reported = job.files.wchan || files.wchan.is_some();
        }
        let task = &self.tasks[job.task_index as usize];
        if let Some(function) = &files.wchan {
            update.wait_channels.push((task.raw.key, function.clone()));
        }
        if files.cmdline.is_some() || files.cgroup.is_some() {
            self.apply_names(job, files, update);
        }
    }

    fn apply_names(&mut self, job: &ReadJob, files: TaskFiles, update: &mut ProcessUpdate) {
        let task = &mut self.tasks[job.task_index as usize];
        let mut names = task.names.as_deref().cloned().unwrap_or_default();
        if let Some(text) = &files.cgroup {
            let group = self.cgroups.lookup(text);
            names.cgroup = group.path;
            names.container = group.container;
            task.needs_cgroup = false;
        }
        if let Some(cmdline) = files.cmdline {
            names.cmdline = Some(cmdline);
            task.needs_names = false;
        }
        if task.names.as_deref() != Some(&names) {
            let names: Arc<TaskNames> = Arc::new(names);
            task.names = Some(names.clone());
            // Control group and command line are read by two jobs but reported together.
            match update.names.last_mut().filter(|(key, _)| *key == task.raw.key) {
                Some(last) => last.1 = names,
                None => update.names.push((task.raw.key, names)),
            }
        }
    }

    /// Copies names, uid and swap of a process to its other threads.
    pub(super) fn copy_names_to_threads(&mut self, update: &mut ProcessUpdate) {
        if !self.is_per_thread {
            return;
        }
        for index in 0..self.tasks.len() {
            let task = &self.tasks[index];
            if !task.is_secondary_thread() || !task.needs_names || !task.has_been_read || task.has_exited {
                continue;
            }
            let pid = task.raw.key.pid;
            let Some(main_thread) =
                find_task(&mut self.tasks, pid, pid).filter(|main_thread| main_thread.names.is_some())
            else {
                continue;
            };
            let (names, uid, swap) = (main_thread.names.clone(), main_thread.raw.uid, main_thread.raw.swap_bytes);
            let task = &mut self.tasks[index];
            task.needs_names = false;
            task.raw.uid = uid;
            task.raw.swap_bytes = swap;
            let at_ns = task.scanned_ns;
            push_change(task, &mut update.changed, at_ns, at_ns);
            update.names.extend(names.clone().map(|names| (task.raw.key, names)));
            task.names = names;
        }
    }

    /// Adds threads in D state that have no row.
    pub(super) fn report_thread_states(&mut self, has_iter: bool, update: &mut ProcessUpdate) {
        let Some(proc) = self.proc_fd.as_ref().filter(|_| !self.is_per_thread) else {
            self.thread_states = ThreadStates::default();
            return;
        };
        if !has_iter {
            self.thread_states.read_files(proc, &self.tasks, self.seq);
        }
        let is_unknown = |task: &TaskState| task.is_missing_from_iter && !task.has_exited;
        let are_all_known = has_iter && !self.tasks.iter().any(is_unknown);
        self.thread_states.report(proc, &self.tasks, are_all_known, update);
    }

    /// Adds exited tasks, totals, and everything else if a full update was requested.
    pub(super) fn finish_update(&mut self, options: &ScanOptions, has_iter: bool, update: &mut ProcessUpdate) {
        let mut ended = false;
        let replaced = update.exited.len();
        for task in &self.tasks {
            ended |= task.has_exited;
            match task.has_exited {
                true if task.has_been_read => update.exited.push(task.raw.key),
                true => {}
                false => {
                    update.total += usize::from(task.has_been_read);
                    update.hidden_count += usize::from(task.is_denied || task.raw.io == TaskIoRaw::Denied);
                }
            }
        }
        if ended {
            self.plan_new_parents(&update.exited[replaced..]);
            self.tasks.retain(|task| !task.has_exited);
            let tasks = &mut self.tasks;
            self.stuck_reads.retain(|stuck| find_task(tasks, stuck.path.pid, stuck.path.tid).is_some());
        }
        if options.full_update {
            update.changed.clear();
            update.names.clear();
            for task in self.tasks.iter().filter(|task| task.has_been_read) {
                let raw = task.raw;
                update.changed.push(TaskChange { raw, scanned_ns: task.scanned_ns, previous_scan_ns: 0 });
                update.names.extend(task.names.iter().map(|names| (raw.key, names.clone())));
            }
        }
        update.users = self.user_names.take_unreported(update.changed.iter().filter_map(|change| change.raw.uid));
        for stuck in &self.stuck_reads {
            let key = find_task(&mut self.tasks, stuck.path.pid, stuck.path.tid).map(|task| task.raw.key);
            let unknown = TaskKey { pid: stuck.path.pid, tid: stuck.path.tid, starttime: 0 };
            let mut task = stuck.to_blocked_task(key.unwrap_or(unknown));
            task.counters_readable |= has_iter;
            update.blocked.push(task);
        }
    }

    /// Has the children of ended processes, sorted, read in the next scan: they have a new parent, and may sleep on.
    fn plan_new_parents(&mut self, ended: &[TaskKey]) {
        let has_ended = |pid: u32| ended.binary_search_by_key(&pid, |key| key.pid).is_ok();
        for task in self.tasks.iter_mut().filter(|task| !task.is_secondary_thread() && has_ended(task.raw.ppid)) {
            task.has_run = true;
        }
    }
}

/// Adds a row to the update. A task read twice in one scan is reported once, with the latest values and with the
/// interval of the reading that brought its counters.
pub(super) fn push_change(task: &mut TaskState, changed: &mut Vec<TaskChange>, at_ns: u64, since_ns: u64) {
    if let Some(row) = changed.get_mut(task.change_index as usize) {
        row.raw = task.raw;
        return;
    }
    task.change_index = changed.len() as u32;
    changed.push(TaskChange { raw: task.raw, scanned_ns: at_ns, previous_scan_ns: since_ns });
}

fn find_task(tasks: &mut [TaskState], pid: u32, tid: u32) -> Option<&mut TaskState> {
    let index = tasks.binary_search_by_key(&(pid, tid), TaskState::ids).ok()?;
    Some(&mut tasks[index])
}
