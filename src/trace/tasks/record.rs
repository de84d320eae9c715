//! One record of a task: `struct entry` in `assets/trace/tasks.bpf.c`.

use std::ops::AddAssign;

/// Bytes of a record.
pub const LEN: usize = 14 * 4 + 15 * 8 + 2 * 16;

/// What every record begins with.
const MARK: u32 = 0x6b73_6174;

/// What the short one begins with, of a thread of the kernel that is as it was told last: `struct calm_entry`.
const MARK_CALM: u32 = 0x6d6c_6163;
const CALM_LEN: usize = 2 * 4;

/// Bits of what a record has.
const HAS_MM: u32 = 1;
const HAS_IO: u32 = 2;
const HAS_CGROUP: u32 = 8;
const HAS_EXACT: u32 = 16;
const HAS_ALL: u32 = 31;

/// What is added up over the threads of a process. Times are in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Page faults that needed I/O.
    pub majflt: u64,
    /// Time in user space and in the kernel as sampled, and in all as measured.
    pub utime: u64,
    pub stime: u64,
    pub runtime: u64,
    /// Times it was given a CPU.
    pub runs: u64,
    /// Bytes read from storage, dirtied for it, and dirtied but never written.
    pub read: u64,
    pub write: u64,
    pub cancelled: u64,
    /// Time waited for block I/O and for pages from swap.
    pub blkio_ns: u64,
    pub swapin_ns: u64,
}

impl AddAssign for Sums {
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

/// What the kernel tells of a task. Of the threads of a process that are told only to be added to it, `sums` alone
/// says something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// What of it there is.
    pub has: u32,
    /// Thread and process.
    pub tid: u32,
    pub pid: u32,
    /// Parent process.
    pub ppid: u32,
    /// Real user.
    pub uid: u32,
    /// `__state` and `exit_state` of `struct task_struct`, its flags (PF_), policy and `static_prio`.
    pub state: u32,
    pub exit_state: u32,
    pub flags: u32,
    /// Threads of the process, those that wait for their end included.
    pub threads: u32,
    pub policy: u32,
    pub static_prio: u32,
    /// I/O class and level as packed by the kernel; class 0: never set.
    pub ioprio: u32,
    /// Programs it has executed, and its ancestors before it was forked; wraps.
    pub exec: u32,
    /// Start, CLOCK_BOOTTIME in ns.
    pub start_ns: u64,
    /// Counters: its own, or those of all its process's threads that have ended as well.
    pub sums: Sums,
    /// Resident and swapped-out pages.
    pub rss_pages: u64,
    pub swap_pages: u64,
    /// Number of its control group in the hierarchy of version 2.
    pub cgroup: u64,
    /// Where its stack begins.
    pub stack: u64,
    /// Its name.
    pub comm: [u8; 16],
    /// What a worker of the kernel works on: `+` (now) or `-` (last) and a name.
    pub work: [u8; 16],
}

/// What is told of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // one at a time, never kept
pub enum Told {
    /// All there is.
    Task(Record),
    /// A thread of the kernel, by its number: it was not given a CPU since it was told last.
    Calm(u32),
}

impl Told {
    /// What stands first in the kernel's bytes, and what stands behind it; `None` if that is not what they are.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut fields = Fields(bytes);
        if fields.half() != MARK_CALM {
            let (first, behind) = bytes.split_at_checked(LEN)?;
            return Some((Self::Task(Record::parse(first)?), behind));
        }
        let (_, behind) = bytes.split_at_checked(CALM_LEN)?;
        let tid = fields.half();
        is_id(tid).then_some((Self::Calm(tid), behind))
    }

    /// Whom it is about.
    pub fn tid(&self) -> u32 {
        match self {
            Self::Task(record) => record.tid,
            Self::Calm(tid) => *tid,
        }
    }
}

/// Process and thread ids are positive numbers of 22 bits (PID_MAX_LIMIT).
fn is_id(n: u32) -> bool {
    (1..=1 << 22).contains(&n)
}

