//! Descriptors of the files of tasks that run all the time, kept from look to look.
//!
//! Opening and closing a file of procfs costs more than reading it. Those few that are read at every look are
//! worth a descriptor; all of them would cost the kernel more memory than this program has.

use super::path::TaskPath;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Descriptors kept at most; the kernel holds some 5 KiB for each.
const MAX_FDS: usize = 64;

/// Looks after which one that was not used is closed.
const MAX_IDLE_SCANS: u32 = 3;

struct CachedFd {
    path: TaskPath,
    file: usize,
    last_used: u32,
    fd: OwnedFd,
}

/// The descriptors.
#[derive(Default)]
pub struct FdCache {
    slots: Vec<CachedFd>,
    scan: u32,
}

impl FdCache {
    /// A new look begins.
    pub fn begin_scan(&mut self) {
        self.scan = self.scan.wrapping_add(1);
        let look = self.scan;
        self.slots.retain(|slot| look.wrapping_sub(slot.last_used) <= MAX_IDLE_SCANS);
    }

    /// Reads a file of a task through its kept descriptor, from the start and with one call; `None` if there
    /// is none, or if it is a task's that ended: another one may have its number.
    pub fn read(&mut self, place: TaskPath, file: usize, buf: &mut [u8]) -> Option<Result<usize, Errno>> {
        let at = self.slots.iter().position(|slot| slot.path == place && slot.file == file)?;
        self.slots[at].last_used = self.scan;
        let read = loop {
            match rustix::io::pread(&self.slots[at].fd, &mut *buf, 0) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        if read.is_err() {
            self.slots.swap_remove(at);
        }
        (read != Err(Errno::SRCH)).then_some(read)
    }

    /// Whether there is room for one more.
    pub fn has_room(&self) -> bool {
        self.slots.len() < MAX_FDS
    }

    /// Keeps a descriptor.
    pub fn insert(&mut self, place: TaskPath, file: usize, fd: OwnedFd) {
        self.slots.push(CachedFd { path: place, file, last_used: self.scan, fd });
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
        let mut warm = FdCache::default();
        let mut buf = [0; 8];
        warm.begin_scan();
        warm.insert(path_of(1), 0, file.try_clone().unwrap().into());
        for _ in 0..10 {
            warm.begin_scan();
            assert_eq!(warm.read(path_of(1), 0, &mut buf), Some(Ok(3)));
        }
        assert_eq!(&buf[..3], b"one");
        assert_eq!((warm.read(path_of(1), 1, &mut buf), warm.read(path_of(2), 0, &mut buf)), (None, None));
        (0..=MAX_IDLE_SCANS).for_each(|_| warm.begin_scan());
        assert_eq!(warm.read(path_of(1), 0, &mut buf), None);
    }

    #[test]
    fn a_cached_fd_of_an_exited_task_is_dropped() {
        let mut child = std::process::Command::new("/proc/self/exe").arg("--list").spawn().unwrap();
        let stat = std::fs::File::open(format!("/proc/{}/stat", child.id())).unwrap();
        child.wait().unwrap();
        let mut warm = FdCache::default();
        warm.insert(path_of(child.id()), 0, stat.into());
        assert_eq!(warm.read(path_of(child.id()), 0, &mut [0; 64]), None);
        assert!(warm.slots.is_empty());
    }

    #[test]
    fn the_number_of_cached_fds_is_bounded() {
        let mut warm = FdCache::default();
        let file = tempfile::tempfile().unwrap();
        let mut kept = 0;
        while warm.has_room() {
            warm.insert(path_of(kept), 0, file.try_clone().unwrap().into());
            kept += 1;
        }
        assert_eq!(kept as usize, MAX_FDS);
    }
}
