//! How operations are submitted to the kernel: a trait of a few functions, one engine per file.

pub(crate) mod threads;
pub(crate) mod uring;

#[cfg(test)]
pub mod test_engine;

use super::measure::recorder::OpKind;
use std::io;

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoOp {
    /// What is done.
    pub kind: OpKind,
    /// Number of the file in the engine's list.
    pub file: u16,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes, at most the slot's size; 0 for a sync.
    pub len: u32,
    /// I/O priority of this operation; 0: that of the thread.
    pub priority: OpPriority,
}

/// Class, hint and level of an I/O priority, in two, three and three bits, so that an operation stays small.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpPriority(u8);

impl OpPriority {
    /// `class` 1 to 3 (real time, best effort, idle), `level` and `hint` 0 to 7.
    pub(crate) fn new(class: u8, level: u8, hint: u8) -> Self {
        Self((class & 3) << 6 | (hint & 7) << 3 | level & 7)
    }

    /// As the kernel has it: IOPRIO_PRIO_VALUE_HINT (include/uapi/linux/ioprio.h).
    pub(crate) fn kernel_value(self) -> u16 {
        u16::from(self.0 >> 6) << 13 | u16::from(self.0 & 0x3f)
    }
}

impl IoOp {
    /// An operation on the first file.
    pub fn new(kind: OpKind, offset: u64, len: u32) -> Self {
        Self { kind, file: 0, offset, len, priority: OpPriority::default() }
    }
}

/// A completed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot it was queued in.
    pub slot: u32,
    /// Bytes transferred, or a negated errno.
    pub result: i32,
}

/// An engine of one worker thread, with `depth` slots: each holds one operation and one buffer.
pub trait IoEngine {
    /// Whether [`IoEngine::submit`] returns only when everything submitted has completed.
    const SYNCHRONOUS: bool;
    /// The clock of latencies: CLOCK_MONOTONIC in ns, except in the tests' engine.
    fn now(&mut self) -> u64;
    /// The buffer of `slot`, which must not be in flight.
    fn buffer(&mut self, slot: u32) -> &mut [u8];
    /// Prepares an operation in a free slot.
    fn queue(&mut self, slot: u32, op: IoOp);
    /// Submits everything queued.
    fn submit(&mut self) -> io::Result<()>;
    /// Waits until `want` operations have completed or `timeout_ns` has passed.
    fn wait(&mut self, want: u32, timeout_ns: u64) -> io::Result<()>;
    /// Completions that [`IoEngine::reap`] could take.
    fn ready(&mut self) -> usize;
    /// Takes at most `most` completions; `done` has capacity for `depth` more.
    fn reap(&mut self, done: &mut Vec<Completion>, most: usize);
}

/// An engine is unavailable; the text says why and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EngineUnavailable(pub String);

/// Frees a range of a file on the file system; it then reads as zeroes.
pub(crate) fn punch_hole(file: std::os::fd::BorrowedFd<'_>, offset: u64, len: u32) -> rustix::io::Result<()> {
    use rustix::fs::FallocateFlags as Flags;
    rustix::fs::fallocate(file, Flags::PUNCH_HOLE | Flags::KEEP_SIZE, offset, len.into())
}

/// CLOCK_MONOTONIC in ns.
pub fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
