//! `processes[].devices[]` and `cgroups[]`: who does the I/O of which device, by tracing.

use super::{known, number};
use crate::model::io_accounting::{OwnerIo, DeviceIo};
use crate::model::system_state::SystemState;
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

fn device(world: &SystemState, on: &DeviceIo) -> Device {
    let f = &on.rates;
    Device {
        name: world.device_name(on.device),
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
pub(super) fn devices(world: &SystemState, pid: u32) -> Option<Vec<Device>> {
    let charged = world.snapshot.io_attribution.ok()?;
    let on = charged.process(pid).map(|t| t.devices.as_slice()).unwrap_or_default();
    Some(on.iter().map(|on| device(world, on)).collect())
}

/// Control groups that did something; `None` where nothing is traced.
pub(super) fn groups(world: &SystemState) -> Option<Vec<Group>> {
    let group = |g: &OwnerIo<std::sync::Arc<str>>| Group {
        cgroup: crate::text::sanitize(&*g.owner),
        writeback_bytes_per_s: number(g.total.writeback_bytes_per_s),
        devices: g.devices.iter().map(|on| device(world, on)).collect(),
    };
    Some(world.snapshot.io_attribution.ok()?.cgroups.iter().map(group).collect())
}
