//! Open file descriptors for the files of tasks that run all the time.
//!
//! Opening and closing a file of procfs costs more than reading it: `open_read_close` against `read_cached_fd` in
//! `cargo bench --bench process`. Only tasks read in every scan are worth a descriptor; one for every task would cost
//! more kernel memory than this program uses.

use super::path::TaskPath;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Most descriptors; the kernel holds about 5 KiB for each.
const MAX_FDS: usize = 64;

/// A descriptor not used for this many scans is closed.
const MAX_IDLE_SCANS: u32 = 3;

struct CachedFd {
    path: TaskPath,
    file: usize,
    last_used: u32,
    fd: OwnedFd,
}

/// Open descriptors by task and file.
#[derive(Default)]
pub(super) struct FdCache {
    slots: Vec<CachedFd>,
    scan: u32,
}

impl FdCache {
    /// Starts a scan: closes idle descriptors.
    pub(super) fn begin_scan(&mut self) {
        self.scan = self.scan.wrapping_add(1);
        let scan = self.scan;
        self.slots.retain(|slot| scan.wrapping_sub(slot.last_used) <= MAX_IDLE_SCANS);
    }

    /// Reads a file from its start with one call. Returns `None` without a cached descriptor, or if its task has
    /// exited: another task may have the same ID now.
    pub(super) fn read(&mut self, path: TaskPath, file: usize, buf: &mut [u8]) -> Option<Result<usize, Errno>> {
        let index = self.slots.iter().position(|slot| slot.path == path && slot.file == file)?;
        self.slots[index].last_used = self.scan;
        let read = loop {
            match rustix::io::pread(&self.slots[index].fd, &mut *buf, 0) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        if read.is_err() {
            self.slots.swap_remove(index);
        }
        (read != Err(Errno::SRCH)).then_some(read)
    }

    /// Whether one more descriptor fits.
    pub(super) fn has_room(&self) -> bool {
        self.slots.len() < MAX_FDS
    }

    /// Adds a descriptor.
    pub(super) fn insert(&mut self, path: TaskPath, file: usize, fd: OwnedFd) {
        self.slots.push(CachedFd { path, file, last_used: self.scan, fd });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn path_of(pid: u32) -> TaskPath {
        TaskPath { pid, tid: pid, is_thread: false }
    }

    #[test]
    fn a_cached_fd_rereads_its_file_and_is_closed_when_idle() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one").unwrap();
        let mut cache = FdCache::default();
        let mut buf = [0; 8];
        cache.begin_scan();
        cache.insert(path_of(1), 0, file.try_clone().unwrap().into());
        for _ in 0..10 {
            cache.begin_scan();
            assert_eq!(cache.read(path_of(1), 0, &mut buf), Some(Ok(3)));
        }
        assert_eq!(&buf[..3], b"one");
        assert_eq!((cache.read(path_of(1), 1, &mut buf), cache.read(path_of(2), 0, &mut buf)), (None, None));
        (0..=MAX_IDLE_SCANS).for_each(|_| cache.begin_scan());
        assert_eq!(cache.read(path_of(1), 0, &mut buf), None);
    }

    #[test]
    fn a_cached_fd_of_an_exited_task_is_dropped() {
        let mut child = std::process::Command::new("/proc/self/exe").arg("--list").spawn().unwrap();
        let stat = std::fs::File::open(format!("/proc/{}/stat", child.id())).unwrap();
        child.wait().unwrap();
        let mut cache = FdCache::default();
        cache.insert(path_of(child.id()), 0, stat.into());
        assert_eq!(cache.read(path_of(child.id()), 0, &mut [0; 64]), None);
        assert!(cache.slots.is_empty());
    }

    #[test]
    fn the_number_of_cached_fds_is_bounded() {
        let mut cache = FdCache::default();
        let file = tempfile::tempfile().unwrap();
        let mut kept = 0;
        while cache.has_room() {
            cache.insert(path_of(kept), 0, file.try_clone().unwrap().into());
            kept += 1;
        }
        assert_eq!(kept as usize, MAX_FDS);
    }
}
