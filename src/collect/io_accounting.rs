//! Who does the I/O of the devices, read from the kernel's side of [`crate::trace`].

use super::{SampleUpdate, Source};
use crate::model::sample::Sample;
use crate::model::section::{Blocked, Section};
use crate::trace::Tracer;

/// Reads what is counted.
pub struct IoAccountingSource(pub Tracer);

impl Source for IoAccountingSource {
    fn name(&self) -> &'static str {
        "tracing by process"
    }

    fn blocked_marker(&self) -> fn(&mut Sample, Blocked) {
        |s, why| s.charge = Section::Blocked(why)
    }

    fn read(&mut self) -> SampleUpdate {
        let read = self.0.io_accounting.read();
        Box::new(move |s| s.charge = read)
    }
}
