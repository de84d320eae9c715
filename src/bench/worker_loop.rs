//! The worker loop: keeps an engine's slots full and counts completions.
//!
//! No allocation, no lock, no system call but the engine's, two clock readings per round: one after the
//! submission (issue time of the batch, as in fio) and one after the wait (completion time of the batch,
//! which is also the start time of the operations that are prepared next).

use super::engine::{Completion, IoEngine, IoOp};
use super::io_spec::{AccessOrder, BufferFill, IoSpec};
use super::measure::recorder::{OpKind, OpRecorder};
use super::rng::Rng;
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

#[derive(Clone, Copy)]
struct InFlightOp {
    start: u64,
    issue: u64,
    op: IoOp,
}

struct WorkerLoop<'a, E: IoEngine> {
    engine: &'a mut E,
    spec: &'a IoSpec,
    recorder: &'a OpRecorder,
    rng: Rng,
    /// Of the next sequential operation, from the start of the region.
    next_offset: u64,
    slots: Vec<InFlightOp>,
    free_slots: Vec<u32>,
    unsubmitted: Vec<u32>,
    completions: Vec<Completion>,
    writes_since_sync: u64,
    min_completions: u32,
    next_due_ns: u64,
    queued_bytes: u64,
    is_counting: bool,
}

/// Runs `spec` on `engine` until a limit, a failure, or `stop`. `on_begin` is called once, when counting begins.
pub(crate) fn run_worker_loop<E: IoEngine>(
    engine: &mut E,
    spec: &IoSpec,
    recorder: &OpRecorder,
    stop: &AtomicBool,
    on_begin: &mut dyn FnMut(),
) -> Result<(), RunError> {
    let depth = if E::SYNCHRONOUS { 1 } else { spec.depth.max(1) };
    let idle = InFlightOp { start: 0, issue: 0, op: IoOp { kind: OpKind::Read, offset: 0, len: 0 } };
    let mut rng = Rng::new(spec.seed.0, spec.seed.1);
    if spec.read_pct < 100 {
        for slot in 0..depth {
            rng.fill_bytes(engine.buffer(slot));
        }
    }
    let mut this = WorkerLoop {
        spec,
        recorder,
        rng,
        next_offset: 0,
        slots: vec![idle; depth as usize],
        free_slots: (0..depth).rev().collect(),
        unsubmitted: Vec::with_capacity(depth as usize),
        completions: Vec::with_capacity(depth as usize),
        writes_since_sync: 0,
        // Rate-limited operations come one by one; waiting for several would distort their latencies.
        min_completions: if spec.op_interval_ns > 0 { 1 } else { spec.complete_min },
        next_due_ns: engine.now(),
        queued_bytes: 0,
        is_counting: false,
        engine,
    };
    this.run(stop, on_begin)
}

