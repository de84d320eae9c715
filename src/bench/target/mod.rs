//! The file of a benchmark: unlinked, in a directory the user named.
//!
//! No existing file is opened for writing, and no device at all. The file has no name, so the
//! kernel removes it with the process, however that ends.

pub(crate) mod checks;
pub(crate) mod filesystem;
pub(crate) mod refusal;
pub(crate) mod size_hints;
pub(crate) mod thin_pool;

use self::filesystem::TargetFilesystem;
use self::refusal::refusal_from_errno;
use self::thin_pool::{PoolBelow, ThinPool};
use crate::model::reading::describe_io_error;
use crate::root::Root;
use crate::tuning::plan::TuneError;
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// An open directory that passed all checks.
pub struct TargetDirectory {
    dir_fd: OwnedFd,
    pub path: PathBuf,
    pub filesystem: TargetFilesystem,
    /// What a user should know of it.
    pub notes: Vec<String>,
    thin_pool: Option<ThinPool>,
}

impl TargetDirectory {
    /// Checks `path` and its file system. `twice`: the user named it twice, which allows a network
    /// mount. May block on a dead mount, so only child processes may call this.
    pub fn open_checked(root: &Root, path: &Path, twice: bool) -> Result<Self, TuneError> {
        let fd = checks::open_directory(path)?;
        let filesystem = TargetFilesystem::inspect(root, &fd, path)?;
        checks::check_filesystem_kind(&filesystem, path, twice)?;
        let notes: Vec<String> = checks::check_owner(&fd, path)?.into_iter().collect();
        let thin_pool = find_pool(root, path, &filesystem)?;
        // O_PATH is enough for the checks; creating a file needs a readable descriptor.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&fd, ".", flags, Mode::empty()).map_err(|e| refusal_from_errno(path, e))?;
        Ok(Self { dir_fd: dir, path: path.to_owned(), filesystem, notes, thin_pool })
    }

    /// Bytes and free bytes: those of the file system, or of the pool of the thin volume below it if it has less.
    pub fn size_and_free(&self) -> Result<(u64, u64), TuneError> {
        let stat = rustix::fs::fstatvfs(&self.dir_fd).map_err(|e| refusal_from_errno(&self.path, e))?;
        let own = (stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize);
        let pool = self.thin_pool.as_ref().map(|pool| (pool.size, pool.free));
        Ok(pool.filter(|pool| pool.1 < own.1).unwrap_or(own))
    }

    /// Refuses a file that would not leave the reserve free.
    pub fn check_space(&self, bytes: u64) -> Result<(), TuneError> {
        let (size, free) = self.size_and_free()?;
        checks::check_space(&self.path, size, free, bytes).map_err(|refusal| match &self.thin_pool {
            Some(pool) if pool.free == free => TuneError::Unsafe(format!(
                "{refusal}. The free space is that of the thin pool {} below: a pool that is full stops all its volumes",
                pool.name
            )),
            _ => refusal,
        })
    }

    /// An unlinked file of `bytes`, allocated but not written.
    pub fn create(&self, bytes: u64) -> Result<BenchFile, TuneError> {
        self.check_space(bytes)?;
        let file = self.create_unlinked(bytes).map_err(|e| refusal_from_errno(&self.path, e))?;
        Ok(BenchFile { file: file.into(), direct: None, size: bytes })
    }

    fn create_unlinked(&self, bytes: u64) -> rustix::io::Result<OwnedFd> {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::EXCL;
        let fd = match rustix::fs::openat(&self.dir_fd, ".", flags | OFlags::TMPFILE, mode) {
            // File systems without O_TMPFILE return one of these.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let name = format!(".iotop-plus-{}-{:x}", std::process::id(), super::engine::monotonic_ns());
                let fd = rustix::fs::openat(&self.dir_fd, &name, flags | OFlags::CREATE | OFlags::NOFOLLOW, mode)?;
                rustix::fs::unlinkat(&self.dir_fd, &name, AtFlags::empty())?;
                fd
            }
            opened => opened?,
        };
        match rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, bytes) {
            // The layout that follows allocates by writing the data.
            Err(errno) if bytes > 0 && errno != Errno::OPNOTSUPP => Err(errno),
            _ => Ok(fd),
        }
    }
}

/// The pool of a thin volume below a file system. An error if its state is hidden: then nobody knows what fits.
fn find_pool(root: &Root, path: &Path, fs: &TargetFilesystem) -> Result<Option<ThinPool>, TuneError> {
    let Some(device) = fs.device else { return Ok(None) };
    let read = |id, table| {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let control = rustix::fs::openat(CWD, root.dev("mapper/control"), flags, Mode::empty())?;
        super::syscalls::device_mapper_targets(control, id, table)
    };
    let shown = refusal::display_path(path);
    match thin_pool::find_thin_pool(root, device, &read) {
        PoolBelow::None => Ok(None),
        PoolBelow::Pool(pool) => Ok(Some(pool)),
        PoolBelow::Unreadable(why) if rustix::process::geteuid().is_root() => {
            refusal::refuse(format!("{shown} is on a thin volume, and how full its pool is cannot be read: {why}"))
        }
        PoolBelow::Unreadable(why) => Err(TuneError::Privilege(format!(
            "{shown} is on a thin volume, and only root may read how full its pool is ({why}): a run that fills it stops \
             all its volumes"
        ))),
    }
}

