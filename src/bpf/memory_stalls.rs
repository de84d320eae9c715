//! Tasks stalled by memory: dirty throttling and direct reclaim, counted in the kernel (`assets/trace/stalls.bpf.c`).
//!
//! Both use BTF tracepoints. For dirty throttling that is better than the tracepoint of tracefs, which needs a mounted
//! tracefs and CAP_DAC_READ_SEARCH. The arguments of the BTF tracepoint changed between kernels, but the pause is
//! always the last but one: their number tells its position.

use super::bpf_sys::{BpfMap, clock_ns};
use super::kernel_info::{KernelInfo, check_pid_namespace};
use super::layout::{c_string, read_u64};
use super::loader::{self, attach_all, open_map};
use super::packed_object::{PackedObject, packed_object};
use super::probe::Probe;
use super::reading_cache::{ChangeMaps, ReadingCache};
use super::unavailable::{ProbeUnavailable, note_missing};
use crate::model::memory_stalls::{MemoryStallsRaw, RECLAIM, StallCounter, THROTTLE, TaskStallCounters};
use crate::model::process::USER_HZ;
use aya::Ebpf;
use rustix::time::{ClockId, clock_getres};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

/// The compiled programs; `assets/trace/build.sh` rebuilds them.
static BPF_OBJECT: PackedObject = packed_object!("stalls");

/// `struct key` and `struct held` in `assets/trace/stalls.bpf.c`.
const KEY_LEN: usize = 16;
const NAME_LEN: usize = 16;
pub(super) const KIND_LEN: usize = 6 * 8;
const VALUE_LEN: usize = 2 * NAME_LEN + 2 * KIND_LEN;
const MAX_PROCESSES: usize = 2048;
/// A process without new stalls for this long is removed from the map.
const EXPIRE_AFTER: Duration = Duration::from_secs(120);
/// Readings after which the maps are read even if nothing changed.
const MAX_CACHED_READS: u32 = 60;

pub struct MemoryStallProbe {
    _programs: Ebpf,
    stalls: BpfMap<KEY_LEN>,
    period: BpfMap<4>,
    changes: ChangeMaps,
    jiffy_ns: u64,
    current_period: u64,
    began_ns: u64,
    is_counted: [bool; 2],
    unavailable: Vec<String>,
    /// Number of stalls of each process at the last reading, and when that number last changed.
    last_seen: HashMap<[u8; KEY_LEN], (u64, Instant)>,
    /// The next reading, if nothing changes.
    cache: ReadingCache<MemoryStallsRaw>,
}

impl Probe for MemoryStallProbe {
    type Output = MemoryStallsRaw;
    const READING: &'static str = "reading memory stalls";

    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable> {
        check_pid_namespace(&kernel.root)?;
        let pause = is_pause_eleventh(kernel.tracepoints.argument_count("balance_dirty_pages"));
        let eleventh = *pause.as_ref().unwrap_or(&false);
        let mut programs = loader::open_object(kernel, BPF_OBJECT, &[("PAUSE_ELEVENTH", eleventh)])?;
        let stalls = open_map(&programs, "held", VALUE_LEN)?;
        let period = open_map(&programs, "period", 8)?;
        let changes = ChangeMaps::open(&programs, kernel.cpus)?;
        let mut attach = |pairs: &[_]| attach_all(&mut programs, &kernel.btf, pairs);
        let throttle = pause.and_then(|_| attach(&[("throttled", "balance_dirty_pages")]));
        let reclaim = attach(&[
            ("direct_begin", "mm_vmscan_direct_reclaim_begin"),
            ("direct_end", "mm_vmscan_direct_reclaim_end"),
        ]);
        let mut unavailable = Vec::new();
        let group = [("group_begin", "mm_vmscan_memcg_reclaim_begin"), ("group_end", "mm_vmscan_memcg_reclaim_end")];
        // Missing in kernels without memory cgroups.
        if reclaim.is_ok() && kernel.tracepoints.argument_count(group[0].1).is_some() {
            note_missing(&mut unavailable, "reclaim in control groups", &attach(&group));
        }
        note_missing(&mut unavailable, "throttled writers", &throttle);
        note_missing(&mut unavailable, "direct reclaim", &reclaim);
        let is_counted = [throttle.is_ok(), reclaim.is_ok()];
        if let (Err(why), Err(_)) = (throttle, reclaim) {
            return Err(why);
        }
        let tick = clock_getres(ClockId::MonotonicCoarse);
        Ok(Self {
            _programs: programs,
            stalls,
            period,
            changes,
            // The coarse clock advances with jiffies: KTIME_LOW_RES in kernel/time/posix-timers.c.
            jiffy_ns: tick.tv_sec as u64 * 1_000_000_000 + tick.tv_nsec as u64,
            current_period: 0,
            began_ns: clock_ns(ClockId::Boottime),
            is_counted,
            unavailable,
            last_seen: HashMap::new(),
            cache: ReadingCache::default(),
        })
    }

    fn read(&mut self) -> io::Result<MemoryStallsRaw> {
        let is_dirty = self.changes.take_dirty_flag()?;
        let now = Instant::now();
        // A process that expires now leaves the reading.
        let is_dirty = is_dirty || self.last_seen.values().any(|seen| is_expired(seen.1, now));
        if let Some(same) = self.cache.get(is_dirty, MAX_CACHED_READS) {
            return Ok(same);
        }
        let read = self.read_maps(now)?;
        self.cache.store(&reset_longest(&read));
        Ok(read)
    }
}

