//! `processes[].devices[]` and `cgroups[]`: who does the I/O of which device, by tracing.

use super::{known, number};
use crate::model::charge::{Charge, OnDevice};
use crate::model::world::World;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Device {
    name: String,
    reads_per_s: Option<f64>,
    writes_per_s: Option<f64>,
    flushes_per_s: Option<f64>,
    read_bytes_per_s: Option<f64>,
    write_bytes_per_s: Option<f64>,
    mean_us: Option<f64>,
    p99_us: Option<f64>,
    writeback_bytes_per_s: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct Group {
    cgroup: String,
    writeback_bytes_per_s: Option<f64>,
    devices: Vec<Device>,
}

fn device(world: &World, on: &OnDevice) -> Device {
    let f = &on.figures;
    Device {
        name: world.block_name(on.id),
        reads_per_s: number(f.reads_per_s),
        writes_per_s: number(f.writes_per_s),
        flushes_per_s: number(f.flushes_per_s),
        read_bytes_per_s: number(f.read_bytes_per_s),
        write_bytes_per_s: number(f.write_bytes_per_s),
        mean_us: known(f.mean_us),
        p99_us: known(f.p99_us),
        writeback_bytes_per_s: number(f.writeback_bytes_per_s),
    }
}

/// Of a process; `None` where nothing is traced, none where it did nothing.
pub(super) fn devices(world: &World, pid: u32) -> Option<Vec<Device>> {
    let charged = world.snap.charged.ok()?;
    let on = charged.task(pid).map(|t| t.devices.as_slice()).unwrap_or_default();
    Some(on.iter().map(|on| device(world, on)).collect())
}

/// Control groups that did something; `None` where nothing is traced.
pub(super) fn groups(world: &World) -> Option<Vec<Group>> {
    let group = |g: &Charge<std::sync::Arc<str>>| Group {
        cgroup: crate::text::sanitize(&*g.who),
        writeback_bytes_per_s: number(g.total.writeback_bytes_per_s),
        devices: g.devices.iter().map(|on| device(world, on)).collect(),
    };
    Some(world.snap.charged.ok()?.groups.iter().map(group).collect())
}
