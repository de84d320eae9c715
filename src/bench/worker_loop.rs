//! The worker loop: keeps an engine's slots full and counts completions.
//!
//! No allocation, no lock, no system call but the engine's, two clock readings per round: one after the
//! submission (issue time of the batch, as in fio) and one after the wait (completion time of the batch,
//! which is also the start time of the operations that are prepared next).

mod fio_rounds;
mod queue_state;

use self::queue_state::QueueState;
use super::engine::{Completion, IoEngine, IoOp};
use super::io_spec::IoSpec;
use super::measure::recorder::{OpKind, OpRecorder};
use super::op_source::{NextOp, OpSource, ReapTime, SpecSource};
use super::target::refusal::RunError;
use crate::model::reading::describe_io_error;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a waiting worker checks whether it should stop, ns.
const STOP_POLL_NS: u64 = 100_000_000;
/// After a longer wait the loop waits for single completions: on a slow device several would distort latencies.
const SLOW_WAIT_NS: u64 = 2_000_000;
/// Shorter pauses of rate-limited work are busy-waited, as in fio: a processor that wakes from its idle state
/// for every operation adds its wake-up time to each latency.
const SPIN_NS: u64 = 500_000;
/// How long a stopped worker waits for operations in flight, ns.
const DRAIN_TIMEOUT_NS: u64 = 1_000_000_000;

/// When a worker begins to count, and when it ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WorkerTimes {
    /// Ramp-up, ns: operations in it are not counted.
    pub ramp_ns: u64,
    /// Counted time in ns; 0: no limit.
    pub time_ns: u64,
}

#[derive(Clone, Copy)]
struct InFlightOp {
    start: u64,
    issue: u64,
    op: IoOp,
}

/// Why no operation can be queued at present.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// There may be another one.
    None,
    /// Not before this time.
    Until(u64),
    /// Not before everything in flight is complete.
    Drained,
}

struct WorkerLoop<'a, E: IoEngine, S: OpSource> {
    engine: &'a mut E,
    source: &'a mut S,
    times: WorkerTimes,
    recorder: &'a OpRecorder,
    slots: Vec<InFlightOp>,
    free_slots: Vec<u32>,
    unsubmitted: Vec<u32>,
    completions: Vec<Completion>,
    min_completions: usize,
    queue: QueueState,
    pause: Pause,
    is_counting: bool,
}

/// Runs `spec` on `engine` until a limit, a failure, or `stop`. `on_begin` is called once, when counting begins;
/// `drop_cache` after each pass of [`IoSpec::pass_bytes`].
pub(crate) fn run_worker_loop<E: IoEngine>(
    engine: &mut E,
    spec: &IoSpec,
    recorder: &OpRecorder,
    stop: &AtomicBool,
    on_begin: &mut dyn FnMut(),
    drop_cache: &mut dyn FnMut(),
) -> Result<(), RunError> {
    let times = WorkerTimes { ramp_ns: spec.ramp_ns, time_ns: spec.time_ns };
    let mut source = SpecSource::new(spec, engine.now(), drop_cache);
    run_source(engine, &mut source, times, recorder, stop, on_begin)
}

/// Runs what `source` asks for, likewise.
pub(crate) fn run_source<E: IoEngine, S: OpSource>(
    engine: &mut E,
    source: &mut S,
    times: WorkerTimes,
    recorder: &OpRecorder,
    stop: &AtomicBool,
    on_begin: &mut dyn FnMut(),
) -> Result<(), RunError> {
    let depth = if E::SYNCHRONOUS { 1 } else { source.slots() };
    for slot in 0..depth {
        source.prepare(engine.buffer(slot));
    }
    let idle = InFlightOp { start: 0, issue: 0, op: IoOp::new(OpKind::Read, 0, 0) };
    // Rate-limited operations come one by one; waiting for several would distort their latencies.
    let min_completions = if source.is_paced() { 1 } else { source.batches().complete_min };
    let mut this = WorkerLoop {
        source,
        times,
        recorder,
        slots: vec![idle; depth as usize],
        free_slots: (0..depth).rev().collect(),
        unsubmitted: Vec::with_capacity(depth as usize),
        completions: Vec::with_capacity(depth as usize),
        min_completions,
        queue: QueueState::default(),
        pause: Pause::None,
        is_counting: false,
        engine,
    };
    this.run(stop, on_begin)
}

