//! A snapshot as one JSON object, for programs and tickets. The README documents every name.
//!
//! What could not be read is `null` and has an entry in `unavailable`; no key is ever missing, unless
//! panes were chosen: then those of the other panes are left out. Text is cleaned; numbers are finite.

mod device;
mod io_attribution;
mod kernel_log;
mod memory;
mod process;
mod syncs;
mod unavailable;

pub use kernel_log::LogSince;
pub use unavailable::UnavailableSource;

use super::findings;
use super::snapshot::SnapshotScope;
use crate::doctor::RuleEngine;
use crate::model::network::NetFsRate;
use crate::model::system_state::SystemState;
use crate::units::format_rfc3339;
use serde::{Serialize, Serializer};

/// Raised when a name goes or changes its meaning; new names do not raise it.
pub const SCHEMA: u32 = 1;

/// Left out, `null`, or there.
type IfSelected<T> = Option<Option<T>>;

#[derive(Serialize)]
struct SnapshotJson<'a> {
    schema: u32,
    time: String,
    host: &'a str,
    kernel: &'a str,
    interval_s: Option<f64>,
    cpu: memory::CpuJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: IfSelected<Vec<device::DeviceJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_filesystems: IfSelected<Vec<NetFsJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writeback: Option<memory::WritebackJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap: Option<memory::SwapJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pressure: Option<memory::PressureJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalls: Option<memory::MemoryStallsJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: IfSelected<process::ProcessesJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroups: IfSelected<Vec<io_attribution::CgroupIoJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_log: IfSelected<Vec<kernel_log::KernelLogEntryJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    syncs: IfSelected<Vec<syncs::SyncJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_syncs: IfSelected<Vec<syncs::SlowSyncJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<findings::IncidentJson>>,
    unavailable: Vec<UnavailableSource>,
}

/// The object, in one line without its end. `since` bounds the kernel log; `more` are gaps that only the
/// caller knows of.
pub fn snapshot_json(
    world: &SystemState,
    engine: &RuleEngine,
    scope: SnapshotScope,
    since: LogSince,
    more: &[UnavailableSource],
) -> serde_json::Result<String> {
    let snap = &*world.snapshot;
    let object = SnapshotJson {
        schema: SCHEMA,
        time: format_rfc3339(snap.time.wall_ns),
        host: &world.host.name,
        kernel: &world.host.kernel,
        interval_s: number(snap.interval_secs),
        cpu: memory::cpu(snap),
        devices: scope.devices.then(|| device::devices(world)),
        network_filesystems: scope
            .devices
            .then(|| snap.netfs.ok().map(|list| list.iter().map(NetFsJson::from).collect())),
        writeback: scope.memory.then(|| memory::writeback(snap)),
        swap: scope.memory.then(|| memory::swap(snap)),
        pressure: scope.memory.then(|| memory::pressure(snap)),
        stalls: scope.memory.then(|| memory::stalls(snap)),
        processes: scope.processes.then(|| process::processes(world)),
        cgroups: scope.processes.then(|| io_attribution::cgroups(world)),
        kernel_log: scope.kernel_log.then(|| kernel_log::entries(world, since)),
        syncs: scope.shows_syncs(world).then(|| syncs::syncs_json(world)),
        slow_syncs: scope.shows_syncs(world).then(|| syncs::slow_syncs_json(world)),
        findings: scope.findings.then(|| findings::incidents_json(engine, snap.time)),
        unavailable: unavailable::unavailable_sources(world, engine, scope, more),
    };
    serde_json::to_string(&object)
}

#[derive(Serialize)]
struct NetFsJson<'a> {
    mount: &'a str,
    kind: &'static str,
    server: &'a str,
    read_mb_per_s: Option<f64>,
    write_mb_per_s: Option<f64>,
    rtt_ms: Option<f64>,
    retransmits_per_s: Option<f64>,
    interface: Option<&'a str>,
    link_used_pct: Option<f64>,
}

impl<'a> From<&'a NetFsRate> for NetFsJson<'a> {
    fn from(fs: &'a NetFsRate) -> Self {
        Self {
            mount: &fs.mount,
            kind: fs.kind.name(),
            server: &fs.server,
            read_mb_per_s: optional_number(fs.read_mb_per_s),
            write_mb_per_s: optional_number(fs.write_mb_per_s),
            rtt_ms: optional_number(fs.rtt_ms),
            retransmits_per_s: optional_number(fs.retransmits_per_s),
            interface: fs.interface.as_deref(),
            link_used_pct: optional_number(fs.link_used_pct),
        }
    }
}

/// A finite number with at most six decimals; nothing else is a number in JSON.
fn number(n: f64) -> Option<f64> {
    match n {
        n if !n.is_finite() => None,
        n if n.abs() < 1e9 => Some((n * 1e6).round() / 1e6),
        n => Some(n),
    }
}

fn optional_number(n: Option<f64>) -> Option<f64> {
    n.and_then(number)
}

/// An iterator's items as an array, made one by one: twenty thousand rows are never held at once.
fn serialize_items<S: Serializer, T: Serialize>(
    serializer: S,
    items: impl Iterator<Item = T>,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(items)
}
