//! Reads the waits of the kernel side, classifies them by their stacks, and removes those that were idle for long.
//!
//! Layouts are those of the structs in `assets/trace/waits.bpf.c`.

use super::super::bpf_sys::{BpfMap, clock_ns};
use super::super::file_io::tables::{PATH_KEY_LEN, PATH_LEN, parse_file_id, read_paths};
use super::super::layout::{c_string, read_u32, read_u64, unpack_device};
use super::super::loader::open_map;
use super::super::memory_stalls::{KIND_LEN, parse_stall};
use super::super::nvme_paths::PathHeads;
use super::super::unavailable::ProbeUnavailable;
use super::symbols::Symbols;
use crate::model::file_io::{FileId, FileName};
use crate::model::memory_stalls::StallCounter;
use crate::model::process::USER_HZ;
use crate::model::task_waits::reason::{WaitFacts, classify, is_fault};
use crate::model::task_waits::{TaskWaitsRaw, WaitAccount, WaitKey, WaitReason};
use crate::root::Root;
use crate::sanitize::sanitize;
use aya::Ebpf;
use rustix::time::ClockId;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::Arc;

pub(crate) const KEY_LEN: usize = 64;
/// `struct wait`.
pub(crate) const WAIT_LEN: usize = KIND_LEN + 2 * COMM_LEN;
const COMM_LEN: usize = 16;
/// `struct thread`: what there is before the key, the key, and two names.
const THREAD_KEY_OFFSET: usize = 40;
pub(crate) const THREAD_LEN: usize = THREAD_KEY_OFFSET + KEY_LEN + 2 * COMM_LEN;
/// Bytes of a stack: `STACK_DEPTH` addresses.
const STACK_LEN: usize = 8 * 32;
/// `SHORT_STACK_DEPTH` addresses.
const SHORT_STACK_LEN: usize = 8 * 8;
/// `max_entries` of `waits`.
const MAX_WAITS: usize = 4096;
/// `max_entries` of `threads`.
const MAX_THREADS: usize = 8192;
/// A wait unchanged for this many readings may be removed.
const IDLE_READS: u32 = 120;
/// In the number of a stack: it is that of a task that slept when tracing began.
const EARLY: i32 = 1 << 30;
/// `SYNC_WRITE`, `INTERRUPTIBLE` and `FROZEN`.
const FLAGS: [u32; 3] = [1, 2, 4];
/// `OF_URING` and `OF_AIO`, and the functions of the kernel in which tasks wait for them.
const ASYNC_CALLS: [(u32, &str); 2] = [(8, "io_cqring_wait"), (16, "read_events")];

/// The key of the kernel side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KernelKey {
    starttime: u64,
    /// Of the system call, and of the last request.
    files: [FileId; 2],
    pid: u32,
    stack: i32,
    device: u32,
    holder: u32,
    flags: u32,
}

pub(crate) fn parse_key(bytes: &[u8; KEY_LEN]) -> KernelKey {
    let file = |at: usize| parse_file_id(bytes[at..].first_chunk().unwrap_or(&[0; PATH_KEY_LEN]));
    KernelKey {
        starttime: read_u64(bytes, 0) / (1_000_000_000 / USER_HZ),
        files: [file(8), file(24)],
        pid: read_u32(bytes, 40),
        stack: read_u32(bytes, 44) as i32,
        device: read_u32(bytes, 48),
        holder: read_u32(bytes, 52),
        flags: read_u32(bytes, 56),
    }
}

/// A wait that has not ended.
pub(crate) struct OpenWait {
    pub(crate) key: [u8; KEY_LEN],
    /// CLOCK_MONOTONIC, ns.
    pub(crate) since: u64,
    comm: [u8; COMM_LEN],
    holder: [u8; COMM_LEN],
}

/// Parses a slot of a thread; `None` while it does not wait.
pub(crate) fn parse_thread(bytes: &[u8]) -> Option<OpenWait> {
    let since = read_u64(bytes, 0);
    let (key, names) = bytes[THREAD_KEY_OFFSET..].split_at(KEY_LEN);
    let wait = || {
        Some(OpenWait {
            key: *key.first_chunk()?,
            since,
            comm: *names.first_chunk()?,
            holder: *names[COMM_LEN..].first_chunk()?,
        })
    };
    if since > 0 { wait() } else { None }
}