impl<E: IoEngine, S: OpSource> WorkerLoop<'_, E, S> {
    fn run(&mut self, stop: &AtomicBool, on_begin: &mut dyn FnMut()) -> Result<(), RunError> {
        let mut now = self.engine.now();
        let ramp_end = now + self.times.ramp_ns;
        let mut end = if self.times.time_ns == 0 { u64::MAX } else { ramp_end.saturating_add(self.times.time_ns) };
        let mut ended = None;
        let mut give_up = u64::MAX;
        self.recorder.heartbeat(now);
        loop {
            if !self.is_counting && now >= ramp_end {
                self.is_counting = true;
                self.source.begin_counting(now);
                self.recorder.start_counting(now);
                on_begin();
            }
            if ended.is_none() {
                if stop.load(Ordering::Relaxed) {
                    ended = Some(Err(RunError::Cancelled));
                } else {
                    if now >= end {
                        self.source.time_is_over();
                        end = u64::MAX;
                    }
                    if self.fill_slots(now) {
                        ended = Some(Ok(()));
                    }
                }
            }
            if ended.is_some() {
                if self.in_flight() == 0 || now >= give_up {
                    break;
                }
                if give_up == u64::MAX && stop.load(Ordering::Relaxed) {
                    give_up = now + DRAIN_TIMEOUT_NS;
                }
            }
            match self.submit_and_reap(now, ended.is_some()) {
                Ok(later) => now = later,
                Err(failed) => {
                    // Operations in flight may complete or not; the counts up to here are valid.
                    if !matches!(ended, Some(Err(RunError::Failed(_)))) {
                        ended = Some(Err(failed));
                        give_up = now + DRAIN_TIMEOUT_NS;
                    }
                    now = self.engine.now();
                }
            }
        }
        ended.unwrap_or(Err(RunError::Cancelled))
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// Fills free slots, as far as the source has operations. Returns whether it has no more.
    fn fill_slots(&mut self, now: u64) -> bool {
        if self.waits() {
            return false;
        }
        self.pause = Pause::None;
        let batches = self.source.batches();
        let most = if batches.reap == ReapTime::EachOperation { 1 } else { batches.submit_max };
        while let Some(&slot) = self.free_slots.last() {
            let in_flight = self.in_flight() as u32;
            if in_flight >= self.source.depth() {
                break;
            }
            let op = match self.source.next(now, in_flight) {
                NextOp::Op(op) => op,
                NextOp::NotBefore(due) => {
                    self.pause = Pause::Until(due);
                    break;
                }
                NextOp::Drain => {
                    self.pause = Pause::Drained;
                    break;
                }
                NextOp::End => return true,
            };
            self.free_slots.pop();
            if op.len > 0 && op.kind != OpKind::Trim {
                self.source.fill(&op, &mut self.engine.buffer(slot)[..op.len as usize]);
            }
            // As in fio, an operation starts when it is prepared. That matters for single operations in flight;
            // for others a clock reading each would only add cost.
            let start = if self.source.is_paced() { self.engine.now() } else { now };
            self.slots[slot as usize] = InFlightOp { start, issue: start, op };
            self.engine.queue(slot, op);
            self.unsubmitted.push(slot);
            self.queue.uncounted += 1;
            if self.unsubmitted.len() >= most || self.queue.uncounted >= batches.submit_max {
                break;
            }
        }
        false
    }

    /// Submits new operations, waits if none has completed, records completions. Returns the time after that.
    fn submit_and_reap(&mut self, mut now: u64, draining: bool) -> Result<u64, RunError> {
        let batches = self.source.batches();
        if batches.reap != ReapTime::Available && !E::SYNCHRONOUS {
            return self.fio_round(now, draining);
        }
        let fresh = self.unsubmitted.len();
        if fresh > 0 {
            now = self.submit_queued(fresh)?;
        }
        let in_flight = self.in_flight();
        let has_room = !self.free_slots.is_empty() && in_flight < self.source.depth() as usize;
        self.completions.clear();
        self.engine.reap(&mut self.completions, batches.complete_max);
        // After a full batch with slots still free, prepare the next batch before waiting.
        let more = fresh >= batches.submit_max && has_room;
        if !more && (self.completions.is_empty() || fresh == 0) {
            now = self.wait_for_completions(now, draining, in_flight)?;
            self.engine.reap(&mut self.completions, batches.complete_max);
        }
        self.finish_round(now, in_flight)
    }

    fn submit_queued(&mut self, fresh: usize) -> Result<u64, RunError> {
        let now = self.submit_all()?;
        self.queue.uncounted = 0;
        if self.is_counting {
            self.recorder.record_submit(fresh);
            self.recorder.record_depth(fresh, self.in_flight());
        }
        Ok(now)
    }

    fn submit_all(&mut self) -> Result<u64, RunError> {
        self.engine.submit().map_err(not_taken)?;
        let now = self.engine.now();
        if !E::SYNCHRONOUS {
            for &slot in &self.unsubmitted {
                self.slots[slot as usize].issue = now;
            }
        }
        self.unsubmitted.clear();
        Ok(now)
    }

    /// Waits for completions, or, without operations in flight, until the next one is due.
    fn wait_for_completions(&mut self, now: u64, draining: bool, in_flight: usize) -> Result<u64, RunError> {
        let mut timeout = STOP_POLL_NS;
        if let (Pause::Until(due), false) = (self.pause, draining) {
            timeout = timeout.min(due.saturating_sub(now));
        }
        if in_flight == 0 && timeout <= SPIN_NS {
            let due = now + timeout;
            while self.engine.now() < due {
                std::hint::spin_loop();
            }
        } else if self.completions.is_empty() && (timeout > 0 || in_flight > 0) {
            let want = self.min_completions.clamp(1, in_flight.max(1));
            self.engine.wait(want as u32, timeout).map_err(not_taken)?;
        }
        let later = self.engine.now();
        let one = self.source.is_paced() || later - now > SLOW_WAIT_NS;
        self.min_completions = if one { 1 } else { self.source.batches().complete_min };
        Ok(later)
    }

    fn finish_round(&mut self, now: u64, in_flight: usize) -> Result<u64, RunError> {
        if self.completions.is_empty() {
            if in_flight == 0 {
                self.recorder.heartbeat(now);
            }
            return Ok(now);
        }
        self.record_completions(now)
    }

    fn record_completions(&mut self, now: u64) -> Result<u64, RunError> {
        if self.is_counting {
            self.recorder.record_reap(self.completions.len());
        }
        let mut failed = None;
        for &Completion { slot, result } in &self.completions {
            let s = self.slots[slot as usize];
            self.free_slots.push(slot);
            let expected = if s.op.kind == OpKind::Trim { 0 } else { s.op.len as i32 };
            if result != expected {
                failed = Some(describe_failure(&s.op, -result.min(0)));
                continue;
            }
            if self.is_counting && self.source.is_counted(&s.op) {
                self.recorder.record_op(s.op.kind, u64::from(s.op.len), s.start, s.issue, now);
            }
            let buffer = if s.op.kind == OpKind::Trim { 0 } else { s.op.len as usize };
            let checked = self.source.complete(&s.op, &self.engine.buffer(slot)[..buffer], now - s.start);
            if let Err(why) = checked {
                failed = Some(RunError::Failed(why));
            }
        }
        if self.is_counting {
            self.recorder.record_completion_time(now);
            if self.source.takes_figures_anew() {
                self.recorder.restart(now);
            }
        } else {
            self.recorder.heartbeat(now);
        }
        failed.map_or(Ok(now), Err)
    }
}

