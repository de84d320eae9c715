//! A look at all tasks by the kernel's own list of them ([`crate::trace::tasks`]) instead of by their files.
//!
//! What changes from look to look comes with it; from files comes what changes seldom or cannot be told there:
//! command lines, names of groups, wait channels, exact swap. No lock of a task is taken on the way, so none can hold
//! it up.
//!
//! A kernel may keep tasks out of its list that it shows in `/proc`. So `/proc` is listed before the first walk and
//! now and then, and what no walk tells is read as ever.

use super::file_reader::{FileSet, ReadJob};
use super::scan::TaskScan;
use super::scan_steps::{CAUTIOUS_FROM, HOT_STREAK, push_change};
use super::task_scanner::TaskScanner;
use super::task_state::{DelaySource, TaskState};
use super::thread_groups::ThreadGroups;
use crate::bpf::ProbeHandle;
use crate::bpf::task_iter::{PassGeneration, TaskIter, TaskIterItem, TaskIterProbe as Traced, TaskRecord};
use crate::collect::clock::boot_ns;
use crate::model::reading::describe_io_error;
use std::io;
use std::ops::Range;

/// Looks between two listings of `/proc`.
const LISTING_INTERVAL_SCANS: u64 = 60;

/// Looks between two in which threads of the kernel that did nothing are told whole: others may have changed their
/// I/O priority or their group.
const FULL_PASS_INTERVAL_SCANS: u64 = 5;

/// Looks in which each task is looked at once more, for what is not told: a few at a time, at most so many.
const ROUND_SCANS: usize = 200;
const MAX_DUE: usize = 100;

/// What a way through all tasks needs, kept from look to look.
#[derive(Default)]
pub struct IterScanner {
    /// Gives the iterator, once it is there.
    pub probe: Option<ProbeHandle<Traced>>,
    buf: Vec<u8>,
    thread_groups: ThreadGroups,
    /// The last look was one.
    was_active: bool,
    /// The last way, with what was asked of delays then. `None`: all have to be told.
    last_pass: Option<(PassGeneration, DelaySource)>,
}

/// The tasks whose turn it is, of so many.
fn due_tasks(tasks: usize, look: usize) -> Range<usize> {
    let looks = ROUND_SCANS.max(tasks.div_ceil(MAX_DUE));
    let look = look % looks;
    tasks * look / looks..tasks * (look + 1) / looks
}

/// Where the walk stands in the list of entries.
struct IterCursor {
    /// Entries known before; those behind them are new, and not in order.
    known_tasks: usize,
    /// Tasks come nearly in the order of the entries.
    next_index: usize,
}

/// Where a task stands among entries in order; it is likely the `next` one.
fn find_task(entries: &[TaskState], next: usize, key: (u32, u32)) -> Result<usize, usize> {
    let of = |entry: &TaskState| (entry.raw.key.pid, entry.raw.key.tid);
    match entries.get(next) {
        Some(entry) if of(entry) == key => Ok(next),
        _ => entries.binary_search_by_key(&key, of),
    }
}

impl TaskScanner {
    /// Looks by the iterator whenever it is there.
    pub fn with_task_iter(mut self, part: ProbeHandle<Traced>) -> Self {
        self.iter_scanner.probe = Some(part);
        self
    }

    /// The iterator, if it is there and its tasks are those of this `/proc`.
    pub(super) fn task_iter(&self) -> Option<TaskIter> {
        self.iter_scanner.probe.as_ref().filter(|_| self.is_live)?.read().ok().cloned()
    }

    /// Has the kernel tell all tasks; false where that fails: then their files tell the rest, and it is said why.
    pub(super) fn scan_by_iter(&mut self, walks: &TaskIter, pass: &mut TaskScan) -> bool {
        let first = !std::mem::replace(&mut self.iter_scanner.was_active, true);
        pass.may_have_new_tasks = first || pass.update.reset || self.seq.is_multiple_of(LISTING_INTERVAL_SCANS);
        if pass.may_have_new_tasks || self.seq.is_multiple_of(FULL_PASS_INTERVAL_SCANS) {
            self.iter_scanner.last_pass = None;
        }
        let listed = if pass.may_have_new_tasks { self.list_processes().map_err(io::Error::from) } else { Ok(()) };
        match listed.and_then(|()| self.run_iter(walks, pass)) {
            Ok(()) => {
                self.plan_reads_after_iter(pass.options.wait_channels);
                true
            }
            Err(err) => {
                let why = describe_io_error(&err);
                pass.update.notes.push(format!("the iterator of tasks failed ({why}): files are read instead"));
                false
            }
        }
    }

