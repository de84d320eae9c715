//! The acting side of the Bench view: lives in the run loop, never waits, answers by events.

use super::{BenchEffect, BenchNews, What};
use crate::bench::host::{COMMAND, FromChild};
use crate::bench::message::Message;
use crate::root::Root;
use crate::tui::child_runner::ChildRunner;
use std::sync::Arc;

/// Takes news to the run loop; may be called from any thread.
pub type Sink = Arc<dyn Fn(BenchNews) + Send + Sync>;

/// What the view has running.
pub struct Runner(ChildRunner<Message>);

impl Runner {
    /// Nothing runs yet.
    pub fn new(root: Root, sink: Sink) -> Self {
        Self(ChildRunner::new(root, COMMAND, Arc::new(move |run, what| sink(BenchNews { run, what }))))
    }

    /// Does it, without waiting. What can be told at once comes back: news by the sink would wait here.
    pub fn act(&mut self, effect: BenchEffect) -> Option<BenchNews> {
        match effect {
            BenchEffect::Start { run, plan } => {
                let why = self.0.start(run, *plan).err()?;
                return Some(BenchNews { run, what: What::Message(Message::failed(why)) });
            }
            BenchEffect::Cancel => self.0.cancel(),
            BenchEffect::Kill => self.0.kill(),
        }
        None
    }
}
