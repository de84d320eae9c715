//! Records of the task iterator: `struct entry` in `assets/trace/tasks.bpf.c`.

use std::ops::AddAssign;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const RECORD_MAGIC: u32 = 0x6b73_6174;

const HAS_MM: u32 = 1;
const HAS_IO: u32 = 2;
const HAS_CGROUP: u32 = 8;
const HAS_EXACT: u32 = 16;
const HAS_ALL: u32 = 31;

/// Counters that are summed over the threads of a process. Times are in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TaskCounters {
    /// Page faults that needed I/O.
    pub majflt: u64,
    /// User time, as sampled.
    pub utime: u64,
    /// System time, as sampled.
    pub stime: u64,
    /// Total time, as measured.
    pub runtime: u64,
    /// Number of timeslices.
    pub runs: u64,
    /// Bytes read from storage.
    pub read: u64,
    /// Bytes dirtied.
    pub write: u64,
    /// Bytes dirtied but never written.
    pub cancelled: u64,
    /// Time waited for block I/O.
    pub blkio_ns: u64,
    /// Time waited for swap-in.
    pub swapin_ns: u64,
}

impl AddAssign for TaskCounters {
    fn add_assign(&mut self, more: Self) {
        let sums: &mut [u64; 10] = zerocopy::transmute_mut!(self);
        let more: [u64; 10] = zerocopy::transmute!(more);
        sums.iter_mut().zip(more).for_each(|(sum, n)| *sum = sum.wrapping_add(n));
    }
}

/// One task. For threads that are only added to their process just `counters`, the state and the name are valid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TaskRecord {
    /// Always [`RECORD_MAGIC`].
    pub magic: u32,
    pub flags_present: u32,
    pub tid: u32,
    pub pid: u32,
    pub ppid: u32,
    /// Real user ID.
    pub uid: u32,
    /// `__state` of `struct task_struct`.
    pub state: u32,
    /// `exit_state` of `struct task_struct`.
    pub exit_state: u32,
    /// Its flags (PF_).
    pub flags: u32,
    /// Threads of the process, including those waiting to be reaped.
    pub thread_count: u32,
    pub policy: u32,
    /// `static_prio` of `struct task_struct`.
    pub static_prio: u32,
    /// I/O class and level, packed as in the kernel; class 0: never set.
    pub ioprio: u32,
    /// Number of execs, including those of ancestors before the fork; wraps.
    pub exec_count: u32,
    /// Start time, CLOCK_BOOTTIME in ns.
    pub start_ns: u64,
    /// Counters of the thread, or those of the process's exited threads added.
    pub counters: TaskCounters,
    pub rss_pages: u64,
    pub swap_pages: u64,
    /// ID of its cgroup v2 control group.
    pub raw_cgroup_id: u64,
    /// Address of its stack.
    pub start_stack: u64,
    pub comm: [u8; 16],
    /// Work item of a kernel worker: `+` (current) or `-` (last) and a name.
    pub worker_item: [u8; 16],
}

impl TaskRecord {
    /// Parses a record; `None` if it is malformed.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let record = Self::read_from_bytes(bytes).ok()?;
        let is_known = record.magic == RECORD_MAGIC && record.flags_present & !HAS_ALL == 0;
        // Positive, at most 2^22 (PID_MAX_LIMIT).
        let is_valid_id = |id| (1..=1 << 22).contains(&id);
        (is_known && is_valid_id(record.tid) && is_valid_id(record.pid)).then_some(record)
    }

    /// Whether it has memory: not a kernel thread and not exited.
    pub fn has_memory(&self) -> bool {
        self.flags_present & HAS_MM != 0
    }

    /// Whether its I/O is counted.
    pub fn has_io(&self) -> bool {
        self.flags_present & HAS_IO != 0
    }

    /// Returns its control group ID, if the kernel supports cgroup v2.
    pub fn cgroup_id(&self) -> Option<u64> {
        (self.flags_present & HAS_CGROUP != 0).then_some(self.raw_cgroup_id)
    }

    /// Whether page counts are exact; otherwise each CPU holds some back.
    pub fn has_exact_pages(&self) -> bool {
        self.flags_present & HAS_EXACT != 0
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample_record() -> TaskRecord {
        TaskRecord {
            magic: RECORD_MAGIC,
            flags_present: HAS_MM | HAS_IO | HAS_CGROUP,
            tid: 4_194_304,
            pid: 7,
            exec_count: u32::MAX,
            start_ns: 1,
            counters: TaskCounters { majflt: 2, swapin_ns: u64::MAX, ..TaskCounters::default() },
            start_stack: 3,
            comm: *b"\xff)\n S 1 (x\0\0\0\0\0\0",
            worker_item: *b"+flush-259:0\0\0\0\0",
            ..TaskRecord::default()
        }
    }

    #[test]
    fn records_round_trip() {
        let record = sample_record();
        assert_eq!(TaskRecord::parse(record.as_bytes()), Some(record));
        assert!(record.has_memory() && record.has_io() && !record.has_exact_pages());
        assert_eq!((record.cgroup_id(), TaskRecord::default().cgroup_id()), (Some(0), None));
    }

    #[test]
    fn a_wrong_header_is_rejected() {
        for (at, to) in [(0, 0), (7, 1), (8, 1), (12, 0)] {
            let mut bytes = sample_record().as_bytes().to_vec();
            bytes[at] = to;
            assert_eq!(TaskRecord::parse(&bytes), None, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn other_lengths_are_refused(len in (0usize..600).prop_filter("a record's", |len| *len != size_of::<TaskRecord>())) {
            let mut bytes = sample_record().as_bytes().to_vec();
            bytes.resize(len, 1);
            prop_assert_eq!(TaskRecord::parse(&bytes), None);
        }

        #[test]
        fn noise_is_refused(bytes in proptest::collection::vec(any::<u8>(), size_of::<TaskRecord>())) {
            prop_assume!(bytes[..4] != RECORD_MAGIC.to_ne_bytes());
            prop_assert_eq!(TaskRecord::parse(&bytes), None);
        }

        #[test]
        fn a_damaged_byte_is_refused_or_stays_where_it_is(at in 0usize..size_of::<TaskRecord>(), to in any::<u8>()) {
            let mut bytes = sample_record().as_bytes().to_vec();
            bytes[at] = to;
            if let Some(record) = TaskRecord::parse(&bytes) {
                prop_assert_eq!(record.as_bytes(), bytes);
            }
        }

        #[test]
        fn sums_add_and_never_panic(a in any::<[u64; 2]>()) {
            let mut sum = TaskCounters { read: a[0], ..TaskCounters::default() };
            sum += TaskCounters { read: a[1], runs: 1, ..TaskCounters::default() };
            prop_assert_eq!((sum.read, sum.runs), (a[0].wrapping_add(a[1]), 1));
        }
    }
}
