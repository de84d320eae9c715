//! Histograms of request latency, from [`crate::bpf`].

use super::{SampleUpdate, Source};
use crate::bpf::Tracer;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;

/// Reads the histograms.
pub struct LatencySource(pub Tracer);

impl Source for LatencySource {
    fn name(&self) -> &'static str {
        "tracing"
    }

    fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead) {
        |s, why| s.latency = Reading::Blocked(why)
    }

    fn read(&mut self) -> SampleUpdate {
        let read = self.0.latency.read();
        Box::new(move |s| s.latency = read)
    }
}
