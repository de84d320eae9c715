//! Child processes for whatever may block.
//!
//! Resolving a path, statfs, queue files, the mappings of a process, writing a file: on a dead mount or
//! a hung device these wait uninterruptibly, and a process with such a thread cannot even exit. So they
//! run in a child of the same binary (`iotop-plus worker`, hidden): a session of its own, nothing
//! inherited but its two pipes. A child that does not come back is left behind, named, and never waited
//! for; there are never more than [`MAX_CHILDREN`] of them.

pub mod atomic_write;
mod bench_jobs;
pub mod child;
pub mod job;
pub mod pool;

/// Children that may be under way (or stuck) at once.
pub const MAX_CHILDREN: usize = 8;
