//! Loads and unloads sync tracing on request.
//!
//! Requests change faster than programs can be loaded. A request is only noted; if no thread is running, one is
//! started, and it works until the last request is fulfilled.

use super::kernel_info::KernelInfo;
use super::syncs::SyncProbe;
use super::{Probe, ProbeUnavailable, Tracer};
use crate::model::syncs::NOT_REQUESTED;
use std::sync::MutexGuard;
use std::time::Duration;

/// The requested state.
#[derive(Default)]
pub struct SyncControl {
    /// Tracing was started and is not disabled; otherwise nothing is loaded.
    is_allowed: bool,
    /// Syncs are requested; those that take at least this long are listed one by one.
    requested_threshold: Option<Duration>,
    /// A thread is loading or unloading.
    is_worker_running: bool,
}

impl Tracer {
    fn lock_sync_control(&self) -> MutexGuard<'_, SyncControl> {
        self.sync_control.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn allow_sync_tracing(&self) {
        self.syncs.replace(Err(ProbeUnavailable::Absent(NOT_REQUESTED.into())));
        let request = {
            let mut control = self.lock_sync_control();
            control.is_allowed = true;
            control.requested_threshold.is_some()
        };
        if request {
            self.start_sync_worker();
        }
    }

    pub(super) fn forbid_sync_tracing(&self) {
        self.lock_sync_control().is_allowed = false;
    }

    pub(super) fn set_sync_request(&self, threshold: Option<Duration>) {
        self.lock_sync_control().requested_threshold = threshold;
        self.start_sync_worker();
    }

    /// Whether no thread is loading or unloading programs.
    pub fn is_sync_worker_idle(&self) -> bool {
        !self.lock_sync_control().is_worker_running
    }

    /// Starts a thread that fulfils the request, unless one is running.
    fn start_sync_worker(&self) {
        let mut control = self.lock_sync_control();
        if !control.is_allowed || std::mem::replace(&mut control.is_worker_running, true) {
            return;
        }
        drop(control);
        let tracer = self.clone();
        let spawned = std::thread::Builder::new().name("tracing-syncs".into()).spawn(move || {
            let mut done = None;
            while let Some(request) = tracer.next_sync_request(done) {
                tracer.apply_sync_request(request);
                done = Some(request);
            }
            crate::allocator::trim();
        });
        if let Err(err) = spawned {
            self.lock_sync_control().is_worker_running = false;
            self.syncs.replace(Err(ProbeUnavailable::from_io_error("no thread for tracing", &err)));
        }
    }

    /// Returns the request if it is not fulfilled yet; otherwise marks the thread as done.
    fn next_sync_request(&self, done: Option<Option<Duration>>) -> Option<Option<Duration>> {
        let mut control = self.lock_sync_control();
        if done == Some(control.requested_threshold) {
            control.is_worker_running = false;
            return None;
        }
        Some(control.requested_threshold)
    }

    fn apply_sync_request(&self, request: Option<Duration>) {
        let Some(threshold) = request else {
            return self.syncs.replace(Err(ProbeUnavailable::Absent(NOT_REQUESTED.into())));
        };
        if !self.syncs.is_loaded() {
            self.syncs.replace(Err(ProbeUnavailable::Absent("tracing of syncs is being loaded".into())));
            let loaded = KernelInfo::detect(&self.root).and_then(|kernel| SyncProbe::load(&kernel));
            self.syncs.replace(loaded);
        }
        self.syncs.modify(|syncs| syncs.set_threshold(threshold));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::reading::Reading;
    use crate::root::Root;

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
            syncs_reason(&tracer).contains("--no-tracing") && !tracer.lock_sync_control().is_worker_running,
            "{}",
            syncs_reason(&tracer)
        );
    }

    #[test]
    fn a_captured_tree_is_not_traced_and_gives_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let tracer = Tracer::new(&Root::at(dir.path()));
        tracer.request_syncs(Some(Duration::from_millis(10)));
        tracer.allow_sync_tracing();
        while tracer.lock_sync_control().is_worker_running {
            std::thread::yield_now();
        }
        assert!(matches!(tracer.syncs.read(), Reading::Absent(why) if why.contains("BTF")));
        tracer.request_syncs(None);
        while tracer.lock_sync_control().is_worker_running {
            std::thread::yield_now();
        }
        assert!(syncs_reason(&tracer).contains("key F"), "{}", syncs_reason(&tracer));
    }
}
