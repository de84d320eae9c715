//! What only the kernel itself can see, by small programs loaded into it (BPF).
//!
//! The programs' source is in `assets/trace`; their compiled form is part of this binary. Each thing that is traced
//! is a [`Probe`], one file here, and stands or falls by itself. Loading takes some 150 ms of CPU and much memory
//! for a moment, so a thread does it once, when [`Tracer::begin`] is called. Programs go with their descriptors:
//! whatever ends this process, nothing stays in the kernel. Nothing here is ever needed: without it, with the reason
//! told, all else works.

mod btf;
mod charge;
mod ground;
mod kernel;
mod latency;
mod object;
mod stalls;
mod syncs;
pub mod tasks;
mod wish;

use crate::model::section::Section;
use crate::root::Root;
use charge::Charge;
use ground::Ground;
use latency::Latency;
use stalls::Stalls;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use syncs::Syncs;
use tasks::Tasks;
use wish::Wish;

/// Why something is not traced: never `Ok`.
pub type Without = Section<()>;

/// One thing that is traced: its programs in the kernel, there as long as it lives.
pub trait Probe: Sized + Send + 'static {
    /// What is read from it.
    type Read: Default;
    /// Brings its programs into the kernel, or says in a line why they are not there.
    fn load(ground: &Ground) -> Result<Self, Without>;
    /// What has been counted until now.
    fn read(&mut self) -> Section<Self::Read>;
}

/// A probe that is there, or why it is not. Clones are the same one.
pub struct Part<P>(Arc<Mutex<Result<P, Without>>>);

impl<P> Clone for Part<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: Probe> Part<P> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Err(Without::Absent("tracing has not begun".into())))))
    }

    /// What has been counted until now, or why nothing is.
    pub fn read(&self) -> Section<P::Read> {
        match &mut *self.lock() {
            Ok(probe) => probe.read(),
            Err(why) => why.clone().map(|()| P::Read::default()),
        }
    }

    /// Takes its programs out of the kernel again, if they are there.
    pub fn end(&self) {
        self.set(Err(Without::Absent("tracing of this has been ended".into())));
    }

    fn load(&self, ground: &Result<Ground, Without>) {
        let loaded = ground.as_ref().map_err(Clone::clone).and_then(P::load);
        self.set(loaded);
    }

    fn set(&self, to: Result<P, Without>) {
        let before = std::mem::replace(&mut *self.lock(), to);
        // Programs take their time to go, and nobody who reads shall wait for that.
        drop(before);
    }

    fn is_there(&self) -> bool {
        self.lock().is_ok()
    }

    /// Changes the probe, if it is there; one that does not take it is given up.
    fn with(&self, change: impl FnOnce(&mut P) -> std::io::Result<()>) {
        let failed = self.lock().as_mut().ok().and_then(|probe| change(probe).err());
        if let Some(err) = failed {
            self.set(Err(Without::from_io("tracing", &err)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Result<P, Without>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Tracing that can be begun, and read once it is there. Clones are the same one.
#[derive(Clone)]
pub struct Tracer {
    root: Root,
    /// How long requests of each device take.
    pub latency: Part<Latency>,
    /// Who is held up by memory.
    pub stalls: Part<Stalls>,
    /// Who waits for syncs; only while somebody wants it.
    pub syncs: Part<Syncs>,
    /// All tasks at once.
    pub tasks: Part<Tasks>,
    wish: Arc<Mutex<Wish>>,
    /// Who does the I/O.
    pub charge: Part<Charge>,
}

impl Tracer {
    /// Nothing is loaded yet.
    pub fn new(root: &Root) -> Self {
        let (latency, charge, stalls) = (Part::new(), Part::new(), Part::new());
        let (syncs, tasks) = (Part::new(), Part::new());
        Self { root: root.clone(), latency, charge, stalls, syncs, tasks, wish: Arc::default() }
    }

    /// Has a thread load the programs; returns at once.
    pub fn begin(&self) {
        self.without(&Without::Absent("tracing is being loaded".into()));
        self.allow_syncs();
        let tracer = self.clone();
        let spawned = std::thread::Builder::new().name("tracing".into()).spawn(move || {
            tracer.load();
            // Parsing the kernel's types took some 30 MB for a moment.
            crate::heap::trim();
        });
        if let Err(err) = spawned {
            self.without(&Without::from_io("no thread for tracing", &err));
        }
    }

    fn load(&self) {
        let ground = Ground::look(&self.root);
        self.latency.load(&ground);
        self.stalls.load(&ground);
        self.charge.load(&ground);
        self.tasks.load(&ground);
    }

    /// Says that nothing shall be traced.
    pub fn leave_off(&self) {
        let why = "tracing is switched off (--no-tracing, or tracing = false in the config file)";
        self.without(&Without::Absent(why.into()));
        self.forbid_syncs();
    }

    /// From which duration on syncs are to be listed by themselves, or that nobody wants them any more. Returns at
    /// once; a thread brings the programs in and out.
    pub fn want_syncs(&self, from: Option<Duration>) {
        self.wish_syncs(from);
    }

    fn without(&self, why: &Without) {
        self.latency.set(Err(why.clone()));
        self.stalls.set(Err(why.clone()));
        self.syncs.set(Err(why.clone()));
        self.charge.set(Err(why.clone()));
        self.tasks.set(Err(why.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switched_off_it_says_so() {
        let tracer = Tracer::new(&Root::live());
        assert!(matches!(tracer.latency.read(), Section::Absent(why) if why.contains("not begun")));
        tracer.leave_off();
        assert!(matches!(tracer.latency.read(), Section::Absent(why) if why.contains("--no-tracing")));
    }
}
