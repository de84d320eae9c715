//! `processes[].devices[]` and `cgroups[]`: traced I/O by owner and device.

use crate::model::io_accounting::OwnerIo;
use crate::model::system_state::SystemState;
use serde_json::{Value, json};
use std::sync::Arc;

fn devices<W>(system: &SystemState, owner: &OwnerIo<W>) -> Vec<Value> {
    let device = owner.devices.iter().map(|on| {
        let rates = &on.rates;
        json!({
            "name": system.device_name(on.device),
            "reads_per_s": rates.reads_per_s,
            "writes_per_s": rates.writes_per_s,
            "flushes_per_s": rates.flushes_per_s,
            "read_bytes_per_s": rates.read_bytes_per_s,
            "write_bytes_per_s": rates.write_bytes_per_s,
            "mean_us": rates.mean_us,
            "p99_us": rates.p99_us,
            "writeback_bytes_per_s": rates.writeback_bytes_per_s,
        })
    });
    device.collect()
}

/// The devices of a process; `None` where I/O is not traced.
pub(super) fn process_devices(system: &SystemState, pid: u32) -> Option<Vec<Value>> {
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