    /// The look is taken by files: what is known of walks is out of date at the next one.
    pub(super) fn reset_iter_state(&mut self) {
        if !std::mem::take(&mut self.iter_scanner.was_active) {
            return;
        }
        for entry in &mut self.tasks {
            entry.is_missing_from_iter = false;
        }
    }

    fn run_iter(&mut self, walks: &TaskIter, pass: &mut TaskScan) -> io::Result<()> {
        let mut along = IterCursor { known_tasks: self.tasks.len(), next_index: 0 };
        let mut walker = std::mem::take(&mut self.iter_scanner);
        let walked = self.apply_all_records(walks, &mut walker, &mut along, pass);
        self.iter_scanner = walker;
        if self.tasks.len() > along.known_tasks {
            self.sort_tasks();
        }
        walked?;
        for entry in &mut self.tasks {
            if entry.last_iter_seq != self.seq {
                entry.is_missing_from_iter |= pass.may_have_new_tasks;
                entry.has_exited |= !entry.is_missing_from_iter;
            }
        }
        Ok(())
    }

    fn apply_all_records(
        &mut self,
        walks: &TaskIter,
        walker: &mut IterScanner,
        along: &mut IterCursor,
        pass: &mut TaskScan,
    ) -> io::Result<()> {
        let after = walker.last_pass.take().filter(|(_, delays)| *delays == pass.delay_source);
        let mut walk = walks.start_pass(self.is_per_thread, after.map(|(turn, _)| turn))?;
        let mut all_known = true;
        walker.thread_groups.clear();
        loop {
            let now = boot_ns();
            let Some(records) = walk.next_records(&mut walker.buf)? else { break };
            for record in records {
                match record.ok_or_else(|| io::Error::other("a record that is not understood"))? {
                    TaskIterItem::Unchanged(tid) => all_known &= self.apply_unchanged(tid, now, along),
                    TaskIterItem::Full(record) if self.is_per_thread || record.thread_count == 1 => {
                        self.apply_record(&record, true, now, along, pass);
                    }
                    TaskIterItem::Full(record) => walker.thread_groups.add(&record, now),
                }
            }
        }
        walker.last_pass = (all_known && !self.is_per_thread).then(|| (walk.generation(), pass.delay_source));
        for process in walker.thread_groups.processes() {
            self.apply_record(&process.record, process.is_complete(), process.at_ns, along, pass);
        }
        Ok(())
    }

    /// A thread of the kernel is as it was told last. False if that was not to us: then it is read as one that
    /// walks leave out, until the next one tells all.
    fn apply_unchanged(&mut self, tid: u32, now: u64, along: &mut IterCursor) -> bool {
        let known = &mut self.tasks[..along.known_tasks];
        match find_task(known, along.next_index, (tid, tid)) {
            Ok(at) => {
                let entry = &mut known[at];
                along.next_index = at + 1;
                entry.is_missing_from_iter = entry.exec_count.is_none() || entry.last_iter_seq + 1 != self.seq;
                entry.last_iter_seq = self.seq;
                entry.has_exited = false;
                entry.scanned_ns = if entry.is_missing_from_iter { entry.scanned_ns } else { now };
                !entry.is_missing_from_iter
            }
            Err(_) => {
                let untold = TaskState {
                    is_missing_from_iter: true,
                    last_iter_seq: self.seq,
                    ..TaskState::new(tid, tid, false)
                };
                self.tasks.push(untold);
                false
            }
        }
    }

    fn apply_record(&mut self, told: &TaskRecord, whole: bool, now: u64, along: &mut IterCursor, pass: &mut TaskScan) {
        let at = self.find_or_insert(told, along, pass);
        let entry = &mut self.tasks[at];
        entry.last_iter_seq = self.seq;
        entry.has_exited = false;
        entry.is_missing_from_iter = false;
        entry.needs_io_check = !whole;
        if !whole {
            return;
        }
        let since_ns = entry.scanned_ns;
        let changes = entry.apply_iter_record(told, pass.delay_source, self.page_size);
        entry.scanned_ns = now;
        pass.update.exited.extend(changes.replaced_key);
        if changes.has_row_changed {
            let since_ns = if changes.is_first { 0 } else { since_ns };
            push_change(entry, &mut pass.update.changed, now, since_ns);
        }
    }

    /// The entry of a task, made if there is none.
    fn find_or_insert(&mut self, told: &TaskRecord, along: &mut IterCursor, pass: &TaskScan) -> usize {
        let found = find_task(&self.tasks[..along.known_tasks], along.next_index, (told.pid, told.tid));
        match found {
            Ok(at) => {
                along.next_index = at + 1;
                at
            }
            Err(_) => {
                let mut entry = TaskState::new(told.pid, told.tid, self.is_per_thread);
                entry.is_visible = pass.options.all_visible;
                self.tasks.push(entry);
                self.tasks.len() - 1
            }
        }
    }

