//! A task as the kernel's iterator tells it, in the terms of its files: the same numbers, letters and names as
//! fs/proc/array.c makes of the same members.

use super::entry::{Changes, Delays, Entry};
use super::parse::{PF_FORKNOEXEC, PF_KTHREAD, default_prio};
use crate::model::process::{DelayRaw, IoBytes, IoPrio, IoRaw, TaskRaw, USER_HZ};
use crate::trace::tasks::{Record, Sums};

/// ns in a tick.
const TICK: u64 = 1_000_000_000 / USER_HZ;

/// Bits of a task's state (include/linux/sched.h).
const REPORTED: u32 = 0x7f;
const UNINTERRUPTIBLE_NO_LOAD: u32 = 0x402;
const RTLOCK_WAIT: u32 = 0x1000;
const FROZEN: u32 = 0x8000;

/// The nice value 0 as a priority (MAX_RT_PRIO + 20).
const NICE_0: i64 = 120;

impl Entry {
    /// Takes in what was told at `at_ns`.
    pub fn merge_told(&mut self, told: &Record, delays: Delays, page_size: u64) -> Changes {
        let mut changes = Changes::default();
        let starttime = told.start_ns / TICK;
        if self.known && starttime != self.raw.key.starttime {
            changes.replaced = Some(self.raw.key);
            let (focus, key) = (self.focus, self.raw.key);
            // One whose `stat` hangs is known without its start: that is the same task, and hangs still.
            let same = key.starttime == 0;
            let (stuck, names_stuck) = (same && self.stuck, same && self.names_stuck);
            *self = Self { focus, stuck, names_stuck, ..Self::new(key.pid, key.tid, self.thread) };
        }
        let before = self.known.then_some(self.raw);
        changes.first = before.is_none();
        let comm = name(told);
        self.take_signs(told, comm);
        let raw = &mut self.raw;
        raw.key.starttime = starttime;
        raw.comm = comm;
        raw.state = letter(told.state, told.exit_state);
        raw.kernel_thread = told.flags & PF_KTHREAD as u32 != 0;
        raw.ppid = told.ppid;
        raw.uid = Some(told.uid);
        raw.num_threads = told.threads;
        raw.rss_bytes = told.rss_pages.saturating_mul(page_size);
        if self.runtime_ns != told.sums.runtime || changes.first {
            self.runtime_ns = told.sums.runtime;
            raw.cpu_ticks = ticks(&told.sums);
        }
        count(raw, told, delays);
        let policy = u64::from(told.policy);
        self.default_prio = default_prio(i64::from(told.static_prio) - NICE_0, policy);
        let prio = IoPrio::from_raw(told.ioprio);
        raw.ioprio = Some(if prio.class == 0 { self.default_prio } else { prio });
        let swap = told.has_memory().then(|| told.swap_pages.saturating_mul(page_size));
        self.take_swap(swap, told.has_exact_pages());
        self.known = true;
        self.ran = false;
        self.denied = false;
        let ran = self.runs[2] != told.sums.runs;
        self.runs = [0, 0, told.sums.runs];
        changes.row = before != Some(self.raw);
        if ran || changes.row {
            self.wait_told = false;
        }
        changes
    }

    /// What says that it became another program, or went to another control group.
    fn take_signs(&mut self, told: &Record, comm: [u8; 16]) {
        let forked = told.flags & PF_FORKNOEXEC as u32 != 0;
        let same = self.raw.comm == comm && self.startstack == told.stack && self.forked == forked;
        let executed = self.exec.is_some_and(|exec| exec != told.exec);
        if self.known && (!same || executed) {
            self.names_wanted = true;
            self.io_denied = false;
        }
        if executed {
            self.swap_off = None;
        }
        self.startstack = told.stack;
        self.forked = forked;
        self.exec = Some(told.exec);
        // One known from its files only may have moved since they were read.
        self.group_wanted |= self.known && told.group() != self.group;
        self.group = told.group();
    }

    /// Swapped-out memory as told, put right by what its `status` once said.
    fn take_swap(&mut self, told: Option<u64>, exact: bool) {
        self.swap_told = told;
        self.swap_exact = exact;
        let off = if exact { 0 } else { self.swap_off.unwrap_or(0) };
        self.raw.swap_bytes = told.map(|told| told.saturating_add_signed(off));
    }
}

fn count(raw: &mut TaskRaw, told: &Record, delays: Delays) {
    let sums = &told.sums;
    raw.majflt = sums.majflt;
    raw.runs = sums.runs;
    raw.io = match told.has_io() {
        true => IoRaw::Read(IoBytes { read: sums.read, write: sums.write, cancelled: sums.cancelled }),
        false => IoRaw::Absent,
    };
    let waited = DelayRaw { blkio_ns: sums.blkio_ns, swapin_ns: Some(sums.swapin_ns) };
    raw.delays = (delays == Delays::Taskstats).then_some(waited);
}

/// The letter of a state (get_task_state).
fn letter(state: u32, exit_state: u32) -> u8 {
    let mut bits = (state | exit_state) & REPORTED;
    if state & UNINTERRUPTIBLE_NO_LOAD == UNINTERRUPTIBLE_NO_LOAD {
        bits = REPORTED + 1;
    }
    if state & (RTLOCK_WAIT | FROZEN) != 0 {
        bits = 2;
    }
    b"RSDTtXZPI"[(32 - bits.leading_zeros()) as usize]
}

