//! Who is involved in the worst incident: the task that causes the load, the tasks that suffer, the device.

use crate::doctor::finding::FindingSubject;
use crate::doctor::incident::Incident;
use crate::model::disk::DevId;
use crate::model::history::HistoryFrame;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::sanitize::sanitize;
use crate::tui::view::Shared;
use crate::units::format_bytes;
use std::collections::BTreeMap;

/// Rates are means over this time, ns.
const WINDOW_NS: u64 = 10_000_000_000;
/// More victims than these are counted, not named.
const MAX_VICTIMS: usize = 2;

/// `culprit dd (20733) 31.5M/s · victim sqlite (200) · device loop0 /mnt` for the worst incident; what is not known is
/// left out. `None`: nothing is known.
pub(super) fn line(shared: &Shared) -> Option<String> {
    let incident = shared.findings.incidents.first()?;
    let device = incident.findings.iter().find_map(|f| match &f.subject {
        FindingSubject::Device(id, _) => Some(*id),
        _ => f.devices.first().copied(),
    });
    let culprit = culprit(shared, device);
    let victims = victims(shared, incident, culprit.as_ref().map(|c| c.0));
    let mut parts = Vec::new();
    if let Some((pid, bytes_per_s)) = culprit {
        parts.push(format!("culprit {} {}/s", task_name(shared, pid), format_bytes(bytes_per_s as u64)));
    }
    if let Some((first, more)) = victims.split_first() {
        let named: String = more.iter().take(MAX_VICTIMS - 1).map(|name| format!(", {name}")).collect();
        let rest = victims.len().saturating_sub(MAX_VICTIMS);
        let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        parts.push(format!("victim {first}{named}{rest}"));
    }
    parts.extend(device.map(|id| format!("device {}", device_text(shared, id))));
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// The process with most bytes on a device, or on all devices, of those that are no kernel thread; bytes per second.
fn culprit(shared: &Shared, device: Option<DevId>) -> Option<(u32, f64)> {
    let until = shared.snapshot().time.boot_ns;
    let is_recent = |frame: &&HistoryFrame| frame.snapshot.time.boot_ns.saturating_add(WINDOW_NS) > until;
    let (mut sums, mut secs) = (BTreeMap::<u32, f64>::new(), 0.0);
    for frame in shared.history_to_shown().rev().take_while(is_recent) {
        let Some(attribution) = frame.snapshot.io_attribution.ok() else { continue };
        secs += frame.snapshot.interval_secs;
        for process in &attribution.processes {
            let rates = match device {
                Some(id) => process.on_device(id).copied().unwrap_or_default(),
                None => process.total,
            };
            // A kernel thread has the requests of the pages that others dirtied.
            let own = rates.read_bytes_per_s + rates.write_bytes_per_s.max(rates.writeback_bytes_per_s);
            *sums.entry(process.owner).or_default() += own * frame.snapshot.interval_secs;
        }
    }
    let is_program = |pid: u32| match shared.system.processes.find_live(pid) {
        Some(row) => !row.raw.kernel_thread,
        None => !task_name(shared, pid).starts_with("kworker/"),
    };
    let mut busiest: Vec<(u32, f64)> = sums.into_iter().filter(|(_, bytes)| *bytes > 0.0).collect();
    busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let traced =
        busiest.into_iter().find(|(pid, _)| is_program(*pid)).map(|(pid, bytes)| (pid, bytes / secs.max(0.001)));
    let is_traced = shared.snapshot().io_attribution.ok().is_some();
    traced.or_else(|| if is_traced || device.is_some() { None } else { busiest_untraced(shared) })
}

/// Without tracing: the process that reads and writes most.
fn busiest_untraced(shared: &Shared) -> Option<(u32, f64)> {
    let newest = shared.history_to_shown().rev().find(|frame| !frame.tasks.is_empty())?;
    let rows = newest.tasks.iter().filter(|row| !row.raw.kernel_thread);
    let bytes = rows.filter_map(|row| {
        let rates = row.rates();
        Some((row.pid(), rates.read_bytes_per_s? + rates.write_bytes_per_s?))
    });
    bytes.filter(|(_, bytes)| *bytes > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The tasks that the findings name, then hung ones, then those stalled by memory; without the culprit.
fn victims(shared: &Shared, incident: &Incident, culprit: Option<u32>) -> Vec<String> {
    let mut out: Vec<(u32, String)> = Vec::new();
    let mut add = |pid: u32, name: &str| {
        if Some(pid) != culprit && !out.iter().any(|known| known.0 == pid) {
            out.push((pid, format!("{name} ({pid})")));
        }
    };
    for finding in &incident.findings {
        match &finding.subject {
            FindingSubject::Task(key, name) => add(key.pid, name),
            FindingSubject::Pid(pid, name) => add(*pid, name),
            _ => {}
        }
    }
    for task in &shared.system.hung_tasks {
        add(task.key.pid, &sanitize(&task.comm));
    }
    if let Some(stalls) = shared.snapshot().memory_stalls.ok() {
        for kind in [THROTTLE, RECLAIM] {
            stalls.processes_by_kind(kind).iter().for_each(|process| add(process.key.pid, &sanitize(&process.comm)));
        }
    }
    out.into_iter().map(|(_, name)| name).collect()
}

/// `fio (1234)`, sanitized.
fn task_name(shared: &Shared, pid: u32) -> String {
    let traced = || shared.snapshot().io_attribution.ok()?.process_name(pid).map(|name| sanitize(&**name));
    match shared.system.processes.find_live(pid) {
        Some(row) => row.label(),
        None => format!("{} ({pid})", traced().unwrap_or_else(|| "?".into())),
    }
}

/// `loop0 /mnt`: its name, and the first place it is mounted at.
fn device_text(shared: &Shared, id: DevId) -> String {
    let name = shared.system.device_name(id);
    let device = shared.system.topology.ok().and_then(|topology| topology.get(id));
    let mount = device.and_then(|d| d.mounts.iter().find(|m| !m.is_hidden));
    mount.map_or(name.clone(), |mount| format!("{name} {}", mount.mount_point.sanitized()))
}
