//! The acting side of the Bench view: lives in the run loop, never waits, answers by events.

use super::{BenchEffect, BenchNews};
use crate::root::Root;
use std::sync::Arc;

/// Takes news to the run loop; may be called from any thread.
pub type Sink = Arc<dyn Fn(BenchNews) + Send + Sync>;

/// What the view has running.
pub struct Runner {
    _root: Root,
    _sink: Sink,
}

impl Runner {
    /// Nothing runs yet.
    pub fn new(root: Root, sink: Sink) -> Self {
        Self { _root: root, _sink: sink }
    }

    /// Does it, without waiting.
    pub fn act(&mut self, effect: BenchEffect) {
        match effect {}
    }
}
