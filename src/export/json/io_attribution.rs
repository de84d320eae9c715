//! `processes[].devices[]` and `cgroups[]`: traced I/O by owner and device.

use super::{number, optional_number};
use crate::model::io_accounting::{DeviceIo, OwnerIo};
use crate::model::system_state::SystemState;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct DeviceIoJson {
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
pub(super) struct CgroupIoJson {
    cgroup: String,
    writeback_bytes_per_s: Option<f64>,
    devices: Vec<DeviceIoJson>,
}

fn device_io(system: &SystemState, on: &DeviceIo) -> DeviceIoJson {
    let f = &on.rates;
    DeviceIoJson {
        name: system.device_name(on.device),
        reads_per_s: number(f.reads_per_s),
        writes_per_s: number(f.writes_per_s),
        flushes_per_s: number(f.flushes_per_s),
        read_bytes_per_s: number(f.read_bytes_per_s),
        write_bytes_per_s: number(f.write_bytes_per_s),
        mean_us: optional_number(f.mean_us),
        p99_us: optional_number(f.p99_us),
        writeback_bytes_per_s: number(f.writeback_bytes_per_s),
    }
}

/// The devices of a process; `None` where I/O is not traced.
pub(super) fn process_devices(system: &SystemState, pid: u32) -> Option<Vec<DeviceIoJson>> {
    let attribution = system.snapshot.io_attribution.ok()?;
    let on = attribution.process(pid).map(|t| t.devices.as_slice()).unwrap_or_default();
    Some(on.iter().map(|on| device_io(system, on)).collect())
}

/// Control groups with I/O; `None` where I/O is not traced.
pub(super) fn cgroups(system: &SystemState) -> Option<Vec<CgroupIoJson>> {
    let group = |g: &OwnerIo<std::sync::Arc<str>>| CgroupIoJson {
        cgroup: crate::sanitize::sanitize(&*g.owner),
        writeback_bytes_per_s: number(g.total.writeback_bytes_per_s),
        devices: g.devices.iter().map(|on| device_io(system, on)).collect(),
    };
    Some(system.snapshot.io_attribution.ok()?.cgroups.iter().map(group).collect())
}
