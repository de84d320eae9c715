//! Records of the task iterator: `struct entry` in `assets/trace/tasks.bpf.c`.

use std::ops::AddAssign;

pub(super) const RECORD_LEN: usize = 14 * 4 + 15 * 8 + 2 * 16;

const RECORD_MAGIC: u32 = 0x6b73_6174;

/// First word of the short record of an unchanged kernel thread: `struct calm_entry`.
const UNCHANGED_MAGIC: u32 = 0x6d6c_6163;
const UNCHANGED_LEN: usize = 2 * 4;

const HAS_MM: u32 = 1;
const HAS_IO: u32 = 2;
const HAS_CGROUP: u32 = 8;
const HAS_EXACT: u32 = 16;
const HAS_ALL: u32 = 31;

/// Counters that are summed over the threads of a process. Times are in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
        let add = |to: &mut u64, more: u64| *to = to.wrapping_add(more);
        add(&mut self.majflt, more.majflt);
        add(&mut self.utime, more.utime);
        add(&mut self.stime, more.stime);
        add(&mut self.runtime, more.runtime);
        add(&mut self.runs, more.runs);
        add(&mut self.read, more.read);
        add(&mut self.write, more.write);
        add(&mut self.cancelled, more.cancelled);
        add(&mut self.blkio_ns, more.blkio_ns);
        add(&mut self.swapin_ns, more.swapin_ns);
    }
}

/// One task. For threads that are only added to their process just `counters` is valid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskRecord {
    /// Which fields are present.
    pub flags_present: u32,
    /// Thread ID.
    pub tid: u32,
    /// Process ID.
    pub pid: u32,
    /// Parent process.
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
    /// Scheduling policy.
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
    /// Resident pages.
    pub rss_pages: u64,
    /// Swapped-out pages.
    pub swap_pages: u64,
    /// ID of its cgroup v2 control group.
    pub raw_cgroup_id: u64,
    /// Address of its stack.
    pub start_stack: u64,
    /// Name.
    pub comm: [u8; 16],
    /// Work item of a kernel worker: `+` (current) or `-` (last) and a name.
    pub worker_item: [u8; 16],
}

/// One item of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // one at a time, never kept
pub enum TaskIterItem {
    /// Full record.
    Full(TaskRecord),
    /// Thread ID of a kernel thread that was not given a CPU since it was last reported.
    Unchanged(u32),
}

impl TaskIterItem {
    /// Parses the first item; returns it and the remaining bytes, or `None` if it is malformed.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut fields = FieldReader(bytes);
        if fields.read_u32() != UNCHANGED_MAGIC {
            let (first, behind) = bytes.split_at_checked(RECORD_LEN)?;
            return Some((Self::Full(TaskRecord::parse(first)?), behind));
        }
        let (_, behind) = bytes.split_at_checked(UNCHANGED_LEN)?;
        let tid = fields.read_u32();
        is_valid_tid(tid).then_some((Self::Unchanged(tid), behind))
    }

    /// Returns its thread ID.
    pub fn tid(&self) -> u32 {
        match self {
            Self::Full(record) => record.tid,
            Self::Unchanged(tid) => *tid,
        }
    }
}

/// Whether this is a thread ID: positive, at most 2^22 (PID_MAX_LIMIT).
fn is_valid_tid(n: u32) -> bool {
    (1..=1 << 22).contains(&n)
}

struct FieldReader<'a>(&'a [u8]);

impl FieldReader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        if let Some((head, rest)) = self.0.split_at_checked(N) {
            out.copy_from_slice(head);
            self.0 = rest;
        }
        out
    }

    fn read_u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn read_u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
}

impl TaskRecord {
    /// Parses a full record; `None` if it is malformed.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = FieldReader(bytes.get(..RECORD_LEN).filter(|_| bytes.len() == RECORD_LEN)?);
        let f = &mut fields;
        let mark = f.read_u32();
        let record = Self {
            flags_present: f.read_u32(),
            tid: f.read_u32(),
            pid: f.read_u32(),
            ppid: f.read_u32(),
            uid: f.read_u32(),
            state: f.read_u32(),
            exit_state: f.read_u32(),
            flags: f.read_u32(),
            thread_count: f.read_u32(),
            policy: f.read_u32(),
            static_prio: f.read_u32(),
            ioprio: f.read_u32(),
            exec_count: f.read_u32(),
            start_ns: f.read_u64(),
            counters: TaskCounters {
                majflt: f.read_u64(),
                utime: f.read_u64(),
                stime: f.read_u64(),
                runtime: f.read_u64(),
                runs: f.read_u64(),
                read: f.read_u64(),
                write: f.read_u64(),
                cancelled: f.read_u64(),
                blkio_ns: f.read_u64(),
                swapin_ns: f.read_u64(),
            },
            rss_pages: f.read_u64(),
            swap_pages: f.read_u64(),
            raw_cgroup_id: f.read_u64(),
            start_stack: f.read_u64(),
            comm: f.take(),
            worker_item: f.take(),
        };
        let known = mark == RECORD_MAGIC && record.flags_present & !HAS_ALL == 0;
        (known && is_valid_tid(record.tid) && is_valid_tid(record.pid)).then_some(record)
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

