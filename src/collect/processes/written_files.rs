//! The files that a process has open for writing: `/proc/PID/fd`, `fdinfo` and the size of each. Only for child processes:
//! the size of a file on a dead network file system is not returned.

use super::detail::has_ended;
use crate::collect::clock;
use crate::collect::kernel_file::read_once;
use crate::model::disk::DevId;
use crate::model::process::{TaskKey, WrittenFile, WrittenFiles};
use crate::model::raw_bytes::RawBytes;
use crate::model::reading::Reading;
use crate::parse::bytes::{lines, parse_u64};
use crate::root::Root;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

/// A process with more descriptors has the first of them looked at.
const MAX_DESCRIPTORS: usize = 4096;

/// Reads them; `Absent` if the process has exited.
pub(crate) fn read_written_files(root: &Root, key: TaskKey) -> Reading<WrittenFiles> {
    if has_ended(root, key) {
        return Reading::Absent(format!("process {} has ended", key.pid));
    }
    let dir = root.proc(&format!("{}/fd", key.pid));
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(err) => return Reading::from_io_error("fd", &err),
    };
    let mut fds: Vec<u32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    if fds.is_empty() {
        // A zombie has none.
        return Reading::Absent(format!("process {} has no open files", key.pid));
    }
    fds.sort_unstable();
    let skipped = fds.len().saturating_sub(MAX_DESCRIPTORS);
    let mut buf = Vec::new();
    let files = fds.iter().take(MAX_DESCRIPTORS).filter_map(|fd| read_file(root, key.pid, *fd, &mut buf));
    Reading::Ok(WrittenFiles { files: files.collect(), skipped, read_ns: clock::now().boot_ns })
}

/// `None` if it is not open for writing, or no regular file or block device.
fn read_file(root: &Root, pid: u32, fd: u32, buf: &mut Vec<u8>) -> Option<WrittenFile> {
    let link = root.proc(&format!("{pid}/fd/{fd}"));
    let path = std::fs::read_link(&link).ok()?;
    let path = path.as_os_str().as_bytes();
    // Others are pipes, sockets and memory.
    if !path.starts_with(b"/") || path.starts_with(b"/memfd:") {
        return None;
    }
    let info = DescriptorInfo::parse(read_once(&root.proc(&format!("{pid}/fdinfo/{fd}")), buf).ok()?)?;
    if !info.is_writable {
        return None;
    }
    let meta = std::fs::metadata(&link).ok()?;
    let kind = meta.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return None;
    }
    let number = if kind.is_block_device() { meta.rdev() } else { meta.dev() };
    let device = DevId { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
    let (mount_id, position) = (info.mount_id, info.position);
    Some(WrittenFile { fd, path: RawBytes::from(path), mount_id, position, size: meta.size(), device })
}

/// What proc_pid_fdinfo(5) says of a descriptor.
struct DescriptorInfo {
    position: u64,
    is_writable: bool,
    mount_id: u64,
}

impl DescriptorInfo {
    fn parse(text: &[u8]) -> Option<Self> {
        let value = |name: &[u8]| lines(text).find_map(|line| line.strip_prefix(name)).map(|v| v.trim_ascii());
        let flags = u64::from_str_radix(std::str::from_utf8(value(b"flags:")?).ok()?, 8).ok()?;
        let is_writable = flags & libc::O_ACCMODE as u64 != libc::O_RDONLY as u64;
        Some(Self { position: parse_u64(value(b"pos:")?)?, is_writable, mount_id: parse_u64(value(b"mnt_id:")?)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};

    #[test]
    fn own_files_that_are_open_for_writing_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("written");
        let mut written = std::fs::File::create(&path).unwrap();
        written.write_all(&[0; 5000]).unwrap();
        written.seek(SeekFrom::Start(1200)).unwrap();
        let read_only = dir.path().join("read");
        std::fs::write(&read_only, "x").unwrap();
        let _held = std::fs::File::open(&read_only).unwrap();
        let pid = std::process::id();
        let stat = std::fs::read("/proc/self/stat").unwrap();
        let starttime = crate::parse::task::stat(&stat).unwrap().starttime;
        let read = |starttime| read_written_files(&Root::live(), TaskKey { pid, tid: pid, starttime });
        let Reading::Ok(found) = read(starttime) else { panic!("{:?}", read(starttime)) };
        let named =
            |path: &std::path::Path| found.files.iter().find(|f| f.path.as_bytes() == path.as_os_str().as_bytes());
        let file = named(&path).unwrap();
        assert_eq!((file.size, file.position), (5000, 1200));
        assert!(named(&read_only).is_none());
        assert!(matches!(read(starttime + 1), Reading::Absent(_)), "another process with this number");
    }

    #[test]
    fn descriptors_for_reading_and_malformed_ones_are_left_out() {
        let parse =
            |text: &str| DescriptorInfo::parse(text.as_bytes()).map(|i| (i.position, i.is_writable, i.mount_id));
        assert_eq!(parse("pos:\t12\nflags:\t0100001\nmnt_id:\t91\n"), Some((12, true, 91)));
        assert_eq!(parse("pos:\t0\nflags:\t0100000\nmnt_id:\t91\n"), Some((0, false, 91)));
        assert_eq!(parse("pos:\t0\nflags:\t02\nmnt_id:\t1\n"), Some((0, true, 1)));
        assert_eq!(parse("pos:\t0\nflags:\tx\nmnt_id:\t1\n"), None);
        assert_eq!(parse(""), None);
    }
}
