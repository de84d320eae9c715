//! Reads kernel files with few system calls: a descriptor that stays open, one reused buffer.

use crate::parse::bytes::parse_u64;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A file under /proc or /sys that is read repeatedly: opened once, `pread` from 0 each time.
///
/// seq_file regenerates its content on a read at offset 0, so an open descriptor sees new counters.
#[derive(Debug)]
pub(crate) struct PersistentFile {
    path: PathBuf,
    fd: Option<OwnedFd>,
    single_read: bool,
}

impl PersistentFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, fd: None, single_read: false }
    }

    /// A file that the kernel generates in one piece (`single_open` in fs/seq_file.c: stat, meminfo, pressure): a read
    /// that did not fill the buffer was the last one, so no second read has to find the end.
    pub(crate) fn whole(path: PathBuf) -> Self {
        Self { path, fd: None, single_read: true }
    }

    pub(super) fn fd(&self) -> Option<&OwnedFd> {
        self.fd.as_ref()
    }

    /// The whole content, in `buf`. An error closes the descriptor, so the next read opens the file again.
    pub(crate) fn read<'b>(&mut self, buf: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        let fd = match &self.fd {
            Some(fd) => fd,
            None => self.fd.insert(open(&self.path)?),
        };
        match read_until(fd, buf, self.single_read) {
            Ok(()) => Ok(&buf[..]),
            Err(err) => {
                self.fd = None;
                Err(err.into())
            }
        }
    }
}

/// Opens for reading, close-on-exec, never as controlling terminal, never waiting for a FIFO.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(
        CWD,
        path,
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK,
        Mode::empty(),
    )?)
}

pub(crate) fn read_once<'b>(path: &Path, buf: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
    let fd = open(path)?;
    read_to_end(&fd, buf)?;
    Ok(&buf[..])
}

/// The number in a small file; `None` for `max` and unreadable files.
pub(crate) fn read_number(path: &Path, buf: &mut Vec<u8>) -> Option<u64> {
    parse_u64(read_once(path, buf).ok()?.trim_ascii())
}

/// Names in a directory, sorted; none if it cannot be read.
pub(crate) fn sorted_entry_names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Reads from offset 0 to the end into `buf`, growing it as needed. Its capacity is kept for the next read.
pub(crate) fn read_to_end(fd: &OwnedFd, buf: &mut Vec<u8>) -> Result<(), Errno> {
    read_until(fd, buf, false)
}

fn read_until(fd: &OwnedFd, buf: &mut Vec<u8>, whole: bool) -> Result<(), Errno> {
    buf.clear();
    if buf.capacity() < 4096 {
        buf.reserve(4096);
    }
    loop {
        let at = buf.len() as u64;
        let n = loop {
            match rustix::io::pread(fd, rustix::buffer::spare_capacity(buf), at) {
                Err(Errno::INTR) => continue,
                other => break other?,
            }
        };
        if n == 0 || whole && buf.len() < buf.capacity() {
            return Ok(());
        }
        if buf.len() == buf.capacity() {
            buf.reserve(buf.capacity());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persistent_file_is_reread_completely() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let long = "x".repeat(20_000);
        std::fs::write(&path, &long).unwrap();
        for mut kept in [PersistentFile::new(path.clone()), PersistentFile::whole(path.clone())] {
            let mut buf = Vec::new();
            std::fs::write(&path, &long).unwrap();
            assert_eq!(kept.read(&mut buf).unwrap(), long.as_bytes());
            std::fs::write(&path, "short").unwrap();
            assert_eq!(kept.read(&mut buf).unwrap(), b"short");
        }
    }

    #[test]
    fn a_missing_file_is_an_error_and_may_appear_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("late");
        let mut kept = PersistentFile::new(path.clone());
        let mut buf = Vec::new();
        assert!(kept.read(&mut buf).is_err());
        std::fs::write(&path, "now").unwrap();
        assert_eq!(kept.read(&mut buf).unwrap(), b"now");
    }
}
