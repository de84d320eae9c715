//! Opening `PID/file` below a kept `/proc` descriptor without an allocation, and reading it with one
//! call.
//!
//! Descriptors are kept of a few tasks only ([`super::warm`]).

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Where a task's files are: `PID/` or `PID/task/TID/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskPath {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The thread's own files instead of the whole process's.
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

    /// `PID/FILE` or `PID/task/TID/FILE`; FILE is one of ours, at most 16 bytes.
    pub fn for_task(place: TaskPath, file: &str) -> Self {
        let mut path = Self::empty();
        path.push_number(place.pid);
        if place.is_thread {
            path.push_str("/task/");
            path.push_number(place.tid);
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
        let mut at = digits.len();
        let mut rest = n;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        for digit in &digits[at..] {
            self.buf[self.len] = *digit;
            self.len += 1;
        }
    }

    /// The path for a system call.
    pub fn as_cstr(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.buf).unwrap_or(c"")
    }
}

/// Reads a file that fits `buf` with open, read, close. A short read is the whole of a kernel file of
/// one record, so no second read asks for the end.
pub fn read_at<'b>(proc: BorrowedFd<'_>, path: &ProcPath, buf: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let n = read(&open_at(proc, path)?, buf)?;
    Ok(&buf[..n])
}

/// Opens for reading.
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

/// Reads up to `buf.len()` bytes, with as many reads as it takes: for files that come in pieces.
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

/// Whether an error says that the task is no more.
pub fn is_gone(err: Errno) -> bool {
    matches!(err, Errno::NOENT | Errno::SRCH | Errno::NOTDIR)
}

/// Whether an error says that the task is not ours to see.
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
