//! Processes and threads: finds out which ran since the last look, reads those, and tells only the
//! differences.
//!
//! A look at 20,000 quiet processes must cost a fraction of a second of CPU per minute, and a task
//! stuck in the kernel must not stop it. Hence: run counts filter first ([`probe`]), only tasks that
//! ran are read ([`reader`]), names are fetched once, and a look is taken in steps ([`stage`]) so that
//! another thread can go on where one hangs ([`relay`]). Where the kernel lets us, it tells all tasks itself
//! ([`walk`]), and few files are left to read.

mod crowd;
pub mod detail;
mod entry;
mod groups;
pub mod guard;
pub mod ionice;
mod list;
pub mod mappings;
mod parse;
mod pass;
mod path;
mod probe;
mod reader;
pub mod relay;
mod stage;
mod stuck;
mod swap;
pub mod tasks;
mod taskstats;
mod told;
mod users;
mod walk;
mod warm;

#[cfg(test)]
mod tests;

use crate::model::process::{ProcUpdate, TaskKey};
use crate::model::section::Section;
use crate::root::Root;
use crate::trace::Tracer;
use probe::Prober;
use relay::{Client, Relay};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tasks::Tasks;

/// What the one who looks at the table wants of the next look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wants {
    /// Rows are threads. Switching starts the table anew.
    pub threads: bool,
    /// Waiting times are shown.
    pub delays: bool,
    /// Visible rows: swap, I/O class and wait channel of these are kept fresh though they do not run.
    pub focus: Vec<TaskKey>,
    /// Wait channels of visible rows whatever their state; of tasks in state D they are told anyway.
    pub waits: bool,
    /// Every row counts as visible: for who prints all.
    pub everyone: bool,
    /// Fetch the names of all new tasks in one look, however long that takes: for who prints once.
    pub all_names: bool,
    /// Tell every row, as to a new listener (a recording's key frame). Reads nothing more.
    pub full: bool,
}

/// Looks at all tasks when asked, and waits for the look: for who has nothing else to do. It may be slow
/// but never hangs.
pub struct ProcCollector {
    relay: Relay,
    ask: SyncSender<Wants>,
    looks: Receiver<Section<ProcUpdate>>,
}

struct Asked {
    asks: Mutex<Receiver<Wants>>,
    tell: Sender<Section<ProcUpdate>>,
}

impl Client for Asked {
    fn wants(&self) -> Option<Wants> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }

    fn looked(&self, look: Section<ProcUpdate>) -> bool {
        self.tell.send(look).is_ok()
    }
}

impl ProcCollector {
    /// Nothing is read yet.
    pub fn new(root: &Root) -> Self {
        Self::with(Tasks::new(root))
    }

    /// Filters by `schedstat`, as without CAP_NET_ADMIN.
    pub fn without_taskstats(root: &Root) -> Self {
        Self::with(Tasks::with_prober(root, Prober::without_taskstats()))
    }

    /// Has the kernel tell all tasks whenever the tracer is ready for it.
    pub fn traced(root: &Root, tracer: &Tracer) -> Self {
        Self::with(Tasks::new(root).traced(tracer.tasks.clone()))
    }

    fn with(tasks: Tasks) -> Self {
        let (ask, asks) = sync_channel(1);
        let (tell, looks) = channel();
        Self { relay: Relay::new(tasks, Arc::new(Asked { asks: Mutex::new(asks), tell })), ask, looks }
    }

    /// One look. Returns within about the time its reads take, plus 100 ms for each task that hangs
    /// for the first time.
    pub fn scan(&mut self, wants: &Wants) -> Section<ProcUpdate> {
        if let Err(err) = self.relay.start() {
            return Section::from_io("a thread for /proc", &err);
        }
        let _ = self.ask.send(wants.clone());
        let gone = || Section::Absent("the thread that reads /proc ended".into());
        self.looks.recv().unwrap_or_else(|_| gone())
    }

    /// Tasks that the kernel told itself.
    #[cfg(test)]
    fn walked(&self) -> usize {
        self.relay.walked()
    }

    /// Reads that hang at this moment.
    #[cfg(test)]
    fn hanging(&self) -> usize {
        self.relay.hanging()
    }
}

/// Whether the numbers in this `/proc` mean the same tasks to system calls: not on a captured tree, and
/// not where another pid namespace's `/proc` is mounted, as in containers that are given the host's.
fn numbers_are_ours(root: &Root) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    root.is_live() && std::fs::read_link(root.proc("self")).is_ok_and(|link| link.as_os_str() == own.as_str())
}
