//! The raw counters of one task. Plain data without heap allocations, so that 20,000 of them are one allocation.

pub(crate) use crate::parse::task::IoBytes;
use serde::{Deserialize, Serialize};

/// Ticks per second of start times and CPU times that the kernel reports: USER_HZ, 100 on
/// all current architectures (include/asm-generic/param.h).
pub(crate) const USER_HZ: u64 = 100;

/// Identity of a task. The start time is part of it because pids are reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey {
    /// Process id (thread group id).
    pub pid: u32,
    /// Thread id. In a table of processes it equals `pid` and the key means the whole process; in a table of
    /// threads (see [`super::ProcessUpdate::rows_are_threads`]) it means that thread.
    pub tid: u32,
    /// Start time, in ticks of 1/[`USER_HZ`] s since boot (field 22 of stat, proc_pid_stat(5)).
    pub starttime: u64,
}

impl TaskKey {
    /// Start time in ns of CLOCK_BOOTTIME, rounded down to a tick.
    pub fn start_ns(&self) -> u64 {
        self.starttime.saturating_mul(1_000_000_000 / USER_HZ)
    }
}

impl IoBytes {
    pub(super) fn add(&mut self, more: Self) {
        self.read = self.read.saturating_add(more.read);
        self.write = self.write.saturating_add(more.write);
        self.cancelled = self.cancelled.saturating_add(more.cancelled);
    }
}

/// Result of reading a task's `io` file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskIoRaw {
    Read(IoBytes),
    /// Permission denied: another user's task, without CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.
    Denied,
    /// The read does not return.
    Blocked,
    /// This kernel does not count (no CONFIG_TASK_IO_ACCOUNTING).
    #[default]
    Absent,
}

impl TaskIoRaw {
    /// The bytes, if they could be read.
    pub fn bytes(&self) -> Option<IoBytes> {
        match self {
            TaskIoRaw::Read(bytes) => Some(*bytes),
            _ => None,
        }
    }
}

/// Delays (Documentation/accounting/delay-accounting.rst), in ns since the task started or
/// since delay accounting was enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDelays {
    /// Waiting for synchronous block I/O to complete.
    pub blkio_ns: u64,
    /// Waiting for pages from swap; only taskstats reports it.
    pub swapin_ns: Option<u64>,
}

/// I/O scheduling class and level (ioprio_get(2)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IoPrio {
    /// 1 realtime, 2 best effort, 3 idle. Only ioprio_get itself also returns 0 for "never set"; tables hold the class
    /// that the kernel then derives from the CPU scheduling policy.
    pub class: u8,
    /// 0 (highest) to 7 (lowest) within the class.
    pub level: u8,
}

impl IoPrio {
    /// From the kernel's packed form.
    pub fn from_raw(raw: u32) -> Self {
        Self { class: ((raw >> 13) & 7) as u8, level: (raw & 7) as u8 }
    }

    /// The kernel's packed form.
    pub fn to_raw(self) -> u32 {
        ((self.class as u32) << 13) | (self.level as u32 & 7)
    }
}

/// In iotop's format: `rt/0`, `be/4`, `idle`; `none` for a raw 0.
impl std::fmt::Display for IoPrio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.class, self.level) {
            (0, _) => f.write_str("none"),
            (1, level @ 0..8) => write!(f, "rt/{level}"),
            (2, level @ 0..8) => write!(f, "be/{level}"),
            (3, _) => f.write_str("idle"),
            (class, level) => write!(f, "?{class}/{level}"),
        }
    }
}

/// The raw counters of one task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskRaw {
    pub key: TaskKey,
    /// Command name: up to 15 bytes of anything, padded with NUL.
    pub comm: [u8; 16],
    /// State letter of stat: R S D Z T t I X.
    pub state: u8,
    pub kernel_thread: bool,
    /// I/O priority; `None` if it was not requested.
    pub ioprio: Option<IoPrio>,
    pub ppid: u32,
    /// Real user id; `None` if `status` was not read.
    pub uid: Option<u32>,
    pub num_threads: u32,
    /// Major page faults (`majflt`).
    pub majflt: u64,
    /// CPU time used, user and system, in 1/[`USER_HZ`] s.
    pub cpu_ticks: u64,
    /// Timeslices (third field of schedstat; for the whole process where taskstats is available);
    /// 0 if the kernel does not report them.
    pub timeslices: u64,
    pub rss_bytes: u64,
    /// VmSwap: swapped-out private memory in bytes, without shared memory. `None` if unknown.
    pub swap_bytes: Option<u64>,
    /// Storage I/O, including that of waited-for children: the kernel adds a child's counters to the
    /// parent's at once when the child is reaped. Rates leave out what was already counted for the child.
    pub io: TaskIoRaw,
    /// Delays; `None` if accounting is off or not readable.
    pub delays: Option<TaskDelays>,
}

impl TaskRaw {
    /// The command name without its padding.
    pub fn comm(&self) -> &[u8] {
        let end = self.comm.iter().position(|b| *b == 0).unwrap_or(self.comm.len());
        &self.comm[..end]
    }
}

/// Names of a task, read once per (pid, starttime) and again after an exec.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNames {
    /// The command line as raw bytes, arguments separated by one blank; empty for kernel threads, `None`
    /// if it could not be read.
    pub cmdline: Option<Box<[u8]>>,
    /// Control group path, sanitized; empty if unknown.
    pub cgroup: std::sync::Arc<str>,
    /// The container of the control group, such as `docker:0123456789ab`.
    pub container: Option<std::sync::Arc<str>>,
}