/// What a stack and the flags of a key say; `None` for a sleep that is no wait.
type Class = Option<(WaitReason, Arc<str>, bool)>;

/// The maps of the kernel side, and what is kept between readings.
pub(super) struct WaitTables {
    waits: BpfMap<KEY_LEN>,
    threads: BpfMap<4>,
    stacks: BpfMap<4>,
    /// Of interruptible sleeps.
    short_stacks: BpfMap<4>,
    /// Of tasks that slept when tracing began, by thread.
    early_stacks: BpfMap<4>,
    paths: BpfMap<PATH_KEY_LEN>,
    period: BpfMap<4>,
    current_period: u64,
    symbols: Symbols,
    classes: HashMap<(i32, u32), Class>,
    last_seen: LastSeen,
    totals: Totals,
    files: BTreeMap<FileId, Arc<FileName>>,
    heads: PathHeads,
}

/// Number of the waits of a key at the last reading, and readings since it changed.
type LastSeen = HashMap<[u8; KEY_LEN], (u64, u32)>;

/// What makes the sums of a reading no less than those of the one before.
#[derive(Default)]
struct Totals {
    /// A wait that ends between the readings of two maps is in neither.
    reported: BTreeMap<WaitKey, StallCounter>,
    /// Several keys of the kernel side, as those of two stacks, are summed up in one; some of them may have been removed.
    removed: BTreeMap<WaitKey, StallCounter>,
}

impl Totals {
    /// Adds what was removed. A wait that is in neither of two maps counts in full at the next reading.
    fn complete(&mut self, sums: &mut BTreeMap<WaitKey, StallCounter>) {
        self.reported.retain(|key, _| sums.contains_key(key));
        self.removed.retain(|key, _| sums.contains_key(key));
        for (key, sum) in sums {
            add_counter(sum, self.removed.get(key).copied().unwrap_or_default());
            let last = self.reported.entry(key.clone()).or_default();
            sum.count = sum.count.max(last.count);
            sum.total_ns = sum.total_ns.max(last.total_ns);
            *last = *sum;
        }
    }

    /// Notes that a part of the sum of a key will not be read again.
    fn note_removed(&mut self, key: WaitKey, counter: StallCounter) {
        add_counter(self.removed.entry(key).or_default(), StallCounter { max_ns: 0, ..counter });
    }
}

fn add_counter(sum: &mut StallCounter, more: StallCounter) {
    sum.count = sum.count.saturating_add(more.count);
    sum.total_ns = sum.total_ns.saturating_add(more.total_ns);
    sum.max_ns = sum.max_ns.max(more.max_ns);
}

/// The indices of the keys to remove: those that were idle for long, and all idle ones if the table is almost full. A key
/// with a wait that has not ended stays.
fn find_idle(last_seen: &mut LastSeen, ended: &[([u8; KEY_LEN], Vec<u8>)], open: &[OpenWait]) -> Vec<usize> {
    let is_full = ended.len() > MAX_WAITS / 2;
    let is_open: HashSet<&[u8; KEY_LEN]> = open.iter().map(|wait| &wait.key).collect();
    let mut idle = Vec::new();
    for (at, (key, value)) in ended.iter().enumerate() {
        let count = read_u64(value, 0);
        let seen = last_seen.entry(*key).or_insert((count, 0));
        *seen = (count, if seen.0 == count { seen.1.saturating_add(1) } else { 0 });
        if (seen.1 >= IDLE_READS || (is_full && seen.1 > 1)) && !is_open.contains(key) {
            idle.push(at);
        }
    }
    idle
}

/// Sums of a reading.
#[derive(Default)]
struct Sums {
    waits: BTreeMap<WaitKey, StallCounter>,
    names: BTreeMap<u32, Arc<str>>,
}

impl WaitTables {
    pub(super) fn open(programs: &Ebpf, symbols: Symbols, root: &Root) -> Result<Self, ProbeUnavailable> {
        Ok(Self {
            waits: open_map(programs, "waits", WAIT_LEN)?,
            threads: open_map(programs, "threads", THREAD_LEN)?,
            stacks: open_map(programs, "stacks", STACK_LEN)?,
            short_stacks: open_map(programs, "short_stacks", SHORT_STACK_LEN)?,
            early_stacks: open_map(programs, "early", STACK_LEN)?,
            paths: open_map(programs, "paths", PATH_LEN)?,
            period: open_map(programs, "period", 8)?,
            current_period: 0,
            symbols,
            classes: HashMap::new(),
            last_seen: LastSeen::new(),
            totals: Totals::default(),
            files: BTreeMap::new(),
            heads: PathHeads::new(root),
        })
    }

