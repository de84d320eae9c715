//! Counting: recorders that worker threads fill, and statistics computed from them.

pub(crate) mod depth;
pub mod histogram;
pub mod latency;
pub(crate) mod recorder;