/// Takes one number after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        if let Some((head, rest)) = self.0.split_at_checked(N) {
            out.copy_from_slice(head);
            self.0 = rest;
        }
        out
    }

    fn half(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn word(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
}

impl Record {
    /// From the kernel's bytes; `None` if that is not what they are.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes.get(..LEN).filter(|_| bytes.len() == LEN)?);
        let f = &mut fields;
        let mark = f.half();
        let record = Self {
            has: f.half(),
            tid: f.half(),
            pid: f.half(),
            ppid: f.half(),
            uid: f.half(),
            state: f.half(),
            exit_state: f.half(),
            flags: f.half(),
            threads: f.half(),
            policy: f.half(),
            static_prio: f.half(),
            ioprio: f.half(),
            exec: f.half(),
            start_ns: f.word(),
            sums: Sums {
                majflt: f.word(),
                utime: f.word(),
                stime: f.word(),
                runtime: f.word(),
                runs: f.word(),
                read: f.word(),
                write: f.word(),
                cancelled: f.word(),
                blkio_ns: f.word(),
                swapin_ns: f.word(),
            },
            rss_pages: f.word(),
            swap_pages: f.word(),
            cgroup: f.word(),
            stack: f.word(),
            comm: f.take(),
            work: f.take(),
        };
        let known = mark == MARK && record.has & !HAS_ALL == 0;
        (known && is_id(record.tid) && is_id(record.pid)).then_some(record)
    }

    /// It has memory of its own: no thread of the kernel, not yet ended.
    pub fn has_memory(&self) -> bool {
        self.has & HAS_MM != 0
    }

    /// Its I/O is counted.
    pub fn has_io(&self) -> bool {
        self.has & HAS_IO != 0
    }

    /// Its control group, where version 2 is known to the kernel.
    pub fn group(&self) -> Option<u64> {
        (self.has & HAS_CGROUP != 0).then_some(self.cgroup)
    }

    /// Pages are counted in one place; else each CPU keeps some to itself for a while.
    pub fn has_exact_pages(&self) -> bool {
        self.has & HAS_EXACT != 0
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes that the kernel writes for a record.
    pub fn written(r: &Record) -> Vec<u8> {
        let s = &r.sums;
        let halves = [
            MARK,
            r.has,
            r.tid,
            r.pid,
            r.ppid,
            r.uid,
            r.state,
            r.exit_state,
            r.flags,
            r.threads,
            r.policy,
            r.static_prio,
            r.ioprio,
            r.exec,
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
            r.cgroup,
            r.stack,
        ];
        let mut out: Vec<u8> = halves.iter().flat_map(|n| n.to_ne_bytes()).collect();
        out.extend(words.iter().flat_map(|n| n.to_ne_bytes()));
        out.extend(r.comm);
        out.extend(r.work);
        out
    }

    /// The bytes that the kernel writes for a thread that did nothing.
    pub fn calm(tid: u32) -> Vec<u8> {
        [MARK_CALM, tid].map(u32::to_ne_bytes).concat()
    }

    fn sample() -> Record {
        Record {
            has: HAS_MM | HAS_IO | HAS_CGROUP,
            tid: 4_194_304,
            pid: 7,
            exec: u32::MAX,
            start_ns: 1,
            sums: Sums { majflt: 2, swapin_ns: u64::MAX, ..Sums::default() },
            stack: 3,
            comm: *b"\xff)\n S 1 (x\0\0\0\0\0\0",
            work: *b"+flush-259:0\0\0\0\0",
            ..Record::default()
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let record = sample();
        assert_eq!(Record::parse(&written(&record)), Some(record));
        assert!(record.has_memory() && record.has_io() && !record.has_exact_pages());
        assert_eq!((record.group(), Record::default().group()), (Some(0), None));
    }

    #[test]
    fn short_and_long_records_stand_one_behind_the_other() {
        let bytes = [calm(9), written(&sample()), calm(0)].concat();
        let (told, rest) = Told::parse(&bytes).unwrap();
        assert_eq!((told, told.tid()), (Told::Calm(9), 9));
        let (told, rest) = Told::parse(rest).unwrap();
        assert_eq!((told, told.tid()), (Told::Task(sample()), sample().tid));
        assert_eq!((rest, Told::parse(rest)), (&calm(0)[..], None), "not a number of a task");
        assert_eq!(Told::parse(&calm(9)[..7]), None);
    }

    #[test]
    fn another_beginning_is_refused() {
        for (at, to) in [(0, 0), (7, 1), (8, 1), (12, 0)] {
            let mut bytes = written(&sample());
            bytes[at] = to;
            assert_eq!(Record::parse(&bytes), None, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn other_lengths_are_refused(len in (0usize..600).prop_filter("a record's", |len| *len != LEN)) {
            let mut bytes = written(&sample());
            bytes.resize(len, 1);
            prop_assert_eq!(Record::parse(&bytes), None);
        }

        #[test]
        fn noise_is_refused(bytes in proptest::collection::vec(any::<u8>(), LEN)) {
            prop_assume!(bytes[..4] != MARK.to_ne_bytes());
            prop_assert_eq!(Record::parse(&bytes), None);
        }

        #[test]
        fn a_damaged_byte_is_refused_or_stays_where_it_is(at in 0usize..LEN, to in any::<u8>()) {
            let mut bytes = written(&sample());
            bytes[at] = to;
            if let Some(record) = Record::parse(&bytes) {
                prop_assert_eq!(written(&record), bytes);
            }
        }

        #[test]
        fn sums_add_and_never_panic(a in any::<[u64; 2]>()) {
            let mut sum = Sums { read: a[0], ..Sums::default() };
            sum += Sums { read: a[1], runs: 1, ..Sums::default() };
            prop_assert_eq!((sum.read, sum.runs), (a[0].wrapping_add(a[1]), 1));
        }
    }
}
