//! `unavailable[]`: every reason for a `null`, once.

use crate::doctor::RuleEngine;
use crate::export::findings;
use crate::export::processes::{delays_unavailable, hidden_tasks_note};
use crate::export::snapshot::SnapshotScope;
use crate::model::process::ProcessTable;
use crate::model::reading::{Reading, blocked_time};
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;
use serde::Serialize;

/// A source that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnavailableSource {
    /// Name of the source; docs/reference/json.md lists the values that are `null` then.
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

pub(super) fn unavailable_sources(
    system: &SystemState,
    engine: &RuleEngine,
    scope: SnapshotScope,
    more: &[UnavailableSource],
) -> Vec<UnavailableSource> {
    let (snapshot, now) = (&*system.snapshot, system.now().boot_ns);
    let latency = reasons(&snapshot.tracing, now, |t| with_drops(&t.unavailable, not_followed(t.dropped)));
    let syncs = reasons(&snapshot.syncs, now, |s| with_drops(&s.unavailable, s.drops_text()));
    let files = reasons(&snapshot.files, now, |f| with_drops(&f.unavailable, not_followed(f.dropped)));
    let waits = reasons(&snapshot.task_waits, now, |w| {
        let text = |n| format!("{n} waits could not be followed: too many at once");
        with_drops(&w.unavailable, (w.dropped > 0).then(|| text(w.dropped)))
    });
    let by_device = reasons(&snapshot.io_attribution, now, |io| with_drops(&io.unavailable, not_followed(io.dropped)));
    let stalls = reasons(&snapshot.memory_stalls, now, |s| {
        let text = |n| format!("{n} were not counted: too many processes were stalled");
        with_drops(&s.unavailable, (s.dropped > 0).then(|| text(s.dropped)))
    });
    let delays = reasons(&system.processes_status, now, |()| {
        delays_unavailable(&system.processes).map(str::to_owned).into_iter().collect()
    });
    let lost = system.kernel_log.dropped;
    let lost = (lost > 0).then(|| format!("{lost} lines were overwritten before they could be read"));
    let all = [
        (true, "cpu", missing(&snapshot.cpu, now)),
        (scope.devices, "devices", missing(&snapshot.devices, now)),
        (scope.devices, "topology", missing(&system.topology, now)),
        (scope.devices, "latency", latency),
        (scope.shows_syncs(system), "syncs", syncs),
        (scope.shows_files(system), "files", files),
        (scope.shows_waits(system), "waits", waits),
        (scope.processes, "processes_by_device", by_device),
        (scope.devices, "network_filesystems", missing(&snapshot.netfs, now)),
        (scope.devices, "network_interfaces", missing(&snapshot.nics, now)),
        (scope.memory, "writeback", missing(&snapshot.writeback, now)),
        (scope.memory, "swap", missing(&snapshot.swap, now)),
        (scope.memory, "swap_devices", missing(&snapshot.swap_areas, now)),
        (scope.memory, "pressure", missing(&snapshot.pressure, now)),
        (scope.memory || scope.processes, "stalls", stalls),
        (scope.processes, "processes", missing(&system.processes_status, now)),
        (scope.processes && system.processes_status.ok().is_some(), "delays", delays),
        (scope.kernel_log, "kernel_log", missing(&system.kernel_log_status, now)),
        (scope.kernel_log, "kernel_log", lost.into_iter().collect()),
        (scope.processes, "processes", task_gaps(&system.processes, now)),
        (scope.findings, "findings", findings::skipped_rule_notes(engine)),
    ];
    let selected = all.into_iter().filter(|(selected, ..)| *selected);
    let sources =
        selected.flat_map(|(_, source, why)| why.into_iter().map(move |why| UnavailableSource::new(source, why)));
    sources.chain(more.iter().cloned()).collect()
}

fn missing<T>(reading: &Reading<T>, now_boot_ns: u64) -> Vec<String> {
    reading.unavailable_reason(now_boot_ns).into_iter().collect()
}

/// Why a reading is missing, or what is missing from it.
fn reasons<T>(reading: &Reading<T>, now_boot_ns: u64, gaps: impl Fn(&T) -> Vec<String>) -> Vec<String> {
    reading.ok().map_or_else(|| missing(reading, now_boot_ns), gaps)
}

fn with_drops(unavailable: &[String], dropped: Option<String>) -> Vec<String> {
    unavailable.iter().cloned().chain(dropped).collect()
}

fn not_followed(n: u64) -> Option<String> {
    (n > 0).then(|| format!("{n} requests could not be followed: too many were in flight"))
}

fn task_gaps(processes: &ProcessTable, now_boot_ns: u64) -> Vec<String> {
    let blocked = processes.blocked_tasks.iter().map(|b| {
        format!("task {}: blocked {} in {}", b.key.tid, blocked_time(b.since_boot_ns, now_boot_ns), b.waiting_on)
    });
    let notes = processes.notes.iter().map(ToString::to_string);
    hidden_tasks_note(processes).into_iter().chain(blocked).chain(notes).collect()
}
