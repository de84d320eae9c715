//! `unavailable[]`: every reason for a `null`, said once.

use crate::diagnose::Engine;
use crate::export::findings;
use crate::export::page::Scope;
use crate::export::processes::{hidden, no_delays};
use crate::model::process::ProcTable;
use crate::model::snapshot::Snapshot;
use crate::model::world::World;
use crate::text::sanitize;
use serde::Serialize;

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// What is missing; the README says which values that makes `null`.
    pub source: &'static str,
    /// Why, and what would give it; cleaned.
    pub reason: String,
}

impl Gap {
    /// A gap; the reason is cleaned here.
    pub fn new(source: &'static str, reason: impl AsRef<str>) -> Self {
        Self { source, reason: sanitize(reason.as_ref()) }
    }
}

/// All gaps of the chosen panes.
pub(super) fn gaps(world: &World, engine: &Engine, scope: Scope, more: &[Gap]) -> Vec<Gap> {
    let (snap, now) = (&*world.snap, world.now().boot_ns);
    let mut out = Vec::new();
    let mut add = |wanted: bool, source, why: Option<String>| {
        out.extend(why.filter(|_| wanted).map(|why| Gap::new(source, why)));
    };
    add(true, "cpu", snap.cpu.why(now));
    add(scope.devices, "devices", snap.devices.why(now));
    add(scope.devices, "topology", world.topo.why(now));
    add(scope.devices, "latency", snap.tracing.why(now));
    for why in snap.tracing.ok().into_iter().flat_map(|t| &t.without) {
        add(scope.devices, "latency", Some(why.clone()));
    }
    add(scope.devices, "latency", lost(snap));
    let syncs = scope.shows_syncs(world);
    add(syncs, "syncs", snap.syncs.why(now));
    for why in snap.syncs.ok().into_iter().flat_map(|s| s.without.iter().cloned().chain(s.lost_text())) {
        add(syncs, "syncs", Some(why));
    }
    add(scope.processes, "processes_by_device", snap.charged.why(now));
    for why in snap.charged.ok().into_iter().flat_map(|c| &c.without) {
        add(scope.processes, "processes_by_device", Some(why.clone()));
    }
    let missed = snap.charged.ok().map(|c| c.lost).filter(|n| *n > 0);
    let missed = missed.map(|n| format!("{n} requests could not be followed: too many were in flight"));
    add(scope.processes, "processes_by_device", missed);
    add(scope.devices, "network_filesystems", snap.netfs.why(now));
    add(scope.devices, "network_interfaces", snap.nics.why(now));
    add(scope.memory, "writeback", snap.writeback.why(now));
    add(scope.memory, "swap", snap.swap.why(now));
    add(scope.memory, "swap_devices", snap.swaps.why(now));
    add(scope.memory, "pressure", snap.pressure.why(now));
    let held = scope.memory || scope.processes;
    add(held, "stalls", snap.stalls.why(now));
    for why in snap.stalls.ok().into_iter().flat_map(|s| &s.without) {
        add(held, "stalls", Some(why.clone()));
    }
    let lost = snap.stalls.ok().map(|s| s.lost).filter(|n| *n > 0);
    add(held, "stalls", lost.map(|n| format!("{n} were not counted: too many processes were held up")));
    add(scope.processes, "processes", world.procs_state.why(now));
    if world.procs_state.ok().is_some() {
        add(scope.processes, "delays", no_delays(&world.procs).map(str::to_owned));
    }
    add(scope.kernel, "kernel_log", world.klog_state.why(now));
    let lost = world.klog.lost();
    add(
        scope.kernel,
        "kernel_log",
        (lost > 0).then(|| format!("{lost} lines were overwritten before they could be read")),
    );
    if scope.processes {
        out.extend(tasks(&world.procs, now));
    }
    if scope.findings {
        out.extend(findings::gaps(engine).into_iter().map(|why| Gap::new("findings", why)));
    }
    out.extend(more.iter().cloned());
    out
}

/// Requests that histograms are without.
fn lost(snap: &Snapshot) -> Option<String> {
    let n = snap.tracing.ok().map(|t| t.lost).filter(|n| *n > 0)?;
    Some(format!("{n} requests could not be followed: too many were in flight"))
}

/// Tasks whose counters are missing.
fn tasks(procs: &ProcTable, now_boot_ns: u64) -> Vec<Gap> {
    let mut out: Vec<Gap> = hidden(procs).map(|why| Gap::new("processes", why)).into_iter().collect();
    for b in procs.blocked() {
        let secs = now_boot_ns.saturating_sub(b.since_boot_ns) / 1_000_000_000;
        out.push(Gap::new("processes", format!("task {}: blocked {secs} s in {}", b.key.tid, b.on)));
    }
    out.extend(procs.notes().iter().map(|note| Gap::new("processes", note)));
    out
}
