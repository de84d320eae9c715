//! Who is held up by memory: dirty throttling and direct reclaim, counted in the kernel
//! (`assets/trace/stalls.bpf.c`).
//!
//! Both by tracepoints that the kernel's type information describes. For dirty throttling the raw form is taken, not
//! the one in tracefs: that needs a mounted tracefs and CAP_DAC_READ_SEARCH besides, and the raw form, though its
//! arguments changed, has had the pause as the last but one ever since; their number says where that is.

use super::ground::Ground;
use super::kernel::{Map, Unchanged, sum_of_cpus, take_news};
use super::object::{self, attach};
use super::{Probe, Without};
use crate::model::process::USER_HZ;
use crate::model::section::Section;
use crate::model::stalls::{RECLAIM, StallCount, StallsRaw, THROTTLE, TaskStalls};
use aya::maps::MapData;
use aya::{Ebpf, include_bytes_aligned};
use rustix::time::{ClockId, clock_getres};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The programs, compiled; `assets/trace/build.sh` makes it anew.
static OBJECT: &[u8] = include_bytes_aligned!("../../assets/trace/stalls.bpf.o");

/// `struct key` and `struct held` in `assets/trace/stalls.bpf.c`.
const KEY: usize = 16;
const NAME: usize = 16;
const KIND: usize = 6 * 8;
const VALUE: usize = 2 * NAME + 2 * KIND;
/// Processes there is room for.
const MOST: usize = 2048;
/// A process of which nothing new came for so long makes room for others.
const FORGET: Duration = Duration::from_secs(120);
/// Read all the same after so many readings without news.
const IDLE: u32 = 60;

/// Programs that count, as long as this lives.
pub struct Stalls {
    /// Holds the programs and what attaches them.
    _programs: Ebpf,
    held: MapData,
    period: MapData,
    lost: MapData,
    news: MapData,
    cpus: usize,
    /// ns of a jiffy.
    tick_ns: u64,
    now: u64,
    counted: [bool; 2],
    without: Vec<String>,
    /// Stalls of each process at the last reading, and since when there are so many.
    seen: HashMap<[u8; KEY], (u64, Instant)>,
    /// What the next reading is, if there are no news.
    unchanged: Unchanged<StallsRaw>,
}

impl Probe for Stalls {
    type Read = StallsRaw;

    fn load(ground: &Ground) -> Result<Self, Without> {
        load(ground)
    }

    fn read(&mut self) -> Section<StallsRaw> {
        match self.all() {
            Ok(raw) => Section::Ok(raw),
            Err(err) => Section::from_io("reading the stalls", &err),
        }
    }
}

/// Where the pause of `balance_dirty_pages` is, by the number of arguments: whether it is the eleventh.
fn pause_eleventh(arguments: Option<usize>) -> Result<bool, Without> {
    match arguments {
        Some(8) => Ok(false),
        Some(12) => Ok(true),
        Some(n) => {
            Err(Without::Absent(format!("tracepoint balance_dirty_pages has {n} arguments, not 8 or 12")))
        }
        None => Err(Without::Absent("this kernel has no tracepoint balance_dirty_pages".into())),
    }
}

fn load(ground: &Ground) -> Result<Stalls, Without> {
    let pause = pause_eleventh(ground.points.arguments("balance_dirty_pages"));
    let eleventh = *pause.as_ref().unwrap_or(&false);
    let mut programs = object::open(ground, OBJECT, &[("PAUSE_ELEVENTH", eleventh)])?;
    let mut map = |name| object::take_map(&mut programs, name);
    let (held, period, lost) = (map("held")?, map("period")?, map("lost")?);
    let news = map(object::GLOBALS)?;
    let throttle =
        pause.and_then(|_| attach(&mut programs, &ground.btf, &[("throttled", "balance_dirty_pages")]));
    let reclaim = attach(
        &mut programs,
        &ground.btf,
        &[("direct_begin", "mm_vmscan_direct_reclaim_begin"), ("direct_end", "mm_vmscan_direct_reclaim_end")],
    );
    let mut without = Vec::new();
    let mut missing = |what: &str, done: &Result<(), Without>| {
        if let Err(Without::Absent(why) | Without::Denied(why)) = done {
            without.push(format!("{what}: {why}"));
        }
    };
    if reclaim.is_ok() {
        let group =
            [("group_begin", "mm_vmscan_memcg_reclaim_begin"), ("group_end", "mm_vmscan_memcg_reclaim_end")];
        // Not there in kernels without control groups of memory.
        if ground.points.arguments(group[0].1).is_some() {
            missing("reclaim in control groups", &attach(&mut programs, &ground.btf, &group));
        }
    }
    missing("throttled writers", &throttle);
    missing("direct reclaim", &reclaim);
    let counted = [throttle.is_ok(), reclaim.is_ok()];
    if let (Err(why), Err(_)) = (throttle, reclaim) {
        return Err(why);
    }
    let tick = clock_getres(ClockId::MonotonicCoarse);
    Ok(Stalls {
        _programs: programs,
        held,
        period,
        lost,
        news,
        cpus: ground.cpus,
        // The coarse clock moves with the jiffies: KTIME_LOW_RES in kernel/time/posix-timers.c.
        tick_ns: tick.tv_sec as u64 * 1_000_000_000 + tick.tv_nsec as u64,
        now: 0,
        counted,
        without,
        seen: HashMap::new(),
        unchanged: Unchanged::default(),
    })
}

