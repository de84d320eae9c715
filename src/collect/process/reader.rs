//! Reads the files of one task that changed. Runs where a read may hang, because for a task stuck in exec
//! or in a page fault some of these files do not return.

use super::guard::{Hand, Step};
use super::ionice;
use super::parse::{self, StatLine, StatusLines};
use super::path::{self, Path, Place};
use super::warm::Warm;
use crate::collect::clock::boot_ns;
use crate::model::process::{IoPrio, IoRaw};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Longest command line kept.
const CMDLINE: usize = 4096;

/// The files, in the order of their steps.
pub const FILES: [&str; 7] = ["stat", "io", "status", "wchan", "cmdline", "cgroup", "comm"];
const STAT: usize = 0;
const IO: usize = 1;
const STATUS: usize = 2;
const WCHAN: usize = 3;
/// A task stuck in a page fault blocks this one and none of those before it.
pub const CMDLINE_STEP: usize = 4;
const CGROUP: usize = 5;
const COMM: usize = 6;

/// Which files to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct What {
    /// `stat`.
    pub stat: bool,
    /// `io`.
    pub io: bool,
    /// `status`: uid, VmSwap, VmRSS.
    pub status: bool,
    /// ioprio_get.
    pub prio: bool,
    /// `wchan`; read in any case for a task in state D.
    pub wchan: bool,
    /// `cmdline`.
    pub cmdline: bool,
    /// `cgroup`.
    pub cgroup: bool,
    /// Only what never blocks: `status` and `comm`.
    pub unblockable: bool,
    /// Look at `status` first, and read no more of a task in state D: few threads are left to lose.
    pub wary: bool,
}

/// One task to read.
#[derive(Debug, Clone, Copy)]
pub struct ReadJob {
    /// Position in the collector's list.
    pub at: u32,
    /// Where its files are.
    pub place: Place,
    /// Which of them.
    pub what: What,
    /// Stop after `io` if its text still has this hash.
    pub unless_io: Option<u64>,
    /// It is read at every look.
    pub hot: bool,
}

impl ReadJob {
    /// In any case, and not again soon.
    pub fn once(at: usize, place: Place, what: What) -> Self {
        Self { at: at as u32, place, what, unless_io: None, hot: false }
    }
}

/// What was read of one task; `None` for files that were not asked for or could not be read.
#[derive(Debug, Default)]
pub struct Reading {
    /// When `io` (or the first file) was read, CLOCK_BOOTTIME in ns.
    pub at_ns: u64,
    /// It is no more.
    pub gone: bool,
    /// The kernel shows us nothing of it.
    pub denied: bool,
    /// Only what never blocks was read.
    pub unblockable: bool,
    /// `io` was as before and nothing else was read.
    pub unchanged: bool,
    pub stat: Option<StatLine>,
    pub io: Option<IoRaw>,
    pub io_hash: u64,
    pub status: Option<StatusLines>,
    pub prio: Option<IoPrio>,
    pub wchan: Option<Box<str>>,
    pub cmdline: Option<Box<[u8]>>,
    pub cgroup: Option<Box<[u8]>>,
    pub comm: Option<[u8; 16]>,
}

/// Reads on its own thread.
pub struct Reader {
    proc: Arc<OwnedFd>,
    live: bool,
    buf: Vec<u8>,
    warm: Warm,
}

impl Reader {
    /// Reads below the kept descriptor; `live` allows system calls about tasks.
    pub fn new(proc: Arc<OwnedFd>, live: bool) -> Self {
        Self { proc, live, buf: vec![0; CMDLINE.max(4096)], warm: Warm::default() }
    }

    /// A new look begins.
    pub fn begin(&mut self) {
        self.warm.begin();
    }

    /// What never blocks, read on the caller's own thread.
    pub fn safely(&mut self, job: &ReadJob) -> Reading {
        let mut out = Reading { at_ns: boot_ns(), ..Reading::default() };
        self.unblockable(job, &Step::default(), &mut out);
        out
    }

    fn file(&mut self, place: Place, file: usize, step: &Step) -> Result<&[u8], Errno> {
        step.set(file);
        path::read_at(self.proc.as_fd(), &Path::of(place, FILES[file]), &mut self.buf)
    }

    /// One of the files read again and again, by a kept descriptor where the task is hot.
    fn counters(&mut self, job: &ReadJob, file: usize, step: &Step) -> Result<&[u8], Errno> {
        if !job.hot {
            return self.file(job.place, file, step);
        }
        step.set(file);
        if let Some(read) = self.warm.read(job.place, file, &mut self.buf) {
            return read.map(|n| &self.buf[..n]);
        }
        let fd = path::open_at(self.proc.as_fd(), &Path::of(job.place, FILES[file]))?;
        let n = path::read(&fd, &mut self.buf)?;
        if self.warm.has_room() {
            self.warm.keep(job.place, file, fd);
        }
        Ok(&self.buf[..n])
    }

