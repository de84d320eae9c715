//! Which process does the I/O of each device, from [`crate::bpf`].

use super::{SampleUpdate, Source};
use crate::bpf::Tracer;
use crate::model::reading::{BlockedRead, Reading};
use crate::model::sample::Sample;

/// Reads the I/O accounts.
pub struct IoAccountingSource(pub Tracer);

impl Source for IoAccountingSource {
    fn name(&self) -> &'static str {
        "tracing by process"
    }

    fn blocked_marker(&self) -> fn(&mut Sample, BlockedRead) {
        |s, why| s.io_accounts = Reading::Blocked(why)
    }

    fn read(&mut self) -> SampleUpdate {
        let read = self.0.io_accounting.read();
        Box::new(move |s| s.io_accounts = read)
    }
}
