//! `syncs[]` and `slow_syncs[]`: waits for syncs by process and file.

use crate::model::syncs::list::{self, SyncQuery, file_device_name};
use crate::model::syncs::{SlowSyncRow, SyncRow};
use crate::model::system_state::SystemState;
use crate::units::format_rfc3339;
use serde_json::{Value, json};

/// Syncs, longest waits first; `null` where they are not traced.
pub(super) fn syncs(system: &SystemState) -> Option<Vec<Value>> {
    let one = |SyncRow { rate, comm, device, path, .. }: SyncRow| {
        json!({
            "pid": rate.file.pid,
            "command": comm,
            "call": rate.file.call.name(),
            "device": rate.file.file_system().map(|_| device),
            "inode": (rate.file.ino > 0).then_some(rate.file.ino),
            "path": path,
            "calls_per_s": rate.calls_per_s,
            "wait_pct": rate.wait_pct,
            "calls": rate.calls,
            "errors": rate.errors,
            "mean_us": rate.mean_us,
            "p50_us": rate.latency.map(|s| s.p50),
            "p99_us": rate.latency.map(|s| s.p99),
            "max_us": rate.mean_us.map(|_| rate.max_ns as f64 / 1e3),
            "last": rate.last_ended_ns.map(|ns| format_rfc3339(system.now().wall_ns_at(ns))),
        })
    };
    let rows = list::sync_rows(system.snapshot.syncs.ok()?, system.topology.ok(), &SyncQuery::default());
    Some(rows.into_iter().map(one).collect())
}

/// Slow syncs: running ones, longest first, then completed ones, newest first; `null` where they are not traced.
pub(super) fn slow_syncs(system: &SystemState) -> Option<Vec<Value>> {
    let topology = system.topology.ok();
    let one = |row: SlowSyncRow| {
        json!({
            "pid": row.file.pid,
            "tid": row.tid,
            "command": row.comm,
            "call": row.file.call.name(),
            "device": row.file.file_system().map(|_| file_device_name(&row.file, topology)),
            "path": row.path,
            "began": format_rfc3339(system.now().wall_ns_at(row.started_ns)),
            "took_ms": row.duration_ns as f64 / 1e6,
            "under_way": row.is_in_flight,
            "errno": (!row.is_in_flight).then_some(row.error),
            "waited_on": row.waiting_on,
        })
    };
    Some(list::slow_sync_rows(system.snapshot.syncs.ok()?, topology, "").into_iter().map(one).collect())
}
