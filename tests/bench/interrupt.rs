//! Lets a benchmark end on ^C with everything removed that it made.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Whether ^C was pressed, or a [`EndOnDrop`] was dropped.
pub fn is_over() -> bool {
    IS_OVER.load(Relaxed)
}

/// From now on ^C and SIGTERM do not end the process, but are seen by [`is_over`].
#[allow(unsafe_code)]
pub fn catch() {
    extern "C" fn end(_: libc::c_int) {
        IS_OVER.store(true, Relaxed);
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, end as *const () as libc::sighandler_t) };
    }
}

/// Ends the threads of a scope, also when the scope panics.
pub struct EndOnDrop;

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        IS_OVER.store(true, Relaxed);
    }
}