    /// Reads all tables; the rest of the reading is empty.
    pub(super) fn read(&mut self) -> io::Result<TaskWaitsRaw> {
        // Start a new period first: waits that end while we read belong to it.
        let last_period = self.current_period;
        self.heads.start_reading();
        self.current_period += 1;
        self.period.insert(&[0; 4], &mut self.current_period.to_ne_bytes())?;
        let (mut ended, mut open) = (Vec::new(), Vec::new());
        self.waits.for_each(MAX_WAITS, |key, value| ended.push((*key, value.to_vec())))?;
        let (now, read_ns) = (clock_ns(ClockId::Monotonic), clock_ns(ClockId::Boottime));
        self.threads.for_each(MAX_THREADS, |_, value| open.extend(parse_thread(value)))?;
        self.classify_all(ended.iter().map(|(key, _)| key).chain(open.iter().map(|wait| &wait.key)))?;
        let mut sums = Sums::default();
        for (key, value) in &ended {
            let names = value[KIND_LEN..].split_at(COMM_LEN);
            self.add(&mut sums, key, parse_stall(&value[..KIND_LEN], last_period, 1), names);
        }
        for wait in &open {
            let ns = now.saturating_sub(wait.since);
            let counter = StallCounter { count: 1, total_ns: ns, max_ns: ns };
            self.add(&mut sums, &wait.key, counter, (&wait.comm, &wait.holder));
        }
        self.totals.complete(&mut sums.waits);
        self.remove_idle(&ended, &open, last_period)?;
        self.read_files(&sums.waits)?;
        Ok(TaskWaitsRaw {
            accounts: sums.waits.into_iter().map(|(key, waits)| WaitAccount { key, waits }).collect(),
            files: self.files.values().cloned().collect(),
            processes: sums.names.into_iter().collect(),
            read_ns,
            ..TaskWaitsRaw::default()
        })
    }

