//! `devices[]`: iostat's values under readable names.

use crate::model::disk::DiskRate;
use crate::model::latency::{LatencySummary, RequestLatency};
use crate::model::request_pattern::RequestPattern;
use crate::model::system_state::SystemState;
use crate::model::topology::DeviceKind;
use crate::sanitize::sanitize;
use serde::Serialize;
use serde_json::{Value, json};

/// The devices that ever did I/O, in the kernel's order.
pub(super) fn devices(system: &SystemState) -> Option<Vec<Value>> {
    Some(system.snapshot.devices.ok()?.iter().map(|rate| device(system, rate)).collect())
}

fn device(system: &SystemState, r: &DiskRate) -> Value {
    let topology = system.topology.ok();
    let dev = topology.and_then(|t| t.get(r.id));
    let parent = dev.and_then(|d| Some(sanitize(&topology?.get(d.parent?)?.name)));
    let mounts = dev.map(|d| d.mounts.iter().filter(|m| !m.is_hidden).map(|m| m.mount_point.sanitized()));
    let queue = system.queue_attrs(r.id);
    // The kernel does not count flushes of a partition; its 0 is no measurement.
    let whole = dev.is_none_or(|d| d.kind != DeviceKind::Partition);
    // Await counts completed requests, so a stalled device has none.
    let wait = |ms: Option<f64>| ms.filter(|_| !r.stalled);
    json!({
        "name": sanitize(&*r.name),
        "kind": dev.map(|d| d.kind.name()),
        "parent": parent,
        "mounts": mounts.map(Iterator::collect::<Vec<_>>),
        "tps": r.tps,
        "reads_per_s": r.reads_per_s,
        "writes_per_s": r.writes_per_s,
        "discards_per_s": r.discards_per_s,
        "flushes_per_s": r.flushes_per_s.filter(|_| whole),
        "read_mb_per_s": r.read_mb_per_s,
        "write_mb_per_s": r.write_mb_per_s,
        "await_ms": wait(Some(r.await_ms)),
        "read_await_ms": wait(Some(r.read_await_ms)),
        "write_await_ms": wait(Some(r.write_await_ms)),
        "discard_await_ms": wait(r.discard_await_ms),
        "flush_await_ms": wait(r.flush_await_ms).filter(|_| whole),
        "latency_us": latencies(r, |k| Some(k.total)),
        // Bio-based devices have no requests, and so no service time.
        "service_us": latencies(r, |k| (k.service.is_some() || k.total.is_none()).then_some(k.service)),
        "request_sizes": reads_and_writes(r, |s| Some(s.sizes)),
        "sequential_pct": reads_and_writes(r, RequestPattern::sequential_pct),
        "queue_size": r.queue_size,
        "read_request_kb": r.read_request_kb,
        "write_request_kb": r.write_request_kb,
        "util_pct": r.util_pct,
        "in_flight": r.in_flight,
        "stalled": r.stalled,
        "read_mb_total": r.read_mb_total,
        "write_mb_total": r.write_mb_total,
        "scheduler": queue.and_then(|q| q.scheduler.as_deref()).map(sanitize),
        "rotational": queue.and_then(|q| q.rotational),
    })
}

/// Latency percentiles by kind of request, microseconds. All `null` where they are not measured, so that CSV always has
/// the same columns. `part` selects the latency of a kind; `None`: it is not measured.
fn latencies(r: &DiskRate, part: fn(&RequestLatency) -> Option<Option<LatencySummary>>) -> Value {
    let of = |kind: usize| {
        let measured = r.latency.as_ref().map(|l| &l.kinds[kind]).filter(|k| !k.is_unmeasured).and_then(part);
        let spread = measured.flatten();
        json!({
            "p50": spread.map(|s| s.p50),
            "p90": spread.map(|s| s.p90),
            "p99": spread.map(|s| s.p99),
            "p999": spread.map(|s| s.p999),
            "max": spread.map(|s| s.max),
            "samples": measured.map(|_| spread.map_or(0, |s| s.samples)),
        })
    };
    json!({ "read": of(0), "write": of(1), "flush": of(2) })
}

/// A value of traced reads and writes; `null`: not traced, or by an older version that did not count it.
fn reads_and_writes<T: Serialize>(r: &DiskRate, get: fn(&RequestPattern) -> Option<T>) -> Value {
    let of = |kind: usize| {
        let kind = &r.latency.as_ref()?.kinds[kind];
        let known = kind.pattern.request_count() > 0 || (kind.total.is_none() && !kind.is_unmeasured);
        get(&kind.pattern).filter(|_| known)
    };
    json!({ "read": of(0), "write": of(1) })
}
