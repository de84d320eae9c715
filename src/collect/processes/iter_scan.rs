//! Scans tasks with the BPF task iterator ([`crate::bpf::task_iter`]) instead of their files.
//!
//! The iterator reports what changes from scan to scan. Files provide what changes rarely or what the iterator cannot
//! report: command lines, control group names, wait channels, exact swap. No lock of a task is taken, so no task can
//! block the iterator.
//!
//! The iterator may leave out tasks that `/proc` shows. Therefore `/proc` is listed before the first pass and at
//! intervals, and tasks missing from the iterator are read from files.

use super::file_reader::{FileSet, ReadJob};
use super::scan_steps::{CAUTIOUS_FROM, push_change};
use super::task_scanner::{IterScanner, TaskScan, TaskScanner};
use super::task_state::TaskState;
use crate::bpf::ProbeHandle;
use crate::bpf::task_iter::{TaskIter, TaskIterProbe, TaskRecord};
use crate::model::reading::describe_io_error;
use std::io;
use std::ops::Range;

const LISTING_INTERVAL_SCANS: u64 = 60;

/// Scans in which every task is read once from files for what the iterator does not report, a few tasks at a time.
const ROUND_SCANS: usize = 200;
const MAX_DUE: usize = 100;

/// Returns the tasks due in this scan, out of `tasks`.
fn due_tasks(tasks: usize, scan_number: usize) -> Range<usize> {
    let scans = ROUND_SCANS.max(tasks.div_ceil(MAX_DUE));
    let scan_number = scan_number % scans;
    tasks * scan_number / scans..tasks * (scan_number + 1) / scans
}

/// Position in the list of tasks.
struct IterCursor {
    /// Number of tasks known before the pass; new ones follow them, unsorted.
    known_tasks: usize,
    /// Likely index of the next record: tasks arrive nearly in list order.
    next_index: usize,
}

impl TaskScanner {
    /// Uses the iterator whenever it is loaded.
    pub fn with_task_iter(mut self, probe: ProbeHandle<TaskIterProbe>) -> Self {
        self.iter_scanner.probe = Some(probe);
        self
    }

    /// Returns the iterator if it is loaded and its task IDs are those of this `/proc`.
    pub(super) fn task_iter(&self) -> Option<TaskIter> {
        self.iter_scanner.probe.as_ref().filter(|_| self.is_live)?.read().ok().cloned()
    }

    /// Scans with the iterator. Returns false on failure and adds a note; the caller then reads files.
    pub(super) fn scan_by_iter(&mut self, task_iter: &TaskIter, scan: &mut TaskScan) -> bool {
        let is_first_pass = !std::mem::replace(&mut self.iter_scanner.was_active, true);
        scan.may_have_new_tasks = is_first_pass || scan.update.reset || self.seq.is_multiple_of(LISTING_INTERVAL_SCANS);
        let listed = if scan.may_have_new_tasks { self.list_processes().map_err(io::Error::from) } else { Ok(()) };
        match listed.and_then(|()| self.run_iter(task_iter, scan)) {
            Ok(()) => {
                self.plan_reads_after_iter(scan.options.wait_channels);
                true
            }
            Err(err) => {
                let why = describe_io_error(&err);
                scan.update.notes.push(format!("the task iterator failed ({why}): reading files instead"));
                false
            }
        }
    }

    /// Forgets which tasks are missing from the iterator, because this scan reads files.
    pub(super) fn reset_iter_state(&mut self) {
        if !std::mem::take(&mut self.iter_scanner.was_active) {
            return;
        }
        for task in &mut self.tasks {
            task.is_missing_from_iter = false;
        }
    }

    fn run_iter(&mut self, task_iter: &TaskIter, scan: &mut TaskScan) -> io::Result<()> {
        let mut cursor = IterCursor { known_tasks: self.tasks.len(), next_index: 0 };
        let mut iter = std::mem::take(&mut self.iter_scanner);
        let result = self.apply_all_records(task_iter, &mut iter, &mut cursor, scan);
        self.iter_scanner = iter;
        self.sort_new_tasks(cursor.known_tasks);
        result?;
        for task in &mut self.tasks {
            if task.last_iter_seq != self.seq {
                task.is_missing_from_iter |= scan.may_have_new_tasks;
                task.has_exited |= !task.is_missing_from_iter;
            }
        }
        Ok(())
    }

    fn apply_all_records(
        &mut self,
        task_iter: &TaskIter,
        iter: &mut IterScanner,
        cursor: &mut IterCursor,
        scan: &mut TaskScan,
    ) -> io::Result<()> {
        let is_per_thread = self.is_per_thread;
        iter.thread_groups.clear();
        self.thread_states.clear_found();
        task_iter.read_all(is_per_thread, &mut iter.buf, |record, now| {
            match is_per_thread || record.thread_count == 1 {
                true => self.apply_record(record, true, now, cursor, scan),
                false => {
                    iter.thread_groups.add(record, now);
                    self.thread_states.add_record(record);
                }
            }
        })?;
        for process in iter.thread_groups.processes() {
            self.apply_record(&process.record, process.is_complete(), process.at_ns, cursor, scan);
        }
        Ok(())
    }

