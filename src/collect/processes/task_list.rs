//! Lists processes and threads with getdents, only when the set may have changed.

use super::path::{ProcPath, TaskPath};
use crate::collect::kernel_file::PersistentFile;
use crate::parse::bytes::{parse_u64, words};
use crate::root::Root;
use rustix::fs::{Mode, OFlags, RawDir, openat};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

/// Most scans without a full listing, in case the check below misses a new task.
const MAX_SCANS_WITHOUT_LISTING: u32 = 10;

/// Detects that tasks were created.
///
/// `/proc/loadavg` ends with the last process ID that was assigned. Comparing it costs far less than listing 20,000
/// directories or reading `/proc/stat`, and it counts processes and threads of our own PID namespace. Exits are
/// detected when the tasks are checked.
pub(super) struct ForkDetector {
    file: PersistentFile,
    buf: Vec<u8>,
    last_pid: Option<u64>,
    scans_since_listing: u32,
}

impl ForkDetector {
    pub(super) fn new(root: &Root) -> Self {
        Self {
            file: PersistentFile::whole(root.proc("loadavg")),
            buf: Vec::new(),
            last_pid: None,
            scans_since_listing: 0,
        }
    }

    /// Whether tasks may have been created since the last call; true if unknown.
    pub(super) fn may_have_new_tasks(&mut self) -> bool {
        let last = self.file.read(&mut self.buf).ok().and_then(|text| parse_u64(words(text).nth(4)?));
        let changed = last.is_none() || last != self.last_pid;
        self.last_pid = last;
        self.scans_since_listing += 1;
        if changed || self.scans_since_listing >= MAX_SCANS_WITHOUT_LISTING {
            self.scans_since_listing = 0;
            return true;
        }
        false
    }
}

/// Lists the numeric entries of a directory: process IDs in `/proc`, thread IDs in `PID/task`. Sorted.
pub(super) fn list_ids(dir: BorrowedFd<'_>, buf: &mut Vec<u8>, out: &mut Vec<u32>) -> Result<(), Errno> {
    out.clear();
    if buf.capacity() < 32 * 1024 {
        buf.reserve(32 * 1024);
    }
    rustix::fs::seek(dir, rustix::fs::SeekFrom::Start(0))?;
    let mut entries = RawDir::new(dir, buf.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        if let Some(id) = parse_u64(entry?.file_name().to_bytes()).and_then(|n| u32::try_from(n).ok()) {
            out.push(id);
        }
    }
    // procfs lists in order; a captured tree may not.
    if !out.is_sorted() {
        out.sort_unstable();
    }
    Ok(())
}

pub(super) fn list_thread_ids(
    proc: BorrowedFd<'_>,
    pid: u32,
    buf: &mut Vec<u8>,
    out: &mut Vec<u32>,
) -> Result<(), Errno> {
    use std::os::fd::AsFd;
    let path = ProcPath::for_task(TaskPath { pid, tid: pid, is_thread: false }, "task");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(proc, path.as_cstr(), flags, Mode::empty())?;
    list_ids(dir.as_fd(), buf, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_requested_only_when_the_last_pid_changes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let file = dir.path().join("proc/loadavg");
        std::fs::write(&file, "0.1 0.2 0.3 1/86 100\n").unwrap();
        let mut newborn = ForkDetector::new(&Root::at(dir.path()));
        assert!(newborn.may_have_new_tasks());
        assert!(!newborn.may_have_new_tasks());
        std::fs::write(&file, "0.1 0.2 0.3 1/86 101\n").unwrap();
        assert!(newborn.may_have_new_tasks());
        let quiet = (0..MAX_SCANS_WITHOUT_LISTING).filter(|_| newborn.may_have_new_tasks()).count();
        assert_eq!(quiet, 1, "a listing now and then all the same");
        std::fs::write(&file, "").unwrap();
        assert!(newborn.may_have_new_tasks());
        assert!(newborn.may_have_new_tasks());
    }
}
