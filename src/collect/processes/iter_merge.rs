//! Converts a record of the BPF task iterator into the terms of `/proc`: the same numbers, letters and names that
//! fs/proc/array.c derives from the same kernel fields.

use super::ionice::default_priority;
use super::task_state::{DelaySource, TaskChanges, TaskState};
use crate::bpf::task_iter::{TaskCounters, TaskRecord};
use crate::model::process::{IoBytes, IoPrio, TaskDelays, TaskIoRaw, TaskRaw, USER_HZ};
use crate::parse::task::{PF_FORKNOEXEC, PF_KTHREAD};

const TICK_NS: u64 = 1_000_000_000 / USER_HZ;

/// Bits of a task's state (include/linux/sched.h).
const TASK_REPORT: u32 = 0x7f;
const TASK_IDLE: u32 = 0x402;
const TASK_RTLOCK_WAIT: u32 = 0x1000;
const TASK_FROZEN: u32 = 0x8000;

/// Priority of nice value 0 (MAX_RT_PRIO + 20).
const NICE_0_PRIO: i64 = 120;

impl TaskState {
    pub(super) fn apply_iter_record(
        &mut self,
        record: &TaskRecord,
        delays: DelaySource,
        page_size: u64,
    ) -> TaskChanges {
        let mut changes = TaskChanges::default();
        let starttime = record.start_ns / TICK_NS;
        if self.has_been_read && starttime != self.raw.key.starttime {
            changes.replaced_key = Some(self.raw.key);
            let (focus, key) = (self.is_visible, self.raw.key);
            // A task whose `stat` hangs has no start time yet: this is the same task, and it is still stuck.
            let same = key.starttime == 0;
            let (stuck, names_stuck) = (same && self.is_stuck, same && self.is_cmdline_stuck);
            *self = Self {
                is_visible: focus,
                is_stuck: stuck,
                is_cmdline_stuck: names_stuck,
                ..Self::new(key.pid, key.tid, self.is_thread)
            };
        }
        let before = self.has_been_read.then_some(self.raw);
        changes.is_first = before.is_none();
        let comm = full_name(record);
        self.detect_exec_or_move(record, comm);
        let raw = &mut self.raw;
        raw.key.starttime = starttime;
        raw.comm = comm;
        raw.state = state_letter(record.state, record.exit_state);
        raw.kernel_thread = record.flags & PF_KTHREAD as u32 != 0;
        raw.ppid = record.ppid;
        raw.uid = Some(record.uid);
        raw.num_threads = record.thread_count;
        raw.rss_bytes = record.rss_pages.saturating_mul(page_size);
        if self.runtime_ns != record.counters.runtime || changes.is_first {
            self.runtime_ns = record.counters.runtime;
            raw.cpu_ticks = cpu_ticks(&record.counters);
        }
        apply_counters(raw, record, delays);
        let policy = u64::from(record.policy);
        self.default_prio = default_priority(i64::from(record.static_prio) - NICE_0_PRIO, policy);
        let prio = IoPrio::from_raw(record.ioprio);
        raw.ioprio = Some(if prio.class == 0 { self.default_prio } else { prio });
        let swap = record.has_memory().then(|| record.swap_pages.saturating_mul(page_size));
        self.apply_iter_swap(swap, record.has_exact_pages());
        self.has_been_read = true;
        self.has_run = false;
        self.is_denied = false;
        let ran = self.run_counts[2] != record.counters.runs;
        self.run_counts = [0, 0, record.counters.runs];
        changes.has_row_changed = before != Some(self.raw);
        if ran || changes.has_row_changed {
            self.is_wait_reported = false;
        }
        changes
    }

    /// Detects an exec or a move to another control group.
    fn detect_exec_or_move(&mut self, record: &TaskRecord, comm: [u8; 16]) {
        let forked = record.flags & PF_FORKNOEXEC as u32 != 0;
        let same = self.raw.comm == comm && self.start_stack == record.start_stack && self.is_forked == forked;
        let executed = self.exec_count.is_some_and(|exec| exec != record.exec_count);
        if self.has_been_read && (!same || executed) {
            self.needs_names = true;
            self.is_io_denied = false;
        }
        if executed {
            self.swap_correction = None;
        }
        self.start_stack = record.start_stack;
        self.is_forked = forked;
        self.exec_count = Some(record.exec_count);
        // A task known only from its files may have moved since they were read.
        self.needs_cgroup |= self.has_been_read && record.cgroup_id() != self.cgroup_id;
        self.cgroup_id = record.cgroup_id();
    }

