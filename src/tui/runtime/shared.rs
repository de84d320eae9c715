//! The runtime behind a mutex, so that a collector thread applies its sample and draws the frame itself.
//!
//! Why not a channel to the event loop: an idle tick costs little beside its wake-ups. Handing the sample over would
//! wake a second thread each tick, about 0.2 ms of CPU time. `cargo bench --bench peers` measures it (CPU per frame).
//!
//! Invariants:
//! - Nobody waits for anything else while holding the lock: terminal output is non-blocking, and whatever may block runs
//!   in a thread or a child process.
//! - Never send to the event queue while holding the lock. The queue is bounded and the loop needs the lock to drain it:
//!   the sender would wait forever. An effect that fails at once therefore returns its event instead of sending it.
//! - Lock order: this lock is taken first, the locks inside collectors, worker pool and child runners after it. No thread
//!   calls back into the runtime while it holds one of those.
//! - After [`SharedRuntime::take`] the slot is empty; a collector that finds it so ends.

use super::options::TuiOptions;
use super::state::Runtime;
use super::timer::Timer;
use crate::tui::event::EventSender;
use crate::tui::terminal::Tty;
use anyhow::Context;
use std::sync::{Arc, Mutex, MutexGuard};

/// Shared access to the one [`Runtime`]. Clones refer to the same one.
#[derive(Clone, Default)]
pub(super) struct SharedRuntime(Arc<Mutex<Option<Runtime>>>);

impl SharedRuntime {
    /// Creates the runtime and starts the collectors. The lock is held meanwhile, so a collector that is quick waits.
    pub(super) fn start(&self, options: TuiOptions, tty: Tty, timer: Timer, events: EventSender) -> anyhow::Result<()> {
        let mut slot = self.lock();
        let shared = self.clone();
        // Applies a collector's event and draws, on the collector's thread.
        let on_observations =
            Arc::new(move |read| shared.lock().as_mut().is_some_and(|runtime| runtime.on_observations(read)));
        *slot = Some(Runtime::start(options, tty, timer, events, on_observations)?);
        Ok(())
    }

    /// Runs `work` on the runtime, for the event loop.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Runtime) -> anyhow::Result<T>) -> anyhow::Result<T> {
        work(self.lock().as_mut().context("the screen is closed")?)
    }

    /// Takes the runtime out; callbacks find nothing from then on.
    pub(super) fn take(&self) -> Option<Runtime> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Runtime>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
