//! `syncs[]` and `slow_syncs[]`: waits for syncs by process and file.

use super::{number, optional_number};
use crate::model::syncs::list::{self, SlowSyncRow, SyncQuery, SyncRow, device_name};
use crate::model::system_state::SystemState;
use crate::units::format_rfc3339;
use serde::Serialize;

/// The syncs of one process, file and call.
#[derive(Serialize)]
pub(super) struct SyncJson {
    pid: u32,
    command: String,
    call: &'static str,
    device: Option<String>,
    inode: Option<u64>,
    path: String,
    calls_per_s: Option<f64>,
    wait_pct: Option<f64>,
    calls: u64,
    errors: u64,
    mean_us: Option<f64>,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
    max_us: Option<f64>,
    last: Option<String>,
}

/// A slow sync, completed or running.
#[derive(Serialize)]
pub(super) struct SlowSyncJson {
    pid: u32,
    tid: u32,
    command: String,
    call: &'static str,
    device: Option<String>,
    path: String,
    began: String,
    took_ms: Option<f64>,
    under_way: bool,
    errno: Option<u32>,
    waited_on: Option<String>,
}

/// Syncs, longest waits first; `null` where they are not traced.
pub(super) fn syncs_json(system: &SystemState) -> Option<Vec<SyncJson>> {
    let (syncs, topology) = (system.snapshot.syncs.ok()?, system.topology.ok());
    let lines = list::sync_rows(syncs, topology, &SyncQuery::default());
    Some(lines.into_iter().map(|l| sync_json(l, system)).collect())
}

fn sync_json(line: SyncRow, system: &SystemState) -> SyncJson {
    let SyncRow { rate: r, comm, device, path, .. } = line;
    SyncJson {
        pid: r.file.pid,
        command: comm,
        call: r.file.call.name(),
        device: r.file.device_id().map(|_| device),
        inode: (r.file.ino > 0).then_some(r.file.ino),
        path,
        calls_per_s: number(r.calls_per_s),
        wait_pct: number(r.wait_pct),
        calls: r.calls,
        errors: r.errors,
        mean_us: optional_number(r.mean_us),
        p50_us: optional_number(r.latency.map(|s| s.p50)),
        p99_us: optional_number(r.latency.map(|s| s.p99)),
        max_us: optional_number(r.mean_us.map(|_| r.max_ns as f64 / 1e3)),
        last: r.last_ended_ns.map(|ns| format_rfc3339(system.now().wall_ns_at(ns))),
    }
}

/// Slow syncs: running ones, longest first, then completed ones, newest first; `null` where they are not traced.
pub(super) fn slow_syncs_json(system: &SystemState) -> Option<Vec<SlowSyncJson>> {
    let (syncs, topology) = (system.snapshot.syncs.ok()?, system.topology.ok());
    let one = |l: SlowSyncRow| SlowSyncJson {
        pid: l.file.pid,
        tid: l.tid,
        command: l.comm,
        call: l.file.call.name(),
        device: l.file.device_id().map(|id| device_name(Some(id), topology)),
        path: l.path,
        began: format_rfc3339(system.now().wall_ns_at(l.started_ns)),
        took_ms: number(l.duration_ns as f64 / 1e6),
        under_way: l.is_in_flight,
        errno: (!l.is_in_flight).then_some(l.error),
        waited_on: l.waiting_on,
    };
    Some(list::slow_sync_rows(syncs, topology, "").into_iter().map(one).collect())
}