#[cold]
fn not_taken(err: std::io::Error) -> RunError {
    failure("handing operations to the kernel".into(), err.raw_os_error().unwrap_or(0))
}

/// The error of an operation that failed with `errno`; 0: a short transfer.
#[cold]
fn describe_failure(op: &IoOp, errno: i32) -> RunError {
    failure(format!("{:?} of {} bytes at offset {}", op.kind, op.len, op.offset).to_lowercase(), errno)
}

#[cold]
fn failure(what: String, errno: i32) -> RunError {
    let why = match errno {
        0 => "came up short".into(),
        libc::ENOSPC => "no space left on the device: choose a smaller --size".into(),
        libc::EIO => "the device reports an error (EIO); the kernel log says more".into(),
        libc::EINVAL => "refused as invalid: block size or offset not aligned for direct I/O?".into(),
        libc::EOPNOTSUPP => "not supported here; --iopoll needs a device with polling queues".into(),
        n => describe_io_error(&std::io::Error::from_raw_os_error(n)),
    };
    RunError::Failed(format!("{what}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::engine::test_engine::NullEngine;
    use crate::bench::io_spec::{AccessOrder, BufferFill};

    const SECOND: u64 = 1_000_000_000;

    fn spec() -> IoSpec {
        IoSpec {
            order: AccessOrder::Random,
            read_pct: 50,
            block: 4096,
            start: 1 << 20,
            len: 1 << 20,
            depth: 8,
            fsync_every: 0,
            fill: BufferFill::Scramble,
            op_interval_ns: 0,
            submit_max: 16,
            complete_min: 1,
            ramp_ns: 0,
            time_ns: SECOND,
            byte_limit: 0,
            pass_bytes: 0,
            seed: (1, 0),
        }
    }

    fn run(engine: &mut NullEngine, spec: &IoSpec) -> (Result<(), RunError>, OpRecorder) {
        let recorder = OpRecorder::default();
        let ended = run_worker_loop(engine, spec, &recorder, &AtomicBool::new(false), &mut || {}, &mut || {});
        (ended, recorder)
    }

    fn ops(recorder: &OpRecorder) -> u64 {
        recorder.direction_stats(OpKind::Read).ios + recorder.direction_stats(OpKind::Write).ios
    }

    #[test]
    fn time_limit_and_ramp_up_are_kept_at_the_device_rate() {
        let mut engine = NullEngine::new(4096, 100_000);
        let spec = IoSpec { ramp_ns: SECOND, time_ns: 2 * SECOND, ..spec() };
        let (ended, recorder) = run(&mut engine, &spec);
        assert_eq!(ended, Ok(()));
        let (r, w) = (recorder.direction_stats(OpKind::Read), recorder.direction_stats(OpKind::Write));
        assert!((r.ios + w.ios).abs_diff(20_000) <= 8, "{} + {}", r.ios, w.ios);
        assert!(r.ios.abs_diff(w.ios) < 600);
        // Little's law: eight in flight, one completing every 100 us.
        assert!((r.lat.mean_ns - 800_000.0).abs() < 1_000.0, "{}", r.lat.mean_ns);
        assert_eq!(
            recorder.last_completion_ns() - recorder.counting_since().unwrap(),
            2 * SECOND + 8 * 100_000 - 100_000
        );
    }

    #[test]
    fn layout_writes_the_whole_region_exactly_once() {
        let mut engine = NullEngine::new(1 << 20, 10);
        engine.op_log = Some(Vec::new());
        let spec = IoSpec::for_layout((5 << 20) + 512, 1 << 20, 4, 1);
        let (ended, recorder) = run(&mut engine, &spec);
        assert_eq!(ended, Ok(()));
        let written = recorder.direction_stats(OpKind::Write);
        assert_eq!((written.ios, written.bytes), (6, spec.len));
        let ops = engine.op_log.unwrap();
        assert_eq!(ops.last(), Some(&IoOp::new(OpKind::Write, 5 << 20, 512)));
    }

    #[test]
    fn offsets_stay_in_the_region_and_repeat_with_the_seed() {
        let ops = |seed| {
            let mut engine = NullEngine::new(4096, 1000);
            engine.op_log = Some(Vec::new());
            let _ = run(&mut engine, &IoSpec { seed, time_ns: 1_000_000, ..spec() });
            engine.op_log.unwrap()
        };
        let all = ops((1, 0));
        assert!(all.len() > 900);
        assert!(all.iter().all(|o| o.offset % 4096 == 0 && o.offset >= 1 << 20 && o.offset + 4096 <= 2 << 20));
        assert_eq!(all, ops((1, 0)));
        assert_ne!(all, ops((2, 0)));
    }

    #[test]
    fn rate_cap_is_kept() {
        let mut engine = NullEngine::new(4096, 10);
        let spec = IoSpec { op_interval_ns: 1_000_000, time_ns: 3 * SECOND, ..spec() };
        let (_, recorder) = run(&mut engine, &spec);
        let n = ops(&recorder);
        assert!(n.abs_diff(3000) <= 1, "{n}");
    }

    #[test]
    fn a_sync_follows_every_fsync_every_writes() {
        let mut engine = NullEngine::new(4096, 1000);
        engine.op_log = Some(Vec::new());
        let spec = IoSpec { read_pct: 0, fsync_every: 3, depth: 1, time_ns: 100_000, ..spec() };
        let _ = run(&mut engine, &spec);
        let kinds: Vec<_> = engine.op_log.unwrap().iter().map(|o| o.kind).take(8).collect();
        use OpKind::{Sync, Write};
        assert_eq!(kinds, [Write, Write, Write, Sync, Write, Write, Write, Sync]);
    }

    #[test]
    fn the_cache_is_dropped_after_each_pass() {
        let mut engine = NullEngine::new(4096, 1000);
        let (recorder, mut drops) = (OpRecorder::default(), 0);
        // 256 blocks a pass, 1000 operations.
        let spec = IoSpec { time_ns: 1_000_000, pass_bytes: 1 << 20, ..spec() };
        let mut drop_cache = || drops += 1;
        let ended =
            run_worker_loop(&mut engine, &spec, &recorder, &AtomicBool::new(false), &mut || {}, &mut drop_cache);
        assert_eq!((ended, drops), (Ok(()), 3));
    }

    #[test]
    fn an_error_ends_the_run_and_keeps_its_counts() {
        let mut engine = NullEngine::new(4096, 1000);
        engine.failure = Some((100, libc::EIO));
        let (ended, recorder) = run(&mut engine, &spec());
        assert!(ended.unwrap_err().to_string().contains("at offset") && recorder.counting_since().is_some());
        let n = ops(&recorder);
        assert!((99..110).contains(&n), "{n}");
    }

    #[test]
    fn a_stopped_worker_does_not_wait_for_a_hung_device() {
        let mut engine = NullEngine::new(4096, 1000);
        engine.hang_after = Some(50);
        let recorder = OpRecorder::default();
        let stop = AtomicBool::new(false);
        // The device hangs and the time is over when the stop is requested.
        let ended = std::thread::scope(|s| {
            let worker = s.spawn(|| run_worker_loop(&mut engine, &spec(), &recorder, &stop, &mut || {}, &mut || {}));
            stop.store(true, Ordering::Relaxed);
            worker.join().unwrap()
        });
        assert!(matches!(ended, Ok(()) | Err(RunError::Cancelled)));
        assert!(ops(&recorder) <= 50);
    }
}
