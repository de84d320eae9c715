//! Settings of the allocator that keep the process small, and a lock that keeps its pages in memory: a monitor is part of the
//! machine it observes.

#![allow(unsafe_code)] // the C library's own settings

use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::thread::{CapabilitySet, capabilities};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether [`lock_touched`] is in force.
static IS_LOCKED: AtomicBool = AtomicBool::new(false);

/// Uses one arena for all threads, where the C library would make one per thread: our threads allocate little and
/// never contend for long, and an arena costs some hundred KiB. Also merges small freed chunks at once. Call it before
/// threads start.
pub fn use_single_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer. A limit that is not accepted changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MXFAST, 0);
    }
}

/// Locks every page that this process touches, now or later, so that none of them is swapped out to a disk that may
/// hang; needs CAP_IPC_LOCK. Untouched pages stay where they are: see mlockall(2), MCL_ONFAULT.
pub fn lock_touched() {
    // Without the capability RLIMIT_MEMLOCK would limit all memory there is, and later allocations would fail.
    let may_lock = capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::IPC_LOCK));
    if may_lock {
        let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
        IS_LOCKED.store(mlockall(flags).is_ok(), Relaxed);
    }
}

/// Returns free memory to the system, after something that needed much of it for a moment.
pub fn trim() {
    // Locked pages cannot be returned.
    let was_locked = IS_LOCKED.load(Relaxed) && munlockall().is_ok();
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer, and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
    if was_locked {
        lock_touched();
    }
}
