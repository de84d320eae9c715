//! Memory that is asked of the system, kept small: a monitor is part of the machine it watches.

#![allow(unsafe_code)] // the C library's own settings

/// One heap for all threads, where the C library would make one for each. Ours allocate little, and never wait
/// for one another for long; a heap of its own costs each of them some hundred KiB. And small pieces that are given
/// back join at once, where they would lie about until a large one is wanted. To be called before there are threads.
pub fn use_single_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer. A limit that is not taken changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_MXFAST, 0);
    }
}

/// Hands free memory back to the system, after something that took much for a moment.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointer, and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