    /// Sets swapped-out memory, corrected by the difference that `status` showed.
    fn apply_iter_swap(&mut self, swap_bytes: Option<u64>, exact: bool) {
        self.iter_swap_bytes = swap_bytes;
        self.is_iter_swap_exact = exact;
        let correction = if exact { 0 } else { self.swap_correction.unwrap_or(0) };
        self.raw.swap_bytes = swap_bytes.map(|bytes| bytes.saturating_add_signed(correction));
    }
}

fn apply_counters(raw: &mut TaskRaw, record: &TaskRecord, delays: DelaySource) {
    let counters = &record.counters;
    raw.majflt = counters.majflt;
    raw.timeslices = counters.runs;
    raw.io = match record.has_io() {
        true => TaskIoRaw::Read(IoBytes { read: counters.read, write: counters.write, cancelled: counters.cancelled }),
        false => TaskIoRaw::Absent,
    };
    let waited = TaskDelays { blkio_ns: counters.blkio_ns, swapin_ns: Some(counters.swapin_ns) };
    raw.delays = (delays == DelaySource::Taskstats).then_some(waited);
}

/// Returns the state letter (get_task_state).
pub(super) fn state_letter(state: u32, exit_state: u32) -> u8 {
    let mut bits = (state | exit_state) & TASK_REPORT;
    if state & TASK_IDLE == TASK_IDLE {
        bits = TASK_REPORT + 1;
    }
    if state & (TASK_RTLOCK_WAIT | TASK_FROZEN) != 0 {
        bits = 2;
    }
    b"RSDTtXZPI"[(32 - bits.leading_zeros()) as usize]
}

/// CPU time as in `stat`: the measured runtime, split into user and system time in the sampled ratio, each rounded down
/// to ticks (cputime_adjust).
fn cpu_ticks(counters: &TaskCounters) -> u64 {
    let sampled = u128::from(counters.utime) + u128::from(counters.stime);
    let kernel = match (counters.utime, counters.stime) {
        (_, 0) => 0,
        (0, _) => counters.runtime,
        (_, stime) => (u128::from(stime) * u128::from(counters.runtime) / sampled) as u64,
    };
    kernel / TICK_NS + (counters.runtime - kernel) / TICK_NS
}

