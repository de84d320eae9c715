//! Counting: recorders that worker threads fill, and the figures made of them.

pub mod depth;
pub mod histogram;
pub mod latency;
pub mod recorder;