pub struct BenchFile {
    file: File,
    direct: Option<OwnedFd>,
    pub size: u64,
}

impl Drop for BenchFile {
    /// Truncates it first, so that its dirty pages are not written any more. Closing alone would wait for all pages that
    /// writeback has already started on, which takes minutes on a slow device.
    fn drop(&mut self) {
        let _ = self.file.set_len(0);
    }
}

impl BenchFile {
    /// Opens the file again with O_DIRECT. Refused if the file system does not support direct I/O.
    pub fn open_direct_io(&mut self, root: &Root) -> Result<(), TuneError> {
        self.direct = Some(self.reopen(root, OFlags::DIRECT)?);
        Ok(())
    }

    /// Another descriptor of the file, with flags of its own.
    pub(crate) fn reopen(&self, root: &Root, flags: OFlags) -> Result<OwnedFd, TuneError> {
        use std::os::fd::AsRawFd;
        let again = root.proc(&format!("self/fd/{}", self.file.as_raw_fd()));
        let opened = rustix::fs::openat(CWD, &again, OFlags::RDWR | OFlags::CLOEXEC | flags, Mode::empty());
        opened.map_err(|errno| {
            TuneError::Unsafe(match errno {
                Errno::INVAL if flags.contains(OFlags::DIRECT) => {
                    "this file system has no direct I/O (O_DIRECT); add --buffered".into()
                }
                errno => format!("opening the file again: {}", describe_io_error(&errno.into())),
            })
        })
    }

    /// Allocates the first `bytes` bytes, with the size of the file as it is or at least that.
    pub(crate) fn allocate(&self, bytes: u64, keeps_size: bool) -> Result<(), TuneError> {
        let mode = if keeps_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
        match rustix::fs::fallocate(&self.file, mode, 0, bytes) {
            Err(errno) if errno != Errno::OPNOTSUPP => {
                Err(TuneError::Unsafe(format!("allocating the file: {}", describe_io_error(&errno.into()))))
            }
            _ => Ok(()),
        }
    }

    /// The descriptor for measured I/O: direct if [`Self::open_direct_io`] was called, else buffered.
    pub fn io_fd(&self) -> BorrowedFd<'_> {
        self.direct.as_ref().map_or(self.file.as_fd(), AsFd::as_fd)
    }

    pub fn buffered(&self) -> &File {
        &self.file
    }

    /// Writes the file back and evicts it from the page cache, so that the next reads go to the device.
    pub fn evict_page_cache(&self) -> std::io::Result<()> {
        self.file.sync_all()?;
        Ok(rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed)?)
    }

    /// Applies the disk's present read-ahead to the open file, which otherwise keeps the one from when it was opened
    /// (mm/fadvise.c, POSIX_FADV_NORMAL).
    pub fn refresh_readahead(&self) -> std::io::Result<()> {
        Ok(rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::Normal)?)
    }

    /// Alignment of direct I/O: (memory, offset and length), bytes.
    pub fn alignment(&self) -> (u32, u32) {
        use rustix::fs::StatxFlags;
        // STATX_DIOALIGN exists since Linux 6.1.
        match rustix::fs::statx(&self.file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
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

    fn open_checked(path: &Path) -> Result<TargetDirectory, TuneError> {
        TargetDirectory::open_checked(&Root::live(), path, false)
    }

    fn refusal_reason(path: &Path) -> String {
        open_checked(path).err().map(|r| r.to_string()).unwrap_or_default()
    }

    #[test]
    fn anything_but_a_directory_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, b"precious").unwrap();
        assert!(refusal_reason(&file).contains("existing file"), "{}", refusal_reason(&file));
        let dangling = dir.path().join("dangling");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert!(refusal_reason(&dangling).contains("points to nothing"), "{}", refusal_reason(&dangling));
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(std::fs::metadata(&fifo).unwrap().file_type().is_fifo());
        assert!(refusal_reason(&fifo).contains("FIFO"), "{}", refusal_reason(&fifo));
        let device = dir.path().join("device");
        std::os::unix::fs::symlink(Root::live().dev("null"), &device).unwrap();
        assert!(refusal_reason(&device).contains("device"), "{}", refusal_reason(&device));
        assert!(refusal_reason(Path::new("/nonexistent/x")).contains("does not exist"));
        assert!(refusal_reason(Path::new("/proc")).contains("pseudo"), "{}", refusal_reason(Path::new("/proc")));
        assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    }

    #[test]
    fn file_is_unlinked_and_has_the_requested_size() {
        let dir = tempfile::tempdir().unwrap();
        let Ok(place) = open_checked(dir.path()) else { return println!("skipped: no room for a file here") };
        let file = place.create(1 << 20).unwrap();
        assert_eq!(file.buffered().metadata().unwrap().len(), 1 << 20);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(file.alignment().1.is_power_of_two());
    }

    #[test]
    fn sizes_beyond_free_space_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let Ok(place) = open_checked(dir.path()) else { return println!("skipped: directory refused") };
        let Err(refused) = place.create(1 << 60) else { panic!("an exabyte was granted") };
        assert!(refused.to_string().contains("free"), "{refused}");
    }
}
