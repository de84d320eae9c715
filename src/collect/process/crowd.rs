//! Processes of several threads, put together from what the kernel tells of each thread.
//!
//! Threads come and go while they are told. One that ends in between has left its counters to the process, and may
//! be told itself as well: counted twice, or not at all. So a process is believed only if as many threads were told
//! as it says it has.

use crate::trace::tasks::{Record, Sums};

/// A process and what of its threads was told.
pub struct Process {
    /// Its main thread, with the sums of all.
    pub record: Record,
    /// When it was told, CLOCK_BOOTTIME in ns.
    pub at_ns: u64,
    told: u32,
}

impl Process {
    /// All its threads were told.
    pub fn is_whole(&self) -> bool {
        self.told == self.record.threads
    }
}

/// Those of one walk.
#[derive(Default)]
pub struct Crowd {
    /// By pid, as main threads are told in that order.
    processes: Vec<Process>,
    /// Threads told before their process: numbers are given out anew.
    early: Vec<(u32, Sums)>,
}

impl Crowd {
    /// Forgets the last walk.
    pub fn clear(&mut self) {
        self.processes.clear();
        self.early.clear();
    }

    /// Takes in a thread of a process that has several; main threads in ascending order.
    pub fn add(&mut self, record: &Record, at_ns: u64) {
        match record.tid == record.pid {
            true => self.processes.push(Process { record: *record, at_ns, told: 1 }),
            false if !self.join(record.pid, record.sums) => self.early.push((record.pid, record.sums)),
            false => {}
        }
    }

    fn join(&mut self, pid: u32, sums: Sums) -> bool {
        let Ok(at) = self.processes.binary_search_by_key(&pid, |process| process.record.pid) else {
            return false;
        };
        let process = &mut self.processes[at];
        process.record.sums += sums;
        process.told += 1;
        true
    }

    /// All processes, put together. A thread born after its process was told has none: it is in the next walk.
    pub fn processes(&mut self) -> &[Process] {
        for (pid, sums) in std::mem::take(&mut self.early) {
            self.join(pid, sums);
        }
        &self.processes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(pid: u32, tid: u32, threads: u32, read: u64) -> Record {
        Record { pid, tid, threads, sums: Sums { read, ..Sums::default() }, ..Record::default() }
    }

    fn told(threads: &[Record]) -> Vec<(u32, u64, bool)> {
        let mut crowd = Crowd::default();
        threads.iter().for_each(|t| crowd.add(t, 0));
        crowd.processes().iter().map(|p| (p.record.pid, p.record.sums.read, p.is_whole())).collect()
    }

    #[test]
    fn threads_are_added_to_their_process_wherever_they_come() {
        let all = [
            thread(9, 3, 0, 1),
            thread(5, 5, 3, 10),
            thread(5, 6, 0, 100),
            thread(9, 9, 2, 1000),
            thread(5, 12, 0, 7),
        ];
        assert_eq!(told(&all), [(5, 117, true), (9, 1001, true)]);
    }

    #[test]
    fn a_process_whose_threads_came_or_went_is_not_believed() {
        assert_eq!(told(&[thread(5, 5, 3, 10), thread(5, 6, 0, 1)]), [(5, 11, false)]);
        let one_more = [thread(5, 5, 2, 10), thread(5, 6, 0, 1), thread(5, 7, 0, 1)];
        assert_eq!(told(&one_more), [(5, 12, false)]);
        assert_eq!(told(&[thread(8, 9, 0, 1)]), [], "a process told as one of a single thread");
    }
}
