//! Opens `PID/FILE` below an open `/proc` directory without allocating, and reads it with one call. Compared with
//! formatted paths below `/proc` this saves an allocation and a lookup per file, thousands of times per scan without
//! taskstats.

use crate::root::Root;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io::Write;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Whether process IDs in this `/proc` are valid for system calls: not in a captured tree, and not where the `/proc` of
/// another PID namespace is mounted, as in containers that are given the host's.
pub(super) fn is_own_pid_namespace(root: &Root) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    root.is_live() && std::fs::read_link(root.proc("self")).is_ok_and(|link| link.as_os_str() == own.as_str())
}

/// Location of a task's files: `PID/` or `PID/task/TID/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskPath {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Use the thread's own files instead of those of the whole process.
    pub is_thread: bool,
}

pub(super) struct ProcPath {
    buf: [u8; 64],
}

impl ProcPath {
    /// Builds `PID/FILE` or `PID/task/TID/FILE`; FILE has at most 16 bytes.
    pub(super) fn for_task(task: TaskPath, file: &str) -> Self {
        let mut buf = [0; 64];
        let mut rest = &mut buf[..];
        // The longest path takes 44 bytes.
        let _ = match task.is_thread {
            true => write!(rest, "{}/task/{}/{file}", task.pid, task.tid),
            false => write!(rest, "{}/{file}", task.pid),
        };
        Self { buf }
    }

    pub(super) fn as_cstr(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.buf).unwrap_or(c"")
    }
}

/// Opens, reads and closes a file that fits into `buf`. A kernel file of one record is returned by one read, so no
/// second read checks for the end.
pub(super) fn read_at<'b>(proc: BorrowedFd<'_>, path: &ProcPath, buf: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let n = read(&open_at(proc, path)?, buf)?;
    Ok(&buf[..n])
}

pub(super) fn open_at(proc: BorrowedFd<'_>, path: &ProcPath) -> Result<OwnedFd, Errno> {
    openat(proc, path.as_cstr(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

pub(super) fn read(fd: &OwnedFd, buf: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::read(fd, &mut *buf) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Reads up to `buf.len()` bytes with as many reads as needed, for files returned in pieces.
pub(super) fn read_all<'b>(proc: BorrowedFd<'_>, path: &ProcPath, buf: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let fd = open_at(proc, path)?;
    let mut len = 0;
    while len < buf.len() {
        match read(&fd, &mut buf[len..])? {
            0 => break,
            n => len += n,
        }
    }
    Ok(&buf[..len])
}

/// Whether the error means that the task has exited.
pub(super) fn is_gone(err: Errno) -> bool {
    matches!(err, Errno::NOENT | Errno::SRCH | Errno::NOTDIR)
}

pub(super) fn is_denied(err: Errno) -> bool {
    matches!(err, Errno::ACCESS | Errno::PERM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_processes_and_threads_are_formatted() {
        let whole = TaskPath { pid: 4_194_304, tid: 0, is_thread: false };
        assert_eq!(ProcPath::for_task(whole, "schedstat").as_cstr(), c"4194304/schedstat");
        let thread = TaskPath { pid: 4_294_967_295, tid: 4_294_967_295, is_thread: true };
        assert_eq!(ProcPath::for_task(thread, "schedstat").as_cstr(), c"4294967295/task/4294967295/schedstat");
    }
}
