//! `devices[]`: iostat's values under readable names.

use super::{number, optional_number};
use crate::model::disk::DiskRate;
use crate::model::latency::{LatencySummary, RequestLatency};
use crate::model::request_pattern::{RequestPattern, SIZE_BUCKETS};
use crate::model::system_state::SystemState;
use crate::model::topology::DeviceKind;
use crate::sanitize::sanitize;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct DeviceJson {
    name: String,
    kind: Option<&'static str>,
    parent: Option<String>,
    mounts: Option<Vec<String>>,
    tps: Option<f64>,
    reads_per_s: Option<f64>,
    writes_per_s: Option<f64>,
    discards_per_s: Option<f64>,
    flushes_per_s: Option<f64>,
    read_mb_per_s: Option<f64>,
    write_mb_per_s: Option<f64>,
    await_ms: Option<f64>,
    read_await_ms: Option<f64>,
    write_await_ms: Option<f64>,
    discard_await_ms: Option<f64>,
    flush_await_ms: Option<f64>,
    latency_us: LatencyByKindJson,
    service_us: LatencyByKindJson,
    request_sizes: ByDirection<[u32; SIZE_BUCKETS]>,
    sequential_pct: ByDirection<f64>,
    queue_size: Option<f64>,
    read_request_kb: Option<f64>,
    write_request_kb: Option<f64>,
    util_pct: Option<f64>,
    in_flight: u64,
    stalled: bool,
    read_mb_total: Option<f64>,
    write_mb_total: Option<f64>,
    scheduler: Option<String>,
    rotational: Option<bool>,
}

/// Latency percentiles by kind of request. All `null` where they are not measured, so that CSV always has the same
/// columns.
#[derive(Serialize)]
struct LatencyByKindJson {
    read: PercentilesJson,
    write: PercentilesJson,
    flush: PercentilesJson,
}

/// Microseconds; `null` without completed requests.
#[derive(Default, Serialize)]
struct PercentilesJson {
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
    samples: Option<u64>,
}

impl LatencyByKindJson {
    /// `part` selects the latency of a kind; `None`: it is not measured.
    fn from_rates(r: &DiskRate, part: fn(&RequestLatency) -> Option<Option<LatencySummary>>) -> Self {
        let times = |kind: usize| {
            let spread = r.latency.as_ref().and_then(|l| part(&l.kinds[kind]));
            match spread {
                None => PercentilesJson::default(),
                Some(None) => PercentilesJson { samples: Some(0), ..PercentilesJson::default() },
                Some(Some(s)) => PercentilesJson {
                    p50: number(s.p50),
                    p90: number(s.p90),
                    p99: number(s.p99),
                    p999: number(s.p999),
                    max: number(s.max),
                    samples: Some(s.samples),
                },
            }
        };
        Self { read: times(0), write: times(1), flush: times(2) }
    }
}

/// A value for reads and one for writes.
#[derive(Serialize)]
struct ByDirection<T> {
    read: Option<T>,
    write: Option<T>,
}

impl<T> ByDirection<T> {
    /// From traced requests; `None`: not traced, or by an older version that did not count it.
    fn from_rates(r: &DiskRate, get: fn(&RequestPattern) -> Option<T>) -> Self {
        let of = |kind: usize| {
            let kind = &r.latency.as_ref()?.kinds[kind];
            let known = kind.pattern.request_count() > 0 || kind.total.is_none();
            get(&kind.pattern).filter(|_| known)
        };
        Self { read: of(0), write: of(1) }
    }
}

/// The devices that ever did I/O, in the kernel's order.
pub(super) fn devices(system: &SystemState) -> Option<Vec<DeviceJson>> {
    Some(system.snapshot.devices.ok()?.iter().map(|rate| device_json(system, rate)).collect())
}

fn device_json(system: &SystemState, r: &DiskRate) -> DeviceJson {
    let topology = system.topology.ok();
    let dev = topology.and_then(|t| t.get(r.id));
    let queue = system.queue_attrs(r.id);
    // The kernel does not count flushes of a partition; its 0 is no measurement.
    let whole = dev.is_none_or(|d| d.kind != DeviceKind::Partition);
    // Await counts completed requests, so a stalled device has none.
    let wait = |ms: Option<f64>| optional_number(ms).filter(|_| !r.stalled);
    DeviceJson {
        name: sanitize(&*r.name),
        kind: dev.map(|d| d.kind.name()),
        parent: dev.and_then(|d| Some(sanitize(&topology?.get(d.parent?)?.name))),
        mounts: dev.map(|d| d.mounts.iter().filter(|m| !m.is_hidden).map(|m| m.mount_point.sanitized()).collect()),
        tps: number(r.tps),
        reads_per_s: number(r.reads_per_s),
        writes_per_s: number(r.writes_per_s),
        discards_per_s: optional_number(r.discards_per_s),
        flushes_per_s: optional_number(r.flushes_per_s).filter(|_| whole),
        read_mb_per_s: number(r.read_mb_per_s),
        write_mb_per_s: number(r.write_mb_per_s),
        await_ms: wait(Some(r.await_ms)),
        read_await_ms: wait(Some(r.read_await_ms)),
        write_await_ms: wait(Some(r.write_await_ms)),
        discard_await_ms: wait(r.discard_await_ms),
        flush_await_ms: wait(r.flush_await_ms).filter(|_| whole),
        latency_us: LatencyByKindJson::from_rates(r, |k| Some(k.total)),
        // Bio-based devices have no requests, and so no service time.
        service_us: LatencyByKindJson::from_rates(r, |k| {
            (k.service.is_some() || k.total.is_none()).then_some(k.service)
        }),
        request_sizes: ByDirection::from_rates(r, |s| Some(s.sizes)),
        sequential_pct: ByDirection::from_rates(r, |s| optional_number(s.sequential_pct())),
        queue_size: number(r.queue_size),
        read_request_kb: number(r.read_request_kb),
        write_request_kb: number(r.write_request_kb),
        util_pct: number(r.util_pct),
        in_flight: r.in_flight,
        stalled: r.stalled,
        read_mb_total: number(r.read_mb_total),
        write_mb_total: number(r.write_mb_total),
        scheduler: queue.and_then(|q| q.scheduler.as_deref()).map(sanitize),
        rotational: queue.and_then(|q| q.rotational),
    }
}
