//! The kernel log: its records, what they mean, and a bounded list of entries.
//!
//! The kernel log has facts that no counter has: which task hangs, which sector fails, which file system went
//! read-only. It is also noisy and repetitive, and programs may write to it. Each raw [`KmsgRecord`] is classified
//! ([`classify`]), its stack trace folded under it ([`trace_folder`]), repetitions counted ([`dedup`]), and the result
//! stored in a [`KernelLog`] of bounded size. [`LogPatterns`] select what to show. [`hung_tasks`] finds hung tasks that
//! the kernel does not report.

pub mod classify;
mod dedup;
pub(crate) mod hung_tasks;
mod log;
mod patterns;
mod recent_counts;
mod rules;
mod trace_folder;

pub use log::{KernelLog, KernelLogLimits};
pub use patterns::DEFAULT_EXCLUDE;
pub(crate) use patterns::LogPatterns;
pub use recent_counts::RecentCounts;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// A record of the kernel ring buffer, decoded but not classified
/// (Documentation/ABI/testing/dev-kmsg).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KmsgRecord {
    /// Sequence number: consecutive, so a gap means lost records.
    pub seq: u64,
    /// Microseconds of the kernel's log clock: since boot without suspend, with a slight drift
    /// against CLOCK_MONOTONIC.
    pub boot_us: u64,
    /// syslog severity: 0 emergency, 3 error, 4 warning, 7 debug.
    pub level: u8,
    /// syslog facility: 0 is the kernel, anything else a program that wrote to the log.
    pub facility: u16,
    /// The task or CPU that printed it (`T123`, `C2`), if the kernel is built to record it.
    pub caller: Option<String>,
    /// The text with the kernel's `\xNN` escapes decoded: untrusted bytes.
    pub message: Vec<u8>,
    /// `SUBSYSTEM=` of the record.
    pub subsystem: Option<String>,
    /// `DEVICE=` of the record.
    pub device: Option<DeviceTag>,
}

/// The device in a record's dictionary (`dev_printk_emit` in drivers/base/core.c).
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

/// The clocks when records were read, to convert log clock times to wall clock times.
///
/// Read the pair anew for each batch. The log clock and CLOCK_MONOTONIC stop during suspend and the wall clock does
/// not, so a record from before a suspend that is converted after it comes out late by the length of the suspend
/// (`dmesg -T` has the same flaw).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogClock {
    /// CLOCK_MONOTONIC in ns.
    pub mono_ns: u64,
    /// Wall clock, ns since 1970-01-01 UTC, read at the same moment.
    pub wall_ns: i64,
}

impl LogClock {
    /// Wall clock at `boot_us` of the log clock, in ns; never later than now.
    pub fn wall_ns_at(&self, boot_us: u64) -> i64 {
        let age = self.mono_ns.saturating_sub(boot_us.saturating_mul(1000));
        self.wall_ns.saturating_sub(i64::try_from(age).unwrap_or(i64::MAX))
    }

    /// The current log clock, in microseconds.
    pub fn boot_us(&self) -> u64 {
        self.mono_ns / 1000
    }
}

/// Class of a kernel message, in display order. JSON uses the snake_case names.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum KernelLogClass {
    /// A task in uninterruptible sleep for too long.
    HungTask,
    /// A request that a device failed.
    IoError,
    /// A file system with damage, lost data, an aborted journal, or that went read-only.
    Filesystem,
    /// A request or link that timed out, an abort, a reset.
    ResetTimeout,
    /// The out-of-memory killer, or an allocation that failed.
    Oom,
    /// A CPU without progress: soft or hard lockup, RCU stall.
    Lockup,
    /// Memory or other hardware errors reported by the machine (MCE, EDAC, AER).
    MemoryError,
    /// A server of a network file system that does not answer.
    NetworkFs,
    /// A kernel bug: oops, BUG, WARNING.
    Oops,
    /// Thermal throttling.
    Thermal,
    /// Anything else.
    #[default]
    Other,
}

impl KernelLogClass {
    /// The name used in JSON and in filters.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Who reported a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogOrigin {
    /// The kernel (facility 0).
    #[default]
    Kernel,
    /// A program that wrote to the kernel log. Its messages are never classified.
    User,
    /// This program, which found a task hung in D state ([`hung_tasks`]).
    Detector,
}

/// An entry of the log: a message, the lines folded under it, and how often it occurred.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Wall clock of the newest occurrence, ns since 1970-01-01 UTC.
    pub wall_ns: i64,
    /// Wall clock of the first occurrence counted here.
    pub first_wall_ns: i64,
    /// Log clock of the newest occurrence, us.
    pub boot_us: u64,
    /// Sequence number of the newest occurrence; `None` if this program made the entry.
    pub seq: Option<u64>,
    /// syslog severity, 0 (worst) to 7.
    pub level: u8,
    /// Class of the message.
    pub class: KernelLogClass,
    /// The device as the message names it (`sda`, `nvme0`, `ata4.00`, a server's name).
    pub device: Option<String>,
    /// Number of the block device, if the record or its text has it.
    pub devno: Option<(u32, u32)>,
    /// The task it names.
    pub pid: Option<u32>,
    /// That task's command name, raw.
    pub comm: Option<String>,
    /// Occurrences counted in this entry, since the first.
    pub count: u64,
    /// Text of the newest occurrence. Not sanitized; bytes that are not UTF-8 are written `\xNN`.
    pub message: String,
    /// Stack trace, registers and tables of the newest occurrence, in order. Not sanitized.
    pub folded: Vec<String>,
    /// Folded lines beyond the limit, which were dropped.
    pub folded_dropped: u32,
    /// Who reported it.
    pub origin: LogOrigin,
    /// Rate-limited lines of this class: the true count is higher by these.
    pub suppressed: u64,
    /// Occurrences by minute.
    #[serde(default)]
    pub recent: RecentCounts,
    /// Rate-limited lines by minute.
    #[serde(default)]
    pub recent_suppressed: RecentCounts,
}

impl LogEntry {
    /// Whether a program wrote it, not the kernel.
    pub fn is_from_program(&self) -> bool {
        self.origin == LogOrigin::User
    }

    /// Occurrences and rate-limited lines in the ten minutes before this wall clock (ns), to the minute.
    pub(crate) fn recent_counts(&self, wall_ns: i64) -> (u64, u64) {
        let age_ns = u64::try_from(wall_ns.saturating_sub(self.wall_ns)).unwrap_or(0);
        let now_us = self.boot_us.saturating_add(age_ns / 1_000);
        (self.recent.sum(now_us), self.recent_suppressed.sum(now_us))
    }
}

#[cfg(test)]
mod test_support {
    use super::*;

    /// An entry of the kernel with this class and text.
    pub fn kernel_entry(class: KernelLogClass, message: &str) -> LogEntry {
        LogEntry { seq: Some(1), level: 3, class, count: 1, message: message.to_owned(), ..LogEntry::default() }
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
        for class in KernelLogClass::VARIANTS {
            assert_eq!(serde_json::to_string(&class).unwrap(), format!("\"{}\"", class.name()));
        }
    }
}
