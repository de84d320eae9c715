//! The hot loop: keeps an engine's slots full and counts what completes.
//!
//! No allocation, no lock, no system call but the engine's, two clock readings per round: one after the
//! submission (issue time of the batch, as in fio) and one after the wait (completion time of the batch,
//! which is also the start time of the operations that are prepared next).

use super::engine::{Done, Engine, Op};
use super::measure::recorder::{Kind, Recorder};
use super::rng::Rng;
use super::spec::{Fill, IoSpec, Limits, Order};
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a waiting worker looks whether it should stop, in ns.
const LOOK_UP_NS: u64 = 100_000_000;
/// A wait for several completions that took longer shows a device too slow for waiting for several: it
/// would blur the latencies.
const SLOW_WAIT_NS: u64 = 2_000_000;
/// Gaps of paced work up to here are not slept through, as in fio: a processor that wakes from its idle state
/// for every operation adds the time of waking to each latency.
const SPIN_NS: u64 = 500_000;
/// How long a stopped worker waits for what is in flight, in ns.
const DRAIN_NS: u64 = 1_000_000_000;

/// Why a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Its time or its bytes were used up.
    Limit,
    /// It was told to stop.
    Stopped,
    /// An operation failed.
    Failed {
        /// What was tried; `None` if handing over failed, not an operation.
        op: Option<Op>,
        /// The errno; 0 for a transfer that came up short.
        errno: i32,
    },
}

/// An operation in flight.
#[derive(Clone, Copy)]
struct Slot {
    start: u64,
    issue: u64,
    op: Op,
}

/// Where the next operation goes.
struct Positions {
    order: Order,
    block: u64,
    start: u64,
    len: u64,
    next: u64,
}

impl Positions {
    fn new(spec: &IoSpec) -> Self {
        Self { order: spec.order, block: u64::from(spec.block), start: spec.start, len: spec.len, next: 0 }
    }

    /// Offset and length.
    #[inline(always)]
    fn next(&mut self, rng: &mut Rng) -> (u64, u32) {
        match self.order {
            Order::Random => (self.start + rng.below(self.len / self.block) * self.block, self.block as u32),
            Order::Sequential => {
                let at = if self.next >= self.len { 0 } else { self.next };
                let len = self.block.min(self.len - at);
                self.next = at + len;
                (self.start + at, len as u32)
            }
        }
    }
}

/// Everything a round needs.
struct Loop<'a, E: Engine> {
    engine: &'a mut E,
    spec: &'a IoSpec,
    recorder: &'a Recorder,
    rng: Rng,
    positions: Positions,
    slots: Vec<Slot>,
    free: Vec<u32>,
    fresh: Vec<u32>,
    done: Vec<Done>,
    unsynced: u64,
    want: u32,
    next_due: u64,
    queued_bytes: u64,
    counting: bool,
}

/// Runs `spec` on `engine` until a limit, a failure, or `stop`. `on_begin` is called once, when the
/// ramp-up is over and counting begins.
pub fn drive<E: Engine>(
    engine: &mut E,
    spec: &IoSpec,
    limits: Limits,
    recorder: &Recorder,
    stop: &AtomicBool,
    on_begin: &mut dyn FnMut(),
) -> Ended {
    let depth = if E::SYNCHRONOUS { 1 } else { spec.depth.max(1) };
    let idle = Slot { start: 0, issue: 0, op: Op { kind: Kind::Read, offset: 0, len: 0 } };
    let mut rng = Rng::new(spec.seed.0, spec.seed.1);
    if spec.read_pct < 100 {
        for slot in 0..depth {
            rng.fill(engine.buffer(slot));
        }
    }
    let mut this = Loop {
        spec,
        recorder,
        rng,
        positions: Positions::new(spec),
        slots: vec![idle; depth as usize],
        free: (0..depth).rev().collect(),
        fresh: Vec::with_capacity(depth as usize),
        done: Vec::with_capacity(depth as usize),
        unsynced: 0,
        // Paced operations come one by one; waiting for several would only blur their latencies.
        want: if spec.gap_ns > 0 { 1 } else { spec.complete_min },
        next_due: engine.now(),
        queued_bytes: 0,
        counting: false,
        engine,
    };
    this.run(limits, stop, on_begin)
}

