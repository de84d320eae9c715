//! Threads in D state. A row of a process has the state of its main thread, and a worker thread may hang while that waits
//! for work.
//!
//! The iterator reports the states of all threads. Without it they are read from files, in rounds over the processes that
//! have few threads: reading all at every scan would cost more than the scan. Only files that never block are read: `status`,
//! `schedstat`, `comm` and `wchan` (proc_pid_wchan in fs/proc/base.c takes no lock that is held over a wait).

use super::file_reader::parse_wchan;
use super::iter_merge::state_letter;
use super::path::{self, ProcPath, TaskPath};
use super::task_list;
use super::task_state::TaskState;
use crate::bpf::task_iter::TaskRecord;
use crate::model::process::{ProcessUpdate, TaskKey, UninterruptibleThread};
use crate::parse::task;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Threads reported in one update, and those of one process.
const MAX_THREADS: usize = 1024;
const MAX_THREADS_OF_PROCESS: usize = 64;
/// A thread that was scheduled more often since the scan before does not hang.
const MAX_RUNS: u64 = 1;
/// Wait channels read in one scan.
const MAX_WAIT_READS: usize = 64;
/// Threads whose files are read in one scan, as far as they were not in D state in the scan before. A process with more
/// threads is left out.
const MAX_FILE_READS: usize = 64;
/// Scans from the start of a round over all processes to the start of the next one.
const ROUND_SCANS: u64 = 10;

struct ThreadState {
    pid: u32,
    tid: u32,
    comm: [u8; 16],
    timeslices: u64,
    wait_channel: Option<Arc<str>>,
    is_wait_read: bool,
}

impl ThreadState {
    fn ids(&self) -> (u32, u32) {
        (self.pid, self.tid)
    }
}

/// Threads in D state other than main threads, kept from scan to scan.
#[derive(Default)]
pub(super) struct ThreadStates {
    found: Vec<ThreadState>,
    /// Those of the scan before, sorted by their IDs.
    previous: Vec<ThreadState>,
    /// The states of all threads were known in the scan before.
    were_all_known: bool,
    /// The process up to which the round by files has come; `None` between rounds.
    round_pid: Option<u32>,
    dir_buf: Vec<u8>,
    ids: Vec<u32>,
}

impl ThreadStates {
    pub(super) fn clear_found(&mut self) {
        self.found.clear();
    }

    /// Adds the record of a thread, if it is in D state and no main thread.
    pub(super) fn add_record(&mut self, record: &TaskRecord) {
        if record.tid != record.pid && state_letter(record.state, record.exit_state) == b'D' {
            self.found.push(ThreadState {
                pid: record.pid,
                tid: record.tid,
                comm: record.comm,
                timeslices: record.counters.runs,
                wait_channel: None,
                is_wait_read: false,
            });
        }
    }

    /// Reads the threads found in the scan before, and those of the next processes of the round. `tasks` is sorted.
    pub(super) fn read_files(&mut self, proc: &OwnedFd, tasks: &[TaskState], scan_number: u64) {
        self.found.clear();
        let again = self.previous.iter().take(MAX_FILE_READS);
        self.found.extend(again.filter_map(|thread| read_state(proc, thread.pid, thread.tid)));
        if self.round_pid.is_none() && scan_number % ROUND_SCANS == 1 {
            self.round_pid = Some(0);
        }
        let Some(done) = self.round_pid.take() else { return };
        let mut left = MAX_FILE_READS;
        for task in &tasks[tasks.partition_point(|task| task.raw.key.pid <= done)..] {
            let (pid, count) = (task.raw.key.pid, task.raw.num_threads as usize);
            if task.has_exited || !(2..=MAX_FILE_READS).contains(&count) {
                continue;
            }
            if count > left {
                self.round_pid = Some(pid - 1);
                return;
            }
            left -= count;
            self.read_threads_of(proc, pid);
        }
    }

    fn read_threads_of(&mut self, proc: &OwnedFd, pid: u32) {
        if task_list::list_thread_ids(proc.as_fd(), pid, &mut self.dir_buf, &mut self.ids).is_err() {
            return;
        }
        let is_read = |tid: u32| self.previous.binary_search_by_key(&(pid, tid), ThreadState::ids).is_ok();
        let others = self.ids.iter().take(MAX_FILE_READS).filter(|tid| **tid != pid && !is_read(**tid));
        self.found.extend(others.filter_map(|tid| read_state(proc, pid, *tid)));
    }

