//! Processes waiting for syncs, from [`crate::bpf`].

use super::{SampleUpdate, Source};
use crate::bpf::Tracer;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;

/// Reads the sync counters.
pub struct SyncSource(pub Tracer);

impl Source for SyncSource {
    fn name(&self) -> &'static str {
        "tracing of syncs"
    }

    fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead) {
        |s, why| s.syncs = Reading::Blocked(why)
    }

    fn read(&mut self) -> SampleUpdate {
        let read = self.0.syncs.read();
        Box::new(move |s| s.syncs = read)
    }
}