    /// Returns the bytes that the kernel side writes for a record.
    pub fn record_bytes(r: &TaskRecord) -> Vec<u8> {
        let s = &r.counters;
        let halves = [
            RECORD_MAGIC,
            r.flags_present,
            r.tid,
            r.pid,
            r.ppid,
            r.uid,
            r.state,
            r.exit_state,
            r.flags,
            r.thread_count,
            r.policy,
            r.static_prio,
            r.ioprio,
            r.exec_count,
        ];
        let words = [
            r.start_ns,
            s.majflt,
            s.utime,
            s.stime,
            s.runtime,
            s.runs,
            s.read,
            s.write,
            s.cancelled,
            s.blkio_ns,
            s.swapin_ns,
            r.rss_pages,
            r.swap_pages,
            r.raw_cgroup_id,
            r.start_stack,
        ];
        let mut out: Vec<u8> = halves.iter().flat_map(|n| n.to_ne_bytes()).collect();
        out.extend(words.iter().flat_map(|n| n.to_ne_bytes()));
        out.extend(r.comm);
        out.extend(r.worker_item);
        out
    }

    /// Returns the bytes that the kernel side writes for an unchanged thread.
    pub fn unchanged_bytes(tid: u32) -> Vec<u8> {
        [UNCHANGED_MAGIC, tid].map(u32::to_ne_bytes).concat()
    }

    fn sample_record() -> TaskRecord {
        TaskRecord {
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
        assert_eq!(TaskRecord::parse(&record_bytes(&record)), Some(record));
        assert!(record.has_memory() && record.has_io() && !record.has_exact_pages());
        assert_eq!((record.cgroup_id(), TaskRecord::default().cgroup_id()), (Some(0), None));
    }

    #[test]
    fn full_and_unchanged_records_may_alternate() {
        let bytes = [unchanged_bytes(9), record_bytes(&sample_record()), unchanged_bytes(0)].concat();
        let (item, rest) = TaskIterItem::parse(&bytes).unwrap();
        assert_eq!((item, item.tid()), (TaskIterItem::Unchanged(9), 9));
        let (item, rest) = TaskIterItem::parse(rest).unwrap();
        assert_eq!((item, item.tid()), (TaskIterItem::Full(sample_record()), sample_record().tid));
        assert_eq!((rest, TaskIterItem::parse(rest)), (&unchanged_bytes(0)[..], None), "not a number of a task");
        assert_eq!(TaskIterItem::parse(&unchanged_bytes(9)[..7]), None);
    }

    #[test]
    fn a_wrong_header_is_rejected() {
        for (at, to) in [(0, 0), (7, 1), (8, 1), (12, 0)] {
            let mut bytes = record_bytes(&sample_record());
            bytes[at] = to;
            assert_eq!(TaskRecord::parse(&bytes), None, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn other_lengths_are_refused(len in (0usize..600).prop_filter("a record's", |len| *len != RECORD_LEN)) {
            let mut bytes = record_bytes(&sample_record());
            bytes.resize(len, 1);
            prop_assert_eq!(TaskRecord::parse(&bytes), None);
        }

        #[test]
        fn noise_is_refused(bytes in proptest::collection::vec(any::<u8>(), RECORD_LEN)) {
            prop_assume!(bytes[..4] != RECORD_MAGIC.to_ne_bytes());
            prop_assert_eq!(TaskRecord::parse(&bytes), None);
        }

        #[test]
        fn a_damaged_byte_is_refused_or_stays_where_it_is(at in 0usize..RECORD_LEN, to in any::<u8>()) {
            let mut bytes = record_bytes(&sample_record());
            bytes[at] = to;
            if let Some(record) = TaskRecord::parse(&bytes) {
                prop_assert_eq!(record_bytes(&record), bytes);
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
