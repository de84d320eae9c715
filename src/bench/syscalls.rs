//! System calls without a safe wrapper.

#![allow(unsafe_code)]

use std::io;

/// CPU time of this process, all its threads and the kernel's io_uring workers in it, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Voluntary context switches.
    pub switches: u64,
    /// Involuntary context switches.
    pub preempted: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
}

impl ResourceUsage {
    /// Of the whole process up to now.
    pub fn of_self() -> Self {
        Self::read_rusage(libc::RUSAGE_SELF)
    }

    /// Of children that have been reaped.
    pub fn of_children() -> Self {
        Self::read_rusage(libc::RUSAGE_CHILDREN)
    }

    fn read_rusage(who: i32) -> Self {
        // SAFETY: rusage is plain numbers, for which all zeroes are valid; the kernel writes into a
        // live, exclusively borrowed struct of the right type.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
        Self {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            switches: usage.ru_nvcsw as u64,
            preempted: usage.ru_nivcsw as u64,
            major_faults: usage.ru_majflt as u64,
            minor_faults: usage.ru_minflt as u64,
        }
    }

    /// The difference to `earlier`.
    pub fn since(&self, earlier: &ResourceUsage) -> ResourceUsage {
        ResourceUsage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            switches: self.switches.saturating_sub(earlier.switches),
            preempted: self.preempted.saturating_sub(earlier.preempted),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
        }
    }
}

/// Puts the calling thread, and every thread it starts from now on, into the idle I/O class
/// (Documentation/block/ioprio.rst): served only when no other process uses the disk.
pub fn set_idle_io_priority() -> io::Result<()> {
    const WHO_PROCESS: i32 = 1;
    const CLASS_IDLE: i32 = 3 << 13;
    // SAFETY: plain integers; 0 means the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The duration of a fork.
#[derive(Debug, Clone, Copy)]
pub struct ForkTiming {
    /// Time the caller spent in fork(), ns.
    pub elapsed_ns: u64,
}

/// Forks; the child ends at once. Times the call as the parent sees it.
pub fn timed_fork() -> io::Result<ForkTiming> {
    let begin = std::time::Instant::now();
    // SAFETY: the child calls nothing but _exit, which is async-signal-safe, so it does not matter
    // what other threads held at that moment.
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
    Ok(ForkTiming { elapsed_ns: fork_ns })
}

/// Page-aligned anonymous memory that lives until dropped. It is handed to the kernel, which writes
/// into it while an operation is in flight, so access goes through one slot at a time.
pub struct AlignedMemory {
    base: *mut u8,
    len: usize,
}

// SAFETY: the memory belongs to this value alone; sending it to another thread sends all of it.
unsafe impl Send for AlignedMemory {}

impl AlignedMemory {
    /// `len` zeroed bytes; `huge` requests huge pages, which the kernel may not grant.
    pub fn new(len: usize, huge: bool) -> io::Result<Self> {
        use rustix::mm::{Advice, MapFlags, ProtFlags};
        let len = len.max(1).next_multiple_of(if huge { 2 << 20 } else { 4096 });
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        if huge {
            // SAFETY: exactly the mapping made above.
            let _ = unsafe { rustix::mm::madvise(base, len, Advice::LinuxHugepage) };
        }
        Ok(Self { base: base.cast(), len })
    }

    /// `len` bytes in pages of 4 KiB, whatever the machine's settings.
    pub fn with_small_pages(len: usize) -> io::Result<Self> {
        let memory = Self::new(len, false)?;
        // SAFETY: exactly the mapping just made; the advice changes no content.
        unsafe { rustix::mm::madvise(memory.base.cast(), memory.len, rustix::mm::Advice::LinuxNoHugepage)? };
        Ok(memory)
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Its address, for the kernel.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base
    }

    /// Bytes `at..at + len`. The caller ensures that no operation on them is in flight.
    pub fn slice(&mut self, at: usize, len: usize) -> &mut [u8] {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len), "outside the buffer");
        // SAFETY: inside the mapping (just checked), initialised (zeroed by the kernel), and
        // exclusively borrowed through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(at), len) }
    }
}

impl Drop for AlignedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, unmapped once; nothing borrowed from it is left.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.len) };
    }
}

/// A shared mapping of an unlinked file, which no other process can truncate.
pub struct FileMapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: as for `Memory`.
unsafe impl Send for FileMapping {}

impl FileMapping {
    /// Maps the first `len` bytes of `file`.
    pub fn new(file: impl std::os::fd::AsFd, len: usize) -> io::Result<Self> {
        use rustix::mm::{MapFlags, ProtFlags};
        // SAFETY: a fresh mapping at an address of the kernel's choice; the file is an unlinked one
        // of our own that is emptied only after its mapping is gone (txlog drops them in this order).
        let base = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)?
        };
        Ok(Self { base: base.cast(), len })
    }

    /// Makes faults read single pages: read-ahead creates large folios, even for blocks of a file
    /// that are not written yet.
    pub fn advise_random(&self) -> io::Result<()> {
        // SAFETY: exactly the mapping made in `new`; the advice changes no content.
        unsafe { Ok(rustix::mm::madvise(self.base.cast(), self.len, rustix::mm::Advice::Random)?) }
    }

    /// Locks `len` bytes from `at` on, which must be the start of a page, in memory. Missing pages are read; none
    /// becomes dirty by that (mlock(2), shared mappings). Needs CAP_IPC_LOCK or enough RLIMIT_MEMLOCK.
    pub fn lock_range(&self, at: usize, len: usize) -> io::Result<()> {
        let at = at.min(self.len);
        // SAFETY: within the mapping made in `new`, by the two bounds; locking changes no content.
        unsafe { Ok(rustix::mm::mlock(self.base.add(at).cast(), len.min(self.len - at))?) }
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the whole mapping, exclusively borrowed through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, unmapped once.
        let _ = unsafe { rustix::mm::munmap(self.base.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_bounded() {
        let mut m = AlignedMemory::new(10_000, false).unwrap();
        assert_eq!((m.as_ptr() as usize % 4096, m.len()), (0, 12_288));
        m.slice(8192, 4096)[4095] = 7;
        assert_eq!(m.slice(0, 12_288)[12_287], 7);
        assert!(std::panic::catch_unwind(move || m.slice(8192, 4097).len()).is_err());
    }

    #[test]
    fn timed_fork_measures_and_reaps_the_child() {
        assert!(timed_fork().unwrap().elapsed_ns > 0);
    }

    #[test]
    fn cpu_time_only_grows() {
        let a = ResourceUsage::of_self();
        let b = ResourceUsage::of_self();
        assert!(b.user_ns + b.system_ns >= a.user_ns + a.system_ns);
    }
}
