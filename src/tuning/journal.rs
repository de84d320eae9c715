//! The journal file, which makes every change restorable: one per boot, in a directory in memory, private to root.
//!
//! Settings are lost at reboot, and so is the need to restore them. The file name therefore contains the boot id,
//! and journals of other boots are deleted.

use super::journal_record::{JournalRecord, decode_all};
use super::kill_points::KillPoints;
use crate::model::reading::describe_io_error;
use crate::parse::mountinfo;
use crate::root::Root;
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The largest journal, bytes; enough for about 10,000 changes in one boot.
const MAX_JOURNAL: u64 = 8 << 20;

const RUN_SUBDIR: &str = "iotop-plus";

/// The journal of this boot.
#[derive(Debug)]
pub struct Journal {
    dir: OwnedFd,
    path: PathBuf,
    name: String,
    file: File,
    /// The records read and written so far: the file may lose them while a change is on lease.
    known: Vec<JournalRecord>,
}

/// The lock under which changes are made; released when dropped.
#[derive(Debug)]
pub struct JournalLock(#[allow(dead_code, reason = "held for its drop")] OwnedFd);

impl Journal {
    /// Opens the journal of this boot and creates it if necessary.
    /// Errors: if the directory or the file cannot be opened, or belongs to or is open to other users.
    pub fn open(root: &Root) -> io::Result<Self> {
        Self::open_with(root, true)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens the journal of this boot if it exists.
    pub fn open_existing(root: &Root) -> io::Result<Option<Self>> {
        Self::open_with(root, false)
    }

    fn open_with(root: &Root, create: bool) -> io::Result<Option<Self>> {
        let path = journal_dir(root);
        if create {
            use std::os::unix::fs::DirBuilderExt;
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(with_path(&path, &err)),
                _ => {}
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = match rustix::fs::openat(CWD, &path, flags, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOENT) if !create => return Ok(None),
            Err(err) => return Err(with_path(&path, &err.into())),
        };
        require_private(&dir, FileType::Directory).map_err(|err| with_path(&path, &err))?;
        let name = format!("journal-{}", boot_id(root));
        let mut flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        if create {
            flags |= OFlags::CREATE;
        }
        let file_path = path.join(&name);
        let fd = match rustix::fs::openat(&dir, &name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => fd,
            Err(Errno::NOENT) if !create => return Ok(None),
            Err(err) => return Err(with_path(&file_path, &err.into())),
        };
        require_private(&fd, FileType::RegularFile).map_err(|err| with_path(&file_path, &err))?;
        let journal = Self { dir, path, name, file: File::from(fd), known: Vec::new() };
        if create {
            journal.remove_journals_of_other_boots();
            let _ = rustix::fs::fsync(&journal.dir);
        }
        Ok(Some(journal))
    }

    /// The directory, which also holds the tuners' sockets.
    pub fn dir(&self) -> &Path {
        &self.path
    }

    /// Takes the lock, waiting at most `timeout`: another tuner may hang on a device.
    /// Errors: `WouldBlock`: another process holds it; others: it cannot be made.
    pub fn lock(&self, timeout: Duration) -> io::Result<JournalLock> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.dir, "lock", flags, Mode::RUSR | Mode::WUSR)?;
        let deadline = Instant::now() + timeout;
        loop {
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(JournalLock(fd)),
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                Err(Errno::WOULDBLOCK) => {
                    let why = "another change is being made right now; try again";
                    return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
                }
                Err(err) => return Err(err.into()),
            }
        }
    }

    /// All intact records, and the number of damaged lines. Records that the file has lost since they were read or
    /// written are among them.
    pub fn load(&mut self) -> io::Result<(Vec<JournalRecord>, usize)> {
        let (records, damaged) = match self.read_file() {
            Ok(bytes) => decode_all(&bytes),
            Err(err) if self.known.is_empty() => return Err(err),
            Err(_) => (Vec::new(), 0),
        };
        let mut rest = records.iter();
        let has_all = self.known.iter().all(|known| rest.any(|record| record == known));
        self.known = match has_all {
            true => records,
            false => merge_records(std::mem::take(&mut self.known), records),
        };
        Ok((self.known.clone(), damaged))
    }

    fn read_file(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(MAX_JOURNAL).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends a record and syncs it to disk. The caller holds the lock. A record that cannot be written is remembered
    /// all the same, so that this process can restore what it describes; only that a change stays has to be on record.
    pub fn append(&mut self, record: &JournalRecord, steps: &mut KillPoints) -> io::Result<()> {
        let written = self.write(record, steps);
        if written.is_ok() || !matches!(record, JournalRecord::Kept { .. }) {
            self.known.push(record.clone());
        }
        written
    }

    fn write(&mut self, record: &JournalRecord, steps: &mut KillPoints) -> io::Result<()> {
        let mut line = record.encode().map_err(io::Error::other)?;
        let size = self.file.metadata()?.len();
        if size + line.len() as u64 > MAX_JOURNAL {
            return Err(io::Error::other(format!("{} is full", self.path.join(&self.name).display())));
        }
        steps.reach("before the record");
        let mut last = [b'\n'];
        if size > 0 {
            rustix::io::pread(&self.file, &mut last[..], size - 1)?;
        }
        if last != *b"\n" {
            // A process died while writing a record: end its line first.
            line.insert(0, b'\n');
        }
        if steps.is_armed() {
            let (first, second) = line.split_at(line.len() / 2);
            self.file.write_all(first)?;
            steps.reach("within the record");
            self.file.write_all(second)?;
        } else {
            self.file.write_all(&line)?;
        }
        steps.reach("before the sync");
        self.file.sync_data()?;
        steps.reach("after the record");
        Ok(())
    }

    /// Journals of other boots describe settings that no longer exist.
    fn remove_journals_of_other_boots(&self) {
        let Ok(entries) = rustix::fs::Dir::read_from(&self.dir) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            if name.starts_with(b"journal-") && name != self.name.as_bytes() {
                let _ = rustix::fs::unlinkat(&self.dir, entry.file_name(), AtFlags::empty());
            }
        }
    }
}

