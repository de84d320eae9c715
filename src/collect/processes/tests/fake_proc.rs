//! Builds captured `/proc` trees.

use crate::root::Root;
use std::fmt::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;

/// A captured tree.
pub struct FakeProc {
    dir: TempDir,
    last_pid: u32,
}

/// Contents of the files of one task.
#[derive(Debug, Clone)]
pub struct FakeTask {
    pub pid: u32,
    pub ppid: u32,
    pub comm: Vec<u8>,
    pub state: char,
    pub threads: u32,
    pub start: u64,
    pub majflt: u64,
    pub stack: u64,
    pub io: (u64, u64, u64),
    pub runs: u64,
    pub uid: u32,
    pub swap_kb: u64,
    pub cmdline: Vec<u8>,
}

impl FakeTask {
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            ppid: 1,
            comm: b"task".to_vec(),
            state: 'S',
            threads: 1,
            start: 1000,
            majflt: 0,
            stack: 77,
            io: (0, 0, 0),
            runs: 1,
            uid: 1000,
            swap_kb: 0,
            cmdline: b"/bin/task\0--flag\0".to_vec(),
        }
    }

    fn stat_line(&self) -> Vec<u8> {
        let mut text = format!("{} (", self.pid).into_bytes();
        text.extend(&self.comm);
        let rest = format!(
            ") {} {} 1 1 0 -1 4194304 0 0 {} 0 1 2 0 0 20 0 {} 0 {} 99 10 18446744073709551615 1 1 {} 0 0 0 0 0 0 0 0 0 \
             17 0 0 0 5 0 0\n",
            self.state, self.ppid, self.majflt, self.threads, self.start, self.stack
        );
        text.extend(rest.as_bytes());
        text
    }
}

impl FakeProc {
    pub fn new() -> Self {
        let fake = Self { dir: tempfile::tempdir().unwrap(), last_pid: 0 };
        fake.write("proc/vmstat", b"pswpin 0\npswpout 0\n");
        fake.write("proc/sys/kernel/task_delayacct", b"0\n");
        fake.write("etc/passwd", b"root:x:0:0::/root:/bin/sh\npg:x:1000:1000::/:/bin/sh\n");
        fake
    }

    pub fn root(&self) -> Root {
        Root::at(self.dir.path())
    }

    pub fn path(&self, rel: &str) -> PathBuf {
        self.dir.path().join(rel)
    }

    pub fn write(&self, rel: &str, text: &[u8]) {
        let path = self.path(rel);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes all files of a task; a new pid becomes the last one assigned.
    pub fn write_task(&mut self, task: &FakeTask) {
        self.write_task_files(&format!("proc/{}", task.pid), task);
        self.last_pid = self.last_pid.max(task.pid);
        self.write("proc/loadavg", format!("0 0 0 1/1 {}\n", self.last_pid).as_bytes());
    }

    /// Writes the files of one thread of `pid`.
    pub fn write_thread(&mut self, pid: u32, task: &FakeTask) {
        self.write_task_files(&format!("proc/{pid}/task/{}", task.pid), task);
        self.last_pid = self.last_pid.max(task.pid);
        self.write("proc/loadavg", format!("0 0 0 1/1 {}\n", self.last_pid).as_bytes());
    }

    fn write_task_files(&self, dir: &str, task: &FakeTask) {
        let (read, write, cancelled) = task.io;
        let mut io = format!("rchar: {}\nwchar: 2\nsyscr: 3\nsyscw: 4\n", read + write);
        let _ = writeln!(io, "read_bytes: {read}\nwrite_bytes: {write}\ncancelled_write_bytes: {cancelled}");
        self.write(&format!("{dir}/stat"), &task.stat_line());
        self.write(&format!("{dir}/io"), io.as_bytes());
        self.write(&format!("{dir}/schedstat"), format!("{} 0 {}\n", task.runs * 1000, task.runs).as_bytes());
        let status = format!(
            "Name:\ttask\nState:\t{} (x)\nPPid:\t{}\nUid:\t{}\t0\t0\t0\nVmRSS:\t40 kB\nVmSwap:\t{} kB\nThreads:\t{}\n",
            task.state, task.ppid, task.uid, task.swap_kb, task.threads
        );
        self.write(&format!("{dir}/status"), status.as_bytes());
        self.write(&format!("{dir}/cmdline"), &task.cmdline);
        self.write(&format!("{dir}/cgroup"), b"0::/system.slice/task.service\n");
        self.write(&format!("{dir}/comm"), &[&task.comm[..], b"\n"].concat());
        self.write(&format!("{dir}/wchan"), b"io_schedule");
    }

    /// Removes the files of a task.
    pub fn remove(&self, rel: &str) {
        std::fs::remove_dir_all(self.path(rel)).unwrap();
    }
}
