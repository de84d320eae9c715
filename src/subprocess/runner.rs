//! Starts, cancels and kills the child of a view without ever waiting for it.
//!
//! Starting a process takes long enough to be felt, so a thread that nobody joins does it.

use super::handle::{ChildHandle, ChildMessage};
use crate::model::reading::describe_io_error;
use crate::root::Root;
use std::sync::{Arc, Mutex, MutexGuard};

/// An event of a run.
#[derive(Debug)]
pub enum ChildEvent<M> {
    /// Its child has been started.
    Started {
        /// The child's process.
        pid: u32,
    },
    /// Its child sent a message.
    Message(M),
}

/// Takes an event of the run of that number; any thread may call it.
pub type ChildEventSink<M> = Arc<dyn Fn(u64, ChildEvent<M>) + Send + Sync>;

/// The requested run, and its process once that has been started.
#[derive(Default)]
struct RunSlot {
    requested_run: Option<u64>,
    is_cancelled: bool,
    child: Option<ChildHandle>,
}

/// Runs one child at a time. Dropping it kills the child.
pub struct ChildRunner<M: ChildMessage> {
    root: Root,
    sink: ChildEventSink<M>,
    slot: Arc<Mutex<RunSlot>>,
}

impl<M: ChildMessage> ChildRunner<M> {
    /// A runner without a child.
    pub fn new(root: Root, sink: ChildEventSink<M>) -> Self {
        Self { root, sink, slot: Arc::default() }
    }

    /// Kills the child of the run before and starts that of run `run`.
    ///
    /// # Errors
    /// If no thread can be started; any later failure comes as an event.
    pub fn start(&mut self, run: u64, order: M::Order) -> Result<(), String> {
        self.kill();
        *lock_slot(&self.slot) = RunSlot { requested_run: Some(run), ..RunSlot::default() };
        let (root, sink, slot) = (self.root.clone(), self.sink.clone(), self.slot.clone());
        let thread = std::thread::Builder::new().name("start".into()).stack_size(128 * 1024);
        let started = thread.spawn(move || start_child(&root, run, &order, &sink, &slot));
        started.map(drop).map_err(|why| format!("no thread to start a process: {why}"))
    }

    /// Asks the child to end with a report.
    pub fn cancel(&self) {
        let mut slot = lock_slot(&self.slot);
        slot.is_cancelled = true;
        if let Some(child) = &slot.child {
            child.cancel();
        }
    }

    /// Ends the child without a report.
    pub fn kill(&self) {
        let mut slot = lock_slot(&self.slot);
        slot.requested_run = None;
        if let Some(child) = slot.child.take() {
            child.kill();
        }
    }
}

impl<M: ChildMessage> Drop for ChildRunner<M> {
    fn drop(&mut self) {
        self.kill();
    }
}

fn lock_slot(slot: &Mutex<RunSlot>) -> MutexGuard<'_, RunSlot> {
    slot.lock().unwrap_or_else(|e| e.into_inner())
}

/// Starts the child, and ends it again if another run was requested meanwhile.
fn start_child<M: ChildMessage>(
    root: &Root,
    run: u64,
    order: &M::Order,
    sink: &ChildEventSink<M>,
    slot: &Mutex<RunSlot>,
) {
    let to = sink.clone();
    match ChildHandle::start::<M>(root, order, move |message| to(run, ChildEvent::Message(message))) {
        Ok(child) => {
            let pid = child.pid();
            let mut slot = lock_slot(slot);
            if slot.requested_run != Some(run) {
                return child.kill();
            }
            if slot.is_cancelled {
                child.cancel();
            }
            slot.child = Some(child);
            drop(slot);
            sink(run, ChildEvent::Started { pid });
        }
        Err(err) => {
            let why = format!("cannot start {}: {}", M::SUBCOMMAND, describe_io_error(&err));
            sink(run, ChildEvent::Message(M::from_spawn_error(why)));
        }
    }
}
