//! Keeps the memory of the process small: a monitor is part of the machine it observes.

#![allow(unsafe_code)] // the C library's own settings

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

/// Returns free memory to the system, after something that needed much of it for a moment.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer, and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
