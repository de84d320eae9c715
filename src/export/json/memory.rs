//! `cpu`, `writeback`, `swap`, `pressure` and `stalls`. These objects always have all keys; only values are `null`.

use crate::model::memory::{SwapArea, WritebackRate};
use crate::model::memory_stalls::{ProcessStalls, RECLAIM, StallRate, THROTTLE};
use crate::model::pressure::ResourcePressure;
use crate::model::snapshot::Snapshot;
use crate::sanitize::sanitize;
use serde_json::{Value, json};

pub(super) fn cpu(snapshot: &Snapshot) -> Value {
    let cpu = snapshot.cpu.ok();
    json!({
        "user_pct": cpu.map(|c| c.user_pct),
        "system_pct": cpu.map(|c| c.system_pct),
        "iowait_pct": cpu.map(|c| c.iowait_pct),
        "steal_pct": cpu.map(|c| c.steal_pct),
        "idle_pct": cpu.map(|c| c.idle_pct),
    })
}

pub(super) fn writeback(snapshot: &Snapshot) -> WritebackRate {
    snapshot.writeback.ok().copied().unwrap_or_default()
}

pub(super) fn swap(snapshot: &Snapshot) -> Value {
    let swap = snapshot.swap.ok();
    let device = |area: &SwapArea| {
        json!({
            "name": sanitize(&area.name),
            "kind": sanitize(&area.kind),
            "size_bytes": area.size_bytes,
            "used_bytes": area.used_bytes,
            "priority": area.priority,
        })
    };
    json!({
        "total_bytes": swap.map(|s| s.total_bytes),
        "used_bytes": swap.map(|s| s.used_bytes),
        "in_bytes_per_s": swap.map(|s| s.in_bytes_per_s),
        "out_bytes_per_s": swap.map(|s| s.out_bytes_per_s),
        "devices": snapshot.swap_areas.ok().map(|areas| areas.iter().map(device).collect::<Vec<_>>()),
    })
}

pub(super) fn pressure(snapshot: &Snapshot) -> Value {
    let pressure = snapshot.pressure.ok();
    let of = |p: Option<ResourcePressure>| {
        json!({
            "some_avg10": p.and_then(|p| p.some).map(|psi| psi.avg10),
            "full_avg10": p.and_then(|p| p.full).map(|psi| psi.avg10),
        })
    };
    json!({ "cpu": of(pressure.map(|p| p.cpu)), "memory": of(pressure.map(|p| p.memory)), "io": of(pressure.map(|p| p.io)) })
}

pub(super) fn stalls(snapshot: &Snapshot) -> Value {
    let stalls = snapshot.memory_stalls.ok();
    let total = |kind: usize| stalls.and_then(|s| s.totals[kind]);
    let task = |t: &ProcessStalls| {
        json!({
            "pid": t.key.pid,
            "starttime": t.key.starttime,
            "comm": t.comm,
            "throttled_on": Some(&*t.bdi).filter(|bdi| !bdi.is_empty()),
            "throttle": stall(total(THROTTLE).map(|_| t.rates[THROTTLE])),
            "reclaim": stall(total(RECLAIM).map(|_| t.rates[RECLAIM])),
        })
    };
    json!({
        "throttle": stall(total(THROTTLE)),
        "reclaim": stall(total(RECLAIM)),
        "tasks": stalls.map(|s| s.processes.iter().map(task).collect::<Vec<_>>()),
    })
}

fn stall(rate: Option<StallRate>) -> Value {
    json!({
        "count": rate.map(|r| r.count),
        "ms_per_s": rate.map(|r| r.ms_per_s),
        "longest_ms": rate.map(|r| r.max_ms),
    })
}
