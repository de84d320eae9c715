//! What is traced only while somebody wants it: the wish, and the one thread that follows it.
//!
//! Wishes change faster than programs come and go. Whoever wishes only notes it; if no thread is at work one is
//! started, and that works until things are as they were wished last.

use super::kernel_info::KernelInfo;
use super::syncs::SyncProbe;
use super::{Probe, ProbeUnavailable, Tracer};
use crate::model::syncs::NOT_REQUESTED;
use std::sync::MutexGuard;
use std::time::Duration;

/// What is wished.
#[derive(Default)]
pub struct SyncControl {
    /// Tracing has begun; before, and where it is switched off, nothing is loaded.
    is_allowed: bool,
    /// Syncs are wanted, those that took so long one by one.
    requested_threshold: Option<Duration>,
    /// A thread is at work.
    is_worker_running: bool,
}

impl Tracer {
    fn lock_sync_control(&self) -> MutexGuard<'_, SyncControl> {
        self.sync_control.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn allow_sync_tracing(&self) {
        self.syncs.replace(Err(ProbeUnavailable::Absent(NOT_REQUESTED.into())));
        let wanted = {
            let mut wish = self.lock_sync_control();
            wish.is_allowed = true;
            wish.requested_threshold.is_some()
        };
        if wanted {
            self.start_sync_worker();
        }
    }

    pub(super) fn forbid_sync_tracing(&self) {
        self.lock_sync_control().is_allowed = false;
    }

    pub(super) fn set_sync_request(&self, from: Option<Duration>) {
        self.lock_sync_control().requested_threshold = from;
        self.start_sync_worker();
    }

    /// Whether nobody is at work to bring programs in or out.
    pub fn is_sync_worker_idle(&self) -> bool {
        !self.lock_sync_control().is_worker_running
    }

    /// Has a thread do what is wished, unless one is at it.
    fn start_sync_worker(&self) {
        let mut wish = self.lock_sync_control();
        if !wish.is_allowed || std::mem::replace(&mut wish.is_worker_running, true) {
            return;
        }
        drop(wish);
        let tracer = self.clone();
        let spawned = std::thread::Builder::new().name("tracing-syncs".into()).spawn(move || {
            let mut done = None;
            while let Some(wanted) = tracer.next_sync_request(done) {
                tracer.apply_sync_request(wanted);
                done = Some(wanted);
            }
            crate::allocator::trim();
        });
        if let Err(err) = spawned {
            self.lock_sync_control().is_worker_running = false;
            self.syncs.replace(Err(ProbeUnavailable::from_io_error("no thread for tracing", &err)));
        }
    }

    /// What is wished if that is not done yet; else the thread's work is over.
    fn next_sync_request(&self, done: Option<Option<Duration>>) -> Option<Option<Duration>> {
        let mut wish = self.lock_sync_control();
        if done == Some(wish.requested_threshold) {
            wish.is_worker_running = false;
            return None;
        }
        Some(wish.requested_threshold)
    }

    fn apply_sync_request(&self, wanted: Option<Duration>) {
        let Some(from) = wanted else {
            return self.syncs.replace(Err(ProbeUnavailable::Absent(NOT_REQUESTED.into())));
        };
        if !self.syncs.is_loaded() {
            self.syncs.replace(Err(ProbeUnavailable::Absent("tracing of syncs is being loaded".into())));
            let loaded = KernelInfo::detect(&self.root).and_then(|ground| SyncProbe::load(&ground));
            self.syncs.replace(loaded);
        }
        self.syncs.modify(|syncs| syncs.set_threshold(from));
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
        assert!(syncs_reason(&tracer).contains("not begun"), "{}", syncs_reason(&tracer));
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
