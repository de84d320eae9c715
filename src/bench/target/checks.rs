//! The checks before a benchmark may use a directory, one function each.

use super::filesystem::{FilesystemKind, TargetFilesystem};
use super::refusal::{display_path, refusal_from_errno, refuse};
use crate::model::disk::DevId;
use crate::root::Root;
use crate::tuning::plan::TuneError;
use crate::units::format_bytes_long;
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Every file system keeps this much free, or 5 % if that is more.
pub(crate) const RESERVE_BYTES: u64 = 2 << 30;
const RESERVE_PCT: u64 = 5;

/// Opens the directory and nothing else: O_PATH neither wakes a device nor blocks on a FIFO.
pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, TuneError> {
    let fd = match rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => {
            let shown = display_path(path);
            return refuse(match std::fs::read_link(path) {
                Ok(to) => format!("{shown} is a symlink to {}, which points to nothing", display_path(&to)),
                Err(_) => format!("{shown} does not exist; name a directory on the storage to test"),
            });
        }
        Err(errno) => return Err(refusal_from_errno(path, errno)),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|e| refusal_from_errno(path, e))?;
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => return Ok(fd),
        FileType::BlockDevice | FileType::CharacterDevice => {
            "a device node, and a benchmark never writes to a device; name a directory on a file system on it"
        }
        FileType::RegularFile => "an existing file, and those are never written to; name its directory",
        FileType::Fifo => "a FIFO, not a directory",
        FileType::Socket => "a socket, not a directory",
        _ => "not a directory",
    };
    refuse(format!("{} is {what}", display_path(path)))
}

/// Refuses file systems where a benchmark would do harm or measure nothing.
pub(crate) fn check_filesystem_kind(fs: &TargetFilesystem, path: &Path, twice: bool) -> Result<(), TuneError> {
    let fs_type = &fs.report.filesystem;
    if fs.kind == FilesystemKind::Pseudo {
        return refuse(format!("{} is on {fs_type}, a pseudo file system without storage", display_path(path)));
    }
    if fs.read_only {
        return refuse(format!("{} is on a file system that is mounted read-only", display_path(path)));
    }
    if fs.kind == FilesystemKind::Network && !twice {
        return refuse(format!(
            "{} is on a network mount ({fs_type} from {}): the load hits a server that others use. If that is meant, \
             name it twice: DIR --network DIR",
            display_path(path),
            fs.report.source
        ));
    }
    Ok(())
}

/// A word about a directory of another user in which this one may write, by its group or because it is shared. Refuses
/// those in which the user may not write.
pub(crate) fn check_owner(dir: impl AsFd, path: &Path) -> Result<Option<String>, TuneError> {
    let me = rustix::process::geteuid();
    let Ok(stat) = rustix::fs::fstat(dir.as_fd()) else { return Ok(None) };
    let (mode, owner) = (stat.st_mode, stat.st_uid);
    let sticky_for_all = mode & 0o1002 == 0o1002;
    if me.is_root() || owner == me.as_raw() || sticky_for_all {
        return Ok(None);
    }
    let (shown, access) = (display_path(path), Access::WRITE_OK | Access::EXEC_OK);
    if rustix::fs::accessat(dir, ".", access, AtFlags::EACCESS).is_err() {
        let why = format!("{shown} belongs to user {owner}, and you may not write there; name a directory of your own");
        return Err(TuneError::Privilege(why));
    }
    let by = match mode & 0o002 {
        0 => format!("its group {}", stat.st_gid),
        _ => "anybody".into(),
    };
    Ok(Some(format!("{shown} belongs to user {owner} and may be written by {by}: others' files share its storage")))
}

/// Refuses polled completions on a device whose driver has no polling queues: the kernel then waits for interrupts
/// instead, or lets requests wait for ever.
pub(crate) fn check_polling(root: &Root, device: DevId) -> Result<(), TuneError> {
    // A partition has the queue of its disk.
    let read = |at: &str| std::fs::read_to_string(root.sys(&format!("dev/block/{device}/{at}/io_poll")));
    match read("queue").or_else(|_| read("../queue")) {
        Ok(text) if text.trim() == "0" => {
            refuse("--iopoll: the device's driver has no polling queues (nvme.poll_queues=N gives NVMe some)")
        }
        _ => Ok(()),
    }
}

/// Bytes that stay free on a file system of `size` bytes: `max(5 %, 2 GiB)`.
pub(crate) fn reserved_bytes(size: u64) -> u64 {
    (size / 100 * RESERVE_PCT).max(RESERVE_BYTES)
}

/// Refuses `bytes` that would not leave the reserve free on a file system of `size` bytes, of which `free` are left.
pub(crate) fn check_space(path: &Path, size: u64, free: u64, bytes: u64) -> Result<(), TuneError> {
    let reserve = reserved_bytes(size);
    let room = free.saturating_sub(reserve);
    if room >= bytes {
        return Ok(());
    }
    let instead = match room >> 20 {
        0 => "choose another directory".into(),
        mib => format!("at most --size {mib}M fits"),
    };
    let [free, bytes, reserve] = [free, bytes, reserve].map(format_bytes_long);
    refuse(format!(
        "{} has {free} free; {bytes} would not leave the reserve of {reserve} (5 %, at least 2 GiB): {instead}",
        display_path(path)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polled_completions_need_a_device_with_polling_queues() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let (disk, device) = (root.sys("dev/block/259:0"), DevId { major: 259, minor: 0 });
        std::fs::create_dir_all(disk.join("queue")).unwrap();
        std::fs::write(disk.join("queue/io_poll"), "1\n").unwrap();
        assert_eq!(check_polling(&root, device), Ok(()));
        std::fs::write(disk.join("queue/io_poll"), "0\n").unwrap();
        let refused = check_polling(&root, device).unwrap_err();
        assert!(matches!(&refused, TuneError::Unsafe(why) if why.contains("poll_queues")), "{refused:?}");
    }
}
