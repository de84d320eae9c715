//! Details of one process: limits, control groups, ancestors, delays. These files return even for a stuck task. `stat`,
//! which holds the start time, may not; a thread of its own reads it.

use super::path::is_own_pid_namespace;
use super::stuck_read::DEADLINE;
use super::taskstats::{TaskstatsAnswer, TaskstatsSocket};
use crate::collect::kernel_file::read_once;
use crate::collect::limits;
use crate::model::process::{TaskDelays, TaskDetail, TaskKey};
use crate::model::reading::Reading;
use crate::parse::bytes::{lines, parse_i64, parse_u64, words};
use crate::parse::task;
use crate::root::Root;
use crate::sanitize::sanitize;
use std::sync::mpsc::channel;

/// A longer chain of ancestors is a loop.
const MAX_ANCESTORS: usize = 64;

/// Why there are no delays.
pub(super) const DELAYACCT_OFF: &str = "delay accounting is off; turn it on with `sysctl kernel.task_delayacct=1`";

/// Reads the details of `key`; `Absent` if that process has exited.
pub(crate) fn read_detail(root: &Root, key: TaskKey) -> Reading<TaskDetail> {
    if has_ended(root, key) {
        return Reading::Absent(format!("process {} has ended", key.pid));
    }
    let mut files = ProcessFiles { root, buf: Vec::new() };
    Reading::Ok(TaskDetail {
        key,
        limits: files.read_parsed(key.pid, "limits", |raw| limits::parse(raw).collect()),
        cgroups: files.read_parsed(key.pid, "cgroup", |raw| lines(raw).map(sanitize).collect()),
        parents: files.read_ancestors(key.pid),
        namespace_pid: files.read_namespace_pid(key.pid),
        oom_score: files.read_number(key.pid, "oom_score"),
        oom_score_adj: files.read_number(key.pid, "oom_score_adj"),
        delays: read_delays(root, key.pid),
    })
}

/// Whether the process has exited; a process whose `stat` hangs has not.
pub(super) fn has_ended(root: &Root, key: TaskKey) -> bool {
    let starttime = read_starttime(root, key);
    starttime == Some(None) || starttime.flatten().is_some_and(|start| start != key.starttime)
}

/// Returns `None` if the file hangs, `Some(None)` if there is no such process. The read blocks killably, so its thread
/// does not keep the process from exiting.
fn read_starttime(root: &Root, key: TaskKey) -> Option<Option<u64>> {
    let path = root.proc(&format!("{}/stat", key.pid));
    let (sender, receiver) = channel();
    let read = move || Some(task::stat(read_once(&path, &mut Vec::new()).ok()?)?.starttime);
    std::thread::Builder::new().spawn(move || sender.send(read())).ok()?;
    receiver.recv_timeout(DEADLINE).ok()
}

struct ProcessFiles<'a> {
    root: &'a Root,
    buf: Vec<u8>,
}

impl ProcessFiles<'_> {
    /// The last number of `NSpid: 4711 12`, if there is more than one.
    fn read_namespace_pid(&mut self, pid: u32) -> Option<u32> {
        let text = read_once(&self.root.proc(&format!("{pid}/status")), &mut self.buf).ok()?;
        let numbers = lines(text).find_map(|line| line.strip_prefix(b"NSpid:"))?;
        words(numbers).skip(1).last().and_then(parse_u64).and_then(|pid| u32::try_from(pid).ok())
    }

    fn read_file(&mut self, pid: u32, file: &str) -> std::io::Result<&[u8]> {
        read_once(&self.root.proc(&format!("{pid}/{file}")), &mut self.buf)
    }

    fn read_parsed<T>(&mut self, pid: u32, file: &str, parse: impl Fn(&[u8]) -> T) -> Reading<T> {
        match self.read_file(pid, file) {
            Ok(raw) => Reading::Ok(parse(raw)),
            Err(err) => Reading::from_io_error(file, &err),
        }
    }

    fn read_number(&mut self, pid: u32, file: &str) -> Option<i64> {
        self.read_file(pid, file).ok().and_then(|raw| parse_i64(raw.trim_ascii()))
    }

    fn read_ancestors(&mut self, pid: u32) -> Vec<(u32, String)> {
        let mut out = Vec::new();
        let mut child = pid;
        while out.len() < MAX_ANCESTORS {
            let status = self.read_file(child, "status").map(task::status).unwrap_or_default();
            let Some(parent) = status.ppid.filter(|ppid| *ppid != 0) else { break };
            let comm = self.read_file(parent, "comm").map(|raw| sanitize(raw.strip_suffix(b"\n").unwrap_or(raw)));
            out.push((parent, comm.unwrap_or_default()));
            child = parent;
        }
        out
    }
}

fn read_delays(root: &Root, pid: u32) -> Reading<TaskDelays> {
    if !is_own_pid_namespace(root) {
        return Reading::Absent(
            "this /proc belongs to another PID namespace: taskstats is not available for it".into(),
        );
    }
    // While switched off, the kernel reports 0 for everything.
    let mut switch = Vec::new();
    if read_once(&root.proc("sys/kernel/task_delayacct"), &mut switch).is_ok_and(|t| t.trim_ascii() == b"0") {
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
        _ => Reading::Absent("taskstats: invalid reply".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_in_its_own_namespace_is_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let number = |text: &str| {
            std::fs::create_dir_all(dir.path().join("proc/9")).unwrap();
            std::fs::write(dir.path().join("proc/9/status"), text).unwrap();
            let root = Root::at(dir.path());
            ProcessFiles { root: &root, buf: Vec::new() }.read_namespace_pid(9)
        };
        assert_eq!(number("Name:\tsleep\nNSpid:\t9\t31\t7\nNSpgid:\t9\t1\n"), Some(7));
        assert_eq!(number("Name:\tsleep\nNSpid:\t9\n"), None);
        assert_eq!(number("Name:\tsleep\n"), None);
    }

    #[test]
    fn own_process_detail_matches_the_system() {
        let pid = std::process::id();
        let stat = std::fs::read(Root::live().proc(&format!("{pid}/stat"))).unwrap();
        let key = TaskKey { pid, tid: pid, starttime: task::stat(&stat).unwrap().starttime };
        let detail = read_detail(&Root::live(), key);
        let detail = detail.ok().unwrap();
        let nofile = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let open_files = detail.open_files_limit().unwrap();
        assert_eq!((open_files.soft, open_files.hard), (nofile.current, nofile.maximum));
        let ppid = rustix::process::getppid().unwrap().as_raw_nonzero().get() as u32;
        assert_eq!(detail.parents[0].0, ppid);
        assert!(detail.oom_score.is_some());
        let other = TaskKey { starttime: key.starttime + 1, ..key };
        assert!(
            matches!(read_detail(&Root::live(), other), Reading::Absent(_)),
            "the number belongs to another process now"
        );
    }
}