/// CPU time as `stat` has it: what was measured, shared out between user space and kernel as sampled, and each
/// rounded down to ticks (cputime_adjust).
fn ticks(sums: &Sums) -> u64 {
    let sampled = u128::from(sums.utime) + u128::from(sums.stime);
    let kernel = match (sums.utime, sums.stime) {
        (_, 0) => 0,
        (0, _) => sums.runtime,
        (_, stime) => (u128::from(stime) * u128::from(sums.runtime) / sampled) as u64,
    };
    kernel / TICK + (sums.runtime - kernel) / TICK
}

/// The name; behind that of a worker of the kernel what it works on.
fn name(told: &Record) -> [u8; 16] {
    let end = |text: &[u8]| text.iter().position(|b| *b == 0).unwrap_or(text.len());
    let mut name = [0; 16];
    let len = end(&told.comm);
    name[..len].copy_from_slice(&told.comm[..len]);
    let more = end(&told.work).min(name.len() - len);
    name[len..len + more].copy_from_slice(&told.work[..more]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_kernels_letters() {
        let told = [
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
        for (state, exit_state, expected) in told {
            assert_eq!(letter(state, exit_state), expected, "{state:#x} {exit_state:#x}");
        }
    }

    #[test]
    fn cpu_time_is_shared_out_as_the_kernel_does() {
        let sums = |utime, stime, runtime| Sums { utime, stime, runtime, ..Sums::default() };
        assert_eq!(ticks(&sums(0, 0, 19_999_999)), 1);
        assert_eq!(ticks(&sums(0, 5, 30_000_000)), 3);
        // 15 ms each: one tick and one tick, half a tick lost twice.
        assert_eq!(ticks(&sums(7, 7, 30_000_000)), 2);
        assert_eq!(ticks(&sums(u64::MAX, u64::MAX, u64::MAX)), u64::MAX / 2 / TICK * 2);
    }

    #[test]
    fn a_worker_tells_what_it_works_on() {
        let mut told =
            Record { comm: *b"kworker/0:1\0\0\0\0\0", work: *b"-events_long\0\0\0\0", ..Record::default() };
        assert_eq!(&name(&told), b"kworker/0:1-even");
        told.comm = *b"kworker/R-kvfree";
        assert_eq!(&name(&told), b"kworker/R-kvfree");
        // Whatever else was in the kernel's memory.
        (told.comm, told.work) = (*b"rcu_gp\0\xff\xff\xff\0\0\0\0\0\0", [0; 16]);
        assert_eq!(&name(&told), b"rcu_gp\0\0\0\0\0\0\0\0\0\0");
    }

    fn told() -> Record {
        Record {
            has: 3,
            tid: 5,
            pid: 5,
            exec: 7,
            stack: 9,
            start_ns: 3 * TICK,
            swap_pages: 2,
            ..Record::default()
        }
    }

    fn entry() -> Entry {
        let mut entry = Entry::new(5, 5, false);
        let first = entry.merge_told(&told(), Delays::Off, 4096);
        assert!(first.first && first.row && entry.names_wanted && !entry.group_wanted);
        entry.names_wanted = false;
        entry
    }

    #[test]
    fn only_another_program_or_group_asks_for_files() {
        let mut entry = entry();
        assert_eq!(entry.merge_told(&told(), Delays::Off, 4096), Changes::default());
        assert!(!entry.names_wanted && !entry.group_wanted);
        entry.merge_told(&Record { exec: 8, ..told() }, Delays::Off, 4096);
        assert!(entry.names_wanted);
        entry.merge_told(&Record { has: 11, cgroup: 4, exec: 8, ..told() }, Delays::Off, 4096);
        assert!(entry.group_wanted);
    }

    #[test]
    fn another_task_of_the_same_number_is_another() {
        let mut entry = entry();
        let old = entry.raw.key;
        let changes = entry.merge_told(&Record { start_ns: 9 * TICK, ..told() }, Delays::Off, 4096);
        assert_eq!((changes.replaced, changes.first), (Some(old), true));
        assert_eq!(entry.raw.key.starttime, 9);
        assert!(entry.names_wanted);
    }

    #[test]
    fn a_task_whose_files_hang_is_not_read_again_when_the_kernel_tells_it() {
        let stuck = || Entry { known: true, stuck: true, ..Entry::new(5, 5, false) };
        let mut hangs = stuck();
        hangs.merge_told(&told(), Delays::Off, 4096);
        assert!(hangs.stuck && hangs.raw.key.starttime == 3);
        let mut gone = stuck();
        gone.raw.key.starttime = 2;
        gone.merge_told(&told(), Delays::Off, 4096);
        assert!(!gone.stuck, "that was another one");
    }

    #[test]
    fn a_task_that_ran_is_asked_anew_what_it_waits_on() {
        let mut entry = entry();
        entry.wait_told = true;
        entry.merge_told(&told(), Delays::Off, 4096);
        assert!(entry.wait_told);
        let ran = Record { sums: Sums { runs: 1, ..Sums::default() }, ..told() };
        entry.merge_told(&ran, Delays::Off, 4096);
        assert!(!entry.wait_told);
    }
}
