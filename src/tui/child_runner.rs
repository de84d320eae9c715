//! A child process that works for a view: started, cancelled and killed without ever waiting for it.
//!
//! Starting a process takes long enough to be felt, and writing to its pipe may block: both are done by a
//! thread of their own, which nobody joins.

use crate::bench::parent::{ChildHandle, ChildMessage};
use crate::root::Root;
use serde::Serialize;
use std::sync::{Arc, Mutex};

/// News of a run.
#[derive(Debug)]
pub enum ChildEvent<M> {
    /// Its child is there.
    Started {
        /// The child's process.
        pid: u32,
    },
    /// Its child said something.
    Message(M),
}

/// Takes news of the run of that number to the run loop; may be called from any thread.
pub type ChildEventSink<M> = Arc<dyn Fn(u64, ChildEvent<M>) + Send + Sync>;

/// The run that is wanted, and its process once it is there.
#[derive(Default)]
struct RunSlot {
    wanted_run: Option<u64>,
    is_cancelled: bool,
    child: Option<ChildHandle>,
}

/// Runs one child at a time.
pub struct ChildRunner<M> {
    root: Root,
    command: &'static str,
    sink: ChildEventSink<M>,
    slot: Arc<Mutex<RunSlot>>,
}

impl<M: ChildMessage + 'static> ChildRunner<M> {
    /// Nothing runs yet. `command` is the hidden subcommand of the child.
    pub fn new(root: Root, command: &'static str, sink: ChildEventSink<M>) -> Self {
        Self { root, command, sink, slot: Arc::default() }
    }

    /// Starts the run of that number with what the child is told first; ends the one before. The error says why
    /// not even that could be tried.
    pub fn start(&mut self, run: u64, first: impl Serialize + Send + 'static) -> Result<(), String> {
        self.kill();
        *lock_slot(&self.slot) = RunSlot { wanted_run: Some(run), ..RunSlot::default() };
        let (root, sink, slot, command) = (self.root.clone(), self.sink.clone(), self.slot.clone(), self.command);
        let started = std::thread::Builder::new()
            .name("start".into())
            .stack_size(128 * 1024)
            .spawn(move || spawn_child(&root, run, command, &first, &sink, &slot));
        started.map(drop).map_err(|why| format!("no thread to start a process: {why}"))
    }

    /// Has it end with a report.
    pub fn cancel(&self) {
        let mut slot = lock_slot(&self.slot);
        slot.is_cancelled = true;
        if let Some(running) = &slot.child {
            running.cancel();
        }
    }

    /// Ends it without one.
    pub fn kill(&self) {
        let mut slot = lock_slot(&self.slot);
        slot.wanted_run = None;
        if let Some(running) = slot.child.take() {
            running.kill();
        }
    }
}

impl<M> Drop for ChildRunner<M> {
    /// Ends what can be ended; waits for nobody. What the child holds goes with it.
    fn drop(&mut self) {
        let mut slot = lock_slot(&self.slot);
        slot.wanted_run = None;
        if let Some(running) = slot.child.take() {
            running.kill();
        }
    }
}

fn lock_slot(slot: &Mutex<RunSlot>) -> std::sync::MutexGuard<'_, RunSlot> {
    slot.lock().unwrap_or_else(|e| e.into_inner())
}

/// Starts the child, unless nobody wants it any more by then.
fn spawn_child<M: ChildMessage + 'static>(
    root: &Root,
    run: u64,
    command: &str,
    first: &impl Serialize,
    sink: &ChildEventSink<M>,
    slot: &Mutex<RunSlot>,
) {
    let to = sink.clone();
    match ChildHandle::start(root, command, first, move |message| to(run, ChildEvent::Message(message))) {
        Ok(running) => {
            let pid = running.pid();
            let mut slot = lock_slot(slot);
            if slot.wanted_run != Some(run) {
                return running.kill();
            }
            if slot.is_cancelled {
                running.cancel();
            }
            slot.child = Some(running);
            drop(slot);
            sink(run, ChildEvent::Started { pid });
        }
        Err(err) => {
            let why = crate::model::reading::describe_io_error(&err);
            sink(run, ChildEvent::Message(M::from_spawn_error(format!("cannot start {command}: {why}"))));
        }
    }
}
