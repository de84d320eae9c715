//! Runs the effects of the Bench view without blocking; results come back as events.

use crate::bench::message::BenchMessage;
use crate::root::Root;
use crate::subprocess::handle::ChildMessage;
use crate::subprocess::runner::ChildRunner;
use crate::tui::views::bench::{BenchChildEvent, BenchEffect, BenchEvent};
use std::sync::Arc;

/// Sends events to the event loop; callable from any thread.
pub type BenchEventSink = Arc<dyn Fn(BenchEvent) + Send + Sync>;

/// Runs one benchmark at a time in a child process.
pub struct BenchEffectRunner(ChildRunner<BenchMessage>);

impl BenchEffectRunner {
    /// Creates the runner; nothing runs yet.
    pub fn new(root: Root, sink: BenchEventSink) -> Self {
        Self(ChildRunner::new(root, Arc::new(move |run, what| sink(BenchEvent { run, event: what }))))
    }

    /// Starts an effect without waiting for it. A failure is returned as an event: the caller must not use the event queue.
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
