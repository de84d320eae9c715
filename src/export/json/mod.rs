//! A snapshot as one JSON object, for programs and tickets. The README documents every key.
//!
//! A value that could not be read is `null` and has an entry in `unavailable`. No key is missing, except
//! those of panes that were not selected. Text is sanitized; numbers are finite.

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

/// Version of the format: increased when a key is removed or changes its meaning, not when one is added.
pub const SCHEMA: u32 = 1;

/// Outer `None`: the pane is not selected; inner `None`: `null`.
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

/// The object in one line without a line break. `since` bounds the kernel log; `more` are missing sources that only
/// the caller knows.
pub fn snapshot_json(
    system: &SystemState,
    engine: &RuleEngine,
    scope: SnapshotScope,
    since: LogSince,
    more: &[UnavailableSource],
) -> serde_json::Result<String> {
    let snapshot = &*system.snapshot;
    let object = SnapshotJson {
        schema: SCHEMA,
        time: format_rfc3339(snapshot.time.wall_ns),
        host: &system.host.name,
        kernel: &system.host.kernel,
        interval_s: number(snapshot.interval_secs),
        cpu: memory::cpu(snapshot),
        devices: scope.devices.then(|| device::devices(system)),
        network_filesystems: scope
            .devices
            .then(|| snapshot.netfs.ok().map(|list| list.iter().map(NetFsJson::from).collect())),
        writeback: scope.memory.then(|| memory::writeback(snapshot)),
        swap: scope.memory.then(|| memory::swap(snapshot)),
        pressure: scope.memory.then(|| memory::pressure(snapshot)),
        stalls: scope.memory.then(|| memory::stalls(snapshot)),
        processes: scope.processes.then(|| process::processes(system)),
        cgroups: scope.processes.then(|| io_attribution::cgroups(system)),
        kernel_log: scope.kernel_log.then(|| kernel_log::entries(system, since)),
        syncs: scope.shows_syncs(system).then(|| syncs::syncs_json(system)),
        slow_syncs: scope.shows_syncs(system).then(|| syncs::slow_syncs_json(system)),
        findings: scope.findings.then(|| findings::incidents_json(engine, snapshot.time)),
        unavailable: unavailable::unavailable_sources(system, engine, scope, more),
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

/// A number with at most six decimals; `None` if it is not finite, which JSON cannot express.
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

/// Serialises the items of an iterator one by one, so that twenty thousand rows are never in memory at once.
fn serialize_items<S: Serializer, T: Serialize>(
    serializer: S,
    items: impl Iterator<Item = T>,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(items)
}
