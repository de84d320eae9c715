//! `/dev/kmsg`: the kernel log as records, not as lines.
//!
//! One read(2) returns one record; the descriptor can be polled, so a silent kernel costs nothing. A
//! record that was overwritten before it was read gives EPIPE once, and the next read goes on with the
//! oldest one left; how much was lost is the gap in the sequence numbers, which the log itself counts.

mod record;

pub use record::{format_record, parse_record};

use super::read;
use super::scan::signed;
use crate::model::kernlog::Record;
use crate::model::section::{Section, describe};
use crate::root::Root;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// One record with its dictionary, escaped, fits in the kernel's 8 KiB (CONSOLE_EXT_LOG_MAX); a smaller
/// buffer is refused with EINVAL, so a kernel that grows the record has room here.
const BUFFER: usize = 16 * 1024;
/// A captured log larger than this is cut: it is a test's or a stranger's file.
const CAPTURE_MAX: usize = 64 << 20;

/// An open kernel log.
#[derive(Debug)]
pub struct KmsgReader {
    input: Input,
    overruns: u64,
}

#[derive(Debug)]
enum Input {
    /// The device: one record a read.
    Device { fd: OwnedFd, buf: Box<[u8]> },
    /// A captured file: what `cat /dev/kmsg` printed, records one after the other.
    Capture { fd: OwnedFd, text: Vec<u8>, at: usize },
}

impl KmsgReader {
    /// Opens the log at its oldest record, without blocking.
    ///
    /// `Denied` when `kernel.dmesg_restrict` is 1 and CAP_SYSLOG is missing, `Absent` where there is no
    /// such file (many containers).
    pub fn open(root: &Root) -> Section<KmsgReader> {
        let path = root.dev("kmsg");
        let fd = match read::open(&path) {
            Ok(fd) => fd,
            Err(err) => return refused(root, &path.display().to_string(), &err),
        };
        let input = match rustix::fs::fstat(&fd) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice => {
                Input::Device { fd, buf: vec![0; BUFFER].into_boxed_slice() }
            }
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                let mut text = Vec::new();
                if stat.st_size > CAPTURE_MAX as i64 {
                    return Section::Absent(format!("{}: larger than 64 MiB", path.display()));
                }
                match read::slurp(&fd, &mut text) {
                    Ok(()) => Input::Capture { fd, text, at: 0 },
                    Err(err) => return Section::from_io("captured kernel log", &err.into()),
                }
            }
            Ok(_) => return Section::Absent(format!("{} is not the kernel log device", path.display())),
            Err(err) => return Section::from_io("/dev/kmsg", &err.into()),
        };
        Section::Ok(Self { input, overruns: 0 })
    }

    /// Whether more can arrive: poll the descriptor for reading only then. A captured file is always
    /// readable and is finished when [`next_record`](Self::next_record) returns `None`.
    pub fn is_live(&self) -> bool {
        matches!(self.input, Input::Device { .. })
    }

    /// How often the kernel overwrote records before they were read.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }

    /// The next record, or `None` when there is nothing more for now. Never waits.
    pub fn next_record(&mut self) -> std::io::Result<Option<Record>> {
        match &mut self.input {
            Input::Device { fd, buf } => loop {
                match rustix::io::read(&*fd, &mut buf[..]) {
                    Ok(0) => return Ok(None),
                    Ok(n) => {
                        if let Some(record) = parse_record(&buf[..n]) {
                            return Ok(Some(record));
                        }
                    }
                    Err(Errno::AGAIN) => return Ok(None),
                    Err(Errno::PIPE) => self.overruns += 1,
                    Err(Errno::INTR) => {}
                    Err(err) => return Err(err.into()),
                }
            },
            Input::Capture { text, at, .. } => {
                while *at < text.len() {
                    let raw = record::first_record(&text[*at..]);
                    *at += raw.len();
                    if let Some(record) = parse_record(raw) {
                        return Ok(Some(record));
                    }
                }
                Ok(None)
            }
        }
    }
}

