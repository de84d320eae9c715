//! System calls without a safe wrapper.

#![allow(unsafe_code)]

use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::io;
use std::os::fd::AsFd;
use std::ptr::null_mut;

/// CPU time of this process, all its threads and the kernel's io_uring workers in it, up to now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ResourceUsage {
    pub user_ns: u64,
    pub system_ns: u64,
    pub switches: u64,
    pub major_faults: u64,
    pub minor_faults: u64,
}

impl ResourceUsage {
    pub(crate) fn of_self() -> Self {
        // SAFETY: rusage is plain numbers, valid as zeroes; the kernel writes into a live, exclusively borrowed struct.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
            usage
        };
        let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
        Self {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
            major_faults: usage.ru_majflt as u64,
            minor_faults: usage.ru_minflt as u64,
        }
    }
}

/// Puts the calling thread, and every thread it starts from now on, into the idle I/O class
/// (Documentation/block/ioprio.rst): served only when no other process uses the disk.
pub(crate) fn set_idle_io_priority() -> io::Result<()> {
    const WHO_PROCESS: i32 = 1;
    const CLASS_IDLE: i32 = 3 << 13;
    // SAFETY: plain integers; 0 means the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Forks; the child ends at once. Returns how long the call took the parent, ns.
pub(crate) fn timed_fork() -> io::Result<u64> {
    let begin = std::time::Instant::now();
    // SAFETY: the child calls nothing but _exit, which is async-signal-safe, whatever other threads held.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: ends this process without running any handler.
        unsafe { libc::_exit(0) };
    }
    let fork_ns = begin.elapsed().as_nanos() as u64;
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    }
    Ok(fork_ns)
}

/// A page-aligned mapping that lives until dropped. Anonymous memory is handed to the kernel, which writes into it
/// while an operation is in flight, so access goes through one slot at a time.
pub(crate) struct MappedMemory {
    base: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone; sending it to another thread sends all of it.
unsafe impl Send for MappedMemory {}

impl MappedMemory {
    /// `len` zeroed bytes; `huge` requests huge pages, which the kernel may not grant.
    pub(crate) fn anonymous(len: usize, huge: bool) -> io::Result<Self> {
        let len = len.max(1).next_multiple_of(if huge { 2 << 20 } else { 4096 });
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe {
            rustix::mm::mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        let memory = Self { base: base.cast(), len };
        if huge {
            let _ = memory.advise(Advice::LinuxHugepage);
        }
        Ok(memory)
    }

    /// The first `len` bytes of an unlinked file, which no other process can truncate, shared with it.
    pub(crate) fn of_file(file: impl AsFd, len: usize) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice; the file is an unlinked one
        // of our own that is emptied only after its mapping is gone (txlog drops them in this order).
        let base = unsafe {
            rustix::mm::mmap(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)?
        };
        Ok(Self { base: base.cast(), len })
    }

    pub(crate) fn advise(&self, advice: Advice) -> io::Result<()> {
        // SAFETY: exactly this mapping, of which nothing is borrowed mutably.
        unsafe { Ok(rustix::mm::madvise(self.base.cast(), self.len, advice)?) }
    }

    /// Locks `len` bytes from `at` on, which must be the start of a page, in memory. Missing pages are read; none
    /// becomes dirty by that (mlock(2), shared mappings). Needs CAP_IPC_LOCK or enough RLIMIT_MEMLOCK.
    pub(crate) fn lock_range(&self, at: usize, len: usize) -> io::Result<()> {
        let at = at.min(self.len);
        // SAFETY: within the mapping, by the two bounds; locking changes no content.
        unsafe { Ok(rustix::mm::mlock(self.base.add(at).cast(), len.min(self.len - at))?) }
    }

    /// Its bytes, rounded up to whole pages if anonymous.
    pub(crate) fn size(&self) -> usize {
        self.len
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.base
    }

    /// Bytes `at..at + len`. The caller ensures that no operation on them is in flight.
    pub(crate) fn slice(&mut self, at: usize, len: usize) -> &mut [u8] {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len), "outside the buffer");
        // SAFETY: inside the mapping (just checked), initialised, exclusively borrowed through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(at), len) }
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping made by a constructor, unmapped once; nothing borrowed from it is left.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idle_io_priority_is_in_force() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                set_idle_io_priority().unwrap();
                // SAFETY: plain integers; 1 means a process or thread, 0 the calling one.
                let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) };
                assert_eq!(priority >> 13, 3, "the class is idle");
            });
        });
    }

    #[test]
    fn memory_is_aligned_and_bounded() {
        let mut m = MappedMemory::anonymous(10_000, false).unwrap();
        assert_eq!((m.as_ptr() as usize % 4096, m.size()), (0, 12_288));
        m.slice(8192, 4096)[4095] = 7;
        assert_eq!(m.slice(0, 12_288)[12_287], 7);
        assert!(std::panic::catch_unwind(move || m.slice(8192, 4097).len()).is_err());
    }

    #[test]
    fn timed_fork_measures_and_reaps_the_child() {
        assert!(timed_fork().unwrap() > 0);
    }

    #[test]
    fn cpu_time_only_grows() {
        let a = ResourceUsage::of_self();
        let b = ResourceUsage::of_self();
        assert!(b.user_ns + b.system_ns >= a.user_ns + a.system_ns);
    }
}