    /// What to read of whom after a walk.
    pub(super) fn plan_reads_after_iter(&mut self, waits: bool) {
        let moved = self.swap_activity.has_changed();
        let used = self.swap_activity.is_swap_used();
        let len = self.tasks.len();
        let due = due_tasks(len, self.round_position);
        self.round_position = self.round_position.wrapping_add(1);
        let mut budget = due.len().max(1);
        let old_groups = self.cgroups.has_v1_hierarchies();
        let (wary, seq) = (self.hung_threads >= CAUTIOUS_FROM, self.seq);
        self.jobs.clear();
        for (at, entry) in self.tasks.iter_mut().enumerate() {
            if entry.has_exited || entry.is_stuck {
                continue;
            }
            let due = due.contains(&at);
            let mut what = FileSet::default();
            let by_files = entry.needs_io_check || entry.is_missing_from_iter;
            entry.run_streak = if by_files { entry.run_streak.saturating_add(1) } else { 0 };
            if by_files {
                let prio = entry.raw.ioprio.is_none() || seq.is_multiple_of(5);
                what = FileSet { stat: true, io: !entry.is_io_denied, ioprio: prio, check_state_first: wary, ..what };
                what.status = entry.raw.uid.is_none();
            }
            what.wchan = !entry.is_wait_reported && (entry.raw.state == b'D' || entry.is_visible && waits);
            if used && !entry.is_secondary_thread() && entry.iter_swap_bytes.is_some() && !entry.is_iter_swap_exact {
                what.status |= (entry.is_visible || due) && (moved || entry.swap_correction.is_none());
            }
            // New ones have their names fetched, and the group with them.
            if !entry.needs_names && !entry.raw.kernel_thread && !entry.is_secondary_thread() {
                what.cgroup = due && old_groups;
                if entry.needs_cgroup && (entry.is_visible || budget > 0) {
                    budget = budget.saturating_sub(1);
                    what.cgroup = true;
                }
            }
            if what != FileSet::default() {
                let hot = entry.run_streak >= HOT_STREAK;
                self.jobs.push(ReadJob { is_hot: hot, ..ReadJob::once(at, entry.path(), what) });
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
        for (tasks, looks) in [(0, 200), (1, 200), (70, 200), (201, 200), (20_000, 200), (100_001, 1001)] {
            let turns: Vec<_> = (0..looks).map(|look| due_tasks(tasks, look)).collect();
            assert!(turns.iter().cloned().flatten().eq(0..tasks), "{tasks}");
            assert!(turns.iter().all(|turn| turn.len() <= MAX_DUE) && due_tasks(tasks, looks) == turns[0]);
        }
    }

    #[test]
    fn a_failed_iterator_adds_a_note_and_falls_back_to_files() {
        let mut tasks = TaskScanner::new(&Root::live());
        assert!(tasks.task_iter().is_none(), "no tracer");
        tasks.begin_scan(ScanOptions::default()).unwrap();
        let mut pass = tasks.scan.take().unwrap();
        assert!(!tasks.scan_by_iter(&TaskIter::default(), &mut pass));
        let notes = &pass.update.notes;
        assert!(notes[0].contains("iterator of tasks failed") && notes[0].ends_with("files are read instead"));
        assert!(tasks.tasks.iter().any(|e| e.raw.key.pid == std::process::id() && !e.has_exited));
    }

    #[test]
    fn idle_kernel_threads_are_read_from_files_when_unknown() {
        let mut tasks = TaskScanner::new(&Root::live());
        tasks.seq = 9;
        let told =
            |tid, seen| TaskState { exec_count: Some(0), last_iter_seq: seen, ..TaskState::new(tid, tid, false) };
        // The look before told the first one, an earlier look the second, none the third.
        tasks.tasks = vec![told(7, 8), told(8, 6)];
        let mut along = IterCursor { known_tasks: 2, next_index: 0 };
        assert_eq!([7, 8, 9].map(|tid| tasks.apply_unchanged(tid, 5, &mut along)), [true, false, false]);
        let taken: Vec<_> =
            tasks.tasks.iter().map(|e| (e.is_missing_from_iter, e.last_iter_seq, e.scanned_ns)).collect();
        assert_eq!(taken, [(false, 9, 5), (true, 9, 0), (true, 9, 0)]);
    }
}
