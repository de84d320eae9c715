//! Counting: recorders that worker threads fill, and statistics computed from them.

pub mod depth;
pub mod histogram;
pub mod latency;
pub mod recorder;
