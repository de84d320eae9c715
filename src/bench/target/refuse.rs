//! The refusals: one function per reason, each saying what was found and what to do instead.

use super::filesystem::Filesystem;
use crate::model::reading::describe_io_error;
use crate::text::sanitize;
use crate::units::format_bytes_long;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Left free on every file system, whatever is asked: its 5 % or this, the larger.
pub const RESERVE_BYTES: u64 = 2 << 30;
const RESERVE_PCT: u64 = 5;

/// Not done, and why; exit code 3, or 4 where a privilege would change it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What, why, what to do instead; clean text.
    pub why: String,
    /// Whether it is a permission that is missing.
    pub privilege: bool,
}

/// A refusal for safety.
pub fn refused<T>(why: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { why: why.into(), privilege: false })
}

/// `path` as it may be shown.
fn shown(path: &Path) -> String {
    sanitize(path.as_os_str().as_encoded_bytes())
}

/// Opens the directory without touching anything that is none. O_PATH neither wakes a device nor blocks on
/// a FIFO.
pub fn open_directory(path: &Path) -> Result<OwnedFd, Refused> {
    let fd = match rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => {
            let why = match std::fs::read_link(path) {
                Ok(to) => format!("{} is a symlink to {}, which points to nothing", shown(path), shown(&to)),
                Err(_) => format!("{} does not exist; name a directory on the storage to test", shown(path)),
            };
            return refused(why);
        }
        Err(errno) => return Err(opening(path, errno)),
    };
    let stat = rustix::fs::fstat(&fd).map_err(|e| opening(path, e))?;
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
    refused(format!("{} is {what}", shown(path)))
}

/// Kinds of file systems where a benchmark harms, lies, or both.
pub fn by_kind(fs: &Filesystem, path: &Path, twice: bool) -> Result<(), Refused> {
    if fs.is_pseudo() {
        return refused(format!("{} is on {}, a pseudo file system without storage", shown(path), fs.kind));
    }
    if fs.read_only {
        return refused(format!("{} is on a file system that is mounted read-only", shown(path)));
    }
    if fs.is_network() && !twice {
        return refused(format!(
            "{} is on a network mount ({} from {}): the load hits a server that others use. If that is meant, \
             name it twice: DIR --network DIR",
            shown(path),
            fs.kind,
            sanitize(&fs.source)
        ));
    }
    Ok(())
}

/// An ordinary user works in directories of his own or in shared ones like /tmp.
pub fn by_owner(dir: impl AsFd, path: &Path) -> Result<(), Refused> {
    let me = rustix::process::geteuid();
    let Ok(stat) = rustix::fs::fstat(dir) else { return Ok(()) };
    let sticky_for_all = stat.st_mode & 0o1002 == 0o1002;
    if me.is_root() || stat.st_uid == me.as_raw() || sticky_for_all {
        return Ok(());
    }
    let why =
        format!("{} belongs to user {}, not to you; name a directory of your own", shown(path), stat.st_uid);
    Err(Refused { why, privilege: true })
}

/// Bytes of the file system and those free for this user.
pub fn space(dir: impl AsFd, path: &Path) -> Result<(u64, u64), Refused> {
    let stat = rustix::fs::fstatvfs(dir).map_err(|e| opening(path, e))?;
    Ok((stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize))
}

/// What stays free on a file system of `size` bytes: `max(5 %, 2 GiB)`.
pub fn reserve(size: u64) -> u64 {
    (size / 100 * RESERVE_PCT).max(RESERVE_BYTES)
}

/// Refuses what would not leave the reserve free on a file system of `size` bytes with `free` left.
pub fn for_space(path: &Path, size: u64, free: u64, bytes: u64) -> Result<(), Refused> {
    let reserve = reserve(size);
    if free.saturating_sub(reserve) >= bytes {
        return Ok(());
    }
    let room = free.saturating_sub(reserve);
    let instead = if room >= 1 << 20 {
        format!("at most --size {}M fits", room >> 20)
    } else {
        "choose another directory".into()
    };
    refused(format!(
        "{} has {} free; {} would not leave the reserve of {} (5 %, at least 2 GiB): {instead}",
        shown(path),
        format_bytes_long(free),
        format_bytes_long(bytes),
        format_bytes_long(reserve)
    ))
}

/// A failed open or allocation in the named directory.
pub fn opening(path: &Path, errno: Errno) -> Refused {
    let path = shown(path);
    let (why, privilege) = match errno {
        Errno::ACCESS | Errno::PERM => (format!("{path}: no permission to create a file there"), true),
        Errno::ROFS => (format!("{path} is on a read-only file system"), false),
        Errno::NOSPC => (format!("{path}: no space left on the device"), false),
        Errno::DQUOT => (format!("{path}: your disk quota is used up"), false),
        Errno::NOTDIR => (format!("{path}: a part of this path is no directory"), false),
        Errno::LOOP => (format!("{path}: symlinks go round in a circle"), false),
        Errno::NAMETOOLONG => ("the directory's path is too long".into(), false),
        Errno::NOTCONN => (format!("{path}: the file system's server is gone"), false),
        Errno::STALE => (format!("{path}: stale network file handle"), false),
        errno => (format!("{path}: {}", describe_io_error(&errno.into())), false),
    };
    Refused { why, privilege }
}
