//! `unavailable[]`: every reason for a `null`, said once.

use crate::doctor::RuleEngine;
use crate::export::findings;
use crate::export::processes::{delays_unavailable, hidden_tasks_note};
use crate::export::snapshot::SnapshotScope;
use crate::model::process::ProcessTable;
use crate::model::snapshot::Snapshot;
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;
use serde::Serialize;

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnavailableSource {
    /// What is missing; the README says which values that makes `null`.
    pub source: &'static str,
    /// Why, and what would give it; cleaned.
    pub reason: String,
}

impl UnavailableSource {
    /// A gap; the reason is cleaned here.
    pub fn new(source: &'static str, reason: impl AsRef<str>) -> Self {
        Self { source, reason: sanitize(reason.as_ref()) }
    }
}

/// All gaps of the chosen panes.
pub(super) fn unavailable_sources(
    world: &SystemState,
    engine: &RuleEngine,
    scope: SnapshotScope,
    more: &[UnavailableSource],
) -> Vec<UnavailableSource> {
    let (snap, now) = (&*world.snapshot, world.now().boot_ns);
    let mut out = Vec::new();
    let mut add = |wanted: bool, source, why: Option<String>| {
        out.extend(why.filter(|_| wanted).map(|why| UnavailableSource::new(source, why)));
    };
    add(true, "cpu", snap.cpu.unavailable_reason(now));
    add(scope.devices, "devices", snap.devices.unavailable_reason(now));
    add(scope.devices, "topology", world.topology.unavailable_reason(now));
    add(scope.devices, "latency", snap.tracing.unavailable_reason(now));
    for why in snap.tracing.ok().into_iter().flat_map(|t| &t.unavailable) {
        add(scope.devices, "latency", Some(why.clone()));
    }
    add(scope.devices, "latency", dropped_requests(snap));
    let syncs = scope.shows_syncs(world);
    add(syncs, "syncs", snap.syncs.unavailable_reason(now));
    for why in snap.syncs.ok().into_iter().flat_map(|s| s.unavailable.iter().cloned().chain(s.drops_text())) {
        add(syncs, "syncs", Some(why));
    }
    add(scope.processes, "processes_by_device", snap.io_attribution.unavailable_reason(now));
    for why in snap.io_attribution.ok().into_iter().flat_map(|c| &c.unavailable) {
        add(scope.processes, "processes_by_device", Some(why.clone()));
    }
    let missed = snap.io_attribution.ok().map(|c| c.dropped).filter(|n| *n > 0);
    let missed = missed.map(|n| format!("{n} requests could not be followed: too many were in flight"));
    add(scope.processes, "processes_by_device", missed);
    add(scope.devices, "network_filesystems", snap.netfs.unavailable_reason(now));
    add(scope.devices, "network_interfaces", snap.nics.unavailable_reason(now));
    add(scope.memory, "writeback", snap.writeback.unavailable_reason(now));
    add(scope.memory, "swap", snap.swap.unavailable_reason(now));
    add(scope.memory, "swap_devices", snap.swap_areas.unavailable_reason(now));
    add(scope.memory, "pressure", snap.pressure.unavailable_reason(now));
    let held = scope.memory || scope.processes;
    add(held, "stalls", snap.memory_stalls.unavailable_reason(now));
    for why in snap.memory_stalls.ok().into_iter().flat_map(|s| &s.unavailable) {
        add(held, "stalls", Some(why.clone()));
    }
    let lost = snap.memory_stalls.ok().map(|s| s.dropped).filter(|n| *n > 0);
    add(held, "stalls", lost.map(|n| format!("{n} were not counted: too many processes were held up")));
    add(scope.processes, "processes", world.processes_status.unavailable_reason(now));
    if world.processes_status.ok().is_some() {
        add(scope.processes, "delays", delays_unavailable(&world.processes).map(str::to_owned));
    }
    add(scope.kernel_log, "kernel_log", world.kernel_log_status.unavailable_reason(now));
    let lost = world.kernel_log.dropped();
    add(
        scope.kernel_log,
        "kernel_log",
        (lost > 0).then(|| format!("{lost} lines were overwritten before they could be read")),
    );
    if scope.processes {
        out.extend(task_gaps(&world.processes, now));
    }
    if scope.findings {
        out.extend(findings::skipped_rule_notes(engine).into_iter().map(|why| UnavailableSource::new("findings", why)));
    }
    out.extend(more.iter().cloned());
    out
}

/// Requests that histograms are without.
fn dropped_requests(snap: &Snapshot) -> Option<String> {
    let n = snap.tracing.ok().map(|t| t.dropped).filter(|n| *n > 0)?;
    Some(format!("{n} requests could not be followed: too many were in flight"))
}

/// Tasks whose counters are missing.
fn task_gaps(procs: &ProcessTable, now_boot_ns: u64) -> Vec<UnavailableSource> {
    let mut out: Vec<UnavailableSource> =
        hidden_tasks_note(procs).map(|why| UnavailableSource::new("processes", why)).into_iter().collect();
    for b in procs.blocked_tasks() {
        let secs = now_boot_ns.saturating_sub(b.since_boot_ns) / 1_000_000_000;
        out.push(UnavailableSource::new(
            "processes",
            format!("task {}: blocked {secs} s in {}", b.key.tid, b.waiting_on),
        ));
    }
    out.extend(procs.notes().iter().map(|note| UnavailableSource::new("processes", note)));
    out
}
