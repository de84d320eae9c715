//! Processes and threads: finds out which ran since the last look, reads those, and tells only the
//! differences.
//!
//! A look at 20,000 quiet processes must cost a fraction of a second of CPU per minute, and a task
//! stuck in the kernel must not stop it. Hence: run counts filter first ([`probe`]), only tasks that
//! ran are read ([`reader`]), names are fetched once, and a look is taken in steps ([`stage`]) so that
//! another thread can go on where one hangs ([`relay`]). Where the kernel lets us, it tells all tasks itself
//! ([`walk`]), and few files are left to read.

mod activity_filter;
mod cgroups;
mod deadline_executor;
pub mod detail;
mod fd_cache;
mod file_reader;
pub mod ionice;
mod iter_merge;
mod iter_scan;
pub mod mappings;
mod path;
mod scan;
mod scan_steps;
pub mod scan_threads;
mod stuck_read;
mod swap_activity;
mod task_list;
pub mod task_scanner;
mod task_state;
mod taskstats;
mod thread_groups;
mod user_names;

#[cfg(test)]
mod tests;

use crate::bpf::Tracer;
use crate::model::process::{ProcessUpdate, TaskKey};
use crate::model::reading::Reading;
use crate::root::Root;
use activity_filter::ActivityFilter;
use scan_threads::{ScanConsumer, ScanThreads};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use task_scanner::TaskScanner;

/// What the one who looks at the table wants of the next look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// Rows are threads. Switching starts the table anew.
    pub threads: bool,
    /// Waiting times are shown.
    pub delays: bool,
    /// Visible rows: swap, I/O class and wait channel of these are kept fresh though they do not run.
    pub visible: Vec<TaskKey>,
    /// Wait channels of visible rows whatever their state; of tasks in state D they are told anyway.
    pub wait_channels: bool,
    /// Every row counts as visible: for who prints all.
    pub all_visible: bool,
    /// Fetch the names of all new tasks in one look, however long that takes: for who prints once.
    pub all_names: bool,
    /// Tell every row, as to a new listener (a recording's key frame). Reads nothing more.
    pub full_update: bool,
}

/// Looks at all tasks when asked, and waits for the look: for who has nothing else to do. It may be slow
/// but never hangs.
pub struct ProcessCollector {
    threads: ScanThreads,
    requests: SyncSender<ScanOptions>,
    updates: Receiver<Reading<ProcessUpdate>>,
}

struct ChannelConsumer {
    requests: Mutex<Receiver<ScanOptions>>,
    updates: Sender<Reading<ProcessUpdate>>,
}

impl ScanConsumer for ChannelConsumer {
    fn next_request(&self) -> Option<ScanOptions> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
    }

    fn scan_finished(&self, look: Reading<ProcessUpdate>) -> bool {
        self.updates.send(look).is_ok()
    }
}

impl ProcessCollector {
    /// Nothing is read yet.
    pub fn new(root: &Root) -> Self {
        Self::from_scanner(TaskScanner::new(root))
    }

    /// Filters by `schedstat`, as without CAP_NET_ADMIN.
    pub fn without_taskstats(root: &Root) -> Self {
        Self::from_scanner(TaskScanner::with_filter(root, ActivityFilter::without_taskstats()))
    }

    /// Has the kernel tell all tasks whenever the tracer is ready for it.
    pub fn with_tracer(root: &Root, tracer: &Tracer) -> Self {
        Self::from_scanner(TaskScanner::new(root).with_task_iter(tracer.tasks.clone()))
    }

    fn from_scanner(tasks: TaskScanner) -> Self {
        let (ask, asks) = sync_channel(1);
        let (tell, looks) = channel();
        Self {
            threads: ScanThreads::new(tasks, Arc::new(ChannelConsumer { requests: Mutex::new(asks), updates: tell })),
            requests: ask,
            updates: looks,
        }
    }

    /// One look. Returns within about the time its reads take, plus 100 ms for each task that hangs
    /// for the first time.
    pub fn scan(&mut self, wants: &ScanOptions) -> Reading<ProcessUpdate> {
        if let Err(err) = self.threads.start() {
            return Reading::from_io_error("a thread for /proc", &err);
        }
        let _ = self.requests.send(wants.clone());
        let gone = || Reading::Absent("the thread that reads /proc ended".into());
        self.updates.recv().unwrap_or_else(|_| gone())
    }

    /// Tasks that the kernel told itself.
    #[cfg(test)]
    fn tasks_from_iter(&self) -> usize {
        self.threads.tasks_from_iter()
    }

    /// Reads that hang at this moment.
    #[cfg(test)]
    fn hung_reads(&self) -> usize {
        self.threads.hung_reads()
    }
}

/// Whether the numbers in this `/proc` mean the same tasks to system calls: not on a captured tree, and
/// not where another pid namespace's `/proc` is mounted, as in containers that are given the host's.
fn is_own_pid_namespace(root: &Root) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    root.is_live() && std::fs::read_link(root.proc("self")).is_ok_and(|link| link.as_os_str() == own.as_str())
}