impl Stalls {
    fn all(&mut self) -> io::Result<StallsRaw> {
        let news = take_news(self.news.fd().as_fd())?;
        let now = Instant::now();
        // Who is to be forgotten now leaves the reading.
        let news = news || self.seen.values().any(|seen| is_old(seen.1, now));
        if let Some(same) = self.unchanged.get(news, IDLE) {
            return Ok(same);
        }
        let read = self.look(now)?;
        self.unchanged.keep(&later(&read));
        Ok(read)
    }

    fn look(&mut self, now: Instant) -> io::Result<StallsRaw> {
        // A new period first: what comes while we read belongs to it.
        let ended = self.now;
        self.now += 1;
        let period = Map::<4> { fd: self.period.fd().as_fd(), value_len: 8 };
        period.put(&[0; 4], &mut self.now.to_ne_bytes())?;
        let map = Map::<KEY> { fd: self.held.fd().as_fd(), value_len: VALUE };
        let mut found = Vec::new();
        map.each(2 * MOST, |at, value| found.push((*at, self.task(at, value, ended))))?;
        for (at, task) in &found {
            let count = task.kinds.iter().map(|k| k.count).sum();
            let seen = self.seen.entry(*at).or_insert((count, now));
            if seen.0 != count {
                *seen = (count, now);
            }
        }
        self.seen.retain(|key, seen| {
            let keep = !is_old(seen.1, now);
            if !keep {
                map.remove(key);
            }
            keep
        });
        // Who was forgotten begins anew.
        let known = found.into_iter().filter(|(key, _)| self.seen.contains_key(key));
        let mut tasks: Vec<TaskStalls> = known.map(|(_, task)| task).collect();
        tasks.sort_unstable_by_key(TaskStalls::key);
        let lost = sum_of_cpus(self.lost.fd().as_fd(), self.cpus)?;
        Ok(StallsRaw { tasks, counted: self.counted, lost, without: self.without.clone() })
    }

    fn task(&self, key: &[u8; KEY], value: &[u8], ended: u64) -> TaskStalls {
        let (comm, rest) = value.split_at(NAME);
        let (bdi, kinds) = rest.split_at(NAME);
        let kind = |at: usize, unit_ns: u64| count(&kinds[at * KIND..(at + 1) * KIND], ended, unit_ns);
        let mut both = [StallCount::default(); 2];
        both[THROTTLE] = kind(THROTTLE, self.tick_ns);
        both[RECLAIM] = kind(RECLAIM, 1);
        TaskStalls {
            pid: u32::from_ne_bytes([key[8], key[9], key[10], key[11]]),
            starttime: word(key, 0) / (1_000_000_000 / USER_HZ),
            comm: text(comm),
            bdi: text(bdi),
            kinds: both,
        }
    }
}

fn is_old(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) >= FORGET
}

/// A reading as it will be if nothing is counted until the next one: no time is the longest of a period without any.
fn later(read: &StallsRaw) -> StallsRaw {
    let mut read = read.clone();
    read.tasks.iter_mut().flat_map(|t| &mut t.kinds).for_each(|kind| kind.longest_ns = 0);
    read
}

/// `struct stall`: its longest time is that of the period just ended.
fn count(bytes: &[u8], ended: u64, unit_ns: u64) -> StallCount {
    let (longest, period) = (2 + (ended & 1) as usize, 4 + (ended & 1) as usize);
    let longest = if word(bytes, 8 * period) == ended { word(bytes, 8 * longest) } else { 0 };
    StallCount {
        count: word(bytes, 0),
        ns: word(bytes, 8).saturating_mul(unit_ns),
        longest_ns: longest.saturating_mul(unit_ns),
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_ne_bytes)
}

/// Up to the first zero.
fn text(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|b| *b == 0).next().unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_is_found_by_the_number_of_arguments_or_not_at_all() {
        assert_eq!((pause_eleventh(Some(8)), pause_eleventh(Some(12))), (Ok(false), Ok(true)));
        assert!(matches!(pause_eleventh(Some(9)), Err(Without::Absent(why)) if why.contains("9 arguments")));
        assert!(matches!(pause_eleventh(None), Err(Without::Absent(_))));
    }

    #[test]
    fn a_reading_without_news_has_the_counts_and_no_longest_time() {
        let kind = StallCount { count: 5, ns: 50, longest_ns: 20 };
        let task = TaskStalls { pid: 7, kinds: [kind; 2], ..TaskStalls::default() };
        let read = StallsRaw { tasks: vec![task.clone()], lost: 3, ..StallsRaw::default() };
        let quiet = TaskStalls { kinds: [StallCount { longest_ns: 0, ..kind }; 2], ..task };
        assert_eq!(later(&read), StallsRaw { tasks: vec![quiet], ..read });
    }

    #[test]
    fn the_longest_time_is_that_of_the_period_that_ended() {
        let bytes: Vec<u8> = [5u64, 50, 11, 22, 4, 3].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let read = |ended| count(&bytes, ended, 10);
        assert_eq!(read(4), StallCount { count: 5, ns: 500, longest_ns: 110 });
        assert_eq!((read(3).longest_ns, read(6).longest_ns), (220, 0));
    }
}
