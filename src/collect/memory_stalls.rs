//! Processes stalled by memory pressure, from [`crate::bpf`].

use super::{SampleUpdate, Source};
use crate::bpf::Tracer;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;

/// Reads the stall counters.
pub struct MemoryStallSource(pub Tracer);

impl Source for MemoryStallSource {
    fn name(&self) -> &'static str {
        "tracing of stalls"
    }

    fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead) {
        |s, why| s.memory_stalls = Reading::Blocked(why)
    }

    fn read(&mut self) -> SampleUpdate {
        let read = self.0.stalls.read();
        Box::new(move |s| s.memory_stalls = read)
    }
}
