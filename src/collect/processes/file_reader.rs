//! Reads the files of one task. This runs where a read may hang: for a task stuck in exec or in a page fault some of
//! these files do not return.

use super::ionice;
use super::path::{self, ProcPath, TaskPath};
use crate::collect::clock::boot_ns;
use crate::model::process::{IoPrio, TaskIoRaw};
use crate::parse::task::{self, StatLine, StatusLines};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const MAX_CMDLINE: usize = 4096;

/// The files of a task; [`TaskFileReader::current_file`] is an index into this list.
pub(super) const FILES: [&str; 7] = ["stat", "io", "status", "wchan", "cmdline", "cgroup", "comm"];
const STAT_FILE: usize = 0;
const IO_FILE: usize = 1;
const STATUS_FILE: usize = 2;
const WCHAN_FILE: usize = 3;
/// Of these files only this one blocks for a task stuck in a page fault.
pub(super) const CMDLINE_FILE: usize = 4;
const CGROUP_FILE: usize = 5;
const COMM_FILE: usize = 6;

/// Which files to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileSet {
    pub stat: bool,
    pub io: bool,
    /// `status`: uid, VmSwap, VmRSS.
    pub status: bool,
    pub ioprio: bool,
    /// `wchan`; always read for a task in state D.
    pub wchan: bool,
    pub cmdline: bool,
    pub cgroup: bool,
    /// Only `status` and `comm`, which never block.
    pub nonblocking_only: bool,
    /// Read `status` first, and nothing else of a task in state D: few threads are left that may hang.
    pub check_state_first: bool,
}

/// One task to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadJob {
    /// Index in the scanner's list of tasks.
    pub task_index: u32,
    /// Where its files are.
    pub path: TaskPath,
    pub files: FileSet,
    /// Stop after `io` if its text has this hash.
    pub skip_if_io_hash: Option<u64>,
}

impl ReadJob {
    /// Reads the files unconditionally.
    pub(crate) fn once(task_index: usize, path: TaskPath, files: FileSet) -> Self {
        Self { task_index: task_index as u32, path, files, skip_if_io_hash: None }
    }
}

/// What was read of one task; `None` for files that were not requested or not readable.
#[derive(Debug, Default)]
pub(super) struct TaskFiles {
    /// When `io` (or the first file) was read, CLOCK_BOOTTIME in ns.
    pub at_ns: u64,
    pub has_exited: bool,
    /// The kernel denies access to the task.
    pub is_denied: bool,
    /// Only `status` and `comm` were read.
    pub nonblocking_only: bool,
    /// `io` was unchanged, so nothing else was read.
    pub is_io_unchanged: bool,
    pub stat: Option<StatLine>,
    pub io: Option<TaskIoRaw>,
    pub io_hash: u64,
    pub status: Option<StatusLines>,
    pub ioprio: Option<IoPrio>,
    pub wchan: Option<Arc<str>>,
    pub cmdline: Option<Box<[u8]>>,
    pub cgroup: Option<Box<[u8]>>,
    pub comm: Option<[u8; 16]>,
}

/// Reads files; each thread has its own reader.
pub(super) struct TaskFileReader {
    proc_fd: Arc<OwnedFd>,
    is_live: bool,
    buf: Vec<u8>,
    /// The index in [`FILES`] of the file being read, for the thread that watches for hangs.
    pub current_file: Arc<AtomicUsize>,
}

impl TaskFileReader {
    /// Reads below the open directory `proc`; `is_live` permits system calls on tasks.
    pub(super) fn new(proc: Arc<OwnedFd>, is_live: bool) -> Self {
        Self { proc_fd: proc, is_live, buf: vec![0; MAX_CMDLINE], current_file: Arc::default() }
    }

    pub(super) fn run(&mut self, job: &ReadJob) -> TaskFiles {
        let mut out = TaskFiles { at_ns: boot_ns(), ..TaskFiles::default() };
        if job.files.nonblocking_only || job.files.check_state_first && self.is_in_disk_sleep(job) {
            self.fill_nonblocking(job, &mut out);
            return out;
        }
        // With a hash to compare, `io` comes first: if it is unchanged nothing else is read.
        let io_first = job.skip_if_io_hash.is_some();
        if job.files.io && io_first && self.read_io(job, &mut out) {
            return out;
        }
        if job.files.stat && self.read_stat(job, &mut out) {
            return out;
        }
        if job.files.io && !io_first && self.read_io(job, &mut out) {
            return out;
        }
        self.read_rest(job, &mut out);
        out
    }

