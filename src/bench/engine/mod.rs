//! How operations reach the kernel: a small set of functions, one engine per file.

pub mod null;
pub mod threads;
pub mod uring;
pub mod uring_unavailable;

use super::measure::recorder::OpKind;
use std::io;

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoOp {
    /// What to do.
    pub kind: OpKind,
    /// Where in the file.
    pub offset: u64,
    /// How much, at most the slot's size; 0 for a sync.
    pub len: u32,
}

/// A completed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot it was queued in.
    pub slot: u32,
    /// Bytes moved, or a negated errno.
    pub result: i32,
}

/// An engine of one worker thread, with `depth` slots: each holds one operation and one buffer.
pub trait IoEngine {
    /// Whether [`Engine::submit`] returns only when everything submitted is complete.
    const SYNCHRONOUS: bool;
    /// The clock latencies are measured with: CLOCK_MONOTONIC in ns, unless the engine is a pretence.
    fn now(&mut self) -> u64;
    /// The buffer of `slot`, which must not be in flight.
    fn buffer(&mut self, slot: u32) -> &mut [u8];
    /// Prepares an operation in a free slot.
    fn queue(&mut self, slot: u32, op: IoOp);
    /// Hands everything queued to the kernel.
    fn submit(&mut self) -> io::Result<()>;
    /// Waits until `want` operations are complete or `timeout_ns` is over.
    fn wait(&mut self, want: u32, timeout_ns: u64) -> io::Result<()>;
    /// Takes what is complete; `done` has room for `depth` more.
    fn reap(&mut self, done: &mut Vec<Completion>);
}

/// CLOCK_MONOTONIC in ns.
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
