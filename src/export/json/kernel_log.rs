//! `kernel_log[]`: recent kernel messages, and hung tasks whether or not the kernel reports them.

use crate::model::kernel_log::{LogClock, LogEntry, LogPatterns};
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;
use crate::units::format_rfc3339;
use serde_json::{Value, json};

/// Which entries to include.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSince {
    /// Logged or repeated at this wall time (ns) or later.
    Time(i64),
    /// Logged or repeated after the record with this sequence number.
    Record(u64),
}

/// The first sample includes entries of this age, ns.
const FIRST_SAMPLE_WINDOW_NS: i64 = 600_000_000_000;

impl LogSince {
    /// The entries for a sample at `now_ns` after one that ended with this record; 0: this is the first sample.
    pub(crate) fn after_record(last_record: u64, now_ns: i64) -> Self {
        match last_record {
            0 => LogSince::Time(now_ns.saturating_sub(FIRST_SAMPLE_WINDOW_NS)),
            last => LogSince::Record(last),
        }
    }
}

/// The entries, oldest first, then hung tasks, which have no `seq`.
pub(super) fn entries(system: &SystemState, since: LogSince) -> Option<Vec<Value>> {
    let now = LogClock { mono_ns: 0, wall_ns: system.now().wall_ns };
    let hung = system.hung_tasks.iter().map(|s| entry(&s.to_log_entry(now, system.hung_task_warnings)));
    if system.kernel_log_status.ok().is_none() {
        let hung: Vec<_> = hung.collect();
        return (!hung.is_empty()).then_some(hung);
    }
    let patterns = LogPatterns::default();
    let new = system.kernel_log.visible(&patterns).filter(|e| match since {
        LogSince::Time(from) => e.wall_ns >= from,
        LogSince::Record(last) => e.seq.is_some_and(|seq| seq > last),
    });
    Some(new.map(entry).chain(hung).collect())
}

fn entry(e: &LogEntry) -> Value {
    json!({
        "time": format_rfc3339(e.wall_ns),
        "seq": e.seq,
        "level": e.level,
        "class": e.class.name(),
        "device": e.device.as_deref().map(sanitize),
        "pid": e.pid,
        "count": e.count,
        "message": sanitize(&e.message),
    })
}
