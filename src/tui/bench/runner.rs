//! The acting side of the Bench view: lives in the run loop, never waits, answers by events.
//!
//! Starting a process can wait for the disk its program is on. So that happens on a thread of its own, which
//! leaves what it started in a place that is only ever locked for a moment.

use super::{BenchEffect, BenchNews, What};
use crate::bench::host::Running;
use crate::bench::message::Message;
use crate::bench::plan::Plan;
use crate::root::Root;
use std::sync::{Arc, Mutex};

/// Takes news to the run loop; may be called from any thread.
pub type Sink = Arc<dyn Fn(BenchNews) + Send + Sync>;

/// The run that is wanted, and its process once it is there.
#[derive(Default)]
struct Slot {
    wanted: Option<u64>,
    cancelled: bool,
    running: Option<Running>,
}

/// What the view has running.
pub struct Runner {
    root: Root,
    sink: Sink,
    slot: Arc<Mutex<Slot>>,
}

impl Runner {
    /// Nothing runs yet.
    pub fn new(root: Root, sink: Sink) -> Self {
        Self { root, sink, slot: Arc::default() }
    }

    /// Does it, without waiting. What can be told at once comes back: news by the sink would wait here.
    pub fn act(&mut self, effect: BenchEffect) -> Option<BenchNews> {
        match effect {
            BenchEffect::Start { run, plan } => return self.start(run, *plan),
            BenchEffect::Cancel => {
                let mut slot = lock(&self.slot);
                slot.cancelled = true;
                if let Some(running) = &slot.running {
                    running.cancel();
                }
            }
            BenchEffect::Kill => self.kill(),
        }
        None
    }

    fn start(&mut self, run: u64, plan: Plan) -> Option<BenchNews> {
        self.kill();
        *lock(&self.slot) = Slot { wanted: Some(run), ..Slot::default() };
        let (root, sink, slot) = (self.root.clone(), self.sink.clone(), self.slot.clone());
        let started = std::thread::Builder::new()
            .name("bench-start".into())
            .stack_size(128 * 1024)
            .spawn(move || bring_up(&root, run, &plan, sink, &slot));
        let why = started.err()?;
        Some(said(run, Message::Failed(format!("no thread to start the measuring process: {why}"))))
    }

    fn kill(&self) {
        let mut slot = lock(&self.slot);
        slot.wanted = None;
        if let Some(running) = slot.running.take() {
            running.kill();
        }
    }
}

impl Drop for Runner {
    /// Ends what can be ended; waits for nobody. The file goes with the process.
    fn drop(&mut self) {
        self.kill();
    }
}

fn lock(slot: &Mutex<Slot>) -> std::sync::MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(|e| e.into_inner())
}

fn said(run: u64, message: Message) -> BenchNews {
    BenchNews { run, what: What::Said(message) }
}

/// Starts the child, unless nobody wants it any more by then.
fn bring_up(root: &Root, run: u64, plan: &Plan, sink: Sink, slot: &Mutex<Slot>) {
    let to = sink.clone();
    match Running::start(root, plan, move |message| to(said(run, message))) {
        Ok(running) => {
            let pid = running.pid();
            let mut slot = lock(slot);
            if slot.wanted != Some(run) {
                return running.kill();
            }
            if slot.cancelled {
                running.cancel();
            }
            slot.running = Some(running);
            drop(slot);
            sink(BenchNews { run, what: What::Started { pid } });
        }
        Err(err) => {
            let why = crate::model::section::describe(&err);
            sink(said(run, Message::Failed(format!("cannot start the measuring process: {why}"))));
        }
    }
}
