//! What only the kernel itself can see, by small programs loaded into it (BPF).
//!
//! The programs' source is in `assets/trace`; their compiled form is part of this binary. Each thing that is traced
//! is a [`Probe`], one file here, and stands or falls by itself. Loading takes some 150 ms of CPU and much memory
//! for a moment, so a thread does it once, when [`Tracer::begin`] is called. Programs go with their descriptors:
//! whatever ends this process, nothing stays in the kernel. Nothing here is ever needed: without it, with the reason
//! told, all else works.

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

/// Why something is not traced: never `Ok`.
pub type ProbeUnavailable = Reading<()>;

/// One thing that is traced: its programs in the kernel, there as long as it lives.
pub trait Probe: Sized + Send + 'static {
    /// What is read from it.
    type Output: Default;
    /// Brings its programs into the kernel, or says in a line why they are not there.
    fn load(ground: &KernelInfo) -> Result<Self, ProbeUnavailable>;
    /// What has been counted until now.
    fn read(&mut self) -> Reading<Self::Output>;
}

/// A probe that is there, or why it is not. Clones are the same one.
pub struct ProbeHandle<P>(Arc<Mutex<Result<P, ProbeUnavailable>>>);

impl<P> Clone for ProbeHandle<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: Probe> ProbeHandle<P> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Err(ProbeUnavailable::Absent("tracing has not begun".into())))))
    }

    /// What has been counted until now, or why nothing is.
    pub fn read(&self) -> Reading<P::Output> {
        match &mut *self.lock() {
            Ok(probe) => probe.read(),
            Err(why) => why.clone().map(|()| P::Output::default()),
        }
    }

    /// Takes its programs out of the kernel again, if they are there.
    pub fn unload(&self) {
        self.replace(Err(ProbeUnavailable::Absent("tracing of this has been ended".into())));
    }

    fn load(&self, ground: &Result<KernelInfo, ProbeUnavailable>) {
        let loaded = ground.as_ref().map_err(Clone::clone).and_then(P::load);
        self.replace(loaded);
    }

    fn replace(&self, to: Result<P, ProbeUnavailable>) {
        let before = std::mem::replace(&mut *self.lock(), to);
        // Programs take their time to go, and nobody who reads shall wait for that.
        drop(before);
    }

    fn is_loaded(&self) -> bool {
        self.lock().is_ok()
    }

    /// Changes the probe, if it is there; one that does not take it is given up.
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

/// Tracing that can be begun, and read once it is there. Clones are the same one.
#[derive(Clone)]
pub struct Tracer {
    root: Root,
    /// How long requests of each device take.
    pub latency: ProbeHandle<LatencyProbe>,
    /// Who is held up by memory.
    pub stalls: ProbeHandle<MemoryStallProbe>,
    /// Who waits for syncs; only while somebody wants it.
    pub syncs: ProbeHandle<SyncProbe>,
    /// All tasks at once.
    pub tasks: ProbeHandle<TaskIterProbe>,
    sync_control: Arc<Mutex<SyncControl>>,
    /// Who does the I/O.
    pub io_accounting: ProbeHandle<IoAccountingProbe>,
}

impl Tracer {
    /// Nothing is loaded yet.
    pub fn new(root: &Root) -> Self {
        let (latency, charge, stalls) = (ProbeHandle::new(), ProbeHandle::new(), ProbeHandle::new());
        let (syncs, tasks) = (ProbeHandle::new(), ProbeHandle::new());
        Self { root: root.clone(), latency, io_accounting: charge, stalls, syncs, tasks, sync_control: Arc::default() }
    }

    /// Has a thread load the programs; returns at once.
    pub fn start(&self) {
        self.set_all_unavailable(&ProbeUnavailable::Absent("tracing is being loaded".into()));
        self.allow_sync_tracing();
        let tracer = self.clone();
        let spawned = std::thread::Builder::new().name("tracing".into()).spawn(move || {
            tracer.load_all();
            // Parsing the kernel's types took some 30 MB for a moment.
            crate::allocator::trim();
        });
        if let Err(err) = spawned {
            self.set_all_unavailable(&ProbeUnavailable::from_io_error("no thread for tracing", &err));
        }
    }

    fn load_all(&self) {
        let ground = KernelInfo::detect(&self.root);
        self.latency.load(&ground);
        self.stalls.load(&ground);
        self.io_accounting.load(&ground);
        self.tasks.load(&ground);
    }

    /// Says that nothing shall be traced.
    pub fn disable(&self) {
        let why = "tracing is switched off (--no-tracing, or tracing = false in the config file)";
        self.set_all_unavailable(&ProbeUnavailable::Absent(why.into()));
        self.forbid_sync_tracing();
    }

    /// From which duration on syncs are to be listed by themselves, or that nobody wants them any more. Returns at
    /// once; a thread brings the programs in and out.
    pub fn request_syncs(&self, from: Option<Duration>) {
        self.set_sync_request(from);
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
        assert!(matches!(tracer.latency.read(), Reading::Absent(why) if why.contains("not begun")));
        tracer.disable();
        assert!(matches!(tracer.latency.read(), Reading::Absent(why) if why.contains("--no-tracing")));
    }
}
