//! A child process that works for a view: started, cancelled and killed without ever waiting for it.
//!
//! Starting a process takes long enough to be felt, and writing to its pipe may block: both are done by a
//! thread of their own, which nobody joins.

use crate::bench::host::{FromChild, Link};
use crate::root::Root;
use serde::Serialize;
use std::sync::{Arc, Mutex};

/// News of a run.
#[derive(Debug)]
pub enum What<M> {
    /// Its child is there.
    Started {
        /// The child's process.
        pid: u32,
    },
    /// Its child said something.
    Said(M),
}

/// Takes news of the run of that number to the run loop; may be called from any thread.
pub type Sink<M> = Arc<dyn Fn(u64, What<M>) + Send + Sync>;

/// The run that is wanted, and its process once it is there.
#[derive(Default)]
struct Slot {
    wanted: Option<u64>,
    cancelled: bool,
    running: Option<Link>,
}

/// Runs one child at a time.
pub struct Launcher<M> {
    root: Root,
    command: &'static str,
    sink: Sink<M>,
    slot: Arc<Mutex<Slot>>,
}

impl<M: FromChild + 'static> Launcher<M> {
    /// Nothing runs yet. `command` is the hidden subcommand of the child.
    pub fn new(root: Root, command: &'static str, sink: Sink<M>) -> Self {
        Self { root, command, sink, slot: Arc::default() }
    }

    /// Starts the run of that number with what the child is told first; ends the one before. The error says why
    /// not even that could be tried.
    pub fn start(&mut self, run: u64, first: impl Serialize + Send + 'static) -> Result<(), String> {
        self.kill();
        *lock(&self.slot) = Slot { wanted: Some(run), ..Slot::default() };
        let (root, sink, slot, command) =
            (self.root.clone(), self.sink.clone(), self.slot.clone(), self.command);
        let started = std::thread::Builder::new()
            .name("start".into())
            .stack_size(128 * 1024)
            .spawn(move || bring_up(&root, run, command, &first, &sink, &slot));
        started.map(drop).map_err(|why| format!("no thread to start a process: {why}"))
    }

    /// Has it end with a report.
    pub fn cancel(&self) {
        let mut slot = lock(&self.slot);
        slot.cancelled = true;
        if let Some(running) = &slot.running {
            running.cancel();
        }
    }

    /// Ends it without one.
    pub fn kill(&self) {
        let mut slot = lock(&self.slot);
        slot.wanted = None;
        if let Some(running) = slot.running.take() {
            running.kill();
        }
    }
}

impl<M> Drop for Launcher<M> {
    /// Ends what can be ended; waits for nobody. What the child holds goes with it.
    fn drop(&mut self) {
        let mut slot = lock(&self.slot);
        slot.wanted = None;
        if let Some(running) = slot.running.take() {
            running.kill();
        }
    }
}

fn lock(slot: &Mutex<Slot>) -> std::sync::MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(|e| e.into_inner())
}

/// Starts the child, unless nobody wants it any more by then.
fn bring_up<M: FromChild + 'static>(
    root: &Root,
    run: u64,
    command: &str,
    first: &impl Serialize,
    sink: &Sink<M>,
    slot: &Mutex<Slot>,
) {
    let to = sink.clone();
    match Link::start(root, command, first, move |message| to(run, What::Said(message))) {
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
            sink(run, What::Started { pid });
        }
        Err(err) => {
            let why = crate::model::reading::describe_io_error(&err);
            sink(run, What::Said(M::failed(format!("cannot start {command}: {why}"))));
        }
    }
}