impl<E: Engine> Loop<'_, E> {
    fn run(&mut self, limits: Limits, stop: &AtomicBool, on_begin: &mut dyn FnMut()) -> Ended {
        let mut now = self.engine.now();
        let ramp_end = now + limits.ramp_ns;
        let end = if limits.time_ns == 0 { u64::MAX } else { ramp_end.saturating_add(limits.time_ns) };
        let depth = self.slots.len();
        let mut ended = None;
        let mut give_up = u64::MAX;
        self.recorder.alive(now);
        loop {
            if !self.counting && now >= ramp_end {
                self.counting = true;
                self.queued_bytes = 0;
                self.recorder.begin(now);
                on_begin();
            }
            if ended.is_none() {
                if stop.load(Ordering::Relaxed) {
                    ended = Some(Ended::Stopped);
                } else if now >= end || (self.spec.bytes > 0 && self.queued_bytes >= self.spec.bytes) {
                    ended = Some(Ended::Limit);
                } else {
                    self.prepare(now);
                }
            }
            if ended.is_some() {
                if self.free.len() == depth || now >= give_up {
                    break;
                }
                if give_up == u64::MAX && stop.load(Ordering::Relaxed) {
                    give_up = now + DRAIN_NS;
                }
            }
            match self.round(now, ended.is_some()) {
                Ok(later) => now = later,
                Err(failed) => {
                    // What was in flight may complete or not: the figures up to here are valid.
                    if !matches!(ended, Some(Ended::Failed { .. })) {
                        ended = Some(failed);
                        give_up = now + DRAIN_NS;
                    }
                    now = self.engine.now();
                }
            }
        }
        ended.unwrap_or(Ended::Stopped)
    }

    /// Fills free slots, as far as rate and size allow.
    #[inline(always)]
    fn prepare(&mut self, now: u64) {
        while let Some(&slot) = self.free.last() {
            if self.spec.gap_ns > 0 {
                if now < self.next_due {
                    break;
                }
                self.next_due += self.spec.gap_ns;
            }
            if self.spec.bytes > 0 && self.counting && self.queued_bytes >= self.spec.bytes {
                break;
            }
            self.free.pop();
            let op = self.next_op(slot);
            self.queued_bytes += u64::from(op.len);
            // As in fio an operation begins when it is prepared. That matters where it is alone in flight;
            // otherwise a look at the clock for each would only cost.
            let start = if self.spec.gap_ns > 0 { self.engine.now() } else { now };
            self.slots[slot as usize] = Slot { start, issue: start, op };
            self.engine.queue(slot, op);
            self.fresh.push(slot);
            if self.fresh.len() >= self.spec.submit_max as usize {
                break;
            }
        }
    }

    #[inline(always)]
    fn next_op(&mut self, slot: u32) -> Op {
        if self.spec.fsync_every > 0 && self.unsynced >= self.spec.fsync_every {
            self.unsynced = 0;
            return Op { kind: Kind::Sync, offset: 0, len: 0 };
        }
        let read = match self.spec.read_pct {
            0 => false,
            100.. => true,
            pct => self.rng.below(100) < u64::from(pct),
        };
        let (offset, len) = self.positions.next(&mut self.rng);
        if read {
            return Op { kind: Kind::Read, offset, len };
        }
        self.unsynced += 1;
        let buffer = &mut self.engine.buffer(slot)[..len as usize];
        match self.spec.fill {
            Fill::Refill => self.rng.fill(buffer),
            Fill::Stamp => {
                let stamp = self.rng.bits().to_le_bytes();
                for sector in buffer.chunks_exact_mut(512) {
                    sector[..8].copy_from_slice(&stamp);
                }
            }
        }
        Op { kind: Kind::Write, offset, len }
    }

    /// Submits what is fresh, waits if nothing is complete, counts what is. Returns the time then.
    #[inline(always)]
    fn round(&mut self, mut now: u64, draining: bool) -> Result<u64, Ended> {
        let handed_over =
            |err: std::io::Error| Ended::Failed { op: None, errno: err.raw_os_error().unwrap_or(0) };
        let fresh = self.fresh.len();
        if fresh > 0 {
            self.engine.submit().map_err(handed_over)?;
            now = self.engine.now();
            if !E::SYNCHRONOUS {
                for &slot in &self.fresh {
                    self.slots[slot as usize].issue = now;
                }
            }
            if self.counting {
                self.recorder.handed_over(fresh, self.slots.len() - self.free.len());
            }
            self.fresh.clear();
        }
        self.done.clear();
        self.engine.reap(&mut self.done);
        let inflight = self.slots.len() - self.free.len();
        // A full batch went out and there are free slots still: the next batch first, then wait.
        let more = fresh >= self.spec.submit_max as usize && !self.free.is_empty();
        if !more && (self.done.is_empty() || fresh == 0) {
            let mut timeout = LOOK_UP_NS;
            if self.spec.gap_ns > 0 && !draining && !self.free.is_empty() {
                timeout = timeout.min(self.next_due.saturating_sub(now));
            }
            if inflight == 0 && timeout <= SPIN_NS {
                let due = now + timeout;
                while self.engine.now() < due {
                    std::hint::spin_loop();
                }
            } else if self.done.is_empty() && (timeout > 0 || inflight > 0) {
                let want = (self.want as usize).clamp(1, inflight.max(1));
                self.engine.wait(want as u32, timeout).map_err(handed_over)?;
            }
            let before = now;
            now = self.engine.now();
            let one = self.spec.gap_ns > 0 || now - before > SLOW_WAIT_NS;
            self.want = if one { 1 } else { self.spec.complete_min };
            self.engine.reap(&mut self.done);
        }
        if self.done.is_empty() {
            if inflight == 0 {
                self.recorder.alive(now);
            }
            return Ok(now);
        }
        self.count(now)
    }

    #[inline(always)]
    fn count(&mut self, now: u64) -> Result<u64, Ended> {
        if self.counting {
            self.recorder.reaped(self.done.len());
        }
        let mut failed = None;
        for &Done { slot, result } in &self.done {
            let s = self.slots[slot as usize];
            self.free.push(slot);
            if result != s.op.len as i32 {
                failed = Some(Ended::Failed { op: Some(s.op), errno: -result.min(0) });
            } else if self.counting {
                self.recorder.add(s.op.kind, u64::from(s.op.len), s.start, s.issue, now);
            }
        }
        self.recorder.seen(now);
        failed.map_or(Ok(now), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::engine::null::Null;

    const SECOND: u64 = 1_000_000_000;

    fn spec() -> IoSpec {
        IoSpec {
            order: Order::Random,
            read_pct: 50,
            block: 4096,
            start: 1 << 20,
            len: 1 << 20,
            depth: 8,
            fsync_every: 0,
            fill: Fill::Stamp,
            gap_ns: 0,
            submit_max: 16,
            complete_min: 1,
            bytes: 0,
            seed: (1, 0),
        }
    }

    fn run(engine: &mut Null, spec: &IoSpec, limits: Limits) -> (Ended, Recorder) {
        let recorder = Recorder::new();
        let ended = drive(engine, spec, limits, &recorder, &AtomicBool::new(false), &mut || {});
        (ended, recorder)
    }

    #[test]
    fn time_limit_ramp_up_and_the_rate_of_the_device() {
        let mut engine = Null::new(4096, 100_000);
        let limits = Limits { ramp_ns: SECOND, time_ns: 2 * SECOND };
        let (ended, recorder) = run(&mut engine, &spec(), limits);
        assert_eq!(ended, Ended::Limit);
        let (r, w) = (recorder.direction(Kind::Read), recorder.direction(Kind::Write));
        assert!((r.ios + w.ios).abs_diff(20_000) <= 8, "{} + {}", r.ios, w.ios);
        assert!(r.ios.abs_diff(w.ios) < 600);
        // Little's law: eight in flight, one completing every 100 us.
        assert!((r.lat.mean_ns - 800_000.0).abs() < 1_000.0, "{}", r.lat.mean_ns);
        assert_eq!(recorder.last() - recorder.began().unwrap(), 2 * SECOND + 8 * 100_000 - 100_000);
    }

    #[test]
    fn a_size_limit_is_met_exactly_once_through() {
        let mut engine = Null::new(1 << 20, 10);
        engine.trace = Some(Vec::new());
        let spec = IoSpec::layout((5 << 20) + 512, 1 << 20, 4, 1);
        let (ended, recorder) = run(&mut engine, &spec, Limits::default());
        assert_eq!(ended, Ended::Limit);
        assert_eq!(recorder.count(Kind::Write), (6, spec.len));
        let ops = engine.trace.unwrap();
        assert_eq!(ops.last(), Some(&Op { kind: Kind::Write, offset: 5 << 20, len: 512 }));
    }

    #[test]
    fn positions_stay_in_the_region_and_repeat_with_the_seed() {
        let ops = |seed| {
            let mut engine = Null::new(4096, 1000);
            engine.trace = Some(Vec::new());
            let spec = IoSpec { seed, ..spec() };
            run(&mut engine, &spec, Limits { time_ns: 1_000_000, ..Limits::default() });
            engine.trace.unwrap()
        };
        let all = ops((1, 0));
        assert!(all.len() > 900);
        assert!(
            all.iter().all(|o| o.offset % 4096 == 0 && o.offset >= 1 << 20 && o.offset + 4096 <= 2 << 20)
        );
        assert_eq!(all, ops((1, 0)));
        assert_ne!(all, ops((2, 0)));
    }

    #[test]
    fn a_rate_cap_holds() {
        let mut engine = Null::new(4096, 10);
        let spec = IoSpec { gap_ns: 1_000_000, ..spec() };
        let (_, recorder) = run(&mut engine, &spec, Limits { time_ns: 3 * SECOND, ..Limits::default() });
        let n = recorder.count(Kind::Read).0 + recorder.count(Kind::Write).0;
        assert!(n.abs_diff(3000) <= 1, "{n}");
    }

    #[test]
    fn a_sync_follows_every_so_many_writes() {
        let mut engine = Null::new(4096, 1000);
        engine.trace = Some(Vec::new());
        let spec = IoSpec { read_pct: 0, fsync_every: 3, depth: 1, ..spec() };
        run(&mut engine, &spec, Limits { time_ns: 100_000, ..Limits::default() });
        let kinds: Vec<_> = engine.trace.unwrap().iter().map(|o| o.kind).take(8).collect();
        use Kind::{Sync, Write};
        assert_eq!(kinds, [Write, Write, Write, Sync, Write, Write, Write, Sync]);
    }

    #[test]
    fn an_error_ends_the_run_with_what_was_counted() {
        let mut engine = Null::new(4096, 1000).failing_at(100, libc::EIO);
        let (ended, recorder) = run(&mut engine, &spec(), Limits { time_ns: SECOND, ..Limits::default() });
        assert!(matches!(ended, Ended::Failed { op: Some(_), errno: libc::EIO }));
        let n = recorder.count(Kind::Read).0 + recorder.count(Kind::Write).0;
        assert!((99..110).contains(&n), "{n}");
    }

    #[test]
    fn a_stopped_worker_does_not_wait_for_a_dead_device() {
        let mut engine = Null::new(4096, 1000).hanging_after(50);
        let recorder = Recorder::new();
        let stop = AtomicBool::new(false);
        let limits = Limits { ramp_ns: 0, time_ns: SECOND };
        // The device hangs, the time is over, and only then somebody gives up.
        let ended = std::thread::scope(|s| {
            let worker = s.spawn(|| drive(&mut engine, &spec(), limits, &recorder, &stop, &mut || {}));
            stop.store(true, Ordering::Relaxed);
            worker.join().unwrap()
        });
        assert!(matches!(ended, Ended::Limit | Ended::Stopped));
        assert!(recorder.count(Kind::Read).0 + recorder.count(Kind::Write).0 <= 50);
    }
}
