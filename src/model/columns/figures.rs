//! The figures of panes and pages that are no tables, with the names that they have there.

use crate::model::column::{ColumnSource, FigureSpec};

static VMSTAT: ColumnSource = ColumnSource::new("/proc/vmstat", "where the kernel does not count it");
static MEMINFO: ColumnSource = ColumnSource::new("/proc/meminfo", "where the kernel does not count it");
static DIRTY_LIMITS: ColumnSource =
    ColumnSource::new("nr_dirty_threshold and nr_dirty_background_threshold in /proc/vmstat", "where they are missing");
static SWAPS: ColumnSource = ColumnSource::new("/proc/swaps", "");
static PRESSURE: ColumnSource =
    ColumnSource::new("/proc/pressure", "where the kernel was built or booted without pressure stall information");
static STALLS: ColumnSource = ColumnSource::new(
    "tracing of balance_dirty_pages and direct reclaim",
    "without tracing (needs CAP_BPF and CAP_PERFMON), and for a kind that this kernel does not report",
);
static LIMITS: ColumnSource =
    ColumnSource::new("/proc/PID/limits, by a child process when the page opens", "where it may not be read");
static OOM: ColumnSource = ColumnSource::new("/proc/PID/oom_score and oom_score_adj", "where they may not be read");
static STATUS: ColumnSource = ColumnSource::new("/proc/PID/status", "where it may not be read");
static SMAPS: ColumnSource = ColumnSource::new(
    "/proc/PID/smaps, by a child process when its page is asked for them",
    "where it may not be read, and for what the kernel does not count",
);
static TASK_DELAYS: ColumnSource =
    ColumnSource::new("taskstats, or /proc/PID/stat", "while delay accounting is off (sysctl kernel.task_delayacct=1)");
static QUEUE: ColumnSource = ColumnSource::new(
    "/sys/block/DEVICE/queue, by a child process, because a hung device can block that",
    "until it was read, and where the driver has no such setting",
);
static KMSG: ColumnSource = ColumnSource::new("/dev/kmsg", "");

const fn figure(name: &'static str, source: &'static ColumnSource, help: &'static str) -> FigureSpec {
    FigureSpec::right((), name, 0, source, help)
}

/// Figures of the panes Memory and Writeback.
pub static MEMORY_FIGURES: &[FigureSpec] = &[
    figure("dirty", &VMSTAT, "bytes of page cache that were written to and not sent to a device yet"),
    figure("writeback", &VMSTAT, "bytes on their way to a device"),
    figure("background threshold", &DIRTY_LIMITS, "bytes of dirty pages above which the kernel begins to write them"),
    figure(
        "writers slowed above",
        &DIRTY_LIMITS,
        "bytes above which writers are throttled: midway between background threshold and limit",
    ),
    figure("limit", &DIRTY_LIMITS, "bytes of dirty and unwritten pages at most (vm.dirty_ratio or vm.dirty_bytes)"),
    figure("dirtied/s", &VMSTAT, "bytes of page cache dirtied per second"),
    figure("written/s", &VMSTAT, "bytes of page cache written to devices per second"),
    figure("used", &SWAPS, "bytes of swap in use, of all; below it the same for each swap area, with its priority"),
    figure("si/s", &VMSTAT, "bytes read back from swap per second"),
    figure("so/s", &VMSTAT, "bytes moved to swap per second"),
    figure("major faults/s", &VMSTAT, "page faults per second that needed I/O"),
    figure(
        "throttled",
        &STALLS,
        "milliseconds per second that writers were paused because too many pages were dirty, over all tasks; longest pause in milliseconds",
    ),
    figure(
        "direct reclaim",
        &STALLS,
        "milliseconds per second that tasks freed memory themselves, over all tasks; longest time in milliseconds",
    ),
    figure(
        "cpu",
        &PRESSURE,
        "percent of time in which some tasks / all tasks waited for a CPU, over 10, 60 and 300 seconds",
    ),
    figure(
        "memory",
        &PRESSURE,
        "percent of time in which some tasks / all tasks waited for memory, over 10, 60 and 300 seconds",
    ),
    figure(
        "io",
        &PRESSURE,
        "percent of time in which some tasks / all tasks waited for I/O, over 10, 60 and 300 seconds",
    ),
    figure("total", &MEMINFO, "bytes of memory that the kernel manages"),
    figure("available", &MEMINFO, "bytes that programs could still get without swapping, as the kernel estimates it"),
    figure("free", &MEMINFO, "bytes that nothing uses, not even the page cache"),
    figure("page cache", &MEMINFO, "bytes of file contents in memory (Cached and Buffers)"),
    figure("anonymous", &MEMINFO, "bytes of program memory that belongs to no file"),
    figure("shared", &MEMINFO, "bytes of shared memory and tmpfs"),
];

/// Figures of the page of a task, beside the columns of the Processes list.
pub static TASK_FIGURES: &[FigureSpec] = &[
    figure("open files", &LIMITS, "number of files it may have open: soft limit, hard limit"),
    figure(
        "OOM score",
        &OOM,
        "how soon the kernel kills it when memory runs out, 0 to 2000 (most likely first); adjusted by -1000 to 1000",
    ),
    figure("waited", &TASK_DELAYS, "seconds that it waited for block I/O and for swap in all its life"),
    figure("started by", &STATUS, "its parents up to the first process, name(pid)"),
    figure("Size", &SMAPS, "bytes of address space of a mapping"),
    figure("Rss", &SMAPS, "bytes of a mapping that are in memory"),
    figure("Pss", &SMAPS, "the same, with pages that others share counted in parts"),
    figure("Swap", &SMAPS, "bytes of a mapping that are in swap"),
];

/// Figures of the page of a device, beside the columns of the Devices list.
pub static DEVICE_FIGURES: &[FigureSpec] = &[
    figure("scheduler", &QUEUE, "the I/O scheduler in force, of those the kernel offers"),
    figure("nr_requests", &QUEUE, "number of requests that the queue holds"),
    figure("read_ahead_kb", &QUEUE, "KiB that are read ahead of a sequential reader"),
    figure("wbt_lat_usec", &QUEUE, "microseconds of read latency above which writeback is throttled; 0: never"),
    figure("max_sectors_kb", &QUEUE, "KiB of a request at most, of what the hardware takes"),
    figure("block sizes", &QUEUE, "bytes of the smallest request, and of the unit that the device writes at once"),
    figure("rotational", &QUEUE, "whether the kernel takes it for a spinning disk"),
    figure("write cache", &QUEUE, "write back: a flush is needed before data is safe; write through: it is not"),
];

/// Columns of the kernel log.
pub static LOG_FIGURES: &[FigureSpec] = &[
    figure("age", &KMSG, "time since the message, seconds, minutes, hours or days"),
    figure(
        "class",
        &KMSG,
        "what it is about: I/O error, file system, reset or timeout, hung task, memory; by its text",
    ),
    figure("device or task", &KMSG, "the device or task that the message names; Enter goes there"),
    figure("×N", &KMSG, "number of messages of the same text in a row"),
];
