//! The kernel's own words: records, what they mean, and a bounded log of them.
//!
//! A line of the kernel log is evidence that no counter gives: which task hangs, which sector fails,
//! which file system went read-only. It is also noisy, repetitive and written partly by strangers. So a
//! raw [`Record`] is classified ([`classify`]), its stack trace folded under it ([`fold`]), repetitions
//! counted ([`repeat`]), and the result kept in a [`KernLog`] of fixed size. [`Patterns`] choose what
//! to show; [`dstate`] finds the hung tasks that the kernel does not mention.

pub mod classify;
pub mod dedup;
pub mod hung_tasks;
mod log;
mod patterns;
pub mod rules;
pub mod trace_folder;

pub use log::{ClassCount, KernelLog, KernelLogLimits};
pub use patterns::{DEFAULT_EXCLUDE, LogPatterns, PatternError};

use serde::{Deserialize, Serialize};

/// One record of the kernel ring buffer, decoded but not interpreted
/// (Documentation/ABI/testing/dev-kmsg).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KmsgRecord {
    /// The record's 64-bit number: contiguous, so a gap is a loss.
    pub seq: u64,
    /// Microseconds of the kernel's log clock: since boot, not counting suspend, drifting slightly
    /// against CLOCK_MONOTONIC.
    pub boot_us: u64,
    /// syslog severity: 0 emergency, 3 error, 4 warning, 7 debug.
    pub level: u8,
    /// syslog facility: 0 is the kernel speaking, anything else a program that wrote to the log.
    pub facility: u16,
    /// Which task or CPU printed it (`T123`, `C2`), where the kernel is built to say so.
    pub caller: Option<String>,
    /// The text with the kernel's `\xNN` escapes undone: raw, hostile bytes.
    pub message: Vec<u8>,
    /// `SUBSYSTEM=` of the record.
    pub subsystem: Option<String>,
    /// `DEVICE=` of the record.
    pub device: Option<DeviceTag>,
}

/// The device a record names in its dictionary (`dev_printk_emit` in drivers/base/core.c).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceTag {
    /// `b8:0`: a block device's number.
    Block(u32, u32),
    /// `c127:3`: a character device's number.
    Char(u32, u32),
    /// `n8`: a network interface's index.
    Net(u32),
    /// `+scsi:2:0:0:0`: subsystem and name.
    Named(String),
}

/// The clocks at the moment a record is handed over; they place the kernel's log clock on the wall.
///
/// The pair has to be fresh for each batch: both clocks of the kernel log and CLOCK_MONOTONIC stop during
/// suspend and the wall clock does not, so a record from *before* a suspend that is converted *after* it
/// comes out late by the length of the sleep (`dmesg -T` has the same flaw). What is converted on arrival
/// stays right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogClock {
    /// CLOCK_MONOTONIC in ns.
    pub mono_ns: u64,
    /// Wall clock, ns since 1970-01-01 UTC, read at the same moment.
    pub wall_ns: i64,
}

impl LogClock {
    /// The wall clock at `boot_us` of the log clock; never later than now.
    pub fn wall_ns_at(&self, boot_us: u64) -> i64 {
        let age = self.mono_ns.saturating_sub(boot_us.saturating_mul(1000));
        self.wall_ns.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX))
    }

    /// Now, on the log clock, in microseconds.
    pub fn boot_us(&self) -> u64 {
        self.mono_ns / 1000
    }
}

/// What a line of the kernel log is about. The names in JSON are the snake_case ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelLogClass {
    /// A task that has been in uninterruptible sleep for too long.
    HungTask,
    /// A request a device failed.
    IoError,
    /// A file system that found damage, lost data, stopped its journal or went read-only.
    Filesystem,
    /// A request or link that timed out, an abort, a reset.
    ResetTimeout,
    /// The out-of-memory killer, or an allocation that failed.
    Oom,
    /// A CPU that does not get on: soft or hard lockup, RCU stall.
    Lockup,
    /// Memory or other hardware errors reported by the machine (MCE, EDAC, AER).
    MemoryError,
    /// A network file system's server that does not answer.
    NetworkFs,
    /// A kernel bug: oops, BUG, WARNING.
    Oops,
    /// Throttled by heat.
    Thermal,
    /// Anything else.
    Other,
}

