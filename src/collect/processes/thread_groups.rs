//! Sums the iterator's records of threads into processes.
//!
//! Threads start and exit during a pass. One that exits has added its counters to the process and may be reported
//! itself as well: it is counted twice, or not at all. So a sum is used only if as many threads were reported as the
//! process says it has.

use crate::bpf::task_iter::{TaskCounters, TaskRecord};

/// A process and the sum over its reported threads.
pub(super) struct ThreadGroup {
    /// Record of the main thread, with the counters of all threads.
    pub record: TaskRecord,
    /// When it was reported, CLOCK_BOOTTIME in ns.
    pub at_ns: u64,
    reported_threads: u32,
}

impl ThreadGroup {
    pub(super) fn is_complete(&self) -> bool {
        self.reported_threads == self.record.thread_count
    }
}

#[derive(Default)]
pub(super) struct ThreadGroups {
    /// Sorted by pid, because main threads are reported in that order.
    processes: Vec<ThreadGroup>,
    /// Threads reported before their process, because thread IDs are reused.
    early_threads: Vec<(u32, TaskCounters)>,
}

impl ThreadGroups {
    pub(super) fn clear(&mut self) {
        self.processes.clear();
        self.early_threads.clear();
    }

    /// Adds a thread of a multi-threaded process; main threads in ascending order.
    pub(super) fn add(&mut self, record: &TaskRecord, at_ns: u64) {
        match record.tid == record.pid {
            true => self.processes.push(ThreadGroup { record: *record, at_ns, reported_threads: 1 }),
            false if !self.add_thread(record.pid, record.counters) => {
                self.early_threads.push((record.pid, record.counters))
            }
            false => {}
        }
    }

    fn add_thread(&mut self, pid: u32, sums: TaskCounters) -> bool {
        let Ok(at) = self.processes.binary_search_by_key(&pid, |process| process.record.pid) else {
            return false;
        };
        let process = &mut self.processes[at];
        process.record.counters += sums;
        process.reported_threads += 1;
        true
    }

    /// Returns all processes. Threads of a process that started after its ID was passed are dropped: they are in the
    /// next pass.
    pub(super) fn processes(&mut self) -> &[ThreadGroup] {
        for (pid, sums) in std::mem::take(&mut self.early_threads) {
            self.add_thread(pid, sums);
        }
        &self.processes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(pid: u32, tid: u32, threads: u32, read: u64) -> TaskRecord {
        TaskRecord {
            pid,
            tid,
            thread_count: threads,
            counters: TaskCounters { read, ..TaskCounters::default() },
            ..TaskRecord::default()
        }
    }

    fn group_all(threads: &[TaskRecord]) -> Vec<(u32, u64, bool)> {
        let mut groups = ThreadGroups::default();
        threads.iter().for_each(|t| groups.add(t, 0));
        groups.processes().iter().map(|p| (p.record.pid, p.record.counters.read, p.is_complete())).collect()
    }

    #[test]
    fn thread_counters_are_summed_whatever_the_order() {
        let all =
            [thread(9, 3, 0, 1), thread(5, 5, 3, 10), thread(5, 6, 0, 100), thread(9, 9, 2, 1000), thread(5, 12, 0, 7)];
        assert_eq!(group_all(&all), [(5, 117, true), (9, 1001, true)]);
    }

    #[test]
    fn a_process_with_missing_or_extra_threads_is_incomplete() {
        assert_eq!(group_all(&[thread(5, 5, 3, 10), thread(5, 6, 0, 1)]), [(5, 11, false)]);
        let one_more = [thread(5, 5, 2, 10), thread(5, 6, 0, 1), thread(5, 7, 0, 1)];
        assert_eq!(group_all(&one_more), [(5, 12, false)]);
        assert_eq!(group_all(&[thread(8, 9, 0, 1)]), [], "a process reported as single-threaded");
    }
}
