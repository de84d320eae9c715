//! A snapshot as one JSON object, for programs and tickets. docs/reference/json.md lists every key.
//!
//! A value that could not be read is `null` and has an entry in `unavailable`. No key is missing, except
//! those of panes that were not selected. Text is sanitized; numbers are finite.

mod device;
mod files;
mod kernel_log;
mod memory;
mod process;
mod syncs;
mod unavailable;
mod waits;

pub use kernel_log::LogSince;
pub use unavailable::UnavailableSource;

use super::findings;
use super::snapshot::SnapshotScope;
use crate::doctor::RuleEngine;
use crate::model::system_state::SystemState;
use crate::units::format_rfc3339;
use serde::ser::{Error, SerializeMap, Serializer};
use serde_json::ser::{CompactFormatter, Formatter};
use std::io::{self, Write};

/// Version of the format: increased when a key is removed or changes its meaning, not when one is added.
const SCHEMA: u32 = 1;

/// Writes numbers with at most six decimals. The serializer writes those that are not finite as `null`.
struct SixDecimals;

impl Formatter for SixDecimals {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, n: f64) -> io::Result<()> {
        let rounded = if n.abs() < 1e9 { (n * 1e6).round() / 1e6 } else { n };
        CompactFormatter.write_f64(writer, rounded)
    }
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
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, SixDecimals);
    let mut object = serializer.serialize_map(None)?;
    object.serialize_entry("schema", &SCHEMA)?;
    object.serialize_entry("time", &format_rfc3339(snapshot.time.wall_ns))?;
    object.serialize_entry("host", &system.host.name)?;
    object.serialize_entry("kernel", &system.host.kernel)?;
    object.serialize_entry("interval_s", &snapshot.interval_secs)?;
    object.serialize_entry("cpu", &memory::cpu(snapshot))?;
    if scope.devices {
        object.serialize_entry("devices", &device::devices(system))?;
        object.serialize_entry("network_filesystems", &snapshot.netfs.ok())?;
    }
    if scope.memory {
        object.serialize_entry("writeback", &memory::writeback(snapshot))?;
        object.serialize_entry("swap", &memory::swap(snapshot))?;
        object.serialize_entry("pressure", &memory::pressure(snapshot))?;
        object.serialize_entry("stalls", &memory::stalls(snapshot))?;
    }
    if scope.processes {
        object.serialize_entry("processes", &process::processes(system))?;
        object.serialize_entry("cgroups", &process::cgroups(system))?;
    }
    if scope.kernel_log {
        object.serialize_entry("kernel_log", &kernel_log::entries(system, since))?;
    }
    if scope.shows_syncs(system) {
        object.serialize_entry("syncs", &syncs::syncs(system))?;
        object.serialize_entry("slow_syncs", &syncs::slow_syncs(system))?;
    }
    if scope.shows_files(system) {
        object.serialize_entry("files", &files::files(system))?;
    }
    if scope.shows_waits(system) {
        object.serialize_entry("waits", &waits::waits(system))?;
    }
    if scope.findings {
        object.serialize_entry("findings", &findings::incidents_json(engine, system))?;
    }
    object.serialize_entry("unavailable", &unavailable::unavailable_sources(system, engine, scope, more))?;
    object.end()?;
    String::from_utf8(out).map_err(serde_json::Error::custom)
}
