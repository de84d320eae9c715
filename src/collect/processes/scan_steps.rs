//! Steps of a scan: list tasks, check activity, plan reads, apply results.

use super::activity_filter::ProbeResult;
use super::file_reader::{FileSet, ReadJob, TaskFiles};
use super::scan::TaskScan;
use super::stuck_read::MAX_STUCK_THREADS;
use super::task_scanner::TaskScanner;
use super::task_state::{DelaySource, TaskState};
use super::{ScanOptions, task_list};
use crate::model::process::{ProcessUpdate, TaskChange, TaskIoRaw, TaskKey, TaskNames};
use crate::model::reading::Reading;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Scans between two attempts to read a task to which all access was denied.
const DENIED_RETRY_SCANS: u64 = 60;

/// Scans in a row in which a task ran before its descriptors are cached.
pub(super) const HOT_STREAK: u8 = 3;

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
        let switch = self.delayacct_file.read(&mut self.buf).ok().map(|text| text.trim_ascii() != b"0");
        let is_off = switch == Some(false);
        if is_off {
            update.delays = Reading::Absent(super::detail::DELAYACCT_OFF.into());
            return DelaySource::Off;
        }
        if !options.delays {
            update.delays = Reading::Absent("delays were not requested".into());
            return DelaySource::Off;
        }
        update.delays = Reading::Ok(());
        if self.activity_filter.taskstats.ok().is_some() || has_iter && switch.is_some() {
            return DelaySource::Taskstats;
        }
        if switch.is_none() {
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
            if let Some(entry) = find_task(&mut self.tasks, job.path.pid, job.path.tid) {
                entry.has_run |= entry.is_stuck;
                entry.is_stuck = false;
                entry.needs_names |= entry.is_cmdline_stuck;
                entry.is_cmdline_stuck = false;
            }
        }
    }

    pub(super) fn list_processes(&mut self) -> Result<(), Errno> {
        let Some(proc) = self.proc_fd.clone() else { return Ok(()) };
        task_list::list_ids(proc.as_fd(), &mut self.dir_buf, &mut self.ids)?;
        let (known, mut index) = (self.tasks.len(), 0);
        for n in 0..self.ids.len() {
            let pid = self.ids[n];
            while index < known && self.tasks[index].raw.key.pid < pid {
                index += 1;
            }
            if index == known || self.tasks[index].raw.key.pid != pid {
                self.tasks.push(TaskState::new(pid, pid, self.is_per_thread));
            }
        }
        if self.tasks.len() > known {
            sort_tasks(&mut self.tasks);
        }
        Ok(())
    }

    /// Adds the threads of multi-threaded processes. With the iterator only those of processes that it leaves out.
    /// Returns whether there were new ones.
    pub(super) fn list_threads(&mut self, has_iter: bool) -> bool {
        let Some(proc) = self.proc_fd.clone() else { return false };
        let known = self.tasks.len();
        for index in 0..known {
            let entry = &self.tasks[index];
            let pid = entry.raw.key.pid;
            if entry.is_secondary_thread()
                || entry.has_exited
                || entry.raw.num_threads < 2
                || has_iter && !entry.is_missing_from_iter
            {
                continue;
            }
            if task_list::list_thread_ids(proc.as_fd(), pid, &mut self.dir_buf, &mut self.ids).is_err() {
                continue;
            }
            for n in 0..self.ids.len() {
                let tid = self.ids[n];
                if find_task(&mut self.tasks[..known], pid, tid).is_none() {
                    self.tasks.push(TaskState { is_missing_from_iter: has_iter, ..TaskState::new(pid, tid, true) });
                }
            }
        }
        if self.tasks.len() > known {
            sort_tasks(&mut self.tasks);
        }
        self.tasks.len() > known
    }

    pub(super) fn sort_tasks(&mut self) {
        sort_tasks(&mut self.tasks);
    }

    pub(super) fn mark_visible(&mut self, options: &ScanOptions) {
        for entry in &mut self.tasks {
            entry.is_visible = options.all_visible;
            entry.change_index = u32::MAX;
        }
        for key in &options.visible {
            if let Some(entry) = find_task(&mut self.tasks, key.pid, key.tid) {
                entry.is_visible = true;
            }
        }
    }

    /// Lists the tasks to check for activity; `unknown` restricts it to tasks never read.
    pub(super) fn list_probe_targets(&mut self, unknown: bool) {
        self.probe_targets.clear();
        self.probe_task_indexes.clear();
        for (n, entry) in self.tasks.iter().enumerate() {
            if !(entry.has_exited || unknown && entry.has_been_read) {
                self.probe_targets.push(entry.path());
                self.probe_task_indexes.push(n as u32);
            }
        }
    }

    /// Applies the result of an activity check.
    pub(super) fn apply_probe(&mut self, target: usize, activity: ProbeResult, delays: DelaySource, now: u64) {
        apply_probe(&mut self.tasks[self.probe_task_indexes[target] as usize], activity, delays, now);
    }

    /// Plans which files of which tasks to read.
    pub(super) fn plan_reads(&mut self, seq: u64, wait_channels: bool) {
        let has_swap_activity = self.swap_activity.has_changed();
        let is_cautious = self.hung_threads >= CAUTIOUS_FROM;
        let len = self.tasks.len();
        let budget = if has_swap_activity { (len / 10).clamp(50, 2_000) } else { (len / 200).clamp(1, 100) };
        let round_start = self.round_position % len.max(1);
        self.round_position = round_start + budget;
        self.jobs.clear();
        for (index, entry) in self.tasks.iter_mut().enumerate() {
            entry.run_streak = if entry.has_run { entry.run_streak.saturating_add(1) } else { 0 };
            if entry.has_exited || entry.is_denied && !seq.is_multiple_of(DENIED_RETRY_SCANS) {
                continue;
            }
            let is_due = index.wrapping_sub(round_start) < budget || index + len - round_start < budget;
            let mut what = FileSet { check_state_first: is_cautious, ..FileSet::default() };
            if entry.is_stuck {
                what.nonblocking_only = true;
            } else if entry.has_run || entry.needs_io_check {
                what.stat = true;
                what.io = !entry.is_io_denied;
                what.ioprio = entry.raw.ioprio.is_none() || seq.is_multiple_of(5);
                what.wchan = entry.is_visible && wait_channels;
                what.status = entry.is_visible && has_swap_activity;
            }
            if !entry.is_stuck && entry.has_been_read && !entry.is_secondary_thread() && !entry.raw.kernel_thread {
                // Swap of a task changes with the swap counters of the machine, or when the task runs and frees memory.
                what.status |=
                    is_due || entry.is_visible && (has_swap_activity || entry.has_run && seq.is_multiple_of(5));
                what.cgroup = is_due;
            }
            if entry.is_visible && entry.has_been_read && !entry.is_stuck {
                // Others may change the priority, but not every second.
                what.ioprio |= entry.raw.ioprio.is_none() || seq.is_multiple_of(5);
                what.wchan |= wait_channels && !entry.is_wait_reported;
            }
            if what != (FileSet { check_state_first: is_cautious, ..FileSet::default() }) {
                let unless_io = (entry.needs_io_check && !entry.has_run && what.io).then_some(entry.io_hash);
                let (target, hot) = (entry.path(), entry.run_streak >= HOT_STREAK);
                self.jobs.push(ReadJob {
                    task_index: index as u32,
                    path: target,
                    files: what,
                    skip_if_io_hash: unless_io,
                    is_hot: hot,
                });
            }
        }
    }

    pub(super) fn plan_first_reads(&mut self) {
        self.jobs.clear();
        let what = FileSet { stat: true, io: true, ioprio: true, ..FileSet::default() };
        for (index, entry) in self.tasks.iter().enumerate() {
            if !(entry.has_been_read || entry.has_exited || entry.is_denied || entry.is_stuck) {
                self.jobs.push(ReadJob::once(index, entry.path(), what));
            }
        }
    }

    /// Plans reading names, uid and swap of tasks that are new or have called exec, visible ones first.
    pub(super) fn plan_names(&mut self, limit: usize, has_iter: bool) {
        self.jobs.clear();
        // The command line is a job of its own, because it may hang where the rest does not.
        let cmdline = FileSet { cmdline: true, ..FileSet::default() };
        for focus in [true, false] {
            for (index, entry) in self.tasks.iter_mut().enumerate() {
                let wanted = entry.needs_names
                    && entry.has_been_read
                    && !(entry.has_exited || entry.is_stuck || entry.is_cmdline_stuck);
                if !wanted || entry.is_visible != focus || entry.is_secondary_thread() || self.jobs.len() / 2 >= limit {
                    continue;
                }
                if entry.raw.kernel_thread {
                    entry.needs_names = false;
                    continue;
                }
                let safe =
                    FileSet { status: !has_iter || entry.is_missing_from_iter, cgroup: true, ..FileSet::default() };
                self.jobs.push(ReadJob::once(index, entry.path(), safe));
                self.jobs.push(ReadJob::once(index, entry.path(), cmdline));
            }
        }
    }

    /// Applies what was read of a task.
    pub(super) fn apply_files(&mut self, job: &ReadJob, files: TaskFiles, scan: &mut TaskScan) {
        let (delays, update) = (scan.delay_source, &mut scan.update);
        let entry = &mut self.tasks[job.task_index as usize];
        entry.has_exited |= files.has_exited;
        entry.is_denied = files.is_denied;
        if files.has_exited || files.is_denied {
            return;
        }
        let since_ns = entry.scanned_ns;
        let changes = entry.apply_files(&files, delays, self.page_size);
        update.exited.extend(changes.replaced_key);
        if files.io.is_some() || files.stat.is_some() {
            entry.scanned_ns = files.at_ns;
        }
        if changes.has_row_changed {
            let since_ns = if changes.is_first { 0 } else { since_ns };
            push_change(entry, &mut update.changed, files.at_ns, since_ns);
        }
        if files.stat.is_some() || job.files.wchan {
            entry.is_wait_reported = job.files.wchan || files.wchan.is_some();
        }
        let entry = &self.tasks[job.task_index as usize];
        if let Some(wait) = &files.wchan {
            let wait = match self.wait_channels.get(&**wait) {
                Some(known) => known.clone(),
                None => {
                    let wait: Arc<str> = Arc::from(&**wait);
                    self.wait_channels.insert(wait.clone());
                    wait
                }
            };
            update.wait_channels.push((entry.raw.key, wait));
        }
        if files.cmdline.is_some() || files.cgroup.is_some() {
            self.apply_names(job, files, update);
        }
    }

    fn apply_names(&mut self, job: &ReadJob, files: TaskFiles, update: &mut ProcessUpdate) {
        let entry = &mut self.tasks[job.task_index as usize];
        let mut names = entry.names.as_deref().cloned().unwrap_or_default();
        if let Some(text) = &files.cgroup {
            let group = self.cgroups.lookup(text);
            names.cgroup = group.path;
            names.container = group.container;
            entry.needs_cgroup = false;
        }
        if let Some(cmdline) = files.cmdline {
            names.cmdline = Some(cmdline);
            entry.needs_names = false;
        }
        if entry.names.as_deref() != Some(&names) {
            let names: Arc<TaskNames> = Arc::new(names);
            entry.names = Some(names.clone());
            // Control group and command line are read by two jobs but reported together.
            match update.names.last_mut().filter(|(key, _)| *key == entry.raw.key) {
                Some(last) => last.1 = names,
                None => update.names.push((entry.raw.key, names)),
            }
        }
    }

    /// Copies names, uid and swap of a process to its other threads.
    pub(super) fn copy_names_to_threads(&mut self, update: &mut ProcessUpdate) {
        if !self.is_per_thread {
            return;
        }
        for index in 0..self.tasks.len() {
            let entry = &self.tasks[index];
            if !entry.is_secondary_thread() || !entry.needs_names || !entry.has_been_read || entry.has_exited {
                continue;
            }
            let pid = entry.raw.key.pid;
            let Some(main) = find_task(&mut self.tasks, pid, pid).filter(|main| main.names.is_some()) else {
                continue;
            };
            let (names, uid, swap) = (main.names.clone(), main.raw.uid, main.raw.swap_bytes);
            let entry = &mut self.tasks[index];
            entry.needs_names = false;
            entry.raw.uid = uid;
            entry.raw.swap_bytes = swap;
            let at_ns = entry.scanned_ns;
            push_change(entry, &mut update.changed, at_ns, at_ns);
            update.names.extend(names.clone().map(|names| (entry.raw.key, names)));
            entry.names = names;
        }
    }

    /// Adds exited tasks, totals, and everything else if a full update was requested.
    pub(super) fn finish_update(&mut self, options: &ScanOptions, has_iter: bool, update: &mut ProcessUpdate) {
        let mut ended = false;
        for entry in &self.tasks {
            ended |= entry.has_exited;
            match entry.has_exited {
                true if entry.has_been_read => update.exited.push(entry.raw.key),
                true => {}
                false => {
                    update.total += usize::from(entry.has_been_read);
                    update.hidden_count += usize::from(entry.is_denied || entry.raw.io == TaskIoRaw::Denied);
                }
            }
        }
        if ended {
            self.tasks.retain(|entry| !entry.has_exited);
            let entries = &mut self.tasks;
            self.stuck_reads.retain(|stuck| find_task(entries, stuck.path.pid, stuck.path.tid).is_some());
        }
        if options.full_update {
            update.changed.clear();
            update.names.clear();
            for entry in self.tasks.iter().filter(|entry| entry.has_been_read) {
                let raw = entry.raw;
                update.changed.push(TaskChange { raw, scanned_ns: entry.scanned_ns, previous_scan_ns: 0 });
                update.names.extend(entry.names.iter().map(|names| (raw.key, names.clone())));
            }
        }
        let mut uids: Vec<u32> = update.changed.iter().filter_map(|change| change.raw.uid).collect();
        uids.sort_unstable();
        uids.dedup();
        uids.retain(|uid| !self.user_names.has_reported(*uid));
        update.users = self.user_names.take_unreported(&uids);
        for stuck in &self.stuck_reads {
            let key = find_task(&mut self.tasks, stuck.path.pid, stuck.path.tid).map(|entry| entry.raw.key);
            let unknown = TaskKey { pid: stuck.path.pid, tid: stuck.path.tid, starttime: 0 };
            let mut task = stuck.to_blocked_task(key.unwrap_or(unknown));
            task.counters_readable |= has_iter;
            update.blocked.push(task);
        }
    }
}