impl KernelLogClass {
    /// Every class, in the order they are shown.
    pub const ALL: [KernelLogClass; 11] = [
        KernelLogClass::HungTask,
        KernelLogClass::IoError,
        KernelLogClass::Filesystem,
        KernelLogClass::ResetTimeout,
        KernelLogClass::Oom,
        KernelLogClass::Lockup,
        KernelLogClass::MemoryError,
        KernelLogClass::NetworkFs,
        KernelLogClass::Oops,
        KernelLogClass::Thermal,
        KernelLogClass::Other,
    ];

    /// The name used in JSON and in filters.
    pub fn name(self) -> &'static str {
        match self {
            KernelLogClass::HungTask => "hung_task",
            KernelLogClass::IoError => "io_error",
            KernelLogClass::Filesystem => "filesystem",
            KernelLogClass::ResetTimeout => "reset_timeout",
            KernelLogClass::Oom => "oom",
            KernelLogClass::Lockup => "lockup",
            KernelLogClass::MemoryError => "memory_error",
            KernelLogClass::NetworkFs => "network_fs",
            KernelLogClass::Oops => "oops",
            KernelLogClass::Thermal => "thermal",
            KernelLogClass::Other => "other",
        }
    }
}

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogOrigin {
    /// The kernel (facility 0).
    Kernel,
    /// A program that wrote to the kernel log. It can claim anything, so it is never classified.
    User,
    /// This program, which saw a task stuck in state D ([`dstate`]).
    #[serde(rename = "Watch")]
    Detector,
}

/// One line of the log as it is shown: a head line, what is folded under it, and how often it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Wall clock of the newest occurrence, ns since 1970-01-01 UTC.
    #[serde(rename = "time")]
    pub wall_ns: i64,
    /// Wall clock of the first occurrence counted here.
    #[serde(rename = "first_time")]
    pub first_wall_ns: i64,
    /// Log clock of the newest occurrence, us.
    pub boot_us: u64,
    /// Record number of the newest occurrence; `None` when the kernel did not say it.
    pub seq: Option<u64>,
    /// syslog severity, 0 worst to 7.
    pub level: u8,
    /// What it is about.
    pub class: KernelLogClass,
    /// The device it names, as the kernel names it there (`sda`, `nvme0`, `ata4.00`, a server's name).
    pub device: Option<String>,
    /// Number of the block device, where the record or its text gives it.
    pub devno: Option<(u32, u32)>,
    /// The task it names.
    pub pid: Option<u32>,
    /// That task's command name, raw.
    pub comm: Option<String>,
    /// Occurrences counted in this entry.
    pub count: u64,
    /// The newest occurrence's text. Not cleaned; bytes that are not UTF-8 are written `\xNN`.
    pub message: String,
    /// Stack trace, registers, tables that belong to the newest occurrence, in order. Not cleaned.
    pub folded: Vec<String>,
    /// Lines that belonged there but were beyond the limit.
    pub folded_dropped: u32,
    /// Who says so.
    pub origin: LogOrigin,
    /// Lines of this kind that the kernel's rate limit kept back: the true count is higher by these.
    pub suppressed: u64,
}

impl LogEntry {
    /// Whether a program wrote it, not the kernel.
    pub fn is_from_program(&self) -> bool {
        self.origin == LogOrigin::User
    }
}

#[cfg(test)]
mod test_support {
    use super::*;

    /// A kernel entry of this class and text.
    pub fn kernel_entry(class: KernelLogClass, message: &str) -> LogEntry {
        LogEntry {
            wall_ns: 0,
            first_wall_ns: 0,
            boot_us: 0,
            seq: Some(1),
            level: 3,
            class,
            device: None,
            devno: None,
            pid: None,
            comm: None,
            count: 1,
            message: message.to_owned(),
            folded: Vec::new(),
            folded_dropped: 0,
            origin: LogOrigin::Kernel,
            suppressed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_clock_times_convert_to_wall_clock() {
        let clock = LogClock { mono_ns: 10_000_000_000, wall_ns: 1_700_000_010_000_000_000 };
        assert_eq!(clock.wall_ns_at(4_000_000), 1_700_000_004_000_000_000);
        assert_eq!(clock.wall_ns_at(99_000_000), clock.wall_ns, "drift must not put a line into the future");
        assert_eq!(clock.wall_ns_at(u64::MAX), clock.wall_ns);
    }

    #[test]
    fn class_names_match_their_json() {
        for class in KernelLogClass::ALL {
            assert_eq!(serde_json::to_string(&class).unwrap(), format!("\"{}\"", class.name()));
        }
    }
}
