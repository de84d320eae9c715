//! Opens `PID/FILE` below an open `/proc` directory without allocating, and reads it with one call. Compared with
//! formatted paths below `/proc` this saves an allocation and a lookup per file, thousands of times per scan without
//! taskstats.

use crate::root::Root;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Whether process IDs in this `/proc` are valid for system calls: not in a captured tree, and not where the `/proc` of
/// another PID namespace is mounted, as in containers that are given the host's.
pub fn is_own_pid_namespace(root: &Root) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    root.is_live() && std::fs::read_link(root.proc("self")).is_ok_and(|link| link.as_os_str() == own.as_str())
}

/// Location of a task's files: `PID/` or `PID/task/TID/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskPath {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Use the thread's own files instead of those of the whole process.
    pub is_thread: bool,
}

/// A relative path in a fixed buffer.
pub struct ProcPath {
    buf: [u8; 64],
    len: usize,
}

impl ProcPath {
    fn empty() -> Self {
        Self { buf: [0; 64], len: 0 }
    }

    /// Builds `PID/FILE` or `PID/task/TID/FILE`; FILE has at most 16 bytes.
    pub fn for_task(task: TaskPath, file: &str) -> Self {
        let mut path = Self::empty();
        path.push_number(task.pid);
        if task.is_thread {
            path.push_str("/task/");
            path.push_number(task.tid);
        }
        if !file.is_empty() {
            path.push_str("/");
            path.push_str(file);
        }
        path
    }

    fn push_str(&mut self, text: &str) {
        let end = (self.len + text.len()).min(self.buf.len() - 1);
        let room = end - self.len;
        self.buf[self.len..end].copy_from_slice(&text.as_bytes()[..room]);
        self.len = end;
    }

    fn push_number(&mut self, n: u32) {
        let mut digits = [0u8; 10];
        let mut start = digits.len();
        let mut rest = n;
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        for digit in &digits[start..] {
            self.buf[self.len] = *digit;
            self.len += 1;
        }
    }

    /// Returns the path for a system call.
    pub fn as_cstr(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.buf).unwrap_or(c"")
    }
}

/// Opens, reads and closes a file that fits into `buf`. A kernel file of one record is returned by one read, so no
/// second read checks for the end.
pub fn read_at<'b>(proc: BorrowedFd<'_>, path: &ProcPath, buf: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let n = read(&open_at(proc, path)?, buf)?;
    Ok(&buf[..n])
}

/// Opens a file for reading.
pub fn open_at(proc: BorrowedFd<'_>, path: &ProcPath) -> Result<OwnedFd, Errno> {
    openat(proc, path.as_cstr(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Reads with one call.
pub fn read(fd: &OwnedFd, buf: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::read(fd, &mut *buf) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Reads up to `buf.len()` bytes with as many reads as needed, for files returned in pieces.
pub fn read_all<'b>(proc: BorrowedFd<'_>, path: &ProcPath, buf: &'b mut [u8]) -> Result<&'b [u8], Errno> {
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
pub fn is_gone(err: Errno) -> bool {
    matches!(err, Errno::NOENT | Errno::SRCH | Errno::NOTDIR)
}

/// Whether the error means that access to the task is denied.
pub fn is_denied(err: Errno) -> bool {
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
        assert_eq!(ProcPath::for_task(TaskPath { pid: 7, tid: 7, is_thread: false }, "").as_cstr(), c"7");
    }
}
