//! `processes[]`: every task, busiest first; `cgroups[]`: traced I/O by control group.

use crate::model::columns::process::{COLUMNS, ProcessTexts};
use crate::model::containers::{ContainerName, WITHIN};
use crate::model::io_accounting::{IoRates, OwnerIo};
use crate::model::process::{ProcessColumn, ProcessQuery, ProcessRow};
use crate::model::system_state::SystemState;
use crate::sanitize::{sanitize, sanitize_cow};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::sync::Arc;

/// Rows of the table, converted while they are serialised: there may be twenty thousand.
pub(super) struct ProcessesJson<'a> {
    system: &'a SystemState,
    rows: Vec<u32>,
}

/// The processes; `None` where tasks cannot be listed.
pub(super) fn processes(system: &SystemState) -> Option<ProcessesJson<'_>> {
    system.processes_status.ok()?;
    let query = ProcessQuery { sort_by: ProcessColumn::Io, height: usize::MAX, ..ProcessQuery::default() };
    Some(ProcessesJson { system, rows: system.processes.window(&query).rows })
}

impl Serialize for ProcessesJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (system, table) = (self.system, &self.system.processes);
        let rows = self.rows.iter().map(|at| table.row(*at));
        // An exited task has no rates, but its pages may still be written.
        let wanted = rows.filter(|row| !row.has_exited() || row.has_exited_with_io());
        serializer.collect_seq(wanted.map(|row| ProcessJson { system, row }))
    }
}

struct ProcessJson<'a> {
    system: &'a SystemState,
    row: ProcessRow<'a>,
}

impl Serialize for ProcessJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (system, row) = (self.system, &self.row);
        // Traced I/O is by process, not by thread.
        let traced = row.attributed_io();
        let accounts = system.last_sample.as_ref().and_then(|s| s.io_accounts.ok()).filter(|_| traced.is_some());
        let ms_per_s = |pct: Option<f64>| pct.map(|pct| pct * 10.0);
        let stalls = json!({
            "throttle": ms_per_s(row.throttled_pct()),
            "reclaim": ms_per_s(row.reclaim_pct()),
            "swapin": ms_per_s(row.rates().swapin_delay_pct),
        });
        let mut object = serializer.serialize_map(None)?;
        let texts = ProcessTexts::new(row);
        COLUMNS.iter().try_for_each(|column| column.serialize_entry(&mut object, &texts))?;
        object.serialize_entry("starttime", &row.raw.key.starttime)?;
        object.serialize_entry("comm", &row.comm())?;
        object.serialize_entry("command", &row.command())?;
        object.serialize_entry("wchan", &row.wait_channel().map(|w| sanitize_cow(w.as_bytes())))?;
        object.serialize_entry("read_bytes_total", &row.raw.io.bytes().map(|b| b.read))?;
        object.serialize_entry("write_bytes_total", &row.raw.io.bytes().map(|b| b.write))?;
        object.serialize_entry("stalled_ms_per_s", &stalls)?;
        object.serialize_entry("cgroup", &row.cgroup().map(|c| sanitize_cow(c.as_bytes())))?;
        object.serialize_entry("container", &container_json(row))?;
        object.serialize_entry("ended", &row.has_exited())?;
        object.serialize_entry("writeback_bytes_total", &accounts.map(|a| a.written_back_bytes(row.pid(), None)))?;
        object.serialize_entry("devices", &traced.and_then(|_| process_devices(system, row.pid())))?;
        object.end()
    }
}

/// The container of a task; `name` is null where only its number is known.
fn container_json(row: &ProcessRow<'_>) -> Option<Value> {
    if let Some(known) = row.known_container() {
        let ContainerName { id, runtime, name, pod, namespace, .. } = &known.container;
        return Some(json!({ "runtime": runtime, "id": id, "name": name, "pod": pod, "namespace": namespace }));
    }
    let (runtime, id) = row.container_hint()?.split(WITHIN).next()?.split_once(':')?;
    Some(json!({ "runtime": runtime, "id": id, "name": null, "pod": null, "namespace": null }))
}

#[derive(serde::Serialize)]
struct DeviceIoJson<'a> {
    name: String,
    #[serde(flatten)]
    rates: &'a IoRates,
}

fn devices<'a, W>(system: &SystemState, owner: &'a OwnerIo<W>) -> Vec<DeviceIoJson<'a>> {
    owner.devices.iter().map(|on| DeviceIoJson { name: system.device_name(on.device), rates: &on.rates }).collect()
}

/// The devices of a process; `None` where I/O is not traced.
fn process_devices(system: &SystemState, pid: u32) -> Option<Vec<DeviceIoJson<'_>>> {
    let process = system.snapshot.io_attribution.ok()?.process(pid);
    Some(process.map(|process| devices(system, process)).unwrap_or_default())
}

/// Control groups with I/O; `None` where I/O is not traced.
pub(super) fn cgroups(system: &SystemState) -> Option<Vec<Value>> {
    let one = |group: &OwnerIo<Arc<str>>| {
        json!({
            "cgroup": sanitize(&*group.owner),
            "writeback_bytes_per_s": group.total.writeback_bytes_per_s,
            "devices": devices(system, group),
        })
    };
    Some(system.snapshot.io_attribution.ok()?.cgroups.iter().map(one).collect())
}
