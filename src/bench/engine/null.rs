//! Does nothing, in no time: for testing stop rules, progress, cancelling and reports, and for measuring
//! what the loop itself costs. Its clock is its own and moves only when an operation completes.

use super::{Done, Engine, Op};
use crate::bench::measure::recorder::Kind;
use std::collections::VecDeque;
use std::io;

/// An imagined device that serves one operation after the other.
pub struct Null {
    now: u64,
    latency_ns: u64,
    inflight: VecDeque<(u32, Op)>,
    ready: Vec<Done>,
    buffer: Vec<u8>,
    hang_at: Option<u64>,
    fail_at: Option<(u64, i32)>,
    completed: u64,
    /// Everything that was ever asked, for tests; only kept when switched on.
    pub trace: Option<Vec<Op>>,
}

impl Null {
    /// Every operation completes `latency_ns` after the one before.
    pub fn new(slot_bytes: usize, latency_ns: u64) -> Self {
        Self {
            now: 1,
            latency_ns,
            inflight: VecDeque::with_capacity(4096),
            ready: Vec::new(),
            buffer: vec![0; slot_bytes],
            hang_at: None,
            fail_at: None,
            completed: 0,
            trace: None,
        }
    }

    /// Completes nothing any more after `n` operations.
    pub fn hanging_after(mut self, n: u64) -> Self {
        self.hang_at = Some(n);
        self
    }

    /// Operation `n` fails with `errno`.
    pub fn failing_at(mut self, n: u64, errno: i32) -> Self {
        self.fail_at = Some((n, errno));
        self
    }
}

impl Engine for Null {
    const SYNCHRONOUS: bool = false;

    fn now(&mut self) -> u64 {
        self.now
    }

    fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.buffer
    }

    fn queue(&mut self, slot: u32, op: Op) {
        if let Some(trace) = &mut self.trace {
            trace.push(op);
        }
        self.inflight.push_back((slot, op));
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        for round in 0..want {
            let hangs = self.hang_at.is_some_and(|n| self.completed >= n);
            let Some((slot, op)) = self.inflight.pop_front().filter(|_| !hangs) else {
                self.now += if round == 0 { timeout_ns } else { 0 };
                break;
            };
            self.now += self.latency_ns;
            self.completed += 1;
            let result = match self.fail_at {
                Some((n, errno)) if n == self.completed => -errno,
                _ if op.kind == Kind::Sync => 0,
                _ => op.len as i32,
            };
            self.ready.push(Done { slot, result });
        }
        Ok(())
    }

    fn reap(&mut self, done: &mut Vec<Done>) {
        done.append(&mut self.ready);
    }
}
