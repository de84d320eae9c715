//! Who waits for syncs, read from the kernel's side of [`crate::trace`].

use super::{Patch, Source};
use crate::model::sample::Sample;
use crate::model::section::{Blocked, Section};
use crate::trace::Tracer;

/// Reads what is counted.
pub struct Syncs(pub Tracer);

impl Source for Syncs {
    fn name(&self) -> &'static str {
        "tracing of syncs"
    }

    fn blocked(&self) -> fn(&mut Sample, Blocked) {
        |s, why| s.syncs = Section::Blocked(why)
    }

    fn read(&mut self) -> Patch {
        let read = self.0.syncs.read();
        Box::new(move |s| s.syncs = read)
    }
}
