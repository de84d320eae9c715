//! The acting side of the Bench view: lives in the run loop, never waits, answers by events.

use super::{BenchChildEvent, BenchEffect, BenchEvent};
use crate::bench::message::BenchMessage;
use crate::root::Root;
use crate::subprocess::handle::ChildMessage;
use crate::subprocess::runner::ChildRunner;
use std::sync::Arc;

/// Takes news to the run loop; may be called from any thread.
pub type BenchEventSink = Arc<dyn Fn(BenchEvent) + Send + Sync>;

/// What the view has running.
pub struct BenchEffectRunner(ChildRunner<BenchMessage>);

impl BenchEffectRunner {
    /// Nothing runs yet.
    pub fn new(root: Root, sink: BenchEventSink) -> Self {
        Self(ChildRunner::new(root, Arc::new(move |run, what| sink(BenchEvent { run, event: what }))))
    }

    /// Does it, without waiting. What can be told at once comes back: news by the sink would wait here.
    pub fn run_effect(&mut self, effect: BenchEffect) -> Option<BenchEvent> {
        match effect {
            BenchEffect::Start { run, plan } => {
                let why = self.0.start(run, *plan).err()?;
                return Some(BenchEvent { run, event: BenchChildEvent::Message(BenchMessage::from_spawn_error(why)) });
            }
            BenchEffect::Cancel => self.0.cancel(),
            BenchEffect::Kill => self.0.kill(),
        }
        None
    }
}
