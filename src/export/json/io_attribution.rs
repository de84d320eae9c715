//! `processes[].devices[]` and `cgroups[]`: traced I/O by owner and device.

use crate::model::io_accounting::{IoRates, OwnerIo};
use crate::model::system_state::SystemState;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Serialize)]
pub(super) struct DeviceIoJson<'a> {
    name: String,
    #[serde(flatten)]
    rates: &'a IoRates,
}

fn devices<'a, W>(system: &SystemState, owner: &'a OwnerIo<W>) -> Vec<DeviceIoJson<'a>> {
    owner.devices.iter().map(|on| DeviceIoJson { name: system.device_name(on.device), rates: &on.rates }).collect()
}

/// The devices of a process; `None` where I/O is not traced.
pub(super) fn process_devices(system: &SystemState, pid: u32) -> Option<Vec<DeviceIoJson<'_>>> {
    let process = system.snapshot.io_attribution.ok()?.process(pid);
    Some(process.map(|process| devices(system, process)).unwrap_or_default())
}

/// Control groups with I/O; `None` where I/O is not traced.
pub(super) fn cgroups(system: &SystemState) -> Option<Vec<Value>> {
    let one = |group: &OwnerIo<Arc<str>>| {
        json!({
            "cgroup": crate::sanitize::sanitize(&*group.owner),
            "writeback_bytes_per_s": group.total.writeback_bytes_per_s,
            "devices": devices(system, group),
        })
    };
    Some(system.snapshot.io_attribution.ok()?.cgroups.iter().map(one).collect())
}
