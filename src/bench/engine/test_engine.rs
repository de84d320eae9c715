//! A simulated device for tests of limits, progress, cancelling and reports. Its clock advances only when an operation completes.

use super::{Completion, IoEngine, IoOp};
use crate::bench::measure::recorder::OpKind;
use std::collections::VecDeque;
use std::io;

/// A simulated device that serves one operation after the other.
#[derive(Default)]
pub struct NullEngine {
    now: u64,
    latency_ns: u64,
    inflight: VecDeque<(u32, IoOp)>,
    ready: Vec<Completion>,
    buffer: Vec<u8>,
    /// Hangs after so many operations.
    pub hang_after: Option<u64>,
    /// The operation of this number fails with this errno.
    pub failure: Option<(u64, i32)>,
    completed: u64,
    /// All operations, if a test asks for them.
    pub op_log: Option<Vec<IoOp>>,
}

impl NullEngine {
    /// Every operation completes `latency_ns` after the one before.
    pub fn new(slot_bytes: usize, latency_ns: u64) -> Self {
        Self { now: 1, latency_ns, buffer: vec![0; slot_bytes], ..Self::default() }
    }
}

impl IoEngine for NullEngine {
    const SYNCHRONOUS: bool = false;

    fn now(&mut self) -> u64 {
        self.now
    }

    fn buffer(&mut self, _slot: u32) -> &mut [u8] {
        &mut self.buffer
    }

    fn queue(&mut self, slot: u32, op: IoOp) {
        if let Some(trace) = &mut self.op_log {
            trace.push(op);
        }
        self.inflight.push_back((slot, op));
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, want: u32, timeout_ns: u64) -> io::Result<()> {
        for round in 0..want {
            let hangs = self.hang_after.is_some_and(|n| self.completed >= n);
            let Some((slot, op)) = self.inflight.pop_front().filter(|_| !hangs) else {
                self.now += if round == 0 { timeout_ns } else { 0 };
                break;
            };
            self.now += self.latency_ns;
            self.completed += 1;
            let result = match self.failure {
                Some((n, errno)) if n == self.completed => -errno,
                _ if matches!(op.kind, OpKind::Sync | OpKind::Fsync | OpKind::Trim) => 0,
                _ => op.len as i32,
            };
            self.ready.push(Completion { slot, result });
        }
        Ok(())
    }

    fn ready(&mut self) -> usize {
        self.ready.len()
    }

    fn reap(&mut self, done: &mut Vec<Completion>, most: usize) {
        let most = most.min(self.ready.len());
        done.extend(self.ready.drain(..most));
    }
}
