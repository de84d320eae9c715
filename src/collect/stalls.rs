//! Who is held up by memory, read from the kernel's side of [`crate::trace`].

use super::{Patch, Source};
use crate::model::sample::Sample;
use crate::model::section::{Blocked, Section};
use crate::trace::Tracer;

/// Reads what is counted.
pub struct Stalls(pub Tracer);

impl Source for Stalls {
    fn name(&self) -> &'static str {
        "tracing of stalls"
    }

    fn blocked(&self) -> fn(&mut Sample, Blocked) {
        |s, why| s.stalls = Section::Blocked(why)
    }

    fn read(&mut self) -> Patch {
        let read = self.0.stalls.read();
        Box::new(move |s| s.stalls = read)
    }
}