    fn read_file(&mut self, path: TaskPath, file: usize) -> Result<&[u8], Errno> {
        self.current_file.store(file, Relaxed);
        path::read_at(self.proc_fd.as_fd(), &ProcPath::for_task(path, FILES[file]), &mut self.buf)
    }

    /// Reads `io`. Returns whether to stop, because it is unchanged or the task has exited.
    fn read_io(&mut self, job: &ReadJob, out: &mut TaskFiles) -> bool {
        out.at_ns = boot_ns();
        let (io, hash) = match self.read_file(job.path, IO_FILE) {
            Ok(text) => (task::io(text).map_or(TaskIoRaw::Absent, TaskIoRaw::Read), hash_text(text)),
            Err(err) if path::is_denied(err) => (TaskIoRaw::Denied, 0),
            Err(Errno::SRCH) => {
                out.has_exited = true;
                return true;
            }
            Err(_) => (TaskIoRaw::Absent, 0),
        };
        out.io = Some(io);
        out.io_hash = hash;
        out.is_io_unchanged = job.skip_if_io_hash == Some(hash) && hash != 0;
        out.is_io_unchanged
    }

    fn read_stat(&mut self, job: &ReadJob, out: &mut TaskFiles) -> bool {
        match self.read_file(job.path, STAT_FILE).map(task::stat) {
            Ok(line) => out.stat = line,
            Err(err) if path::is_gone(err) => out.has_exited = true,
            Err(err) if path::is_denied(err) => out.is_denied = true,
            Err(_) => {}
        }
        out.stat.is_none()
    }

    fn read_rest(&mut self, job: &ReadJob, out: &mut TaskFiles) {
        let files = job.files;
        if files.status {
            out.status = self.read_file(job.path, STATUS_FILE).ok().map(task::status);
        }
        if files.ioprio && self.is_live {
            out.ioprio = ionice::get(job.path.tid).ok();
        }
        if files.wchan || out.stat.is_some_and(|s| s.state == b'D') {
            out.wchan = self.read_file(job.path, WCHAN_FILE).ok().and_then(parse_wchan);
        }
        if files.cmdline {
            self.current_file.store(CMDLINE_FILE, Relaxed);
            let path = ProcPath::for_task(job.path, FILES[CMDLINE_FILE]);
            out.cmdline =
                path::read_all(self.proc_fd.as_fd(), &path, &mut self.buf[..MAX_CMDLINE]).ok().map(join_arguments);
        }
        if files.cgroup {
            out.cgroup = self.read_file(job.path, CGROUP_FILE).ok().map(Into::into);
        }
    }

    fn is_in_disk_sleep(&mut self, job: &ReadJob) -> bool {
        self.read_file(job.path, STATUS_FILE).is_ok_and(|text| task::status(text).state == Some(b'D'))
    }

    /// Fills in what never blocks, for a task with files that do.
    fn fill_nonblocking(&mut self, job: &ReadJob, out: &mut TaskFiles) {
        out.nonblocking_only = true;
        match self.read_file(job.path, STATUS_FILE).map(task::status) {
            Ok(lines) => out.status = Some(lines),
            Err(err) => out.has_exited = path::is_gone(err),
        }
        if let Ok(text) = self.read_file(job.path, COMM_FILE) {
            out.comm = Some(task::padded_comm(text));
        }
    }
}

/// FNV-1a hash, never 0.
fn hash_text(text: &[u8]) -> u64 {
    let fold = |h: u64, b: &u8| (h ^ *b as u64).wrapping_mul(0x100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, fold).max(1)
}

/// Returns the function name; `0` means that the task is not waiting, or that we may not know.
pub(super) fn parse_wchan(text: &[u8]) -> Option<Arc<str>> {
    let name = text.trim_ascii();
    (!name.is_empty() && name != b"0").then(|| crate::sanitize::sanitize(name).into())
}

/// Replaces the NUL between arguments by a space. A process may have overwritten them with anything.
pub(super) fn join_arguments(text: &[u8]) -> Box<[u8]> {
    let end = text.iter().rposition(|b| *b != 0 && *b != b' ').map_or(0, |at| at + 1);
    text[..end].iter().map(|b| if *b == 0 { b' ' } else { *b }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_joined_with_spaces() {
        assert_eq!(&*join_arguments(b"a\0b c\0\0\0"), b"a b c");
        assert_eq!(&*join_arguments(b""), b"");
        assert_eq!(&*join_arguments(b"\0\0"), b"");
    }

    #[test]
    fn a_wchan_of_zero_means_not_waiting() {
        assert_eq!(parse_wchan(b"0"), None);
        assert_eq!(parse_wchan(b"io_schedule").as_deref(), Some("io_schedule"));
    }
}