    fn apply_record(
        &mut self,
        record: &TaskRecord,
        is_complete: bool,
        now: u64,
        cursor: &mut IterCursor,
        scan: &mut TaskScan,
    ) {
        let index = self.find_or_insert(record, cursor, scan);
        let task = &mut self.tasks[index];
        task.last_iter_seq = self.seq;
        task.has_exited = false;
        task.is_missing_from_iter = false;
        task.needs_io_check = !is_complete;
        if !is_complete {
            return;
        }
        let since_ns = task.scanned_ns;
        let changes = task.apply_iter_record(record, scan.delay_source, self.page_size);
        task.scanned_ns = now;
        scan.update.exited.extend(changes.replaced_key);
        if changes.has_row_changed {
            let since_ns = if changes.is_first { 0 } else { since_ns };
            push_change(task, &mut scan.update.changed, now, since_ns);
        }
    }

    /// Returns the index of a task, which is added if it is new.
    fn find_or_insert(&mut self, record: &TaskRecord, cursor: &mut IterCursor, scan: &TaskScan) -> usize {
        let ids = (record.pid, record.tid);
        let known = &self.tasks[..cursor.known_tasks];
        let is_next = known.get(cursor.next_index).is_some_and(|task| task.ids() == ids);
        let found = if is_next { Ok(cursor.next_index) } else { known.binary_search_by_key(&ids, TaskState::ids) };
        if let Ok(index) = found {
            cursor.next_index = index + 1;
            return index;
        }
        let is_visible = scan.options.all_visible;
        self.tasks.push(TaskState { is_visible, ..TaskState::new(record.pid, record.tid, self.is_per_thread) });
        self.tasks.len() - 1
    }

    pub(super) fn plan_reads_after_iter(&mut self, wait_channels: bool) {
        let has_swap_activity = self.swap_activity.has_changed();
        let is_swap_used = self.swap_activity.is_swap_used;
        let len = self.tasks.len();
        let due = due_tasks(len, self.round_position);
        self.round_position = self.round_position.wrapping_add(1);
        let mut budget = due.len().max(1);
        let has_v1_hierarchies = self.cgroups.has_v1_hierarchies;
        let (is_cautious, seq) = (self.hung_threads >= CAUTIOUS_FROM, self.seq);
        self.jobs.clear();
        for (index, task) in self.tasks.iter_mut().enumerate() {
            if task.has_exited || task.is_stuck {
                continue;
            }
            let due = due.contains(&index);
            let mut files = FileSet::default();
            let by_files = task.needs_io_check || task.is_missing_from_iter;
            if by_files {
                let ioprio = task.raw.ioprio.is_none() || seq.is_multiple_of(5);
                files = FileSet { stat: true, io: !task.is_io_denied, ioprio, check_state_first: is_cautious, ..files };
                files.status = task.raw.uid.is_none();
            }
            files.wchan = !task.is_wait_reported && (task.raw.state == b'D' || task.is_visible && wait_channels);
            if is_swap_used && !task.is_secondary_thread() && task.iter_swap_bytes.is_some() && !task.is_iter_swap_exact
            {
                files.status |= (task.is_visible || due) && (has_swap_activity || task.swap_correction.is_none());
            }
            // New tasks have their names read, and the control group with them.
            if !task.needs_names && !task.raw.kernel_thread && !task.is_secondary_thread() {
                files.cgroup = due && has_v1_hierarchies;
                if task.needs_cgroup && (task.is_visible || budget > 0) {
                    budget = budget.saturating_sub(1);
                    files.cgroup = true;
                }
            }
            if files != FileSet::default() {
                self.jobs.push(ReadJob::once(index, task.path(), files));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ScanOptions;
    use super::*;
    use crate::root::Root;

    #[test]
    fn every_task_is_due_once_per_round() {
        for (tasks, scans) in [(0, 200), (1, 200), (70, 200), (201, 200), (20_000, 200), (100_001, 1001)] {
            let turns: Vec<_> = (0..scans).map(|scan_number| due_tasks(tasks, scan_number)).collect();
            assert!(turns.iter().cloned().flatten().eq(0..tasks), "{tasks}");
            assert!(turns.iter().all(|generation| generation.len() <= MAX_DUE) && due_tasks(tasks, scans) == turns[0]);
        }
    }

    #[test]
    fn a_failed_iterator_adds_a_note_and_falls_back_to_files() {
        let mut tasks = TaskScanner::new(&Root::live());
        assert!(tasks.task_iter().is_none(), "no tracer");
        tasks.begin_scan(ScanOptions::default()).unwrap();
        let mut scan = tasks.scan.take().unwrap();
        assert!(!tasks.scan_by_iter(&TaskIter::default(), &mut scan));
        let notes = &scan.update.notes;
        assert!(notes[0].contains("task iterator failed") && notes[0].ends_with("reading files instead"));
        assert!(tasks.tasks.iter().any(|e| e.raw.key.pid == std::process::id() && !e.has_exited));
    }
}