impl<E: IoEngine> WorkerLoop<'_, E> {
    fn run(&mut self, stop: &AtomicBool, on_begin: &mut dyn FnMut()) -> Result<(), RunError> {
        let mut now = self.engine.now();
        let ramp_end = now + self.spec.ramp_ns;
        let end = if self.spec.time_ns == 0 { u64::MAX } else { ramp_end.saturating_add(self.spec.time_ns) };
        let depth = self.slots.len();
        let mut ended = None;
        let mut give_up = u64::MAX;
        self.recorder.heartbeat(now);
        loop {
            if !self.is_counting && now >= ramp_end {
                self.is_counting = true;
                self.queued_bytes = 0;
                self.recorder.start_counting(now);
                on_begin();
            }
            if ended.is_none() {
                if stop.load(Ordering::Relaxed) {
                    ended = Some(Err(RunError::Cancelled));
                } else if now >= end || (self.spec.byte_limit > 0 && self.queued_bytes >= self.spec.byte_limit) {
                    ended = Some(Ok(()));
                } else {
                    self.fill_slots(now);
                }
            }
            if ended.is_some() {
                if self.free_slots.len() == depth || now >= give_up {
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

    /// Fills free slots, as far as the rate and size limits allow.
    fn fill_slots(&mut self, now: u64) {
        while let Some(&slot) = self.free_slots.last() {
            if self.spec.op_interval_ns > 0 {
                if now < self.next_due_ns {
                    break;
                }
                self.next_due_ns += self.spec.op_interval_ns;
            }
            if self.spec.byte_limit > 0 && self.is_counting && self.queued_bytes >= self.spec.byte_limit {
                break;
            }
            self.free_slots.pop();
            let op = self.next_op(slot);
            self.queued_bytes += u64::from(op.len);
            // As in fio, an operation starts when it is prepared. That matters for single operations in flight;
            // for others a clock reading each would only add cost.
            let start = if self.spec.op_interval_ns > 0 { self.engine.now() } else { now };
            self.slots[slot as usize] = InFlightOp { start, issue: start, op };
            self.engine.queue(slot, op);
            self.unsubmitted.push(slot);
            if self.unsubmitted.len() >= self.spec.submit_max as usize {
                break;
            }
        }
    }

    fn next_op(&mut self, slot: u32) -> IoOp {
        if self.spec.fsync_every > 0 && self.writes_since_sync >= self.spec.fsync_every {
            self.writes_since_sync = 0;
            return IoOp { kind: OpKind::Sync, offset: 0, len: 0 };
        }
        let read = match self.spec.read_pct {
            0 => false,
            100.. => true,
            pct => self.rng.below(100) < u64::from(pct),
        };
        let (offset, len) = self.next_range();
        if read {
            return IoOp { kind: OpKind::Read, offset, len };
        }
        self.writes_since_sync += 1;
        let buffer = &mut self.engine.buffer(slot)[..len as usize];
        match self.spec.fill {
            BufferFill::Refill => self.rng.fill_bytes(buffer),
            BufferFill::Scramble => {
                let stamp = self.rng.next_u64().to_le_bytes();
                for sector in buffer.chunks_exact_mut(512) {
                    sector[..8].copy_from_slice(&stamp);
                }
            }
        }
        IoOp { kind: OpKind::Write, offset, len }
    }

    fn next_range(&mut self) -> (u64, u32) {
        let &IoSpec { order, block, start, len, .. } = self.spec;
        let bytes = u64::from(block);
        match order {
            AccessOrder::Random => (start + self.rng.below(len / bytes) * bytes, block),
            AccessOrder::Sequential => {
                let at = if self.next_offset >= len { 0 } else { self.next_offset };
                let bytes = bytes.min(len - at);
                self.next_offset = at + bytes;
                (start + at, bytes as u32)
            }
        }
    }

    /// Submits new operations, waits if none has completed, records completions. Returns the time after that.
    fn submit_and_reap(&mut self, mut now: u64, draining: bool) -> Result<u64, RunError> {
        let not_taken =
            |err: std::io::Error| failure("handing operations to the kernel".into(), err.raw_os_error().unwrap_or(0));
        let fresh = self.unsubmitted.len();
        if fresh > 0 {
            self.engine.submit().map_err(not_taken)?;
            now = self.engine.now();
            if !E::SYNCHRONOUS {
                for &slot in &self.unsubmitted {
                    self.slots[slot as usize].issue = now;
                }
            }
            if self.is_counting {
                self.recorder.record_submit(fresh, self.slots.len() - self.free_slots.len());
            }
            self.unsubmitted.clear();
        }
        self.completions.clear();
        self.engine.reap(&mut self.completions);
        let inflight = self.slots.len() - self.free_slots.len();
        // After a full batch with slots still free, prepare the next batch before waiting.
        let more = fresh >= self.spec.submit_max as usize && !self.free_slots.is_empty();
        if !more && (self.completions.is_empty() || fresh == 0) {
            let mut timeout = STOP_POLL_NS;
            if self.spec.op_interval_ns > 0 && !draining && !self.free_slots.is_empty() {
                timeout = timeout.min(self.next_due_ns.saturating_sub(now));
            }
            if inflight == 0 && timeout <= SPIN_NS {
                let due = now + timeout;
                while self.engine.now() < due {
                    std::hint::spin_loop();
                }
            } else if self.completions.is_empty() && (timeout > 0 || inflight > 0) {
                let want = (self.min_completions as usize).clamp(1, inflight.max(1));
                self.engine.wait(want as u32, timeout).map_err(not_taken)?;
            }
            let before = now;
            now = self.engine.now();
            let one = self.spec.op_interval_ns > 0 || now - before > SLOW_WAIT_NS;
            self.min_completions = if one { 1 } else { self.spec.complete_min };
            self.engine.reap(&mut self.completions);
        }
        if self.completions.is_empty() {
            if inflight == 0 {
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
            if result != s.op.len as i32 {
                failed = Some((s.op, -result.min(0)));
            } else if self.is_counting {
                self.recorder.record_op(s.op.kind, u64::from(s.op.len), s.start, s.issue, now);
            }
        }
        if self.is_counting {
            self.recorder.record_completion_time(now);
        } else {
            self.recorder.heartbeat(now);
        }
        let Some((op, errno)) = failed else { return Ok(now) };
        let what = format!("{:?} of {} bytes at offset {}", op.kind, op.len, op.offset);
        Err(failure(what.to_lowercase(), errno))
    }
}

/// The error of a failed operation; errno 0: a short transfer.
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
            seed: (1, 0),
        }
    }

    fn run(engine: &mut NullEngine, spec: &IoSpec) -> (Result<(), RunError>, OpRecorder) {
        let recorder = OpRecorder::default();
        let ended = run_worker_loop(engine, spec, &recorder, &AtomicBool::new(false), &mut || {});
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
        assert_eq!(ops.last(), Some(&IoOp { kind: OpKind::Write, offset: 5 << 20, len: 512 }));
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
            let worker = s.spawn(|| run_worker_loop(&mut engine, &spec(), &recorder, &stop, &mut || {}));
            stop.store(true, Ordering::Relaxed);
            worker.join().unwrap()
        });
        assert!(matches!(ended, Ok(()) | Err(RunError::Cancelled)));
        assert!(ops(&recorder) <= 50);
    }
}
