//! Figures that only the kernel itself can provide, counted by BPF programs.
//!
//! The sources of the programs are in `assets/trace`; their compiled form is part of this binary. Each [`Probe`] is
//! independent of the others. Loading takes about 150 ms of CPU and much memory for a moment, so a thread does it once,
//! when [`Tracer::start`] is called. Programs are unloaded with their descriptors: however this process ends, nothing
//! stays in the kernel. Everything works without this module; the reason for a missing figure is shown.

mod bpf_sys;
mod btf;
mod io_accounting;
mod kernel_info;
mod latency;
mod loader;
mod memory_stalls;
mod sync_control;
mod syncs;
pub mod task_iter;

use crate::model::reading::Reading;
use crate::root::Root;
use io_accounting::IoAccountingProbe;
use kernel_info::KernelInfo;
use latency::LatencyProbe;
use memory_stalls::MemoryStallProbe;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use sync_control::SyncControl;
use syncs::SyncProbe;
use task_iter::TaskIterProbe;

/// Why a probe is not loaded: never `Ok`.
pub type ProbeUnavailable = Reading<()>;

/// A set of BPF programs, loaded as long as the value lives.
pub trait Probe: Sized + Send + 'static {
    /// What reading it returns.
    type Output: Default;
    /// Loads and attaches the programs.
    ///
    /// # Errors
    ///
    /// The reason why they cannot be loaded, in one line.
    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable>;
    /// Reads the counters.
    fn read(&mut self) -> Reading<Self::Output>;
}

/// A probe, or why it is not loaded. Clones share it.
pub struct ProbeHandle<P>(Arc<Mutex<Result<P, ProbeUnavailable>>>);

impl<P> Clone for ProbeHandle<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: Probe> ProbeHandle<P> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Err(ProbeUnavailable::Absent("tracing has not started".into())))))
    }

    /// Reads the counters, or returns why there are none.
    pub fn read(&self) -> Reading<P::Output> {
        match &mut *self.lock() {
            Ok(probe) => probe.read(),
            Err(why) => why.clone().map(|()| P::Output::default()),
        }
    }

    /// Unloads the programs, if they are loaded.
    pub fn unload(&self) {
        self.replace(Err(ProbeUnavailable::Absent("this probe was unloaded".into())));
    }

    fn load(&self, kernel: &Result<KernelInfo, ProbeUnavailable>) {
        let loaded = kernel.as_ref().map_err(Clone::clone).and_then(P::load);
        self.replace(loaded);
    }

    fn replace(&self, value: Result<P, ProbeUnavailable>) {
        let previous = std::mem::replace(&mut *self.lock(), value);
        // Unloading takes time; readers must not wait for it.
        drop(previous);
    }

    fn is_loaded(&self) -> bool {
        self.lock().is_ok()
    }

    /// Changes the probe, if it is loaded; unloads it if that fails.
    fn modify(&self, change: impl FnOnce(&mut P) -> std::io::Result<()>) {
        let failed = self.lock().as_mut().ok().and_then(|probe| change(probe).err());
        if let Some(err) = failed {
            self.replace(Err(ProbeUnavailable::from_io_error("tracing", &err)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Result<P, ProbeUnavailable>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// All probes. They are loaded on request; clones share them.
#[derive(Clone)]
pub struct Tracer {
    root: Root,
    /// Latency of block requests by device.
    pub latency: ProbeHandle<LatencyProbe>,
    /// Tasks stalled by memory.
    pub stalls: ProbeHandle<MemoryStallProbe>,
    /// Syncs by file; loaded only on request.
    pub syncs: ProbeHandle<SyncProbe>,
    /// All tasks at once.
    pub tasks: ProbeHandle<TaskIterProbe>,
    sync_control: Arc<Mutex<SyncControl>>,
    /// I/O by process and control group.
    pub io_accounting: ProbeHandle<IoAccountingProbe>,
}

impl Tracer {
    /// Creates the tracer; nothing is loaded.
    pub fn new(root: &Root) -> Self {
        let (latency, charge, stalls) = (ProbeHandle::new(), ProbeHandle::new(), ProbeHandle::new());
        let (syncs, tasks) = (ProbeHandle::new(), ProbeHandle::new());
        Self { root: root.clone(), latency, io_accounting: charge, stalls, syncs, tasks, sync_control: Arc::default() }
    }

    /// Starts a thread that loads the programs; returns at once.
    pub fn start(&self) {
        self.set_all_unavailable(&ProbeUnavailable::Absent("tracing is being loaded".into()));
        self.allow_sync_tracing();
        let tracer = self.clone();
        let spawned = std::thread::Builder::new().name("tracing".into()).spawn(move || {
            tracer.load_all();
            // Parsing BTF took about 30 MB.
            crate::allocator::trim();
        });
        if let Err(err) = spawned {
            self.set_all_unavailable(&ProbeUnavailable::from_io_error("no thread for tracing", &err));
        }
    }

    fn load_all(&self) {
        let kernel = KernelInfo::detect(&self.root);
        self.latency.load(&kernel);
        self.stalls.load(&kernel);
        self.io_accounting.load(&kernel);
        self.tasks.load(&kernel);
    }

    /// Disables tracing.
    pub fn disable(&self) {
        let why = "tracing is off (--no-tracing, or tracing = false in the config file)";
        self.set_all_unavailable(&ProbeUnavailable::Absent(why.into()));
        self.forbid_sync_tracing();
    }

    /// Requests syncs, listing those that take at least `threshold` one by one; `None` if they are not needed any more.
    /// Returns at once; a thread loads and unloads the programs.
    pub fn request_syncs(&self, threshold: Option<Duration>) {
        self.set_sync_request(threshold);
    }

    fn set_all_unavailable(&self, why: &ProbeUnavailable) {
        self.latency.replace(Err(why.clone()));
        self.stalls.replace(Err(why.clone()));
        self.syncs.replace(Err(why.clone()));
        self.io_accounting.replace(Err(why.clone()));
        self.tasks.replace(Err(why.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_tracing_gives_the_reason() {
        let tracer = Tracer::new(&Root::live());
        assert!(matches!(tracer.latency.read(), Reading::Absent(why) if why.contains("not started")));
        tracer.disable();
        assert!(matches!(tracer.latency.read(), Reading::Absent(why) if why.contains("--no-tracing")));
    }
}