    /// Classifies the stacks that are new.
    fn classify_all<'a>(&mut self, keys: impl Iterator<Item = &'a [u8; KEY_LEN]>) -> io::Result<()> {
        let keys = keys.map(parse_key).map(|key| (key.stack, key.flags));
        let new: BTreeSet<(i32, u32)> = keys.filter(|class| !self.classes.contains_key(class)).collect();
        for class in new {
            let [is_sync_write, is_interruptible, is_frozen] = FLAGS.map(|flag| class.1 & flag > 0);
            if let Some((_, function)) = ASYNC_CALLS.iter().find(|(flag, _)| class.1 & flag > 0) {
                self.classes.insert(class, Some((WaitReason::DirectIo, Arc::from(*function), false)));
                continue;
            }
            let mut value = [0; STACK_LEN];
            // A negative number is an error: two stacks with one hash, or none could be read.
            match class.0 {
                early if early > 0 && early & EARLY > 0 => {
                    self.early_stacks.get(&(early & !EARLY).to_ne_bytes(), &mut value)?;
                }
                0.. if is_interruptible => {
                    self.short_stacks.get(&class.0.to_ne_bytes(), &mut value[..SHORT_STACK_LEN])?;
                }
                0.. => drop(self.stacks.get(&class.0.to_ne_bytes(), &mut value)?),
                _ => {}
            }
            let addresses = value.as_chunks().0.iter().map(|n| u64::from_ne_bytes(*n)).take_while(|n| *n > 0);
            let names: Vec<&str> = addresses.map(|address| self.symbols.name(address)).collect();
            let found = classify(&names, WaitFacts { is_sync_write, is_interruptible, is_frozen });
            let found = found.map(|(reason, function)| (reason, Arc::from(function), is_fault(&names)));
            self.classes.insert(class, found);
        }
        Ok(())
    }

    /// What a key is summed up in; `None` for a sleep that is no wait.
    fn wait_key(&mut self, key: &KernelKey) -> Option<WaitKey> {
        let (reason, function, is_fault) = self.classes.get(&(key.stack, key.flags))?.as_ref()?;
        let [of_call, of_request] = key.files;
        let file = if *is_fault || of_call == FileId::default() { of_request } else { of_call };
        Some(WaitKey {
            pid: key.pid,
            starttime: key.starttime,
            reason: *reason,
            file,
            device: self.heads.head(unpack_device(key.device)),
            holder: key.holder,
            function: function.clone(),
        })
    }

    fn add(&mut self, sums: &mut Sums, key: &[u8; KEY_LEN], counter: StallCounter, names: (&[u8], &[u8])) {
        let key = parse_key(key);
        let Some(wait) = self.wait_key(&key) else { return };
        add_counter(sums.waits.entry(wait).or_default(), counter);
        for (pid, name) in [(key.pid, names.0), (key.holder, names.1)] {
            if pid > 0 {
                sums.names.entry(pid).or_insert_with(|| sanitize(c_string(name)).into());
            }
        }
    }

    /// Removes the idle ones of `ended`, which were read in `period`.
    fn remove_idle(&mut self, ended: &[([u8; KEY_LEN], Vec<u8>)], open: &[OpenWait], period: u64) -> io::Result<()> {
        for at in find_idle(&mut self.last_seen, ended, open) {
            let (key, value) = &ended[at];
            self.waits.remove(key)?;
            self.last_seen.remove(key);
            if let Some(wait) = self.wait_key(&parse_key(key)) {
                self.totals.note_removed(wait, parse_stall(&value[..KIND_LEN], period, 1));
            }
        }
        if self.last_seen.len() > ended.len() {
            self.last_seen.retain(|key, _| ended.iter().any(|(there, _)| there == key));
        }
        Ok(())
    }

    fn read_files(&mut self, sums: &BTreeMap<WaitKey, StallCounter>) -> io::Result<()> {
        let wanted = sums.keys().map(|key| key.file).filter(|id| id.ino > 0).collect();
        read_paths(&self.paths, &mut self.files, &wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::bpf_sys::tests::create_hash_map;
    use super::super::super::layout::pack_device;
    use super::super::super::nvme_paths::tests::{HEAD, PATH, write_diskstats};
    use super::*;
    use crate::model::disk::DevId;

    fn key_bytes() -> [u8; KEY_LEN] {
        let mut bytes = [0; KEY_LEN];
        bytes[..8].copy_from_slice(&5_000_000_000u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&12u64.to_ne_bytes());
        bytes[16..20].copy_from_slice(&(8u32 << 20 | 1).to_ne_bytes());
        bytes[20..24].copy_from_slice(&3u32.to_ne_bytes());
        bytes[24..32].copy_from_slice(&13u64.to_ne_bytes());
        for (at, n) in [77u32, -17i32 as u32, 7 << 20, 99, 2].into_iter().enumerate() {
            bytes[40 + 4 * at..44 + 4 * at].copy_from_slice(&n.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn keys_are_parsed_as_the_bpf_program_lays_them_out() {
        let call = FileId { file_system: DevId { major: 8, minor: 1 }, ino: 12, generation: 3 };
        assert_eq!(
            parse_key(&key_bytes()),
            KernelKey {
                starttime: 500,
                files: [call, FileId { ino: 13, ..FileId::default() }],
                pid: 77,
                stack: -17,
                device: 7 << 20,
                holder: 99,
                flags: 2
            }
        );
    }

    #[test]
    fn a_thread_that_runs_does_not_wait() {
        let mut slot = vec![0; THREAD_LEN];
        slot[THREAD_KEY_OFFSET..THREAD_KEY_OFFSET + KEY_LEN].copy_from_slice(&key_bytes());
        assert!(parse_thread(&slot).is_none());
        slot[..8].copy_from_slice(&9u64.to_ne_bytes());
        assert_eq!(parse_thread(&slot).map(|wait| (wait.since, wait.key)), Some((9, key_bytes())));
    }

    /// Tables without any wait; `None` where no maps may be made.
    fn empty_tables(root: &Root) -> Option<WaitTables> {
        Some(WaitTables {
            waits: create_hash_map(4, WAIT_LEN)?,
            threads: create_hash_map(4, THREAD_LEN)?,
            stacks: create_hash_map(4, STACK_LEN)?,
            short_stacks: create_hash_map(4, SHORT_STACK_LEN)?,
            early_stacks: create_hash_map(4, STACK_LEN)?,
            paths: create_hash_map(4, PATH_LEN)?,
            period: create_hash_map(4, 8)?,
            current_period: 0,
            symbols: Symbols::parse(&b""[..]),
            classes: HashMap::new(),
            last_seen: LastSeen::new(),
            totals: Totals::default(),
            files: BTreeMap::new(),
            heads: PathHeads::new(root),
        })
    }

    /// A wait for io_uring with a request on this device, from this call of it.
    fn uring_wait(device: DevId, stack: i32) -> [u8; KEY_LEN] {
        let mut key = [0; KEY_LEN];
        for (at, n) in [(40, 77), (44, stack as u32), (48, pack_device(device)), (56, ASYNC_CALLS[0].0)] {
            key[at..at + 4].copy_from_slice(&n.to_ne_bytes());
        }
        key
    }

    #[test]
    fn a_wait_for_the_path_of_an_nvme_disk_is_for_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        write_diskstats(&root, 3);
        let Some(mut tables) = empty_tables(&root) else {
            return println!("skipped a_wait_for_the_path_of_an_nvme_disk_is_for_the_disk: may not make maps");
        };
        tables.waits.insert(&uring_wait(PATH, -1), &mut [0; WAIT_LEN]).unwrap();
        let read = tables.read().unwrap();
        assert_eq!(read.accounts.iter().map(|account| account.key.device).collect::<Vec<_>>(), [HEAD]);
    }

    #[test]
    fn an_idle_key_is_removed_and_stays_in_the_sum() {
        let root = Root::at("/nonexistent");
        let Some(mut tables) = empty_tables(&root) else {
            return println!("skipped an_idle_key_is_removed_and_stays_in_the_sum: may not make maps");
        };
        let insert = |tables: &WaitTables, stack, count: u64| {
            let mut value = [0; WAIT_LEN];
            value[..8].copy_from_slice(&count.to_ne_bytes());
            tables.waits.insert(&uring_wait(DevId::default(), stack), &mut value).unwrap();
        };
        insert(&tables, 1, 1000);
        let counts: Vec<u64> = (1..=u64::from(IDLE_READS) + 2)
            .map(|count| {
                insert(&tables, 2, count);
                tables.read().unwrap().accounts[0].waits.count
            })
            .collect();
        assert!(counts.is_sorted_by(|a, b| a + 1 == *b), "{counts:?}");
        let mut left = 0;
        tables.waits.for_each(9, |_, _| left += 1).unwrap();
        assert_eq!((counts[0], left), (1001, 1));
    }

    fn waits(count: u64, total_ns: u64) -> StallCounter {
        StallCounter { count, total_ns, max_ns: 0 }
    }

    #[test]
    fn waits_of_a_key_count_on_after_another_one_of_the_same_sum_was_removed() {
        let (mut totals, key) = (Totals::default(), WaitKey { pid: 77, ..WaitKey::default() });
        let read = |totals: &mut Totals, sum| {
            let mut sums = BTreeMap::from([(key.clone(), sum)]);
            totals.complete(&mut sums);
            sums[&key]
        };
        // One stack has waited for 1000 ns and is idle, the other one goes on.
        assert_eq!(read(&mut totals, waits(12, 1200)), waits(12, 1200));
        totals.note_removed(key.clone(), waits(10, 1000));
        assert_eq!(read(&mut totals, waits(3, 250)), waits(13, 1250));
        assert_eq!(read(&mut totals, waits(2, 240)), waits(13, 1250), "a wait that is in neither map");
        assert_eq!(read(&mut totals, waits(4, 400)), waits(14, 1400));
        totals.complete(&mut BTreeMap::new());
        assert_eq!(read(&mut totals, waits(1, 10)), waits(1, 10), "all keys of it were removed");
    }

    #[test]
    fn a_key_with_a_wait_that_has_not_ended_is_not_idle() {
        let key = |pid: u32| {
            let mut bytes = key_bytes();
            bytes[40..44].copy_from_slice(&pid.to_ne_bytes());
            bytes
        };
        let ended = [77, 78].map(|pid| (key(pid), vec![0; WAIT_LEN]));
        let open = [OpenWait { key: key(78), since: 1, comm: [0; COMM_LEN], holder: [0; COMM_LEN] }];
        let mut last_seen = LastSeen::new();
        assert!((0..IDLE_READS - 1).all(|_| find_idle(&mut last_seen, &ended, &open).is_empty()));
        assert_eq!(find_idle(&mut last_seen, &ended, &open), [0]);
        assert_eq!(find_idle(&mut last_seen, &ended, &[]), [0, 1]);
    }
}
