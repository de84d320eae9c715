//! A snapshot as one JSON object, for programs and tickets. The README documents every name.
//!
//! What could not be read is `null` and has an entry in `unavailable`; no key is ever missing, unless
//! panes were chosen: then those of the other panes are left out. Text is cleaned; numbers are finite.

mod charge;
mod device;
mod gaps;
mod kernel;
mod memory;
mod process;
mod syncs;

pub use gaps::Gap;
pub use kernel::Since;

use super::findings;
use super::page::Scope;
use crate::diagnose::Engine;
use crate::model::network::NetFsRate;
use crate::model::system_state::SystemState;
use crate::units::format_rfc3339;
use serde::{Serialize, Serializer};

/// Raised when a name goes or changes its meaning; new names do not raise it.
pub const SCHEMA: u32 = 1;

/// Left out, `null`, or there.
type Part<T> = Option<Option<T>>;

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    time: String,
    host: &'a str,
    kernel: &'a str,
    interval_s: Option<f64>,
    cpu: memory::Cpu,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Part<Vec<device::Device>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_filesystems: Part<Vec<NetFs<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writeback: Option<memory::Writeback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap: Option<memory::Swap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pressure: Option<memory::Pressure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stalls: Option<memory::Stalls<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Part<process::Processes<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroups: Part<Vec<charge::Group>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_log: Part<Vec<kernel::Entry>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    syncs: Part<Vec<syncs::File>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slow_syncs: Part<Vec<syncs::Slow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<findings::StoryJson>>,
    unavailable: Vec<Gap>,
}

/// The object, in one line without its end. `since` bounds the kernel log; `more` are gaps that only the
/// caller knows of.
pub fn object(
    world: &SystemState,
    engine: &Engine,
    scope: Scope,
    since: Since,
    more: &[Gap],
) -> serde_json::Result<String> {
    let snap = &*world.snapshot;
    let object = Object {
        schema: SCHEMA,
        time: format_rfc3339(snap.time.wall_ns),
        host: &world.host.name,
        kernel: &world.host.kernel,
        interval_s: number(snap.interval_secs),
        cpu: memory::cpu(snap),
        devices: scope.devices.then(|| device::devices(world)),
        network_filesystems: scope
            .devices
            .then(|| snap.netfs.ok().map(|list| list.iter().map(NetFs::from).collect())),
        writeback: scope.memory.then(|| memory::writeback(snap)),
        swap: scope.memory.then(|| memory::swap(snap)),
        pressure: scope.memory.then(|| memory::pressure(snap)),
        stalls: scope.memory.then(|| memory::stalls(snap)),
        processes: scope.processes.then(|| process::processes(world)),
        cgroups: scope.processes.then(|| charge::groups(world)),
        kernel_log: scope.kernel.then(|| kernel::entries(world, since)),
        syncs: scope.shows_syncs(world).then(|| syncs::files(world)),
        slow_syncs: scope.shows_syncs(world).then(|| syncs::slow(world)),
        findings: scope.findings.then(|| findings::stories(engine, snap.time)),
        unavailable: gaps::gaps(world, engine, scope, more),
    };
    serde_json::to_string(&object)
}

#[derive(Serialize)]
struct NetFs<'a> {
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

impl<'a> From<&'a NetFsRate> for NetFs<'a> {
    fn from(fs: &'a NetFsRate) -> Self {
        Self {
            mount: &fs.mount,
            kind: fs.kind.name(),
            server: &fs.server,
            read_mb_per_s: known(fs.read_mb_per_s),
            write_mb_per_s: known(fs.write_mb_per_s),
            rtt_ms: known(fs.rtt_ms),
            retransmits_per_s: known(fs.retransmits_per_s),
            interface: fs.interface.as_deref(),
            link_used_pct: known(fs.link_used_pct),
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

fn known(n: Option<f64>) -> Option<f64> {
    n.and_then(number)
}

/// An iterator's items as an array, made one by one: twenty thousand rows are never held at once.
fn stream<S: Serializer, T: Serialize>(
    serializer: S,
    items: impl Iterator<Item = T>,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(items)
}
