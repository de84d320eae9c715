//! Figures that only the kernel itself can provide, counted by BPF programs.
//!
//! The sources of the programs are in `assets/trace`; their compiled form is part of this binary. Each [probe](probe::Probe) is
//! independent of the others. Loading takes about 150 ms of CPU and much memory for a moment, so a thread does it once,
//! when [`Tracer::start`] is called. Programs are unloaded with their descriptors: however this process ends, nothing
//! stays in the kernel. Everything works without this module; the reason for a missing figure is shown.

mod bpf_sys;
mod btf;
mod chain;
mod file_io;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod io_accounting;
mod kernel_info;
mod latency;
mod layout;
mod loader;
mod memory_stalls;
mod nvme_paths;
mod packed_object;
mod probe;
mod reading_cache;
mod request_control;
mod syncs;
pub(crate) mod task_iter;
mod task_waits;
mod unavailable;

use crate::root::Root;
use chain::SharedRequests;
use file_io::FileIoProbe;
use io_accounting::IoAccountingProbe;
use kernel_info::KernelInfo;
use latency::LatencyProbe;
use memory_stalls::MemoryStallProbe;
pub use probe::ProbeHandle;
use request_control::RequestControl;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use syncs::SyncProbe;
use task_iter::TaskIterProbe;
use task_waits::TaskWaitProbe;
use unavailable::ProbeUnavailable;

/// All probes. They are loaded on request; clones share them.
#[derive(Clone)]
pub struct Tracer {
    root: Root,
    /// The programs that the probes for latency and accounting share.
    requests: SharedRequests,
    /// Latency of block requests by device.
    pub latency: ProbeHandle<LatencyProbe>,
    /// Tasks stalled by memory.
    pub stalls: ProbeHandle<MemoryStallProbe>,
    /// Syncs by file; loaded only on request.
    pub syncs: ProbeHandle<SyncProbe>,
    /// All tasks at once.
    pub tasks: ProbeHandle<TaskIterProbe>,
    sync_control: RequestControl<SyncProbe>,
    /// I/O by file; loaded only on request.
    pub files: ProbeHandle<FileIoProbe>,
    file_control: RequestControl<FileIoProbe>,
    /// What tasks wait for; loaded only on request.
    pub waits: ProbeHandle<TaskWaitProbe>,
    wait_control: RequestControl<TaskWaitProbe>,
    /// I/O by process and control group.
    pub io_accounting: ProbeHandle<IoAccountingProbe>,
    /// The thread that loads the programs is at work.
    is_loading: Arc<AtomicBool>,
}

impl Tracer {
    /// Creates the tracer; nothing is loaded.
    pub fn new(root: &Root) -> Self {
        let (syncs, files, waits) = (ProbeHandle::new(), ProbeHandle::new(), ProbeHandle::new());
        let requests = chain::no_requests();
        Self {
            root: root.clone(),
            requests: requests.clone(),
            latency: ProbeHandle::new(),
            stalls: ProbeHandle::new(),
            sync_control: RequestControl::new(root, &requests, syncs.clone()),
            syncs,
            file_control: RequestControl::new(root, &requests, files.clone()),
            files,
            wait_control: RequestControl::new(root, &requests, waits.clone()),
            waits,
            tasks: ProbeHandle::new(),
            io_accounting: ProbeHandle::new(),
            is_loading: Arc::default(),
        }
    }

    /// Starts a thread that loads the programs; returns at once.
    pub fn start(&self) {
        self.set_all_unavailable(&ProbeUnavailable::Absent("tracing is being loaded".into()));
        self.is_loading.store(true, Ordering::Release);
        let tracer = self.clone();
        let spawned = std::thread::Builder::new().name("tracing".into()).spawn(move || {
            tracer.load_all();
            // The programs for requests, which call those for files and waits, are there now, or never.
            tracer.sync_control.allow();
            tracer.file_control.allow();
            tracer.wait_control.allow();
            tracer.is_loading.store(false, Ordering::Release);
            // Parsing BTF took about 30 MB.
            crate::allocator::trim();
        });
        if let Err(err) = spawned {
            self.is_loading.store(false, Ordering::Release);
            self.set_all_unavailable(&ProbeUnavailable::from_io_error("no thread for tracing", &err));
        }
    }

    fn load_all(&self) {
        let kernel = KernelInfo::detect(&self.root, &self.requests);
        self.latency.load(&kernel);
        self.stalls.load(&kernel);
        self.io_accounting.load(&kernel);
        self.tasks.load(&kernel);
    }

    /// Disables tracing.
    pub fn disable(&self) {
        let why = "tracing is off (--no-tracing, or tracing = false in the config file)";
        self.set_all_unavailable(&ProbeUnavailable::Absent(why.into()));
        self.sync_control.forbid();
        self.file_control.forbid();
        self.wait_control.forbid();
    }

    /// Requests syncs, listing those that take at least `threshold` one by one; `None` if they are not needed any more.
    /// Returns at once; a thread loads and unloads the programs.
    pub fn request_syncs(&self, threshold: Option<Duration>) {
        self.sync_control.request(threshold);
    }

    /// Whether no thread is loading or unloading the programs for syncs.
    pub fn is_sync_worker_idle(&self) -> bool {
        self.sync_control.is_idle()
    }

    /// Whether no thread is loading programs, or unloading those for syncs or files.
    pub fn is_settled(&self) -> bool {
        !self.is_loading.load(Ordering::Acquire) && self.sync_control.is_idle() && self.file_control.is_idle()
    }

    /// Requests I/O by file, or says that it is not needed any more. Returns at once; a thread loads and unloads the
    /// programs.
    pub fn request_files(&self, is_wanted: bool) {
        self.file_control.request(is_wanted.then_some(()));
    }

    /// Requests what tasks wait for, or says that it is not needed any more. Returns at once; a thread loads and unloads the
    /// programs.
    pub fn request_waits(&self, is_wanted: bool) {
        self.wait_control.request(is_wanted.then_some(()));
    }

    fn set_all_unavailable(&self, why: &ProbeUnavailable) {
        self.latency.replace(Err(why.clone()));
        self.stalls.replace(Err(why.clone()));
        self.syncs.replace(Err(why.clone()));
        self.files.replace(Err(why.clone()));
        self.waits.replace(Err(why.clone()));
        self.io_accounting.replace(Err(why.clone()));
        self.tasks.replace(Err(why.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::reading::Reading;

    #[test]
    fn disabled_tracing_gives_the_reason() {
        let tracer = Tracer::new(&Root::live());
        assert!(matches!(tracer.latency.read(), Reading::Absent(why) if why.contains("not started")));
        tracer.disable();
        assert!(matches!(tracer.latency.read(), Reading::Absent(why) if why.contains("--no-tracing")));
    }
}
