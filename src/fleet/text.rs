//! All hosts and devices as text and JSON.

use super::columns::{FLEET_DEVICE_COLUMNS, FleetDeviceRow, HOST_COLUMNS, HostRow};
use super::host::{FleetHost, HostPresence};
use super::state::FleetState;
use crate::export::table::Table;
use crate::recording::reader::RecordingSpan;
use crate::recording::time_spec;
use crate::units::{format_rfc3339, format_time_of_day};
use serde_json::{Value, json};

/// Nanoseconds of seconds since 1970.
pub fn wall_ns(secs: f64) -> i64 {
    (secs * 1e9) as i64
}

/// Seconds since 1970 of a time that a user typed: `14:35` (before `now`), `2026-11-21T14:35:12Z`, `-10m`.
///
/// # Errors
/// What is wrong with it.
pub fn parse_time(text: &str, now: f64, utc_offset_secs: i64) -> Result<f64, String> {
    let day_ns = 86_400_000_000_000;
    let now_ns = wall_ns(now);
    let span = RecordingSpan { first_ns: now_ns - day_ns, last_ns: now_ns, ..RecordingSpan::default() };
    if text.starts_with('+') {
        return Err(format!("\"{text}\": a time is 14:35, 2026-11-21T14:35:12Z or -10m (before the time shown)"));
    }
    let parsed = time_spec::parse(text, &span, utc_offset_secs).map_err(|why| why.to_string())?;
    Ok(parsed as f64 / 1e9)
}

/// The hosts as a table; `now`: seconds of the local clock.
pub fn hosts_table(state: &FleetState, now: f64, utc_offset_secs: i64) -> Table {
    let time = |secs: f64| format_time_of_day(wall_ns(secs), utc_offset_secs);
    let at = state.evaluated_at.map_or(String::new(), |at| format!(", {}", format_rfc3339(wall_ns(at))));
    let mut table = Table::with_columns(format!("Hosts{at}"), HOST_COLUMNS);
    for host in &state.hosts {
        let row = HostRow::new(host, state.host_age(host, now), time);
        table.push_values(HOST_COLUMNS, |column| (column.value)(&row));
    }
    table.notes = state.problems(time);
    table
}

/// The devices as a table, those of a model together.
pub fn devices_table(state: &FleetState) -> Table {
    let mut table = Table::with_columns("Devices by model", FLEET_DEVICE_COLUMNS);
    for row in device_rows(state) {
        table.push_values(FLEET_DEVICE_COLUMNS, |column| (column.value)(&row));
    }
    table
}

fn device_rows(state: &FleetState) -> Vec<FleetDeviceRow<'_>> {
    let mut rows: Vec<FleetDeviceRow<'_>> = state.devices.iter().map(FleetDeviceRow::new).collect();
    rows.sort_by(FleetDeviceRow::compare_in_class);
    rows
}

fn host_json(host: &FleetHost, age_secs: Option<f64>) -> Value {
    let findings = host.findings.as_ref().map(|findings| {
        let finding = |f: &super::host::FleetFinding| json!({"severity": f.severity.name(), "rule": f.rule, "subject": f.subject});
        findings.iter().map(finding).collect::<Vec<_>>()
    });
    let gone_since = match host.presence {
        HostPresence::GoneSince(seen) => Some(format_rfc3339(wall_ns(seen))),
        HostPresence::Present => None,
    };
    json!({
        "host": host.name,
        "job": crate::sanitize::sanitize(&host.id.job),
        "instance": crate::sanitize::sanitize(&host.id.instance),
        "duplicate_name": host.is_duplicate,
        "gone_since": gone_since,
        "age_seconds": age_secs,
        "clock_offset_seconds": host.clock_offset_secs,
        "findings": findings,
        "io_pressure_percent": host.io_pressure_pct,
        "stalled_devices": host.stalled_devices,
        "p99_seconds": host.p99_secs,
        "dirty_bytes": host.dirty_bytes,
        "dirty_percent": host.dirty_pct,
        "throttled_seconds_per_second": host.throttled,
        "hung_tasks": host.hung_tasks,
    })
}

/// All hosts, the worst first, and their devices, as one JSON object.
pub fn fleet_json(state: &FleetState, now: f64) -> Value {
    let device_json = |row: &FleetDeviceRow<'_>| {
        let device = row.device;
        json!({
            "host": device.host_name,
            "device": device.device,
            "model": device.model,
            "requests_per_second": device.requests_per_sec,
            "bytes_per_second": device.bytes_per_sec,
            "mean_seconds": device.mean_secs,
            "p99_seconds": device.p99_secs,
            "stalled": device.is_stalled,
            "slow": device.verdict,
        })
    };
    json!({
        "time": state.evaluated_at.map(|at| format_rfc3339(wall_ns(at))),
        "problems": state.problems(|secs| format_rfc3339(wall_ns(secs))),
        "hosts": state.hosts.iter().map(|host| host_json(host, state.host_age(host, now))).collect::<Vec<_>>(),
        "devices": device_rows(state).iter().map(device_json).collect::<Vec<_>>(),
    })
}
