//! Loads and unloads sync tracing on request.
//!
//! Requests change faster than programs can be loaded. A request is only noted; if no thread is running, one is
//! started, and it works until the last request is fulfilled.

use super::kernel_info::KernelInfo;
use super::probe::{Probe, ProbeHandle};
use super::syncs::SyncProbe;
use super::unavailable::ProbeUnavailable;
use crate::model::syncs::NOT_REQUESTED;
use crate::root::Root;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Controls the probe of syncs; clones control the same one.
#[derive(Clone)]
pub(super) struct SyncControl {
    root: Root,
    probe: ProbeHandle<SyncProbe>,
    request: Arc<Mutex<SyncRequest>>,
}

#[derive(Default)]
struct SyncRequest {
    /// Tracing was started and is not disabled; otherwise nothing is loaded.
    is_allowed: bool,
    /// Syncs are requested; those that take at least this long are listed one by one.
    threshold: Option<Duration>,
    is_worker_running: bool,
}

impl SyncControl {
    pub(super) fn new(root: &Root, probe: ProbeHandle<SyncProbe>) -> Self {
        Self { root: root.clone(), probe, request: Arc::default() }
    }

    /// Permits loading, and fulfils an earlier request.
    pub(super) fn allow(&self) {
        self.set_unavailable(NOT_REQUESTED);
        self.lock().is_allowed = true;
        if self.lock().threshold.is_some() {
            self.start_worker();
        }
    }

    pub(super) fn forbid(&self) {
        self.lock().is_allowed = false;
    }

    /// Requests syncs with this threshold, or no syncs.
    pub(super) fn request(&self, threshold: Option<Duration>) {
        self.lock().threshold = threshold;
        self.start_worker();
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.lock().is_worker_running
    }

    fn lock(&self) -> MutexGuard<'_, SyncRequest> {
        self.request.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn set_unavailable(&self, why: &str) {
        self.probe.replace(Err(ProbeUnavailable::Absent(why.into())));
    }

    /// Starts a thread that fulfils the request, unless one is running.
    fn start_worker(&self) {
        let mut request = self.lock();
        if !request.is_allowed || std::mem::replace(&mut request.is_worker_running, true) {
            return;
        }
        drop(request);
        let control = self.clone();
        let spawned = std::thread::Builder::new().name("tracing-syncs".into()).spawn(move || {
            let mut fulfilled = None;
            while let Some(threshold) = control.next_request(fulfilled) {
                control.apply(threshold);
                fulfilled = Some(threshold);
            }
            crate::allocator::trim();
        });
        if let Err(err) = spawned {
            self.lock().is_worker_running = false;
            self.probe.replace(Err(ProbeUnavailable::from_io_error("no thread for tracing", &err)));
        }
    }

    /// Returns the requested threshold unless it is `fulfilled`; then the thread is done.
    fn next_request(&self, fulfilled: Option<Option<Duration>>) -> Option<Option<Duration>> {
        let mut request = self.lock();
        if fulfilled == Some(request.threshold) {
            request.is_worker_running = false;
            return None;
        }
        Some(request.threshold)
    }

    fn apply(&self, threshold: Option<Duration>) {
        let Some(threshold) = threshold else { return self.set_unavailable(NOT_REQUESTED) };
        if !self.probe.is_loaded() {
            self.set_unavailable("tracing of syncs is being loaded");
            let loaded = KernelInfo::detect(&self.root).and_then(|kernel| SyncProbe::load(&kernel));
            self.probe.replace(loaded);
        }
        self.probe.modify(|syncs| syncs.set_threshold(threshold));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tracer;
    use super::*;
    use crate::model::reading::Reading;

    fn syncs_reason(tracer: &Tracer) -> String {
        tracer.syncs.read().unavailable_reason(0).unwrap_or_default()
    }

    #[test]
    fn nothing_is_loaded_before_start_or_when_disabled() {
        let tracer = Tracer::new(&Root::live());
        tracer.request_syncs(Some(Duration::from_millis(10)));
        assert!(syncs_reason(&tracer).contains("not started"), "{}", syncs_reason(&tracer));
        tracer.disable();
        tracer.request_syncs(Some(Duration::from_millis(10)));
        assert!(
            syncs_reason(&tracer).contains("--no-tracing") && tracer.is_sync_worker_idle(),
            "{}",
            syncs_reason(&tracer)
        );
    }

    #[test]
    fn a_captured_tree_is_not_traced_and_gives_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let tracer = Tracer::new(&Root::at(dir.path()));
        tracer.request_syncs(Some(Duration::from_millis(10)));
        tracer.sync_control.allow();
        while !tracer.is_sync_worker_idle() {
            std::thread::yield_now();
        }
        assert!(matches!(tracer.syncs.read(), Reading::Absent(why) if why.contains("BTF")));
        tracer.request_syncs(None);
        while !tracer.is_sync_worker_idle() {
            std::thread::yield_now();
        }
        assert!(syncs_reason(&tracer).contains("key F"), "{}", syncs_reason(&tracer));
    }
}
