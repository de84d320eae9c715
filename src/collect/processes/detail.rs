//! One process looked at closely: limits, groups, ancestors, waiting times. Only files that return even
//! of a stuck task are read here; its start time, whose file may not, is read on a guarded thread.

use super::deadline_executor::{DEADLINE, DeadlineExecutor, JobOutcome};
use super::file_reader::{FileSet, ReadJob, TaskFileReader};
use super::parse::{self, StatusLines};
use super::path::{self, ProcPath, TaskPath};
use super::stuck_read::is_thread_runnable;
use super::taskstats::{TaskstatsAnswer, TaskstatsSocket};
use crate::collect::byte_parse::{lines, parse_i64, parse_u64};
use crate::collect::kernel_file::read_once;
use crate::model::process::{ResourceLimit, TaskDelays, TaskDetail, TaskKey};
use crate::model::reading::Reading;
use crate::root::Root;
use crate::sanitize;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// More ancestors than this are a loop.
const MAX_ANCESTORS: usize = 64;

/// Why there are no waiting times.
pub(super) const DELAYACCT_OFF: &str =
    "the kernel does not count waiting times: `sysctl kernel.task_delayacct=1` switches it on";

/// Reads details, one process at a time.
pub struct DetailReader {
    root: Root,
    proc_fd: Arc<OwnedFd>,
    is_live: bool,
    executor: DeadlineExecutor<TaskFileReader>,
    buf: Vec<u8>,
}

impl DetailReader {
    /// Below `root`.
    pub fn new(root: &Root) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = Arc::new(openat(CWD, root.proc(""), flags, Mode::empty())?);
        let (for_reader, live) = (proc.clone(), super::is_own_pid_namespace(root));
        let guard = DeadlineExecutor::new(DEADLINE, move || TaskFileReader::new(for_reader.clone(), live));
        Ok(Self { root: root.clone(), proc_fd: proc, is_live: live, executor: guard, buf: vec![0; 16 * 1024] })
    }

    /// The details of `key`; `Absent` if that process has ended.
    pub fn read(&mut self, key: TaskKey) -> Reading<TaskDetail> {
        let starttime = self.read_starttime(key);
        if starttime == Some(None) || starttime.flatten().is_some_and(|start| start != key.starttime) {
            return Reading::Absent(format!("process {} has ended", key.pid));
        }
        Reading::Ok(TaskDetail {
            key,
            verified: starttime.is_some(),
            limits: self.read_parsed(key.pid, "limits", parse_limits),
            cgroups: self.read_parsed(key.pid, "cgroup", |raw| lines(raw).map(sanitize::sanitize).collect()),
            parents: self.read_ancestors(key.pid),
            oom_score: self.read_number(key.pid, "oom_score"),
            oom_score_adj: self.read_number(key.pid, "oom_score_adj"),
            delays: self.read_delays(key.pid),
        })
    }

    /// `None`: not to be had without waiting; `Some(None)`: no such process.
    fn read_starttime(&mut self, key: TaskKey) -> Option<Option<u64>> {
        if self.executor.stuck_threads() > 0 {
            return None;
        }
        let place = TaskPath { pid: key.pid, tid: key.tid, is_thread: key.pid != key.tid };
        let what = FileSet { stat: true, ..FileSet::default() };
        let mut found = None;
        self.executor.run(&[ReadJob::once(0, place, what)], is_thread_runnable, |_, outcome| {
            if let JobOutcome::Done(reading) = outcome {
                found = Some(reading.stat.map(|stat| stat.starttime));
            }
        });
        found
    }

    fn read_file(&mut self, pid: u32, file: &str) -> Result<&[u8], rustix::io::Errno> {
        path::read_all(
            self.proc_fd.as_fd(),
            &ProcPath::for_task(TaskPath { pid, tid: pid, is_thread: false }, file),
            &mut self.buf,
        )
    }

    fn read_parsed<T>(&mut self, pid: u32, file: &str, parse: impl Fn(&[u8]) -> T) -> Reading<T> {
        match self.read_file(pid, file) {
            Ok(raw) => Reading::Ok(parse(raw)),
            Err(err) => Reading::from_io_error(file, &err.into()),
        }
    }

    fn read_number(&mut self, pid: u32, file: &str) -> Option<i64> {
        self.read_file(pid, file).ok().and_then(|raw| parse_i64(raw.trim_ascii()))
    }

    fn read_ancestors(&mut self, pid: u32) -> Vec<(u32, String)> {
        let mut out = Vec::new();
        let mut at = pid;
        while out.len() < MAX_ANCESTORS {
            let status: StatusLines = self.read_file(at, "status").map(parse::status).unwrap_or_default();
            let Some(parent) = status.ppid.filter(|ppid| *ppid != 0) else { break };
            let comm =
                self.read_file(parent, "comm").map(|raw| sanitize::sanitize(raw.strip_suffix(b"\n").unwrap_or(raw)));
            out.push((parent, comm.unwrap_or_default()));
            at = parent;
        }
        out
    }

    fn read_delays(&self, pid: u32) -> Reading<TaskDelays> {
        if !self.is_live {
            return Reading::Absent("this /proc is not our own pid namespace's: taskstats not asked".into());
        }
        // Switched off, the kernel answers 0 for everything, which is no measurement.
        let mut switch = Vec::new();
        if read_once(&self.root.proc("sys/kernel/task_delayacct"), &mut switch).is_ok_and(|t| t.trim_ascii() == b"0") {
            return Reading::Absent(DELAYACCT_OFF.into());
        }
        let mut answers = Vec::new();
        match TaskstatsSocket::open().and_then(|mut stats| stats.query(&[pid], false, &mut answers)) {
            Ok(()) => {}
            Err(err) => return Reading::from_io_error("taskstats", &err.into()),
        }
        match answers.first() {
            Some(TaskstatsAnswer::Stats(stats)) => Reading::Ok(stats.delays),
            Some(TaskstatsAnswer::Exited) => Reading::Absent(format!("process {pid} has ended")),
            Some(TaskstatsAnswer::Failed(code)) if *code != 0 => {
                Reading::from_io_error("taskstats", &std::io::Error::from_raw_os_error(*code))
            }
            _ => Reading::Absent("taskstats: no answer that could be understood".into()),
        }
    }
}

