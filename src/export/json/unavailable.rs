//! `unavailable[]`: every reason for a `null`, once.

use crate::doctor::RuleEngine;
use crate::export::findings;
use crate::export::processes::{delays_unavailable, hidden_tasks_note};
use crate::export::snapshot::SnapshotScope;
use crate::model::process::ProcessTable;
use crate::model::snapshot::Snapshot;
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;
use serde::Serialize;

/// A source that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnavailableSource {
    /// Name of the source; the README lists the values that are `null` then.
    pub source: &'static str,
    /// Why, and what would make it available; sanitized.
    pub reason: String,
}

impl UnavailableSource {
    /// Sanitizes the reason.
    pub fn new(source: &'static str, reason: impl AsRef<str>) -> Self {
        Self { source, reason: sanitize(reason.as_ref()) }
    }
}

/// The missing sources of the selected panes.
pub(super) fn unavailable_sources(
    system: &SystemState,
    engine: &RuleEngine,
    scope: SnapshotScope,
    more: &[UnavailableSource],
) -> Vec<UnavailableSource> {
    let (snapshot, now) = (&*system.snapshot, system.now().boot_ns);
    let mut out = Vec::new();
    let mut add = |selected: bool, source, why: Option<String>| {
        out.extend(why.filter(|_| selected).map(|why| UnavailableSource::new(source, why)));
    };
    add(true, "cpu", snapshot.cpu.unavailable_reason(now));
    add(scope.devices, "devices", snapshot.devices.unavailable_reason(now));
    add(scope.devices, "topology", system.topology.unavailable_reason(now));
    add(scope.devices, "latency", snapshot.tracing.unavailable_reason(now));
    for why in snapshot.tracing.ok().into_iter().flat_map(|t| &t.unavailable) {
        add(scope.devices, "latency", Some(why.clone()));
    }
    add(scope.devices, "latency", dropped_requests(snapshot));
    let syncs = scope.shows_syncs(system);
    add(syncs, "syncs", snapshot.syncs.unavailable_reason(now));
    for why in snapshot.syncs.ok().into_iter().flat_map(|s| s.unavailable.iter().cloned().chain(s.drops_text())) {
        add(syncs, "syncs", Some(why));
    }
    add(scope.processes, "processes_by_device", snapshot.io_attribution.unavailable_reason(now));
    for why in snapshot.io_attribution.ok().into_iter().flat_map(|c| &c.unavailable) {
        add(scope.processes, "processes_by_device", Some(why.clone()));
    }
    let missed = snapshot.io_attribution.ok().map(|c| c.dropped).filter(|n| *n > 0);
    let missed = missed.map(|n| format!("{n} requests could not be followed: too many were in flight"));
    add(scope.processes, "processes_by_device", missed);
    add(scope.devices, "network_filesystems", snapshot.netfs.unavailable_reason(now));
    add(scope.devices, "network_interfaces", snapshot.nics.unavailable_reason(now));
    add(scope.memory, "writeback", snapshot.writeback.unavailable_reason(now));
    add(scope.memory, "swap", snapshot.swap.unavailable_reason(now));
    add(scope.memory, "swap_devices", snapshot.swap_areas.unavailable_reason(now));
    add(scope.memory, "pressure", snapshot.pressure.unavailable_reason(now));
    let stalls_selected = scope.memory || scope.processes;
    add(stalls_selected, "stalls", snapshot.memory_stalls.unavailable_reason(now));
    for why in snapshot.memory_stalls.ok().into_iter().flat_map(|s| &s.unavailable) {
        add(stalls_selected, "stalls", Some(why.clone()));
    }
    let lost = snapshot.memory_stalls.ok().map(|s| s.dropped).filter(|n| *n > 0);
    add(
        stalls_selected,
        "stalls",
        lost.map(|n| format!("{n} were not counted: too many processes were stalls_selected up")),
    );
    add(scope.processes, "processes", system.processes_status.unavailable_reason(now));
    if system.processes_status.ok().is_some() {
        add(scope.processes, "delays", delays_unavailable(&system.processes).map(str::to_owned));
    }
    add(scope.kernel_log, "kernel_log", system.kernel_log_status.unavailable_reason(now));
    let lost = system.kernel_log.dropped();
    add(
        scope.kernel_log,
        "kernel_log",
        (lost > 0).then(|| format!("{lost} lines were overwritten before they could be read")),
    );
    if scope.processes {
        out.extend(task_gaps(&system.processes, now));
    }
    if scope.findings {
        out.extend(findings::skipped_rule_notes(engine).into_iter().map(|why| UnavailableSource::new("findings", why)));
    }
    out.extend(more.iter().cloned());
    out
}

/// Requests missing from the histograms.
fn dropped_requests(snapshot: &Snapshot) -> Option<String> {
    let n = snapshot.tracing.ok().map(|t| t.dropped).filter(|n| *n > 0)?;
    Some(format!("{n} requests could not be followed: too many were in flight"))
}

/// Tasks without counters.
fn task_gaps(processes: &ProcessTable, now_boot_ns: u64) -> Vec<UnavailableSource> {
    let mut out: Vec<UnavailableSource> =
        hidden_tasks_note(processes).map(|why| UnavailableSource::new("processes", why)).into_iter().collect();
    for b in processes.blocked_tasks() {
        let secs = now_boot_ns.saturating_sub(b.since_boot_ns) / 1_000_000_000;
        out.push(UnavailableSource::new(
            "processes",
            format!("task {}: blocked {secs} s in {}", b.key.tid, b.waiting_on),
        ));
    }
    out.extend(processes.notes().iter().map(|note| UnavailableSource::new("processes", note)));
    out
}
