//! One task's raw counters: plain data without heap, so that 20,000 of them are one allocation.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Ticks a second in which the kernel tells start times and CPU time to programs: USER_HZ, 100 on
/// every architecture still in use (include/asm-generic/param.h).
pub const USER_HZ: u64 = 100;

/// Who a row is about. A pid alone is not enough: it is reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey {
    /// Process id (thread group id).
    pub pid: u32,
    /// Thread id. In a table of processes it equals `pid` and means the whole process; in a table of
    /// threads (see [`super::ProcUpdate::threads`]) it means exactly that thread.
    pub tid: u32,
    /// Start, in ticks of 1/[`USER_HZ`] s since boot (field 22 of stat, proc_pid_stat(5)).
    pub starttime: u64,
}

impl TaskKey {
    /// Start in ns of CLOCK_BOOTTIME, rounded down to a tick.
    pub fn start_ns(&self) -> u64 {
        self.starttime.saturating_mul(1_000_000_000 / USER_HZ)
    }
}

/// Bytes that really went to or came from storage (Documentation/filesystems/proc.rst, `io`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoBytes {
    /// `read_bytes`.
    pub read: u64,
    /// `write_bytes`: counted when a page is dirtied, so it blames who dirtied it.
    pub write: u64,
    /// `cancelled_write_bytes`: dirtied, then truncated before it was written.
    pub cancelled: u64,
}

/// What reading a task's `io` came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskIoRaw {
    /// Read.
    Read(IoBytes),
    /// The kernel refuses: another user's task and no CAP_SYS_PTRACE with CAP_DAC_READ_SEARCH.
    Denied,
    /// The read is under way and does not return.
    Blocked,
    /// This kernel does not count (no CONFIG_TASK_IO_ACCOUNTING).
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

/// Time spent waiting (Documentation/accounting/delay-accounting.rst), in ns since the task began or
/// since accounting was switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDelays {
    /// Waiting for synchronous block I/O to complete.
    pub blkio_ns: u64,
    /// Waiting for swapped-out pages to come back; only taskstats tells it.
    pub swapin_ns: Option<u64>,
}

/// I/O scheduling class and level (ioprio_get(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IoPrio {
    /// 1 realtime, 2 best effort, 3 idle. Only ioprio_get itself also says 0, never set; tables hold what
    /// the kernel then derives from the CPU scheduling.
    pub class: u8,
    /// 0 (first) to 7 (last) within the class.
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

impl IoPrio {
    /// As iotop prints it: `rt/0`, `be/4`, `idle`; `none` for a raw 0.
    pub fn name(self) -> Cow<'static, str> {
        const LEVELS: [[&str; 8]; 2] = [
            ["rt/0", "rt/1", "rt/2", "rt/3", "rt/4", "rt/5", "rt/6", "rt/7"],
            ["be/0", "be/1", "be/2", "be/3", "be/4", "be/5", "be/6", "be/7"],
        ];
        match (self.class, self.level) {
            (0, _) => "none".into(),
            (class @ 1..=2, level @ 0..8) => LEVELS[usize::from(class) - 1][usize::from(level)].into(),
            (3, _) => "idle".into(),
            (class, level) => format!("?{class}/{level}").into(),
        }
    }
}

impl std::fmt::Display for IoPrio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

/// The raw counters of one task at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TaskRaw {
    /// Who.
    pub key: TaskKey,
    /// The name it gave itself: up to 15 bytes of anything, padded with NUL.
    pub comm: [u8; 16],
    /// State letter of stat: R S D Z T t I X.
    pub state: u8,
    /// A kernel thread (PF_KTHREAD).
    pub kernel_thread: bool,
    /// I/O class; `None` where it was not asked for.
    pub ioprio: Option<IoPrio>,
    /// Parent process.
    pub ppid: u32,
    /// Real user id; `None` where `status` was not read.
    pub uid: Option<u32>,
    /// Threads in the process.
    pub num_threads: u32,
    /// Page faults that needed I/O (`majflt`).
    pub majflt: u64,
    /// CPU time used, user and system, in 1/[`USER_HZ`] s.
    pub cpu_ticks: u64,
    /// How often it was given a CPU (third field of schedstat, for the whole process where taskstats
    /// is reachable); 0 on a kernel that does not tell.
    #[serde(rename = "runs")]
    pub timeslices: u64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// VmSwap: swapped-out private memory in bytes, without shared memory. `None`: not known.
    pub swap_bytes: Option<u64>,
    /// Storage traffic, with that of waited-for children: a child's exit adds its counts to the
    /// parent at once. Rates leave out what was counted for the child already.
    pub io: TaskIoRaw,
    /// Waiting times; `None` where accounting is off or not readable.
    pub delays: Option<TaskDelays>,
}

impl TaskRaw {
    /// The name without its padding.
    pub fn comm(&self) -> &[u8] {
        let end = self.comm.iter().position(|b| *b == 0).unwrap_or(self.comm.len());
        &self.comm[..end]
    }
}

/// What is fetched once per (pid, starttime) and again only after an exec.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNames {
    /// The command line, raw bytes, arguments separated by one blank; empty for kernel threads, `None`
    /// while it could not be read.
    pub cmdline: Option<Box<[u8]>>,
    /// Control group path, cleaned (it is only ever shown); empty where unknown.
    pub cgroup: std::sync::Arc<str>,
    /// The container the control group's name points to, such as `docker:0123456789ab`.
    pub container: Option<std::sync::Arc<str>>,
}