/// `Max open files            1024                 4096                 files`: columns are padded, and
/// names have blanks in them.
pub fn parse_limits(raw: &[u8]) -> Vec<ResourceLimit> {
    lines(raw).skip(1).filter_map(parse_limit).collect()
}

fn parse_limit(line: &[u8]) -> Option<ResourceLimit> {
    let (name, rest) = line.split_at_checked(25)?;
    let mut words = crate::collect::byte_parse::words(rest);
    let mut value = || match words.next()? {
        b"unlimited" => Some(None),
        digits => parse_u64(digits).map(Some),
    };
    let (soft, hard) = (value()?, value()?);
    let unit = words.next().map(sanitize::sanitize).unwrap_or_default();
    Some(ResourceLimit { name: sanitize::sanitize(name.trim_ascii()), soft, hard, unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_names_may_contain_spaces() {
        let raw = b"Limit                     Soft Limit           Hard Limit           Units     \n\
            Max open files            1024                 524288               files     \n\
            Max core file size        0                    unlimited            bytes     \n\
            Max nice priority         0                    0                    \n";
        let all = parse_limits(raw);
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].name.as_str(), all[0].soft, all[0].hard), ("Max open files", Some(1024), Some(524_288)));
        assert_eq!((all[1].hard, all[1].unit.as_str()), (None, "bytes"));
        assert_eq!(all[2].unit, "");
    }

    #[test]
    fn own_process_detail_matches_the_system() {
        let mut reader = DetailReader::new(&Root::live()).unwrap();
        let pid = std::process::id();
        let stat = std::fs::read(Root::live().proc(&format!("{pid}/stat"))).unwrap();
        let key = TaskKey { pid, tid: pid, starttime: parse::stat(&stat).unwrap().starttime };
        let detail = reader.read(key);
        let detail = detail.ok().unwrap();
        assert!(detail.verified);
        let nofile = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let open_files = detail.open_files_limit().unwrap();
        assert_eq!((open_files.soft, open_files.hard), (nofile.current, nofile.maximum));
        let ppid = rustix::process::getppid().unwrap().as_raw_nonzero().get() as u32;
        assert_eq!(detail.parents[0].0, ppid);
        assert!(detail.oom_score.is_some());
        let other = TaskKey { starttime: key.starttime + 1, ..key };
        assert!(matches!(reader.read(other), Reading::Absent(_)), "the number belongs to another process now");
    }
}
