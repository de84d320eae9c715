//! `kernel_log[]`: what the kernel said lately, and the tasks that hang whether or not it says so.

use crate::model::kernel_log::{LogClock, LogEntry, LogPatterns};
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;
use crate::units::format_rfc3339;
use serde::Serialize;

/// Which entries are new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSince {
    /// Said (or said again) at this wall time, ns, or later.
    Time(i64),
    /// Said (or said again) after the record of this number.
    Record(u64),
}

/// The first sample tells of the kernel log what is at most this old.
const FIRST_SAMPLE_WINDOW_NS: i64 = 600_000_000_000;

impl LogSince {
    /// What is new in the sample of `now_ns` when the sample before it told up to this record; 0: there was none.
    pub fn after_record(last_record: u64, now_ns: i64) -> Self {
        match last_record {
            0 => LogSince::Time(now_ns.saturating_sub(FIRST_SAMPLE_WINDOW_NS)),
            last => LogSince::Record(last),
        }
    }
}

#[derive(Serialize)]
pub(super) struct KernelLogEntryJson {
    time: String,
    seq: Option<u64>,
    level: u8,
    class: &'static str,
    device: Option<String>,
    pid: Option<u32>,
    count: u64,
    message: String,
}

/// Oldest first; then the tasks stuck in state D, which have no `seq`.
pub(super) fn entries(world: &SystemState, since: LogSince) -> Option<Vec<KernelLogEntryJson>> {
    let now = LogClock { mono_ns: 0, wall_ns: world.now().wall_ns };
    let stuck = world.hung_tasks.iter().map(|s| entry_json(&s.to_log_entry(now, world.hung_task_warnings)));
    if world.kernel_log_status.ok().is_none() {
        let stuck: Vec<_> = stuck.collect();
        return (!stuck.is_empty()).then_some(stuck);
    }
    let patterns = LogPatterns::default();
    let new = world.kernel_log.visible(&patterns).filter(|e| match since {
        LogSince::Time(from) => e.wall_ns >= from,
        LogSince::Record(last) => e.seq.is_some_and(|seq| seq > last),
    });
    Some(new.map(entry_json).chain(stuck).collect())
}

fn entry_json(e: &LogEntry) -> KernelLogEntryJson {
    KernelLogEntryJson {
        time: format_rfc3339(e.wall_ns),
        seq: e.seq,
        level: e.level,
        class: e.class.name(),
        device: e.device.as_deref().map(sanitize),
        pid: e.pid,
        count: e.count,
        message: sanitize(&e.message),
    }
}
