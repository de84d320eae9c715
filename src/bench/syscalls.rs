//! System calls without a safe wrapper.

#![allow(unsafe_code)]

use crate::model::disk::DevId;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
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
    set_io_priority(3, 0)
}

/// Gives the calling thread an I/O priority: class 1 (real time), 2 (best effort) or 3 (idle), level 0 (highest) to 7.
pub(crate) fn set_io_priority(class: u8, level: u8) -> io::Result<()> {
    const WHO_PROCESS: i32 = 1;
    let priority = i32::from(class) << 13 | i32::from(level);
    // SAFETY: plain integers; 0 means the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, priority) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets where the calling thread's memory comes from: a mode of set_mempolicy(2) and nodes below 64.
pub(crate) fn set_memory_policy(mode: i32, nodes: &[usize]) -> io::Result<()> {
    let mask: u64 = nodes.iter().fold(0, |mask, node| mask | 1 << (node % 64));
    let bits = if nodes.is_empty() { 0 } else { 65 };
    // SAFETY: the kernel reads 64 bits of the live mask (its length counts one more), or none.
    let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, &raw const mask, bits) };
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

/// One target of a device-mapper device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceMapperTarget {
    /// `thin`, `thin-pool`, `linear`...
    pub kind: String,
    /// Its table or its state, as `dmsetup table` and `dmsetup status` print them.
    pub params: String,
}

/// The targets of device-mapper device `id` (include/uapi/linux/dm-ioctl.h, DM_TABLE_STATUS): their table, or their
/// state without a flush of the pool. `control` is the open `/dev/mapper/control`. Needs CAP_SYS_ADMIN.
pub(crate) fn device_mapper_targets(control: impl AsFd, id: DevId, table: bool) -> io::Result<Vec<DeviceMapperTarget>> {
    /// Bytes of `struct dm_ioctl`.
    const HEADER: usize = 312;
    const SIZE: usize = 64 << 10;
    // With musl the type is a signed one.
    const TABLE_STATUS: libc::Ioctl = (3 << 30 | (HEADER as u32) << 16 | 0xfd << 8 | 12) as libc::Ioctl;
    const STATUS_TABLE_FLAG: u32 = 1 << 4;
    const NOFLUSH_FLAG: u32 = 1 << 11;
    let device = u64::from(id.minor & 0xff) | u64::from(id.major) << 8 | u64::from(id.minor & !0xff) << 12;
    let mut data = vec![0u8; SIZE];
    let flags = NOFLUSH_FLAG | if table { STATUS_TABLE_FLAG } else { 0 };
    for (at, value) in [(0, 4), (12, SIZE as u32), (16, HEADER as u32), (28, flags)] {
        data[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    data[40..48].copy_from_slice(&device.to_ne_bytes());
    // SAFETY: the kernel writes at most `data_size` bytes, the length of the live, exclusively borrowed buffer.
    let done = unsafe { libc::ioctl(control.as_fd().as_raw_fd(), TABLE_STATUS, data.as_mut_ptr()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    read_targets(&data).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOSPC))
}

/// The `struct dm_target_spec` and their texts in the answer; `None` if they did not fit.
fn read_targets(data: &[u8]) -> Option<Vec<DeviceMapperTarget>> {
    const SPEC: usize = 40;
    const BUFFER_FULL_FLAG: u32 = 1 << 8;
    let word = |at: usize| Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap_or_default()).into_owned();
    if word(28)? & BUFFER_FULL_FLAG != 0 {
        return None;
    }
    let (start, mut at) = (word(16)? as usize, word(16)? as usize);
    let mut all = Vec::new();
    for _ in 0..word(20)? {
        all.push(DeviceMapperTarget {
            kind: text(data.get(at + 24..at + SPEC)?),
            params: text(data.get(at + SPEC..)?),
        });
        at = start + word(at + 20)? as usize;
    }
    Some(all)
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
        // of our own that is emptied only after its mapping is gone (txlog and the jobs of job files drop them in this order).
        let base = unsafe {
            rustix::mm::mmap(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)?
        };
        Ok(Self { base: base.cast(), len })
    }

    pub(crate) fn advise(&self, advice: Advice) -> io::Result<()> {
        // SAFETY: exactly this mapping, of which nothing is borrowed mutably.
        unsafe { Ok(rustix::mm::madvise(self.base.cast(), self.len, advice)?) }
    }

    /// Writes the changed pages of `len` bytes from `at` on back to the file (msync(2), MS_SYNC).
    pub(crate) fn sync(&self, at: usize, len: usize) -> rustix::io::Result<()> {
        let from = at.min(self.len) / 4096 * 4096;
        let len = (at + len).min(self.len) - from;
        // SAFETY: within the mapping, by the bounds; it changes no content.
        unsafe { rustix::mm::msync(self.base.add(from).cast(), len, rustix::mm::MsyncFlags::SYNC) }
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
    fn answers_of_device_mapper_are_read_and_cut_ones_refused() {
        let mut data = vec![0u8; 1024];
        let mut put = |at: usize, bytes: &[u8]| data[at..at + bytes.len()].copy_from_slice(bytes);
        put(16, &312u32.to_ne_bytes());
        put(20, &2u32.to_ne_bytes());
        put(312 + 20, &64u32.to_ne_bytes());
        put(312 + 24, b"thin");
        put(312 + 40, b"253:2 1");
        put(312 + 64 + 24, b"linear");
        put(312 + 64 + 40, b"8:0 2048");
        let of = |kind: &str, params: &str| DeviceMapperTarget { kind: kind.into(), params: params.into() };
        assert_eq!(read_targets(&data), Some(vec![of("thin", "253:2 1"), of("linear", "8:0 2048")]));
        assert_eq!(read_targets(&data[..400]), None);
        data[29] = 1;
        assert_eq!(read_targets(&data), None);
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