/// `known`, then what else the file has, in its order.
fn merge_records(mut known: Vec<JournalRecord>, file: Vec<JournalRecord>) -> Vec<JournalRecord> {
    let lines: HashSet<Vec<u8>> = known.iter().flat_map(JournalRecord::encode).collect();
    known.extend(file.into_iter().filter(|record| record.encode().is_ok_and(|line| !lines.contains(&line))));
    known
}

/// The directory of journal and sockets: below `/run`, else below `/dev/shm`, whichever lies in memory. A file system on
/// a disk might hang, and nothing could be restored then.
fn journal_dir(root: &Root) -> PathBuf {
    let [run, shm] = possible_dirs(root);
    if !is_in_memory(root, &run) && is_in_memory(root, &shm) { shm } else { run }
}

/// Checks that the journal lies in memory: a change whose journal is on a disk that hangs cannot be restored.
///
/// # Errors
/// If it would lie on a disk; the text says what to do.
pub fn require_memory(root: &Root) -> Result<(), String> {
    let [run, shm] = possible_dirs(root);
    if is_in_memory(root, &run) || is_in_memory(root, &shm) {
        return Ok(());
    }
    let dir = run.display();
    Err(format!(
        "neither {dir} nor {} is in memory, and with a journal on a disk that hangs nothing could be restored; run \
         `mkdir -p {dir} && mount -t tmpfs -o mode=700 tmpfs {dir}`, then try again",
        shm.display()
    ))
}

fn possible_dirs(root: &Root) -> [PathBuf; 2] {
    [root.run(RUN_SUBDIR), root.dev("shm").join(RUN_SUBDIR)]
}