/// Whether the pause is the eleventh argument of `balance_dirty_pages`, by the number of arguments.
fn is_pause_eleventh(arguments: Option<usize>) -> Result<bool, ProbeUnavailable> {
    match arguments {
        Some(8) => Ok(false),
        Some(12) => Ok(true),
        Some(n) => {
            Err(ProbeUnavailable::Absent(format!("tracepoint balance_dirty_pages has {n} arguments, not 8 or 12")))
        }
        None => Err(ProbeUnavailable::Absent("this kernel has no tracepoint balance_dirty_pages".into())),
    }
}

impl MemoryStallProbe {
    fn read_maps(&mut self, now: Instant) -> io::Result<MemoryStallsRaw> {
        // Start a new period first: stalls counted while we read belong to it.
        let last_period = self.current_period;
        self.current_period += 1;
        self.period.insert(&[0; 4], &mut self.current_period.to_ne_bytes())?;
        let mut found = Vec::new();
        self.stalls.for_each(2 * MAX_PROCESSES, |key, value| {
            found.push((*key, self.parse_task(key, value, last_period)));
        })?;
        for (index, task) in &found {
            let count = task.counters.iter().map(|k| k.count).sum();
            let seen = self.last_seen.entry(*index).or_insert((count, now));
            if seen.0 != count {
                *seen = (count, now);
            }
        }
        for (key, _) in self.last_seen.extract_if(|_, seen| is_expired(seen.1, now)) {
            self.stalls.remove(&key)?;
        }
        // An expired process starts again from zero.
        let known = found.into_iter().filter(|(key, _)| self.last_seen.contains_key(key));
        let mut tasks: Vec<TaskStallCounters> = known.map(|(_, task)| task).collect();
        tasks.sort_unstable_by_key(TaskStallCounters::key);
        let (dropped, unavailable) = (self.changes.dropped()?, self.unavailable.clone());
        let (tracing_started_ns, is_counted) = (self.began_ns, self.is_counted);
        Ok(MemoryStallsRaw { tracing_started_ns, tasks, is_counted, dropped, unavailable })
    }

    fn parse_task(&self, key: &[u8; KEY_LEN], value: &[u8], last_period: u64) -> TaskStallCounters {
        let (comm, rest) = value.split_at(NAME_LEN);
        let (bdi, kinds) = rest.split_at(NAME_LEN);
        let kind = |index: usize, unit_ns: u64| {
            parse_stall(&kinds[index * KIND_LEN..(index + 1) * KIND_LEN], last_period, unit_ns)
        };
        let mut both = [StallCounter::default(); 2];
        both[THROTTLE] = kind(THROTTLE, self.jiffy_ns);
        both[RECLAIM] = kind(RECLAIM, 1);
        TaskStallCounters {
            pid: u32::from_ne_bytes([key[8], key[9], key[10], key[11]]),
            starttime: read_u64(key, 0) / (1_000_000_000 / USER_HZ),
            comm: c_string(comm).to_vec(),
            bdi: c_string(bdi).to_vec(),
            counters: both,
        }
    }
}

fn is_expired(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) >= EXPIRE_AFTER
}

/// Returns the reading as it will be if nothing is counted until the next one: a period without stalls has no longest.
fn reset_longest(read: &MemoryStallsRaw) -> MemoryStallsRaw {
    let mut read = read.clone();
    read.tasks.iter_mut().flat_map(|t| &mut t.counters).for_each(|kind| kind.max_ns = 0);
    read
}

/// Parses `struct stall`; the longest stall is that of the period that just ended.
pub(super) fn parse_stall(bytes: &[u8], last_period: u64, unit_ns: u64) -> StallCounter {
    let (longest, period) = (2 + (last_period & 1) as usize, 4 + (last_period & 1) as usize);
    let longest = if read_u64(bytes, 8 * period) == last_period { read_u64(bytes, 8 * longest) } else { 0 };
    StallCounter {
        count: read_u64(bytes, 0),
        total_ns: read_u64(bytes, 8).saturating_mul(unit_ns),
        max_ns: longest.saturating_mul(unit_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_argument_follows_from_the_argument_count() {
        assert_eq!((is_pause_eleventh(Some(8)), is_pause_eleventh(Some(12))), (Ok(false), Ok(true)));
        assert!(
            matches!(is_pause_eleventh(Some(9)), Err(ProbeUnavailable::Absent(why)) if why.contains("9 arguments"))
        );
        assert!(matches!(is_pause_eleventh(None), Err(ProbeUnavailable::Absent(_))));
    }

    #[test]
    fn a_cached_reading_has_no_longest_stall() {
        let kind = StallCounter { count: 5, total_ns: 50, max_ns: 20 };
        let task = TaskStallCounters { pid: 7, counters: [kind; 2], ..TaskStallCounters::default() };
        let read = MemoryStallsRaw { tasks: vec![task.clone()], dropped: 3, ..MemoryStallsRaw::default() };
        let quiet = TaskStallCounters { counters: [StallCounter { max_ns: 0, ..kind }; 2], ..task };
        assert_eq!(reset_longest(&read), MemoryStallsRaw { tasks: vec![quiet], ..read });
    }

    #[test]
    fn the_longest_stall_is_that_of_the_last_period() {
        let bytes: Vec<u8> = [5u64, 50, 11, 22, 4, 3].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let read = |last_period| parse_stall(&bytes, last_period, 10);
        assert_eq!(read(4), StallCounter { count: 5, total_ns: 500, max_ns: 110 });
        assert_eq!((read(3).max_ns, read(6).max_ns), (220, 0));
    }
}
