//! Where a worker thread counts, and where everybody else may look while it does.
//!
//! One writer, many readers, no locks: the writer's plain loads and stores of relaxed atomics cost what
//! an ordinary increment costs. A reader sees figures that are at most one operation apart, which is why
//! a thread that hangs in the kernel for ever still leaves a valid partial report behind.

use super::depth::{CLASSES, Depths, batch_of, level_of};
use super::histogram::{BUCKETS, Histogram, bucket_of};
use super::latency::{Direction, Latency, Sync};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What an operation does to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Moves data from the file.
    Read = 0,
    /// Moves data to the file.
    Write = 1,
    /// Makes what was written durable.
    Sync = 2,
}

/// Adds without a locked instruction: right only because a counter has a single writer.
#[inline(always)]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Sum, extremes and sum of squares of one latency.
struct Moments {
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    squares: AtomicU64, // bits of an f64: a sum of squared nanoseconds outgrows 64 bits
}

impl Moments {
    fn new() -> Self {
        Self {
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            squares: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    fn add(&self, ns: u64) {
        bump(&self.sum, ns);
        if ns < self.min.load(Relaxed) {
            self.min.store(ns, Relaxed);
        }
        if ns > self.max.load(Relaxed) {
            self.max.store(ns, Relaxed);
        }
        let x = ns as f64;
        self.squares.store(x.mul_add(x, f64::from_bits(self.squares.load(Relaxed))).to_bits(), Relaxed);
    }

    fn clear(&self) {
        self.sum.store(0, Relaxed);
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
        self.squares.store(0, Relaxed);
    }

    fn latency(&self, n: u64, histogram: Option<Histogram>) -> Latency {
        let squares = f64::from_bits(self.squares.load(Relaxed));
        Latency::from_sums(
            n,
            self.sum.load(Relaxed),
            squares,
            self.min.load(Relaxed),
            self.max.load(Relaxed),
            histogram,
        )
    }
}

struct Counts(Box<[AtomicU64]>);

impl Counts {
    fn new() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline(always)]
    fn add(&self, ns: u64) {
        bump(&self.0[bucket_of(ns)], 1);
    }

    fn histogram(&self) -> Histogram {
        Histogram::of(self.0.iter().map(|c| c.load(Relaxed)))
    }

    fn clear(&self) {
        self.0.iter().for_each(|c| c.store(0, Relaxed));
    }
}

struct Side {
    ios: AtomicU64,
    bytes: AtomicU64,
    slat: Moments,
    clat: Moments,
    lat: Moments,
    clat_counts: Counts,
    lat_counts: Counts,
}

impl Side {
    fn new() -> Self {
        Self {
            ios: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            slat: Moments::new(),
            clat: Moments::new(),
            lat: Moments::new(),
            clat_counts: Counts::new(),
            lat_counts: Counts::new(),
        }
    }
}

/// One worker's counters. Times are CLOCK_MONOTONIC in ns.
#[repr(align(128))]
pub struct Recorder {
    sides: [Side; 3],
    /// When counting began (end of the ramp-up); 0: not yet.
    began: AtomicU64,
    /// The last completion that was counted.
    last: AtomicU64,
    /// The last sign of life, counted or not: ramp-up and sleeping for a rate cap included.
    alive: AtomicU64,
    stalls: AtomicU64,
    stalled_ns: AtomicU64,
    longest_gap: AtomicU64,
    level: [AtomicU64; CLASSES],
    submit: [AtomicU64; CLASSES],
    complete: [AtomicU64; CLASSES],
}

/// A span without any completion that is shown as a stall, in ns.
pub const STALL_NS: u64 = 100_000_000;

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// All zero.
    pub fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            sides: [Side::new(), Side::new(), Side::new()],
            began: zero(),
            last: zero(),
            alive: zero(),
            stalls: zero(),
            stalled_ns: zero(),
            longest_gap: zero(),
            level: std::array::from_fn(|_| zero()),
            submit: std::array::from_fn(|_| zero()),
            complete: std::array::from_fn(|_| zero()),
        }
    }

    /// Counting begins: what the ramp-up left is forgotten.
    pub fn begin(&self, now: u64) {
        for side in &self.sides {
            for n in [&side.ios, &side.bytes] {
                n.store(0, Relaxed);
            }
            for m in [&side.slat, &side.clat, &side.lat] {
                m.clear();
            }
            side.clat_counts.clear();
            side.lat_counts.clear();
        }
        for n in [&self.stalls, &self.stalled_ns, &self.longest_gap] {
            n.store(0, Relaxed);
        }
        for n in self.level.iter().chain(&self.submit).chain(&self.complete) {
            n.store(0, Relaxed);
        }
        self.last.store(now, Relaxed);
        self.began.store(now.max(1), Relaxed);
    }

    /// One completed operation: `start` when its preparation began, `issue` when the kernel had it,
    /// `end` when its completion was seen.
    #[inline(always)]
    pub fn add(&self, kind: Kind, bytes: u64, start: u64, issue: u64, end: u64) {
        let side = &self.sides[kind as usize];
        bump(&side.ios, 1);
        let lat = end.saturating_sub(start);
        side.lat.add(lat);
        side.lat_counts.add(lat);
        if kind != Kind::Sync {
            bump(&side.bytes, bytes);
            let clat = end.saturating_sub(issue);
            side.slat.add(issue.saturating_sub(start));
            side.clat.add(clat);
            side.clat_counts.add(clat);
        }
    }

    /// A batch of `n` operations was handed over, after which `inflight` are in flight.
    #[inline(always)]
    pub fn handed_over(&self, n: usize, inflight: usize) {
        bump(&self.submit[batch_of(n)], 1);
        bump(&self.level[level_of(inflight)], n as u64);
    }

    /// A batch of `n` completions was taken.
    #[inline(always)]
    pub fn reaped(&self, n: usize) {
        bump(&self.complete[batch_of(n)], 1);
    }

    /// How deep it was.
    pub fn depths(&self) -> Depths {
        let read = |a: &[AtomicU64; CLASSES]| std::array::from_fn(|n| a[n].load(Relaxed));
        Depths { level: read(&self.level), submit: read(&self.submit), complete: read(&self.complete) }
    }

    /// Completions were seen at `now`: ends the gap since the one before.
    #[inline(always)]
    pub fn seen(&self, now: u64) {
        let gap = now.saturating_sub(self.last.load(Relaxed));
        self.last.store(now, Relaxed);
        self.alive.store(now, Relaxed);
        if gap > self.longest_gap.load(Relaxed) {
            self.longest_gap.store(gap, Relaxed);
            if gap >= STALL_NS {
                self.stall(gap);
            }
        } else if gap >= STALL_NS {
            self.stall(gap);
        }
    }

    #[cold]
    fn stall(&self, gap: u64) {
        bump(&self.stalls, 1);
        bump(&self.stalled_ns, gap);
    }

    /// A sign of life that is no completion.
    #[inline(always)]
    pub fn alive(&self, now: u64) {
        self.alive.store(now, Relaxed);
    }

    /// The last sign of life.
    pub fn last_alive(&self) -> u64 {
        self.alive.load(Relaxed)
    }

    /// When counting began, if it has.
    pub fn began(&self) -> Option<u64> {
        Some(self.began.load(Relaxed)).filter(|t| *t > 0)
    }

    /// When the last counted operation completed.
    pub fn last(&self) -> u64 {
        self.last.load(Relaxed)
    }

    /// Number of stalls, ns in them, longest gap without a completion in ns.
    pub fn stalls(&self) -> (u64, u64, u64) {
        (self.stalls.load(Relaxed), self.stalled_ns.load(Relaxed), self.longest_gap.load(Relaxed))
    }

    /// Completed operations and bytes of one kind.
    #[inline]
    pub fn count(&self, kind: Kind) -> (u64, u64) {
        let side = &self.sides[kind as usize];
        (side.ios.load(Relaxed), side.bytes.load(Relaxed))
    }

    /// The histogram of `lat` of one kind.
    pub fn lat_histogram(&self, kind: Kind) -> Histogram {
        self.sides[kind as usize].lat_counts.histogram()
    }

    /// Everything counted of reads or writes.
    pub fn direction(&self, kind: Kind) -> Direction {
        let side = &self.sides[kind as usize];
        let ios = side.ios.load(Relaxed);
        Direction {
            ios,
            bytes: side.bytes.load(Relaxed),
            slat: side.slat.latency(ios, None),
            clat: side.clat.latency(ios, Some(side.clat_counts.histogram())),
            lat: side.lat.latency(ios, Some(side.lat_counts.histogram())),
        }
    }

    /// Everything counted of syncs.
    pub fn sync(&self) -> Sync {
        let side = &self.sides[Kind::Sync as usize];
        let ios = side.ios.load(Relaxed);
        Sync { ios, lat: side.lat.latency(ios, Some(side.lat_counts.histogram())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fios_three_latencies() {
        let r = Recorder::new();
        r.begin(0);
        r.add(Kind::Read, 4096, 1_000, 1_400, 3_000);
        r.add(Kind::Read, 4096, 2_000, 2_200, 5_000);
        let d = r.direction(Kind::Read);
        assert_eq!((d.ios, d.bytes), (2, 8192));
        assert_eq!((d.slat.min_ns, d.slat.max_ns, d.slat.mean_ns), (200, 400, 300.0));
        assert_eq!((d.clat.mean_ns, d.lat.mean_ns), (2200.0, 2500.0));
        assert!((d.lat.stddev_ns - 707.1).abs() < 0.1, "{}", d.lat.stddev_ns);
        assert_eq!(r.direction(Kind::Write).ios, 0);
    }

    #[test]
    fn the_ramp_up_leaves_nothing() {
        let r = Recorder::new();
        r.add(Kind::Write, 4096, 0, 0, 900_000_000);
        r.begin(1_000_000_000);
        assert_eq!(r.direction(Kind::Write).ios, 0);
        assert_eq!(r.direction(Kind::Write).lat.histogram, Some(Histogram::default()));
        r.handed_over(16, 64);
        r.reaped(8);
        assert_eq!((r.depths().level[6], r.depths().submit[3], r.depths().complete[2]), (16, 1, 1));
        r.begin(2_000_000_000);
        assert_eq!(r.depths(), Depths::default());
    }

    #[test]
    fn a_gap_without_completions_is_a_stall() {
        let r = Recorder::new();
        r.begin(1_000);
        r.seen(2_000);
        r.seen(2_000 + 3 * STALL_NS);
        r.seen(2_000 + 4 * STALL_NS);
        assert_eq!(r.stalls(), (2, 4 * STALL_NS, 3 * STALL_NS));
    }
}