/// Returns the name; that of a kernel worker includes its work item.
fn full_name(record: &TaskRecord) -> [u8; 16] {
    let end = |text: &[u8]| text.iter().position(|b| *b == 0).unwrap_or(text.len());
    let mut name = [0; 16];
    let len = end(&record.comm);
    name[..len].copy_from_slice(&record.comm[..len]);
    let more = end(&record.worker_item).min(name.len() - len);
    name[len..len + more].copy_from_slice(&record.worker_item[..more]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_map_to_the_letters_of_proc_stat() {
        let record = [
            (0, 0, b'R'),
            (1, 0, b'S'),
            (2, 0, b'D'),
            (0x402, 0, b'I'),
            (0x2402, 0, b'I'),
            (0x102, 0, b'D'),
            (0x104, 0, b'T'),
            (8, 0, b't'),
            (0x80, 0x20, b'Z'),
            (0x80, 0x10, b'X'),
            (0x40, 0, b'P'),
            (0x8000, 0, b'D'),
            (0x1000, 0, b'D'),
            (u32::MAX, u32::MAX, b'D'),
        ];
        for (state, exit_state, expected) in record {
            assert_eq!(state_letter(state, exit_state), expected, "{state:#x} {exit_state:#x}");
        }
    }

    #[test]
    fn cpu_time_is_split_and_rounded_as_the_kernel_does() {
        let counters = |utime, stime, runtime| TaskCounters { utime, stime, runtime, ..TaskCounters::default() };
        assert_eq!(cpu_ticks(&counters(0, 0, 19_999_999)), 1);
        assert_eq!(cpu_ticks(&counters(0, 5, 30_000_000)), 3);
        // 15 ms each: one tick and one tick; half a tick is lost twice.
        assert_eq!(cpu_ticks(&counters(7, 7, 30_000_000)), 2);
        assert_eq!(cpu_ticks(&counters(u64::MAX, u64::MAX, u64::MAX)), u64::MAX / 2 / TICK_NS * 2);
    }

    #[test]
    fn a_kworker_name_includes_its_work_item() {
        let mut record = TaskRecord {
            comm: *b"kworker/0:1\0\0\0\0\0",
            worker_item: *b"-events_long\0\0\0\0",
            ..TaskRecord::default()
        };
        assert_eq!(&full_name(&record), b"kworker/0:1-even");
        record.comm = *b"kworker/R-kvfree";
        assert_eq!(&full_name(&record), b"kworker/R-kvfree");
        // Anything may follow the NUL in kernel memory.
        (record.comm, record.worker_item) = (*b"rcu_gp\0\xff\xff\xff\0\0\0\0\0\0", [0; 16]);
        assert_eq!(&full_name(&record), b"rcu_gp\0\0\0\0\0\0\0\0\0\0");
    }

    fn sample_record() -> TaskRecord {
        TaskRecord {
            flags_present: 3,
            tid: 5,
            pid: 5,
            exec_count: 7,
            start_stack: 9,
            start_ns: 3 * TICK_NS,
            swap_pages: 2,
            ..TaskRecord::default()
        }
    }

    fn sample_task() -> TaskState {
        let mut entry = TaskState::new(5, 5, false);
        let first = entry.apply_iter_record(&sample_record(), DelaySource::Off, 4096);
        assert!(first.is_first && first.has_row_changed && entry.needs_names && !entry.needs_cgroup);
        entry.needs_names = false;
        entry
    }

    #[test]
    fn only_an_exec_or_a_cgroup_move_requests_files() {
        let mut entry = sample_task();
        assert_eq!(entry.apply_iter_record(&sample_record(), DelaySource::Off, 4096), TaskChanges::default());
        assert!(!entry.needs_names && !entry.needs_cgroup);
        entry.apply_iter_record(&TaskRecord { exec_count: 8, ..sample_record() }, DelaySource::Off, 4096);
        assert!(entry.needs_names);
        entry.apply_iter_record(
            &TaskRecord { flags_present: 11, raw_cgroup_id: 4, exec_count: 8, ..sample_record() },
            DelaySource::Off,
            4096,
        );
        assert!(entry.needs_cgroup);
    }

    #[test]
    fn a_reused_pid_is_a_new_task() {
        let mut entry = sample_task();
        let old = entry.raw.key;
        let changes =
            entry.apply_iter_record(&TaskRecord { start_ns: 9 * TICK_NS, ..sample_record() }, DelaySource::Off, 4096);
        assert_eq!((changes.replaced_key, changes.is_first), (Some(old), true));
        assert_eq!(entry.raw.key.starttime, 9);
        assert!(entry.needs_names);
    }

    #[test]
    fn a_stuck_task_stays_stuck_when_the_iterator_reports_it() {
        let stuck = || TaskState { has_been_read: true, is_stuck: true, ..TaskState::new(5, 5, false) };
        let mut hangs = stuck();
        hangs.apply_iter_record(&sample_record(), DelaySource::Off, 4096);
        assert!(hangs.is_stuck && hangs.raw.key.starttime == 3);
        let mut gone = stuck();
        gone.raw.key.starttime = 2;
        gone.apply_iter_record(&sample_record(), DelaySource::Off, 4096);
        assert!(!gone.is_stuck, "that was another one");
    }

    #[test]
    fn the_wait_channel_of_a_task_that_ran_is_read_again() {
        let mut entry = sample_task();
        entry.is_wait_reported = true;
        entry.apply_iter_record(&sample_record(), DelaySource::Off, 4096);
        assert!(entry.is_wait_reported);
        let ran = TaskRecord { counters: TaskCounters { runs: 1, ..TaskCounters::default() }, ..sample_record() };
        entry.apply_iter_record(&ran, DelaySource::Off, 4096);
        assert!(!entry.is_wait_reported);
    }
}
