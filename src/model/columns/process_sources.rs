//! What the columns of the Processes table are read from, and why a cell may be `-`.

use super::process::ProcessColumn;
use crate::model::column::ColumnSource;
use ProcessColumn as Col;

static IO_FILE: ColumnSource = ColumnSource::new(
    "/proc/PID/io (read_bytes, write_bytes, cancelled_write_bytes), with tracing by the task iterator",
    "for tasks of other users without CAP_SYS_PTRACE, in the first interval of a task, and after it has ended",
);
static STAT_FILE: ColumnSource =
    ColumnSource::new("/proc/PID/stat, with tracing by the task iterator", "in the first interval of a task");
static STATUS_FILE: ColumnSource = ColumnSource::new(
    "/proc/PID/status (Uid, VmSwap), with tracing by the task iterator",
    "for kernel threads, which own no memory, and until it was read",
);
static IOPRIO: ColumnSource = ColumnSource::new("ioprio_get(2)", "where it may not be asked");
static DELAYS: ColumnSource = ColumnSource::new(
    "taskstats (blkio_delay_total, swapin_delay_total), or delayacct_blkio_ticks in /proc/PID/stat",
    "while delay accounting is off (sysctl kernel.task_delayacct=1), and without taskstats for swap",
);
static IO_TRACING: ColumnSource = ColumnSource::new(
    "tracing of block requests and of dirtied pages",
    "without tracing (needs CAP_BPF and CAP_PERFMON), for single threads, and where nothing completed",
);
static STALL_TRACING: ColumnSource = ColumnSource::new(
    "tracing of balance_dirty_pages and direct reclaim",
    "without tracing (needs CAP_BPF and CAP_PERFMON), and for single threads",
);
static CGROUP_FILE: ColumnSource = ColumnSource::new("/proc/PID/cgroup", "where it may not be read");
static WAITS: ColumnSource =
    ColumnSource::new("/proc/PID/wchan in state D, else the delays and the tracing of the other columns", "");
static CMDLINE_FILE: ColumnSource = ColumnSource::new("/proc/PID/cmdline, for kernel threads /proc/PID/comm", "");

impl ProcessColumn {
    /// What it is read from.
    pub fn source(self) -> &'static ColumnSource {
        match self {
            Col::Io | Col::AccIo | Col::Read | Col::Write | Col::AccRead | Col::AccWrite | Col::Cancelled => &IO_FILE,
            Col::Tid | Col::Pid | Col::State | Col::MajorFaults | Col::Rss | Col::Threads => &STAT_FILE,
            Col::Ionice => &IOPRIO,
            Col::User | Col::Swap => &STATUS_FILE,
            Col::Writeback | Col::Iops | Col::IoLatency | Col::Device => &IO_TRACING,
            Col::Throttled | Col::Reclaim => &STALL_TRACING,
            Col::IoDelay | Col::SwapinDelay => &DELAYS,
            Col::Cgroup => &CGROUP_FILE,
            Col::Stalled | Col::Waits => &WAITS,
            Col::Command => &CMDLINE_FILE,
        }
    }
}
