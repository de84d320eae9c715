//! `/dev/kmsg`: the kernel log as records, not as lines.
//!
//! One read(2) returns one record, and the descriptor can be polled, so an idle log costs nothing. If a record was
//! overwritten before it was read, one read fails with EPIPE and the next continues at the oldest record. The gap in
//! the sequence numbers shows how many were lost.

mod record;

pub use record::parse_record;

use super::kernel_file;
use crate::model::kernel_log::KmsgRecord;
use crate::model::reading::{Reading, describe_io_error};
use crate::parse::bytes::parse_i64;
use crate::root::Root;
use crate::tuning::sudo::privilege_advice;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// One record with its dictionary, escaped, fits in the kernel's 8 KiB (CONSOLE_EXT_LOG_MAX). A smaller buffer fails
/// with EINVAL, so there is room for larger records of newer kernels.
const RECORD_BUFFER_BYTES: usize = 16 * 1024;
/// A captured log larger than this is not read.
const MAX_CAPTURE_BYTES: usize = 64 << 20;

/// An open kernel log.
#[derive(Debug)]
pub struct KmsgReader {
    fd: OwnedFd,
    input: LogInput,
}

#[derive(Debug)]
enum LogInput {
    /// The device: one record per read.
    Device(Box<[u8]>),
    /// A captured file: the output of `cat /dev/kmsg`, records one after the other.
    Capture { text: Vec<u8>, offset: usize },
}

impl KmsgReader {
    /// Opens the log at its oldest record, without blocking.
    ///
    /// `Denied` when `kernel.dmesg_restrict` is 1 and CAP_SYSLOG is missing, `Absent` where there is no
    /// such file (many containers).
    pub fn open(root: &Root) -> Reading<KmsgReader> {
        let path = root.dev("kmsg");
        let fd = match kernel_file::open(&path) {
            Ok(fd) => fd,
            Err(err) => return open_error(root, &path.display().to_string(), &err),
        };
        let input = match rustix::fs::fstat(&fd) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice => {
                LogInput::Device(vec![0; RECORD_BUFFER_BYTES].into_boxed_slice())
            }
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                let mut text = Vec::new();
                if stat.st_size > MAX_CAPTURE_BYTES as i64 {
                    return Reading::Absent(format!("{}: larger than 64 MiB", path.display()));
                }
                match kernel_file::read_to_end(&fd, &mut text) {
                    Ok(()) => LogInput::Capture { text, offset: 0 },
                    Err(err) => return Reading::from_io_error("captured kernel log", &err.into()),
                }
            }
            Ok(_) => return Reading::Absent(format!("{} is not the kernel log device", path.display())),
            Err(err) => return Reading::from_io_error("/dev/kmsg", &err.into()),
        };
        Reading::Ok(Self { fd, input })
    }

    /// Whether more records can arrive: only then poll the descriptor. A captured file is finished when
    /// [`next_record`](Self::next_record) returns `None`.
    pub fn is_live(&self) -> bool {
        matches!(self.input, LogInput::Device(_))
    }

    /// The next record, or `None` if there is none now. Never waits.
    pub fn next_record(&mut self) -> std::io::Result<Option<KmsgRecord>> {
        match &mut self.input {
            LogInput::Device(buf) => loop {
                match rustix::io::read(&self.fd, &mut buf[..]) {
                    Ok(0) => return Ok(None),
                    Ok(n) => {
                        if let Some(record) = parse_record(&buf[..n]) {
                            return Ok(Some(record));
                        }
                    }
                    Err(Errno::AGAIN) => return Ok(None),
                    // The kernel overwrote records before they were read: the sequence numbers show how many.
                    Err(Errno::PIPE | Errno::INTR) => {}
                    Err(err) => return Err(err.into()),
                }
            },
            LogInput::Capture { text, offset: at } => {
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
        self.fd.as_fd()
    }
}

fn open_error(root: &Root, path: &str, err: &std::io::Error) -> Reading<KmsgReader> {
    match err.kind() {
        std::io::ErrorKind::NotFound => {
            Reading::Absent(format!("{path} does not exist (a container without the kernel log?)"))
        }
        std::io::ErrorKind::PermissionDenied => {
            let why = match read_sysctl(root, "kernel/dmesg_restrict") {
                Reading::Ok(n) if n != 0 => " (kernel.dmesg_restrict = 1)",
                _ => "",
            };
            Reading::Denied(format!(
                "{path}: {}{why}; needs CAP_SYSLOG: {}, or set kernel.dmesg_restrict = 0",
                describe_io_error(err),
                privilege_advice()
            ))
        }
        // In a user namespace the node can exist and yet not be a device.
        _ => Reading::from_io_error(path, err),
    }
}

/// `kernel.hung_task_warnings`: how many hung tasks the kernel will still report; 0: no more, -1: no limit
/// (Documentation/admin-guide/sysctl/kernel.rst).
pub fn read_hung_task_warnings(root: &Root) -> Reading<i64> {
    read_sysctl(root, "kernel/hung_task_warnings")
}

fn read_sysctl(root: &Root, name: &str) -> Reading<i64> {
    let mut buf = Vec::new();
    match kernel_file::read_once(&root.proc(&format!("sys/{name}")), &mut buf) {
        Ok(text) => match parse_i64(text.trim_ascii()) {
            Some(n) => Reading::Ok(n),
            None => Reading::Absent(format!("{name}: not a number")),
        },
        Err(err) => Reading::from_io_error(name, &err),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured_root(text: &[u8]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("dev")).unwrap();
        std::fs::write(dir.path().join("dev/kmsg"), text).unwrap();
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn a_captured_log_is_read_record_by_record() {
        let (_dir, root) = captured_root(
            b"6,1,10,-;one\n SUBSYSTEM=block\n DEVICE=b8:0\ngarbage\n3,2,20,-;two\\x0athree\n4,9,30,-;four",
        );
        let Reading::Ok(mut reader) = KmsgReader::open(&root) else { panic!("not opened") };
        assert!(!reader.is_live());
        let mut seen = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            seen.push((record.seq, record.message));
        }
        assert_eq!(seen, [(1, b"one".to_vec()), (2, b"two\nthree".to_vec()), (9, b"four".to_vec())]);
    }

    #[test]
    fn a_missing_log_is_absent_with_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let Reading::Absent(why) = KmsgReader::open(&Root::at(dir.path())) else { panic!() };
        assert!(why.contains("does not exist"), "{why}");
    }

    #[test]
    fn a_directory_in_place_of_kmsg_is_absent() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("dev/kmsg")).unwrap();
        assert!(matches!(KmsgReader::open(&Root::at(dir.path())), Reading::Absent(_)));
    }

    #[test]
    fn a_denied_open_names_the_sysctl_and_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/dmesg_restrict"), "1\n").unwrap();
        let root = Root::at(dir.path());
        let err = std::io::Error::from_raw_os_error(1);
        let Reading::Denied(why) = open_error(&root, "/dev/kmsg", &err) else { panic!() };
        assert!(why.contains("dmesg_restrict = 1") && why.contains("CAP_SYSLOG"), "{why}");
    }

    #[test]
    fn hung_task_warnings_may_be_negative_or_missing() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        assert!(matches!(read_hung_task_warnings(&root), Reading::Absent(_)));
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/hung_task_warnings"), "-1\n").unwrap();
        assert_eq!(read_hung_task_warnings(&root), Reading::Ok(-1));
    }
}