/// Whether a path is on a file system in memory. Of a captured tree this is not known, as its mounts are those of another
/// machine: it counts as in memory.
fn is_in_memory(root: &Root, path: &Path) -> bool {
    if !root.is_live() {
        return true;
    }
    let mounts = std::fs::read(root.proc("self/mountinfo")).unwrap_or_default();
    let mount = mountinfo::find_containing(&mounts, path.as_os_str().as_encoded_bytes());
    mount.is_some_and(|mount| matches!(mount.fs_type.as_bytes(), b"tmpfs" | b"ramfs" | b"rootfs"))
}

fn with_path(path: &Path, err: &io::Error) -> io::Error {
    io::Error::new(err.kind(), format!("{}: {}", path.display(), describe_io_error(err)))
}

/// Refuses files that other users own, can read or can write.
fn require_private(fd: &OwnedFd, kind: FileType) -> io::Result<()> {
    let stat = rustix::fs::fstat(fd)?;
    if FileType::from_raw_mode(stat.st_mode) != kind {
        return Err(io::Error::other("is not what it should be"));
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("belongs to user {}; remove it", stat.st_uid)));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(io::Error::other("is open to other users; remove it"));
    }
    Ok(())
}

/// The id of this boot; a captured tree without one has a single journal.
fn boot_id(root: &Root) -> String {
    let text = std::fs::read_to_string(root.proc("sys/kernel/random/boot_id")).unwrap_or_default();
    let id: String = text.trim().chars().filter(|c| c.is_ascii_hexdigit() || *c == '-').take(40).collect();
    if id.is_empty() { "unknown".into() } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn temp_root() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("run")).unwrap();
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel/random")).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/random/boot_id"), "aa-bb\n").unwrap();
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn records_persist_and_a_torn_one_is_skipped() {
        let (dir, root) = temp_root();
        assert!(Journal::open_existing(&root).unwrap().is_none());
        let mut steps = KillPoints::default();
        Journal::open(&root).unwrap().append(&JournalRecord::Kept { id: 1 }, &mut steps).unwrap();
        let path = dir.path().join("run/iotop-plus/journal-aa-bb");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"0123");
        std::fs::write(&path, bytes).unwrap();
        let mut journal = Journal::open_existing(&root).unwrap().unwrap();
        journal.append(&JournalRecord::Kept { id: 2 }, &mut steps).unwrap();
        assert_eq!(journal.load().unwrap(), (vec![JournalRecord::Kept { id: 1 }, JournalRecord::Kept { id: 2 }], 1));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_new_boot_id_starts_an_empty_journal() {
        let (dir, root) = temp_root();
        Journal::open(&root).unwrap().append(&JournalRecord::Kept { id: 7 }, &mut KillPoints::default()).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/random/boot_id"), "cc\n").unwrap();
        assert_eq!(Journal::open(&root).unwrap().load().unwrap().0, vec![]);
        assert!(!dir.path().join("run/iotop-plus/journal-aa-bb").exists());
    }

    #[test]
    fn links_and_files_open_to_others_are_refused() {
        let (dir, root) = temp_root();
        let run = dir.path().join("run/iotop-plus");
        symlink(dir.path(), &run).unwrap();
        assert!(Journal::open(&root).is_err(), "a link for a directory");
        std::fs::remove_file(&run).unwrap();
        Journal::open(&root).unwrap();
        let file = run.join("journal-aa-bb");
        std::fs::remove_file(&file).unwrap();
        symlink("/etc/passwd", &file).unwrap();
        assert!(Journal::open(&root).is_err(), "a link for a file");
        std::fs::remove_file(&file).unwrap();
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(Journal::open(&root).unwrap_err().to_string().contains("open to other users"));
    }

    #[test]
    fn the_lock_is_exclusive_and_its_wait_is_bounded() {
        let (_dir, root) = temp_root();
        let journal = Journal::open(&root).unwrap();
        let held = journal.lock(Duration::ZERO).unwrap();
        assert!(Journal::open(&root).unwrap().lock(Duration::ZERO).is_err());
        drop(held);
        assert!(Journal::open(&root).unwrap().lock(Duration::ZERO).is_ok());
    }
}