    /// Adds the threads that stayed in D state since the scan before to the update. `are_all_known`: those found are all
    /// there are. `tasks` is sorted.
    pub(super) fn report(
        &mut self,
        proc: &OwnedFd,
        tasks: &[TaskState],
        are_all_known: bool,
        update: &mut ProcessUpdate,
    ) {
        self.found.sort_unstable_by_key(ThreadState::ids);
        let is_complete = self.select(proc, tasks, &mut update.uninterruptible_threads);
        update.all_threads_known = are_all_known && self.were_all_known && is_complete;
        self.were_all_known = are_all_known;
        std::mem::swap(&mut self.found, &mut self.previous);
        self.found.clear();
    }

    /// Selects those that have hardly run since; false if some cannot be reported.
    fn select(&mut self, proc: &OwnedFd, tasks: &[TaskState], selected: &mut Vec<UninterruptibleThread>) -> bool {
        let (mut is_complete, mut wait_reads, mut of_process) = (true, 0, (0, 0));
        for thread in &mut self.found {
            let Ok(at) = self.previous.binary_search_by_key(&thread.ids(), ThreadState::ids) else { continue };
            let before = &self.previous[at];
            let runs = thread.timeslices.wrapping_sub(before.timeslices);
            if runs > MAX_RUNS {
                continue;
            }
            if runs == 0 {
                (thread.wait_channel, thread.is_wait_read) = (before.wait_channel.clone(), before.is_wait_read);
            }
            let count = if of_process.0 == thread.pid { of_process.1 + 1 } else { 1 };
            of_process = (thread.pid, count);
            let has_room = count <= MAX_THREADS_OF_PROCESS && selected.len() < MAX_THREADS;
            let process = tasks.binary_search_by_key(&(thread.pid, thread.pid), TaskState::ids).map(|at| &tasks[at]);
            // The kernel may not count how often a thread is scheduled: a busy one cannot be distinguished from one that
            // hangs.
            let is_usable = |task: &&TaskState| task.has_been_read && has_room && thread.timeslices > 0;
            let Some(process) = process.ok().filter(is_usable) else {
                is_complete = false;
                continue;
            };
            if !thread.is_wait_read && wait_reads < MAX_WAIT_READS {
                wait_reads += 1;
                thread.is_wait_read = true;
                thread.wait_channel = read_file(proc, thread.pid, thread.tid, "wchan", &mut [0; 128], parse_wchan);
            }
            selected.push(UninterruptibleThread {
                key: TaskKey { tid: thread.tid, ..process.raw.key },
                comm: thread.comm,
                timeslices: thread.timeslices,
                wait_channel: thread.wait_channel.clone(),
            });
        }
        is_complete
    }
}

/// A thread if it is in D state, and if the kernel counts how often it was scheduled.
fn read_state(proc: &OwnedFd, pid: u32, tid: u32) -> Option<ThreadState> {
    let state = |text: &[u8]| task::status(text).state;
    if read_file(proc, pid, tid, "status", &mut [0; 512], state)? != b'D' {
        return None;
    }
    let [_, _, timeslices] = read_file(proc, pid, tid, "schedstat", &mut [0; 128], task::schedstat)?;
    let comm = read_file(proc, pid, tid, "comm", &mut [0; 64], |text| Some(task::padded_comm(text)))?;
    Some(ThreadState { pid, tid, comm, timeslices, wait_channel: None, is_wait_read: false })
}

/// What `parse` makes of the start of a file of a thread.
fn read_file<T>(
    proc: &OwnedFd,
    pid: u32,
    tid: u32,
    file: &str,
    buf: &mut [u8],
    parse: impl FnOnce(&[u8]) -> Option<T>,
) -> Option<T> {
    let path = ProcPath::for_task(TaskPath { pid, tid, is_thread: true }, file);
    parse(path::read_at(proc.as_fd(), &path, buf).ok()?)
}
