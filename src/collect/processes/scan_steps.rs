//! The steps of a look at all tasks: list, probe, read, tell.

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

/// Looks between two tries at a task of which everything was refused.
const DENIED_RETRY_SCANS: u64 = 60;

/// Looks in a row at which a task was found to have run, from which on it is read with kept descriptors.
pub(super) const HOT_STREAK: u8 = 3;

/// Stuck threads from which on tasks in state D are not touched any more.
pub(super) const CAUTIOUS_FROM: usize = MAX_STUCK_THREADS - 2;

impl TaskScanner {
    /// Where waiting times come from this time, told in the update.
    pub(super) fn choose_delay_source(
        &mut self,
        wants: &ScanOptions,
        walks: bool,
        update: &mut ProcessUpdate,
    ) -> DelaySource {
        let switch = self.delayacct_file.read(&mut self.buf).ok().map(|text| text.trim_ascii() != b"0");
        let off = switch == Some(false);
        if off {
            update.delays = Reading::Absent(super::detail::DELAYACCT_OFF.into());
            return DelaySource::Off;
        }
        if !wants.delays {
            update.delays = Reading::Absent("waiting times were not asked for".into());
            return DelaySource::Off;
        }
        update.delays = Reading::Ok(());
        if self.activity_filter.taskstats.ok().is_some() || walks && switch.is_some() {
            return DelaySource::Taskstats;
        }
        if switch.is_none() {
            update.delays = self.activity_filter.taskstats.clone();
            return DelaySource::Off;
        }
        if let Some(why) = self.activity_filter.taskstats.unavailable_reason(update.time.boot_ns) {
            update.notes.push(format!("no swap-in delays, I/O delays in steps of 10 ms: {why}"));
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
        let (known, mut at) = (self.tasks.len(), 0);
        for n in 0..self.ids.len() {
            let pid = self.ids[n];
            while at < known && self.tasks[at].raw.key.pid < pid {
                at += 1;
            }
            if at == known || self.tasks[at].raw.key.pid != pid {
                self.tasks.push(TaskState::new(pid, pid, self.is_per_thread));
            }
        }
        if self.tasks.len() > known {
            sort_tasks(&mut self.tasks);
        }
        Ok(())
    }

    /// Adds the threads of processes with several, of those only that walks leave out if there was one; tells
    /// whether there were new ones.
    pub(super) fn list_threads(&mut self, walked: bool) -> bool {
        let Some(proc) = self.proc_fd.clone() else { return false };
        let known = self.tasks.len();
        for at in 0..known {
            let entry = &self.tasks[at];
            let pid = entry.raw.key.pid;
            if entry.is_secondary_thread()
                || entry.has_exited
                || entry.raw.num_threads < 2
                || walked && !entry.is_missing_from_iter
            {
                continue;
            }
            if task_list::list_thread_ids(proc.as_fd(), pid, &mut self.dir_buf, &mut self.ids).is_err() {
                continue;
            }
            for n in 0..self.ids.len() {
                let tid = self.ids[n];
                if find_task(&mut self.tasks[..known], pid, tid).is_none() {
                    self.tasks.push(TaskState { is_missing_from_iter: walked, ..TaskState::new(pid, tid, true) });
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

    pub(super) fn mark_visible(&mut self, wants: &ScanOptions) {
        for entry in &mut self.tasks {
            entry.is_visible = wants.all_visible;
            entry.change_index = u32::MAX;
        }
        for key in &wants.visible {
            if let Some(entry) = find_task(&mut self.tasks, key.pid, key.tid) {
                entry.is_visible = true;
            }
        }
    }

    /// Who is to be probed; `unknown` restricts it to tasks never read.
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

    /// Takes in what the probe says of a place.
    pub(super) fn apply_probe(&mut self, place: usize, probed: ProbeResult, delays: DelaySource, now: u64) {
        apply_probe(&mut self.tasks[self.probe_task_indexes[place] as usize], probed, delays, now);
    }

    /// What to read of whom.
    pub(super) fn plan_reads(&mut self, seq: u64, waits: bool) {
        let moved = self.swap_activity.has_changed();
        let wary = self.hung_threads >= CAUTIOUS_FROM;
        let len = self.tasks.len();
        let budget = if moved { (len / 10).clamp(50, 2_000) } else { (len / 200).clamp(1, 100) };
        let round = self.round_position % len.max(1);
        self.round_position = round + budget;
        self.jobs.clear();
        for (at, entry) in self.tasks.iter_mut().enumerate() {
            entry.run_streak = if entry.has_run { entry.run_streak.saturating_add(1) } else { 0 };
            if entry.has_exited || entry.is_denied && !seq.is_multiple_of(DENIED_RETRY_SCANS) {
                continue;
            }
            let due = at.wrapping_sub(round) < budget || at + len - round < budget;
            let mut what = FileSet { check_state_first: wary, ..FileSet::default() };
            if entry.is_stuck {
                what.nonblocking_only = true;
            } else if entry.has_run || entry.needs_io_check {
                what.stat = true;
                what.io = !entry.is_io_denied;
                what.ioprio = entry.raw.ioprio.is_none() || seq.is_multiple_of(5);
                what.wchan = entry.is_visible && waits;
                what.status = entry.is_visible && moved;
            }
            if !entry.is_stuck && entry.has_been_read && !entry.is_secondary_thread() && !entry.raw.kernel_thread {
                // Swap moves with the machine's swap counters, or when the task itself runs and lets go of memory.
                what.status |= due || entry.is_visible && (moved || entry.has_run && seq.is_multiple_of(5));
                what.cgroup = due;
            }
            if entry.is_visible && entry.has_been_read && !entry.is_stuck {
                // Somebody else may change it, but not every second.
                what.ioprio |= entry.raw.ioprio.is_none() || seq.is_multiple_of(5);
                what.wchan |= waits && !entry.is_wait_reported;
            }
            if what != (FileSet { check_state_first: wary, ..FileSet::default() }) {
                let unless_io = (entry.needs_io_check && !entry.has_run && what.io).then_some(entry.io_hash);
                let (place, hot) = (entry.path(), entry.run_streak >= HOT_STREAK);
                self.jobs.push(ReadJob {
                    task_index: at as u32,
                    path: place,
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
        for (at, entry) in self.tasks.iter().enumerate() {
            if !(entry.has_been_read || entry.has_exited || entry.is_denied || entry.is_stuck) {
                self.jobs.push(ReadJob::once(at, entry.path(), what));
            }
        }
    }

    /// Names, uid and swap of tasks that are new or exec'd; visible ones first.
    pub(super) fn plan_names(&mut self, most: usize, walked: bool) {
        self.jobs.clear();
        // The command line by itself, since it may hang where the rest does not.
        let cmdline = FileSet { cmdline: true, ..FileSet::default() };
        for focus in [true, false] {
            for (at, entry) in self.tasks.iter_mut().enumerate() {
                let wanted = entry.needs_names
                    && entry.has_been_read
                    && !(entry.has_exited || entry.is_stuck || entry.is_cmdline_stuck);
                if !wanted || entry.is_visible != focus || entry.is_secondary_thread() || self.jobs.len() / 2 >= most {
                    continue;
                }
                if entry.raw.kernel_thread {
                    entry.needs_names = false;
                    continue;
                }
                let safe =
                    FileSet { status: !walked || entry.is_missing_from_iter, cgroup: true, ..FileSet::default() };
                self.jobs.push(ReadJob::once(at, entry.path(), safe));
                self.jobs.push(ReadJob::once(at, entry.path(), cmdline));
            }
        }
    }

    /// Takes in what was read of a task.
    pub(super) fn apply_files(&mut self, job: &ReadJob, got: TaskFiles, pass: &mut TaskScan) {
        let (delays, update) = (pass.delay_source, &mut pass.update);
        let entry = &mut self.tasks[job.task_index as usize];
        entry.has_exited |= got.has_exited;
        entry.is_denied = got.is_denied;
        if got.has_exited || got.is_denied {
            return;
        }
        let since_ns = entry.scanned_ns;
        let changes = entry.apply_files(&got, delays, self.page_size);
        update.exited.extend(changes.replaced_key);
        if got.io.is_some() || got.stat.is_some() {
            entry.scanned_ns = got.at_ns;
        }
        if changes.has_row_changed {
            let since_ns = if changes.is_first { 0 } else { since_ns };
            push_change(entry, &mut update.changed, got.at_ns, since_ns);
        }
        if got.stat.is_some() || job.files.wchan {
            entry.is_wait_reported = job.files.wchan || got.wchan.is_some();
        }
        let entry = &self.tasks[job.task_index as usize];
        if let Some(wait) = &got.wchan {
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
        if got.cmdline.is_some() || got.cgroup.is_some() {
            self.apply_names(job, got, update);
        }
    }

    fn apply_names(&mut self, job: &ReadJob, got: TaskFiles, update: &mut ProcessUpdate) {
        let entry = &mut self.tasks[job.task_index as usize];
        let mut names = entry.names.as_deref().cloned().unwrap_or_default();
        if let Some(text) = &got.cgroup {
            let group = self.cgroups.lookup(text);
            names.cgroup = group.path;
            names.container = group.container;
            entry.needs_cgroup = false;
        }
        if let Some(cmdline) = got.cmdline {
            names.cmdline = Some(cmdline);
            entry.needs_names = false;
        }
        if entry.names.as_deref() != Some(&names) {
            let names: Arc<TaskNames> = Arc::new(names);
            entry.names = Some(names.clone());
            // Group and command line come as two readings: told together.
            match update.names.last_mut().filter(|(key, _)| *key == entry.raw.key) {
                Some(last) => last.1 = names,
                None => update.names.push((entry.raw.key, names)),
            }
        }
    }

    /// Threads take names, uid and swap from their process.
    pub(super) fn copy_names_to_threads(&mut self, update: &mut ProcessUpdate) {
        if !self.is_per_thread {
            return;
        }
        for at in 0..self.tasks.len() {
            let entry = &self.tasks[at];
            if !entry.is_secondary_thread() || !entry.needs_names || !entry.has_been_read || entry.has_exited {
                continue;
            }
            let pid = entry.raw.key.pid;
            let Some(main) = find_task(&mut self.tasks, pid, pid).filter(|main| main.names.is_some()) else {
                continue;
            };
            let (names, uid, swap) = (main.names.clone(), main.raw.uid, main.raw.swap_bytes);
            let entry = &mut self.tasks[at];
            entry.needs_names = false;
            entry.raw.uid = uid;
            entry.raw.swap_bytes = swap;
            let at_ns = entry.scanned_ns;
            push_change(entry, &mut update.changed, at_ns, at_ns);
            update.names.extend(names.clone().map(|names| (entry.raw.key, names)));
            entry.names = names;
        }
    }

    /// Ends, sums, and what a new listener needs.
    pub(super) fn finish_update(&mut self, wants: &ScanOptions, walked: bool, update: &mut ProcessUpdate) {
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
        if wants.full_update {
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
            task.counters_readable |= walked;
            update.blocked.push(task);
        }
    }
}

fn apply_probe(entry: &mut TaskState, probed: ProbeResult, delays: DelaySource, now: u64) {
    entry.needs_io_check = false;
    match probed {
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

/// Puts the row into the update. A task read twice in one look is told once: with what is known last,
/// and with the interval of the reading that brought its counters.
pub(super) fn push_change(entry: &mut TaskState, changed: &mut Vec<TaskChange>, at_ns: u64, since_ns: u64) {
    if let Some(told) = changed.get_mut(entry.change_index as usize) {
        told.raw = entry.raw;
        return;
    }
    entry.change_index = changed.len() as u32;
    changed.push(TaskChange { raw: entry.raw, scanned_ns: at_ns, previous_scan_ns: since_ns });
}

fn sort_tasks(entries: &mut [TaskState]) {
    entries.sort_by_key(|entry| (entry.raw.key.pid, entry.raw.key.tid));
}

fn find_task(entries: &mut [TaskState], pid: u32, tid: u32) -> Option<&mut TaskState> {
    let at = entries.binary_search_by_key(&(pid, tid), |e| (e.raw.key.pid, e.raw.key.tid)).ok()?;
    Some(&mut entries[at])
}
