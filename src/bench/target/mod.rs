//! The file a benchmark works on: its own, nameless, in a directory the person named, or none at all.
//!
//! Nothing here ever opens an existing file for writing or any device. The file has no name, so the
//! kernel takes it away with the process, however that ends.

pub mod filesystem;
pub mod mount;
pub mod refuse;
pub mod sizes;

use self::filesystem::Filesystem;
use self::refuse::{Refused, refused};
use crate::model::reading::describe_io_error;
use crate::root::Root;
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A directory that passed every check, held open.
pub struct Place {
    dir: OwnedFd,
    /// As the person named it.
    pub path: PathBuf,
    /// What it lies on.
    pub filesystem: Filesystem,
}

impl Place {
    /// Checks `path` and what it lies on. `twice`: the person named it twice, which allows a network
    /// mount. May block on a dead mount: only child processes call this.
    pub fn check(root: &Root, path: &Path, twice: bool) -> Result<Self, Refused> {
        let fd = refuse::open_directory(path)?;
        let filesystem = Filesystem::of(root, &fd, path)?;
        refuse::by_kind(&filesystem, path, twice)?;
        refuse::by_owner(&fd, path)?;
        // O_PATH was enough to judge; creating a file needs a real descriptor.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&fd, ".", flags, Mode::empty()).map_err(|e| refuse::opening(path, e))?;
        Ok(Self { dir, path: path.to_owned(), filesystem })
    }

    /// Bytes of its file system and those free for this user.
    pub fn space(&self) -> Result<(u64, u64), Refused> {
        refuse::space(&self.dir, &self.path)
    }

    /// Refuses what would not leave the reserve free.
    pub fn room_for(&self, bytes: u64) -> Result<(), Refused> {
        let (size, free) = self.space()?;
        refuse::for_space(&self.path, size, free, bytes)
    }

    /// A nameless file of `bytes`, allocated but not yet written.
    pub fn create(&self, bytes: u64) -> Result<File, Refused> {
        self.room_for(bytes)?;
        let fd = self.nameless()?;
        if bytes == 0 {
            return Ok(File { fd, direct: None, bytes });
        }
        match rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, bytes) {
            // The layout that follows allocates by writing.
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(refuse::opening(&self.path, errno)),
        }
        Ok(File { fd, direct: None, bytes })
    }

    fn nameless(&self) -> Result<OwnedFd, Refused> {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::EXCL;
        match rustix::fs::openat(&self.dir, ".", flags | OFlags::TMPFILE, mode) {
            // Not every file system knows O_TMPFILE, and they say so in three ways.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
            other => return other.map_err(|e| refuse::opening(&self.path, e)),
        }
        let name = format!(".iotop-plus-{}-{:x}", std::process::id(), super::engine::monotonic_ns());
        let fd = rustix::fs::openat(&self.dir, &name, flags | OFlags::CREATE | OFlags::NOFOLLOW, mode)
            .map_err(|e| refuse::opening(&self.path, e))?;
        rustix::fs::unlinkat(&self.dir, &name, AtFlags::empty())
            .map_err(|e| refuse::opening(&self.path, e))?;
        Ok(fd)
    }
}

/// A nameless file.
pub struct File {
    fd: OwnedFd,
    direct: Option<OwnedFd>,
    /// Its size.
    pub bytes: u64,
}

impl Drop for File {
    /// Empties it first. Its dirty pages then need not be written any more; closing alone would wait for all that
    /// the flusher has taken up of it, which on a slow device is minutes.
    fn drop(&mut self) {
        let _ = rustix::fs::ftruncate(&self.fd, 0);
    }
}

impl File {
    /// Opens it a second time for O_DIRECT. Refused where the file system has no direct I/O.
    pub fn open_direct(&mut self, root: &Root) -> Result<(), Refused> {
        use std::os::fd::AsRawFd;
        let again = root.proc(&format!("self/fd/{}", self.fd.as_raw_fd()));
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::DIRECT;
        match rustix::fs::openat(CWD, &again, flags, Mode::empty()) {
            Ok(fd) => self.direct = Some(fd),
            Err(Errno::INVAL) => {
                return refused("this file system has no direct I/O (O_DIRECT); add --buffered");
            }
            Err(errno) => {
                return refused(format!("opening for direct I/O: {}", describe_io_error(&errno.into())));
            }
        }
        Ok(())
    }

    /// For direct I/O if it was asked for, else through the page cache.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.direct.as_ref().unwrap_or(&self.fd).as_fd()
    }

    /// Through the page cache.
    pub fn buffered(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Writes back and drops what the page cache holds of it, so that the next reads are cold.
    pub fn forget(&self) -> std::io::Result<()> {
        rustix::fs::fsync(&self.fd)?;
        rustix::fs::fadvise(&self.fd, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    }

    /// Takes over the read-ahead its disk has now: an open file keeps the one from when it was opened
    /// (mm/fadvise.c, POSIX_FADV_NORMAL).
    pub fn take_readahead(&self) -> std::io::Result<()> {
        Ok(rustix::fs::fadvise(&self.fd, 0, None, rustix::fs::Advice::Normal)?)
    }

    /// What direct I/O on it has to be aligned to: (memory, offset and length), in bytes.
    pub fn alignment(&self) -> (u32, u32) {
        use rustix::fs::StatxFlags;
        // STATX_DIOALIGN since 6.1; the logical block size, hardly ever more than 4096, before.
        match rustix::fs::statx(&self.fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
            Ok(s) if s.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && s.stx_dio_offset_align > 0 => {
                (s.stx_dio_mem_align.max(1), s.stx_dio_offset_align)
            }
            _ => (512, 512),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt;

    fn check(path: &Path) -> Result<Place, Refused> {
        Place::check(&Root::live(), path, false)
    }

    fn why(path: &Path) -> String {
        check(path).err().map(|r| r.why).unwrap_or_default()
    }

    #[test]
    fn what_is_no_directory_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, b"precious").unwrap();
        assert!(why(&file).contains("existing file"), "{}", why(&file));
        let dangling = dir.path().join("dangling");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert!(why(&dangling).contains("points to nothing"), "{}", why(&dangling));
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(std::fs::metadata(&fifo).unwrap().file_type().is_fifo());
        assert!(why(&fifo).contains("FIFO"), "{}", why(&fifo));
        let device = dir.path().join("device");
        std::os::unix::fs::symlink(Root::live().dev("null"), &device).unwrap();
        assert!(why(&device).contains("device"), "{}", why(&device));
        assert!(why(Path::new("/nonexistent/x")).contains("does not exist"));
        assert!(why(Path::new("/proc")).contains("pseudo"), "{}", why(Path::new("/proc")));
        assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    }

    #[test]
    fn the_file_has_no_name_and_the_size_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let Ok(place) = check(dir.path()) else { return println!("skipped: no room for a file here") };
        let file = place.create(1 << 20).unwrap();
        assert_eq!(rustix::fs::fstat(file.buffered()).unwrap().st_size, 1 << 20);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(file.alignment().1.is_power_of_two());
    }

    #[test]
    fn space_that_is_not_there_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let Ok(place) = check(dir.path()) else { return println!("skipped: directory refused") };
        let Err(refused) = place.create(1 << 60) else { panic!("an exabyte was granted") };
        assert!(refused.why.contains("free"), "{}", refused.why);
    }
}
