//! `cpu`, `writeback`, `swap`, `pressure` and `stalls`. These objects always have all keys; only values are `null`.

use super::{number, optional_number};
use crate::model::memory_stalls::{self, ProcessStalls, RECLAIM, THROTTLE};
use crate::model::pressure;
use crate::model::snapshot::Snapshot;
use crate::sanitize::sanitize;
use serde::Serialize;

#[derive(Default, Serialize)]
pub(super) struct CpuJson {
    user_pct: Option<f64>,
    system_pct: Option<f64>,
    iowait_pct: Option<f64>,
    steal_pct: Option<f64>,
    idle_pct: Option<f64>,
}

pub(super) fn cpu(snapshot: &Snapshot) -> CpuJson {
    snapshot.cpu.ok().map_or_else(CpuJson::default, |c| CpuJson {
        user_pct: number(c.user_pct),
        system_pct: number(c.system_pct),
        iowait_pct: number(c.iowait_pct),
        steal_pct: number(c.steal_pct),
        idle_pct: number(c.idle_pct),
    })
}

#[derive(Default, Serialize)]
pub(super) struct WritebackJson {
    dirty_bytes: Option<u64>,
    writeback_bytes: Option<u64>,
    background_threshold_bytes: Option<u64>,
    freerun_bytes: Option<u64>,
    dirty_threshold_bytes: Option<u64>,
    dirtied_bytes_per_s: Option<f64>,
    written_bytes_per_s: Option<f64>,
}

pub(super) fn writeback(snapshot: &Snapshot) -> WritebackJson {
    snapshot.writeback.ok().map_or_else(WritebackJson::default, |w| WritebackJson {
        dirty_bytes: w.dirty_bytes,
        writeback_bytes: w.writeback_bytes,
        background_threshold_bytes: w.background_threshold_bytes,
        freerun_bytes: w.freerun_bytes,
        dirty_threshold_bytes: w.dirty_threshold_bytes,
        dirtied_bytes_per_s: optional_number(w.dirtied_bytes_per_s),
        written_bytes_per_s: optional_number(w.written_bytes_per_s),
    })
}

#[derive(Serialize)]
pub(super) struct SwapJson {
    total_bytes: Option<u64>,
    used_bytes: Option<u64>,
    in_bytes_per_s: Option<f64>,
    out_bytes_per_s: Option<f64>,
    devices: Option<Vec<SwapDeviceJson>>,
}

#[derive(Serialize)]
struct SwapDeviceJson {
    name: String,
    kind: String,
    size_bytes: u64,
    used_bytes: u64,
    priority: i64,
}

pub(super) fn swap(snapshot: &Snapshot) -> SwapJson {
    let rate = snapshot.swap.ok();
    SwapJson {
        total_bytes: rate.and_then(|s| s.total_bytes),
        used_bytes: rate.and_then(|s| s.used_bytes),
        in_bytes_per_s: optional_number(rate.and_then(|s| s.in_bytes_per_s)),
        out_bytes_per_s: optional_number(rate.and_then(|s| s.out_bytes_per_s)),
        devices: snapshot.swap_areas.ok().map(|areas| {
            let device = |a: &crate::model::memory::SwapArea| SwapDeviceJson {
                name: sanitize(&a.name),
                kind: sanitize(&a.kind),
                size_bytes: a.size_bytes,
                used_bytes: a.used_bytes,
                priority: a.priority,
            };
            areas.iter().map(device).collect()
        }),
    }
}

#[derive(Default, Serialize)]
pub(super) struct PressureJson {
    cpu: PressureAveragesJson,
    memory: PressureAveragesJson,
    io: PressureAveragesJson,
}

#[derive(Default, Serialize)]
struct PressureAveragesJson {
    some_avg10: Option<f64>,
    full_avg10: Option<f64>,
}

pub(super) fn pressure(snapshot: &Snapshot) -> PressureJson {
    let of = |p: pressure::ResourcePressure| PressureAveragesJson {
        some_avg10: optional_number(p.some.map(|s| s.avg10)),
        full_avg10: optional_number(p.full.map(|s| s.avg10)),
    };
    snapshot.pressure.ok().map_or_else(PressureJson::default, |p| PressureJson {
        cpu: of(p.cpu),
        memory: of(p.memory),
        io: of(p.io),
    })
}

/// All `null` where stalls are not traced.
#[derive(Default, Serialize)]
pub(super) struct MemoryStallsJson<'a> {
    throttle: StallJson,
    reclaim: StallJson,
    tasks: Option<Vec<StalledTaskJson<'a>>>,
}

#[derive(Default, Serialize)]
struct StallJson {
    count: Option<u64>,
    ms_per_s: Option<f64>,
    longest_ms: Option<f64>,
}

#[derive(Serialize)]
struct StalledTaskJson<'a> {
    pid: u32,
    starttime: u64,
    comm: &'a str,
    throttled_on: Option<&'a str>,
    throttle: StallJson,
    reclaim: StallJson,
}

impl From<Option<memory_stalls::StallRate>> for StallJson {
    fn from(stall: Option<memory_stalls::StallRate>) -> Self {
        stall.map_or_else(Self::default, |s| Self {
            count: Some(s.count),
            ms_per_s: number(s.ms_per_s),
            longest_ms: number(s.max_ms),
        })
    }
}

pub(super) fn stalls(snapshot: &Snapshot) -> MemoryStallsJson<'_> {
    let Some(stalls) = snapshot.memory_stalls.ok() else { return MemoryStallsJson::default() };
    MemoryStallsJson {
        throttle: stalls.totals[THROTTLE].into(),
        reclaim: stalls.totals[RECLAIM].into(),
        tasks: Some(stalls.processes.iter().map(|t| stalled_task(stalls, t)).collect()),
    }
}

fn stalled_task<'a>(stalls: &memory_stalls::MemoryStalls, t: &'a ProcessStalls) -> StalledTaskJson<'a> {
    let kind = |kind: usize| stalls.totals[kind].map(|_| t.rates[kind]).into();
    StalledTaskJson {
        pid: t.key.pid,
        starttime: t.key.starttime,
        comm: &t.comm,
        throttled_on: Some(&*t.bdi).filter(|bdi| !bdi.is_empty()),
        throttle: kind(THROTTLE),
        reclaim: kind(RECLAIM),
    }
}
