//! `/proc/self/mountinfo` (proc_pid_mountinfo(5)), read again only when it has changed.

use super::kernel_file::PersistentFile;
use crate::model::mount::{MountInfo, MountTable, is_cifs, is_nfs};
use crate::parse::mountinfo;
use crate::root::Root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The kernel announces mounts and unmounts, but not a file system that becomes read-only.
const REREAD_INTERVAL: Duration = Duration::from_secs(10);
/// For those who need only mounts and unmounts.
const NETWORK_REREAD_INTERVAL: Duration = Duration::from_secs(600);

/// A kernel table that announces its changes through poll(2): mountinfo, swaps.
#[derive(Debug)]
pub(crate) struct PolledFile {
    file: PersistentFile,
    is_live: bool,
    buf: Vec<u8>,
    hash: u64,
    read_at: Option<Instant>,
    max_age: Duration,
    /// A change was announced and has not been read.
    change_pending: bool,
}

impl PolledFile {
    /// A table at `path`, read again after `max_age` even without an announcement.
    pub(crate) fn new(root: &Root, path: PathBuf, reread: Duration) -> Self {
        Self {
            file: PersistentFile::new(path),
            is_live: root.is_live(),
            buf: Vec::new(),
            hash: 0,
            read_at: None,
            max_age: reread,
            change_pending: false,
        }
    }

    /// Whether the file should be read: costs one poll(2), never waits.
    pub(crate) fn is_due(&mut self) -> bool {
        let fresh = self.file.fd().is_some() && self.read_at.is_some_and(|at| at.elapsed() < self.max_age);
        self.change_pending |= !fresh || self.poll_changed();
        self.change_pending
    }

    /// The content if it has changed since the last read. Costs one poll(2) if it has not.
    pub(crate) fn read_if_changed(&mut self) -> io::Result<Option<&[u8]>> {
        if !self.is_due() {
            return Ok(None);
        }
        self.change_pending = false;
        let first = self.read_at.is_none();
        self.file.read(&mut self.buf)?;
        self.read_at = Some(Instant::now());
        let hash = BuildHasherDefault::<DefaultHasher>::new().hash_one(&self.buf);
        let same = !first && hash == self.hash;
        self.hash = hash;
        Ok((!same).then_some(&self.buf[..]))
    }

    /// mounts_poll() and swaps_poll() raise POLLPRI and POLLERR once per reader after a change. Files of a captured
    /// tree cannot be polled: their content is compared.
    fn poll_changed(&self) -> bool {
        let Some(fd) = self.file.fd().filter(|_| self.is_live) else { return true };
        let mut fds = [PollFd::new(fd, PollFlags::PRI)];
        match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(0) => false,
            Ok(_) => fds[0].revents().intersects(PollFlags::PRI | PollFlags::ERR),
            Err(_) => true,
        }
    }
}

/// The mount table of the machine, kept current.
#[derive(Debug)]
pub(crate) struct MountWatcher {
    file: PolledFile,
    pub(crate) mounts: MountTable,
    filter: fn(&MountInfo) -> bool,
}

impl MountWatcher {
    pub(crate) fn new(root: &Root) -> Self {
        Self::with_filter(root, REREAD_INTERVAL, |_| true)
    }

    /// Only NFS and CIFS mounts: most machines have none, while container hosts have thousands of others.
    pub(crate) fn network_only(root: &Root) -> Self {
        Self::with_filter(root, NETWORK_REREAD_INTERVAL, |m| {
            is_nfs(m.fs_type.as_bytes()) || is_cifs(m.fs_type.as_bytes())
        })
    }

    fn with_filter(root: &Root, reread: Duration, keep: fn(&MountInfo) -> bool) -> Self {
        let file = PolledFile::new(root, root.mount_table("mountinfo"), reread);
        Self { file, mounts: MountTable::default(), filter: keep }
    }

    /// Whether the table should be read again; never waits.
    pub(crate) fn is_due(&mut self) -> bool {
        self.file.is_due()
    }

    /// Reads the table if it has changed; true if it has. The first call returns true.
    pub(crate) fn refresh(&mut self) -> io::Result<bool> {
        let Some(text) = self.file.read_if_changed()? else { return Ok(false) };
        self.mounts = MountTable(mountinfo::parse(text).filter(self.filter).collect());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refresh_reports_only_changed_content() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        let path = dir.path().join("proc/self/mountinfo");
        std::fs::write(&path, "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n").unwrap();
        let mut watch = MountWatcher::new(&Root::at(dir.path()));
        assert!(watch.refresh().unwrap());
        assert!(!watch.refresh().unwrap());
        std::fs::write(&path, "1 0 8:1 / / rw - ext4 /dev/sda1 rw,emergency_ro\n").unwrap();
        assert!(watch.refresh().unwrap());
        assert!(watch.mounts.0[0].has_option("emergency_ro"));
        std::fs::remove_file(&path).unwrap();
        let mut gone = MountWatcher::new(&Root::at(dir.path()));
        assert!(gone.refresh().is_err());
    }
}
