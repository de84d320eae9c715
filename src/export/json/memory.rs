//! `cpu`, `writeback`, `swap`, `pressure` and `stalls`. These objects are always whole; only values are `null`.

use super::{known, number};
use crate::model::pressure;
use crate::model::snapshot::Snapshot;
use crate::model::memory_stalls::{self, ProcessStalls, RECLAIM, THROTTLE};
use crate::text::sanitize;
use serde::Serialize;

#[derive(Default, Serialize)]
pub(super) struct Cpu {
    user_pct: Option<f64>,
    system_pct: Option<f64>,
    iowait_pct: Option<f64>,
    steal_pct: Option<f64>,
    idle_pct: Option<f64>,
}

pub(super) fn cpu(snap: &Snapshot) -> Cpu {
    snap.cpu.ok().map_or_else(Cpu::default, |c| Cpu {
        user_pct: number(c.user_pct),
        system_pct: number(c.system_pct),
        iowait_pct: number(c.iowait_pct),
        steal_pct: number(c.steal_pct),
        idle_pct: number(c.idle_pct),
    })
}

#[derive(Default, Serialize)]
pub(super) struct Writeback {
    dirty_bytes: Option<u64>,
    writeback_bytes: Option<u64>,
    background_threshold_bytes: Option<u64>,
    freerun_bytes: Option<u64>,
    dirty_threshold_bytes: Option<u64>,
    dirtied_bytes_per_s: Option<f64>,
    written_bytes_per_s: Option<f64>,
}

pub(super) fn writeback(snap: &Snapshot) -> Writeback {
    snap.writeback.ok().map_or_else(Writeback::default, |w| Writeback {
        dirty_bytes: w.dirty_bytes,
        writeback_bytes: w.writeback_bytes,
        background_threshold_bytes: w.background_threshold_bytes,
        freerun_bytes: w.freerun_bytes,
        dirty_threshold_bytes: w.dirty_threshold_bytes,
        dirtied_bytes_per_s: known(w.dirtied_bytes_per_s),
        written_bytes_per_s: known(w.written_bytes_per_s),
    })
}

#[derive(Serialize)]
pub(super) struct Swap {
    total_bytes: Option<u64>,
    used_bytes: Option<u64>,
    in_bytes_per_s: Option<f64>,
    out_bytes_per_s: Option<f64>,
    devices: Option<Vec<SwapDevice>>,
}

#[derive(Serialize)]
struct SwapDevice {
    name: String,
    kind: String,
    size_bytes: u64,
    used_bytes: u64,
    priority: i64,
}

pub(super) fn swap(snap: &Snapshot) -> Swap {
    let rate = snap.swap.ok();
    Swap {
        total_bytes: rate.and_then(|s| s.total_bytes),
        used_bytes: rate.and_then(|s| s.used_bytes),
        in_bytes_per_s: known(rate.and_then(|s| s.in_bytes_per_s)),
        out_bytes_per_s: known(rate.and_then(|s| s.out_bytes_per_s)),
        devices: snap.swap_areas.ok().map(|areas| {
            let device = |a: &crate::model::memory::SwapArea| SwapDevice {
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
pub(super) struct Pressure {
    cpu: Stalled,
    memory: Stalled,
    io: Stalled,
}

#[derive(Default, Serialize)]
struct Stalled {
    some_avg10: Option<f64>,
    full_avg10: Option<f64>,
}

pub(super) fn pressure(snap: &Snapshot) -> Pressure {
    let of = |p: pressure::ResourcePressure| Stalled {
        some_avg10: known(p.some.map(|s| s.avg10)),
        full_avg10: known(p.full.map(|s| s.avg10)),
    };
    snap.pressure.ok().map_or_else(Pressure::default, |p| Pressure {
        cpu: of(p.cpu),
        memory: of(p.memory),
        io: of(p.io),
    })
}

/// All `null` where they are not counted.
#[derive(Default, Serialize)]
pub(super) struct Stalls<'a> {
    throttle: Stall,
    reclaim: Stall,
    tasks: Option<Vec<Held<'a>>>,
}

#[derive(Default, Serialize)]
struct Stall {
    count: Option<u64>,
    ms_per_s: Option<f64>,
    longest_ms: Option<f64>,
}

#[derive(Serialize)]
struct Held<'a> {
    pid: u32,
    starttime: u64,
    comm: &'a str,
    throttled_on: Option<&'a str>,
    throttle: Stall,
    reclaim: Stall,
}

impl From<Option<memory_stalls::StallRate>> for Stall {
    fn from(stall: Option<memory_stalls::StallRate>) -> Self {
        stall.map_or_else(Self::default, |s| Self {
            count: Some(s.count),
            ms_per_s: number(s.ms_per_s),
            longest_ms: number(s.max_ms),
        })
    }
}

pub(super) fn stalls(snap: &Snapshot) -> Stalls<'_> {
    let Some(stalls) = snap.memory_stalls.ok() else { return Stalls::default() };
    Stalls {
        throttle: stalls.totals[THROTTLE].into(),
        reclaim: stalls.totals[RECLAIM].into(),
        tasks: Some(stalls.processes.iter().map(|t| held(stalls, t)).collect()),
    }
}

fn held<'a>(stalls: &memory_stalls::MemoryStalls, t: &'a ProcessStalls) -> Held<'a> {
    let kind = |kind: usize| stalls.totals[kind].map(|_| t.rates[kind]).into();
    Held {
        pid: t.key.pid,
        starttime: t.key.starttime,
        comm: &t.comm,
        throttled_on: Some(&*t.bdi).filter(|bdi| !bdi.is_empty()),
        throttle: kind(THROTTLE),
        reclaim: kind(RECLAIM),
    }
}
