//! Loads and unloads the probes that are loaded only on request: syncs, files and waits.
//!
//! Requests change faster than programs can be loaded. A request is only noted; if no thread is running, one is
//! started, and it works until the last request is fulfilled.

use super::chain::SharedRequests;
use super::kernel_info::KernelInfo;
use super::probe::{Probe, ProbeHandle};
use super::unavailable::ProbeUnavailable;
use crate::root::Root;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A probe that is loaded only on request.
pub(super) trait RequestedProbe: Probe {
    /// How it is requested.
    type Request: Copy + PartialEq + Send;
    /// Why there is nothing to read while it is not requested.
    const NOT_REQUESTED: &'static str;
    /// Why there is nothing to read while it is being loaded.
    const LOADING: &'static str;
    /// Name of the thread that loads it, at most 15 bytes.
    const THREAD: &'static str;
    /// Changes the loaded probe as requested.
    fn set_request(&mut self, request: Self::Request) -> io::Result<()>;
}

/// Controls a probe; clones control the same one.
pub(super) struct RequestControl<P: RequestedProbe> {
    root: Root,
    requests: SharedRequests,
    probe: ProbeHandle<P>,
    request: Arc<Mutex<RequestState<P::Request>>>,
}

impl<P: RequestedProbe> Clone for RequestControl<P> {
    fn clone(&self) -> Self {
        Self {
            root: self.root.clone(),
            requests: self.requests.clone(),
            probe: self.probe.clone(),
            request: self.request.clone(),
        }
    }
}

struct RequestState<R> {
    /// Tracing was started and is not disabled; otherwise nothing is loaded.
    is_allowed: bool,
    /// What is requested, if anything.
    wanted: Option<R>,
    is_worker_running: bool,
}

impl<P: RequestedProbe> RequestControl<P> {
    pub(super) fn new(root: &Root, requests: &SharedRequests, probe: ProbeHandle<P>) -> Self {
        let request = RequestState { is_allowed: false, wanted: None, is_worker_running: false };
        Self { root: root.clone(), requests: requests.clone(), probe, request: Arc::new(Mutex::new(request)) }
    }

    /// Permits loading, and fulfils an earlier request.
    pub(super) fn allow(&self) {
        self.set_unavailable(P::NOT_REQUESTED);
        self.lock().is_allowed = true;
        if self.lock().wanted.is_some() {
            self.start_worker();
        }
    }

    pub(super) fn forbid(&self) {
        self.lock().is_allowed = false;
    }

    /// Requests the probe, or nothing.
    pub(super) fn request(&self, wanted: Option<P::Request>) {
        self.lock().wanted = wanted;
        self.start_worker();
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.lock().is_worker_running
    }

    fn lock(&self) -> MutexGuard<'_, RequestState<P::Request>> {
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
        let spawned = std::thread::Builder::new().name(P::THREAD.into()).spawn(move || {
            let mut fulfilled = None;
            while let Some(wanted) = control.next_request(fulfilled) {
                control.apply(wanted);
                fulfilled = Some(wanted);
            }
            crate::allocator::trim();
        });
        if let Err(err) = spawned {
            self.lock().is_worker_running = false;
            self.probe.replace(Err(ProbeUnavailable::from_io_error("no thread for tracing", &err)));
        }
    }

    /// Returns the request unless it is `fulfilled`; then the thread is done.
    fn next_request(&self, fulfilled: Option<Option<P::Request>>) -> Option<Option<P::Request>> {
        let mut request = self.lock();
        if fulfilled == Some(request.wanted) {
            request.is_worker_running = false;
            return None;
        }
        Some(request.wanted)
    }

    fn apply(&self, wanted: Option<P::Request>) {
        let Some(wanted) = wanted else { return self.set_unavailable(P::NOT_REQUESTED) };
        if !self.probe.is_loaded() {
            self.set_unavailable(P::LOADING);
            let loaded = KernelInfo::detect(&self.root, &self.requests).and_then(|kernel| P::load(&kernel));
            self.probe.replace(loaded);
        }
        self.probe.modify(|probe| probe.set_request(wanted));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tracer;
    use super::*;
    use crate::model::reading::Reading;
    use std::time::Duration;

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
        assert!(syncs_reason(&tracer).contains("views Syncs and Findings"), "{}", syncs_reason(&tracer));
    }
}
