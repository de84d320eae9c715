//! `waits[]`: what tasks wait for.

use crate::model::system_state::SystemState;
use crate::model::task_waits::list::{self, Blame, WaitRow};
use serde_json::{Value, json};

/// Waits, most time first; `null` where they are not traced.
pub(super) fn waits(system: &SystemState) -> Option<Vec<Value>> {
    system.snapshot.task_waits.ok()?;
    let task = |blame: &Blame| json!({ "pid": blame.pid, "command": blame.comm });
    let one = |row: WaitRow| {
        let (held, behind) = match &row.blame {
            Some(blame) if blame.queue_share.is_none() => (Some(blame), None),
            other => (None, other.as_ref()),
        };
        json!({
            "pid": row.pid,
            "command": row.comm,
            "reason": row.reason.name(),
            "time_pct": row.pct,
            "total_ms": row.total_ms,
            "count": row.count,
            "longest_ms": row.longest_ms,
            "path": row.file,
            "device": row.device,
            "held_by": held.map(task),
            "behind": behind.map(|blame| json!({
                "pid": blame.pid, "command": blame.comm, "queue_pct": blame.queue_share.map(|share| 100.0 * share),
            })),
            "wchan": (!row.function.is_empty()).then_some(row.function),
        })
    };
    Some(list::wait_rows(&system.snapshot, system.topology.ok(), None).into_iter().map(one).collect())
}
