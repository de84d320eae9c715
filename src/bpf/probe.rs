//! A probe: BPF programs that are loaded together and read together.

use super::kernel_info::KernelInfo;
use super::unavailable::ProbeUnavailable;
use crate::model::reading::Reading;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A set of BPF programs, loaded as long as the value lives.
pub trait Probe: Sized + Send + 'static {
    type Output: Default;
    /// What fails if it cannot be read: `reading syncs`.
    const READING: &'static str;
    /// Loads and attaches the programs.
    /// Errors: the reason why they cannot be loaded, in one line.
    fn load(kernel: &KernelInfo) -> Result<Self, ProbeUnavailable>;
    fn read(&mut self) -> io::Result<Self::Output>;
}

/// A probe, or why it is not loaded. Clones share it.
pub struct ProbeHandle<P>(Arc<Mutex<Result<P, ProbeUnavailable>>>);

impl<P> Clone for ProbeHandle<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<P: Probe> ProbeHandle<P> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Err(ProbeUnavailable::Absent("tracing has not started".into())))))
    }

    /// Reads the counters, or returns why there are none.
    pub fn read(&self) -> Reading<P::Output> {
        match &mut *self.lock() {
            Ok(probe) => match probe.read() {
                Ok(output) => Reading::Ok(output),
                Err(err) => Reading::from_io_error(P::READING, &err),
            },
            Err(why) => why.clone().map(|()| P::Output::default()),
        }
    }

    pub(super) fn load(&self, kernel: &Result<KernelInfo, ProbeUnavailable>) {
        let loaded = kernel.as_ref().map_err(Clone::clone).and_then(P::load);
        self.replace(loaded);
    }

    pub(super) fn replace(&self, value: Result<P, ProbeUnavailable>) {
        let previous = std::mem::replace(&mut *self.lock(), value);
        // Unloading takes time; readers must not wait for it.
        drop(previous);
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.lock().is_ok()
    }

    /// Changes the probe, if it is loaded; unloads it if that fails.
    pub(super) fn modify(&self, change: impl FnOnce(&mut P) -> io::Result<()>) {
        let failed = self.lock().as_mut().ok().and_then(|probe| change(probe).err());
        if let Some(err) = failed {
            self.replace(Err(ProbeUnavailable::from_io_error("tracing", &err)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Result<P, ProbeUnavailable>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}
