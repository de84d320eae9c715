//! Processes and threads: detects which ones ran since the last scan, reads those, and reports only the differences.
//!
//! A scan of 20,000 idle processes must cost a fraction of a second of CPU per minute, and a task stuck in the kernel
//! must not stop it. Therefore run counts are compared first ([`activity_filter`]), only tasks that ran are read
//! ([`file_reader`]), names are read once, and a scan proceeds in phases ([`scan`]) so that another thread can continue
//! it when a read hangs ([`scan_threads`]). Where the kernel permits, a BPF iterator reports all tasks ([`iter_scan`])
//! and few files are left to read.

mod activity_filter;
mod cgroups;
mod deadline_executor;
pub(crate) mod detail;
mod file_reader;
pub mod ionice;
mod iter_merge;
mod iter_scan;
pub(crate) mod mappings;
mod path;
mod scan;
mod scan_options;
mod scan_steps;
pub(crate) mod scan_threads;
mod stuck_read;
mod swap_activity;
mod task_list;
pub(crate) mod task_scanner;
mod task_state;
mod taskstats;
mod thread_groups;
pub mod user_names;

#[cfg(test)]
mod tests;

use crate::bpf::Tracer;
use crate::model::process::ProcessUpdate;
use crate::model::reading::Reading;
use crate::root::Root;
use activity_filter::ActivityFilter;
pub use scan_options::ScanOptions;
use scan_threads::{ScanConsumer, ScanThreads};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use task_scanner::TaskScanner;

/// Scans all tasks on request and waits for the result. A scan may be slow but never hangs.
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

    fn scan_finished(&self, update: Reading<ProcessUpdate>) -> bool {
        self.updates.send(update).is_ok()
    }
}

impl ProcessCollector {
    /// Creates a collector; nothing is read yet.
    pub fn new(root: &Root) -> Self {
        Self::from_scanner(TaskScanner::new(root))
    }

    /// Detects activity with `schedstat`, as without CAP_NET_ADMIN.
    pub fn without_taskstats(root: &Root) -> Self {
        Self::from_scanner(TaskScanner::with_filter(root, ActivityFilter::without_taskstats()))
    }

    /// Uses the BPF task iterator as soon as the tracer has loaded it.
    pub fn with_tracer(root: &Root, tracer: &Tracer) -> Self {
        Self::from_scanner(TaskScanner::new(root).with_task_iter(tracer.tasks.clone()))
    }

    fn from_scanner(scanner: TaskScanner) -> Self {
        let (requests, request_receiver) = sync_channel(1);
        let (update_sender, updates) = channel();
        let consumer = ChannelConsumer { requests: Mutex::new(request_receiver), updates: update_sender };
        Self { threads: ScanThreads::new(scanner, Arc::new(consumer)), requests, updates }
    }

    /// Scans once. Takes about as long as the reads, plus 100 ms for each task that hangs for the first time.
    pub fn scan(&mut self, options: &ScanOptions) -> Reading<ProcessUpdate> {
        if let Err(err) = self.threads.start() {
            return Reading::from_io_error("starting a thread to read /proc", &err);
        }
        let _ = self.requests.send(options.clone());
        self.updates.recv().unwrap_or_else(|_| Reading::Absent("the thread that reads /proc ended".into()))
    }

    /// Number of tasks reported by the BPF iterator.
    #[cfg(test)]
    fn tasks_from_iter(&self) -> usize {
        self.threads.tasks_from_iter()
    }

    /// Number of reads that hang right now.
    #[cfg(test)]
    fn hung_reads(&self) -> usize {
        self.threads.hung_reads()
    }
}