    /// `io`, and whether to stop because nothing moved.
    fn io(&mut self, job: &ReadJob, step: &Step, out: &mut Reading) -> bool {
        out.at_ns = boot_ns();
        let (io, hash) = match self.counters(job, IO, step) {
            Ok(text) => (parse::io(text).map_or(IoRaw::Absent, IoRaw::Read), hash(text)),
            Err(err) if path::is_denied(err) => (IoRaw::Denied, 0),
            Err(Errno::SRCH) => {
                out.gone = true;
                return true;
            }
            Err(_) => (IoRaw::Absent, 0),
        };
        out.io = Some(io);
        out.io_hash = hash;
        out.unchanged = job.unless_io == Some(hash) && hash != 0;
        out.unchanged
    }

    fn stat(&mut self, job: &ReadJob, step: &Step, out: &mut Reading) -> bool {
        match self.counters(job, STAT, step).map(parse::stat) {
            Ok(line) => out.stat = line,
            Err(err) if path::is_gone(err) => out.gone = true,
            Err(err) if path::is_denied(err) => out.denied = true,
            Err(_) => {}
        }
        out.stat.is_none()
    }

    fn rest(&mut self, job: &ReadJob, step: &Step, out: &mut Reading) {
        let what = job.what;
        if what.status {
            out.status = self.file(job.place, STATUS, step).ok().map(parse::status);
        }
        if what.prio && self.live {
            out.prio = ionice::get(job.place.tid).ok();
        }
        if what.wchan || out.stat.is_some_and(|s| s.state == b'D') {
            out.wchan = self.file(job.place, WCHAN, step).ok().and_then(wchan);
        }
        if what.cmdline {
            step.set(CMDLINE_STEP);
            let path = Path::of(job.place, FILES[CMDLINE_STEP]);
            out.cmdline =
                path::read_all(self.proc.as_fd(), &path, &mut self.buf[..CMDLINE]).ok().map(cmdline);
        }
        if what.cgroup {
            out.cgroup = self.file(job.place, CGROUP, step).ok().map(Into::into);
        }
    }

    fn is_asleep(&mut self, job: &ReadJob, step: &Step) -> bool {
        self.file(job.place, STATUS, step).is_ok_and(|text| parse::status(text).state == Some(b'D'))
    }

    /// A task some of whose files block: what is left to see of it.
    fn unblockable(&mut self, job: &ReadJob, step: &Step, out: &mut Reading) {
        out.unblockable = true;
        match self.file(job.place, STATUS, step).map(parse::status) {
            Ok(lines) => out.status = Some(lines),
            Err(err) => out.gone = path::is_gone(err),
        }
        if let Ok(text) = self.file(job.place, COMM, step) {
            let mut comm = [0; 16];
            let text = text.strip_suffix(b"\n").unwrap_or(text);
            let kept = text.len().min(15);
            comm[..kept].copy_from_slice(&text[..kept]);
            out.comm = Some(comm);
        }
    }
}

impl Hand for Reader {
    type Job = ReadJob;
    type Out = Reading;

    fn run(&mut self, job: &ReadJob, step: &Step) -> Reading {
        let mut out = Reading { at_ns: boot_ns(), ..Reading::default() };
        if job.what.unblockable {
            self.unblockable(job, step, &mut out);
            return out;
        }
        if job.what.wary && self.is_asleep(job, step) {
            self.unblockable(job, step, &mut out);
            return out;
        }
        // With a hash to compare, `io` first: it may spare everything else.
        let io_first = job.unless_io.is_some();
        if job.what.io && io_first && self.io(job, step, &mut out) {
            return out;
        }
        if job.what.stat && self.stat(job, step, &mut out) {
            return out;
        }
        if job.what.io && !io_first && self.io(job, step, &mut out) {
            return out;
        }
        self.rest(job, step, &mut out);
        out
    }
}

/// FNV-1a, never 0.
fn hash(text: &[u8]) -> u64 {
    let fold = |h: u64, b: &u8| (h ^ *b as u64).wrapping_mul(0x100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, fold).max(1)
}

/// The function name; `0` means that the task does not wait (or that we may not know).
fn wchan(text: &[u8]) -> Option<Box<str>> {
    let name = text.trim_ascii();
    (!name.is_empty() && name != b"0").then(|| crate::text::sanitize(name).into())
}

/// Arguments are separated by NUL; a program may have overwritten them with anything.
fn cmdline(text: &[u8]) -> Box<[u8]> {
    let end = text.iter().rposition(|b| *b != 0 && *b != b' ').map_or(0, |at| at + 1);
    text[..end].iter().map(|b| if *b == 0 { b' ' } else { *b }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_joined_by_blanks() {
        assert_eq!(&*cmdline(b"a\0b c\0\0\0"), b"a b c");
        assert_eq!(&*cmdline(b""), b"");
        assert_eq!(&*cmdline(b"\0\0"), b"");
    }

    #[test]
    fn zero_is_no_wait_channel() {
        assert_eq!(wchan(b"0"), None);
        assert_eq!(wchan(b"io_schedule").as_deref(), Some("io_schedule"));
    }
}