fn apply_probe(entry: &mut TaskState, activity: ProbeResult, delays: DelaySource, now: u64) {
    entry.needs_io_check = false;
    match activity {
        ProbeResult::Exited => entry.has_exited = true,
        ProbeResult::Unknown => entry.has_run = true,
        ProbeResult::RunCounts { counts: runs, delays: waited, covers_all_threads: whole } => {
            entry.needs_io_check = !whole && entry.raw.num_threads > 1;
            if delays == DelaySource::Taskstats {
                entry.raw.delays = waited;
            }
            if runs != entry.run_counts {
                entry.run_counts = runs;
                entry.has_run = true;
                entry.is_wait_reported = false;
            } else if !entry.has_run && !entry.needs_io_check && entry.has_been_read {
                entry.scanned_ns = now;
            }
        }
    }
}

/// Adds a row to the update. A task read twice in one scan is reported once, with the latest values and with the
/// interval of the reading that brought its counters.
pub(super) fn push_change(entry: &mut TaskState, changed: &mut Vec<TaskChange>, at_ns: u64, since_ns: u64) {
    if let Some(row) = changed.get_mut(entry.change_index as usize) {
        row.raw = entry.raw;
        return;
    }
    entry.change_index = changed.len() as u32;
    changed.push(TaskChange { raw: entry.raw, scanned_ns: at_ns, previous_scan_ns: since_ns });
}

fn sort_tasks(entries: &mut [TaskState]) {
    entries.sort_by_key(|entry| (entry.raw.key.pid, entry.raw.key.tid));
}

fn find_task(entries: &mut [TaskState], pid: u32, tid: u32) -> Option<&mut TaskState> {
    let index = entries.binary_search_by_key(&(pid, tid), |e| (e.raw.key.pid, e.raw.key.tid)).ok()?;
    Some(&mut entries[index])
}
