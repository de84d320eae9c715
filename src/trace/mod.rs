//! What only the kernel itself can see, by small programs loaded into it (BPF): how long each request took.
//!
//! The programs' source is in `assets/trace`; their compiled form is part of this binary. Loading takes some
//! 150 ms of CPU and much memory for a moment, so a thread does it once, when [`Tracer::begin`] is called; reading
//! is a system call a histogram. Programs go with their descriptors: whatever ends this process, nothing stays in
//! the kernel. Nothing here is ever needed: without it, with the reason told, all else works.

mod btf;
mod kernel;
mod load;
mod maps;

use crate::model::latency::LatencyRaw;
use crate::model::section::Section;
use crate::root::Root;
use load::Loaded;
use std::sync::{Arc, Mutex, MutexGuard};

/// Tracing that can be begun, and read once it is there. Clones are the same one.
#[derive(Clone)]
pub struct Tracer {
    state: Arc<Mutex<State>>,
    root: Root,
}

enum State {
    /// Not there, and why.
    Without(Section<LatencyRaw>),
    /// Counting.
    Running(Box<Loaded>),
}

impl Tracer {
    /// Nothing is loaded yet.
    pub fn new(root: &Root) -> Self {
        let not_yet = State::Without(Section::Absent("tracing has not begun".into()));
        Self { state: Arc::new(Mutex::new(not_yet)), root: root.clone() }
    }

    /// Has a thread load the programs; returns at once.
    pub fn begin(&self) {
        self.set(State::Without(Section::Absent("tracing is being loaded".into())));
        let tracer = self.clone();
        let spawned = std::thread::Builder::new().name("tracing".into()).spawn(move || {
            let state = match load::load(&tracer.root) {
                Ok(loaded) => State::Running(Box::new(loaded)),
                Err(why) => State::Without(why),
            };
            tracer.set(state);
            // Parsing the kernel's types took some 30 MB for a moment.
            crate::heap::give_back();
        });
        if let Err(err) = spawned {
            self.set(State::Without(Section::from_io("no thread for tracing", &err)));
        }
    }

    /// Says that nothing shall be traced.
    pub fn leave_off(&self) {
        let why = "tracing is switched off (--no-tracing, or tracing = false in the config file)";
        self.set(State::Without(Section::Absent(why.into())));
    }

    /// All histograms as they are now, or why there are none.
    pub fn read(&self) -> Section<LatencyRaw> {
        match &mut *self.lock() {
            State::Without(why) => why.clone(),
            State::Running(loaded) => loaded.read(),
        }
    }

    fn set(&self, state: State) {
        *self.lock() = state;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switched_off_it_says_so() {
        let tracer = Tracer::new(&Root::live());
        assert!(matches!(tracer.read(), Section::Absent(why) if why.contains("not begun")));
        tracer.leave_off();
        assert!(matches!(tracer.read(), Section::Absent(why) if why.contains("--no-tracing")));
    }

    #[test]
    fn a_tree_without_type_information_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let why = load::load(&Root::at(dir.path())).err().unwrap();
        assert!(matches!(&why, Section::Absent(why) if why.contains("/sys/kernel/btf/vmlinux")), "{why:?}");
    }
}