impl AsRawFd for KmsgReader {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl AsFd for KmsgReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.input {
            Input::Device { fd, .. } | Input::Capture { fd, .. } => fd.as_fd(),
        }
    }
}

fn refused(root: &Root, path: &str, err: &std::io::Error) -> Section<KmsgReader> {
    match err.kind() {
        std::io::ErrorKind::NotFound => {
            Section::Absent(format!("{path} does not exist (a container without the kernel log?)"))
        }
        std::io::ErrorKind::PermissionDenied => {
            let why = match sysctl(root, "kernel/dmesg_restrict") {
                Section::Ok(0) | Section::Denied(_) | Section::Absent(_) | Section::Blocked(_) => "",
                Section::Ok(_) => " (kernel.dmesg_restrict = 1)",
            };
            Section::Denied(format!(
                "{path}: {}{why}; needs CAP_SYSLOG: run with sudo, or set kernel.dmesg_restrict = 0",
                describe(err)
            ))
        }
        // Outside the first user namespace the device can be there and yet not be a device.
        _ => Section::from_io(path, err),
    }
}

/// `kernel.hung_task_warnings`: how many hung tasks the kernel will still report; 0 means that it has
/// gone silent, -1 that it never does (Documentation/admin-guide/sysctl/kernel.rst).
pub fn hung_task_warnings(root: &Root) -> Section<i64> {
    sysctl(root, "kernel/hung_task_warnings")
}

fn sysctl(root: &Root, name: &str) -> Section<i64> {
    let mut buf = Vec::new();
    match read::read_once(&root.proc(&format!("sys/{name}")), &mut buf) {
        Ok(text) => match signed(text.trim_ascii()) {
            Some(n) => Section::Ok(n),
            None => Section::Absent(format!("{name}: not a number")),
        },
        Err(err) => Section::from_io(name, &err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(text: &[u8]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("dev")).unwrap();
        std::fs::write(dir.path().join("dev/kmsg"), text).unwrap();
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn a_captured_log_is_read_record_by_record() {
        let (_dir, root) = capture(
            b"6,1,10,-;one\n SUBSYSTEM=block\n DEVICE=b8:0\ngarbage\n3,2,20,-;two\\x0athree\n4,9,30,-;four",
        );
        let Section::Ok(mut reader) = KmsgReader::open(&root) else { panic!("not opened") };
        assert!(!reader.is_live());
        let mut seen = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            seen.push((record.seq, record.message));
        }
        assert_eq!(seen, [(1, b"one".to_vec()), (2, b"two\nthree".to_vec()), (9, b"four".to_vec())]);
    }

    #[test]
    fn a_missing_log_is_absent_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let Section::Absent(why) = KmsgReader::open(&Root::at(dir.path())) else { panic!() };
        assert!(why.contains("does not exist"), "{why}");
    }

    #[test]
    fn something_else_in_its_place_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("dev/kmsg")).unwrap();
        assert!(matches!(KmsgReader::open(&Root::at(dir.path())), Section::Absent(_)));
    }

    #[test]
    fn a_refusal_names_the_switch_and_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/dmesg_restrict"), "1\n").unwrap();
        let root = Root::at(dir.path());
        let err = std::io::Error::from_raw_os_error(1);
        let Section::Denied(why) = refused(&root, "/dev/kmsg", &err) else { panic!() };
        assert!(why.contains("dmesg_restrict = 1") && why.contains("CAP_SYSLOG"), "{why}");
    }

    #[test]
    fn hung_task_warnings_may_be_negative_or_missing() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        assert!(matches!(hung_task_warnings(&root), Section::Absent(_)));
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/hung_task_warnings"), "-1\n").unwrap();
        assert_eq!(hung_task_warnings(&root), Section::Ok(-1));
    }
}
