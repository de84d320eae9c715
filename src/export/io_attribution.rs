//! The tables of traced I/O by process, control group and device.

use super::table::Table;
use crate::model::disk::DevId;
use crate::model::io_accounting::rates::is_beyond_buckets;
use crate::model::io_accounting::{IoAttribution, IoRates, OwnerIo};
use crate::model::system_state::SystemState;
use crate::sanitize::sanitize;
use crate::units::{format_bytes, format_micros, write_count};

const MAX_ROWS: usize = 20;

pub(crate) const COLUMN_HEADERS: [&str; 7] = ["r/s", "w/s", "read/s", "write/s", "mean", "p99", "wback/s"];

/// Rates as text: requests, bytes, latencies, bytes written back on the owner's behalf.
pub(crate) fn format_rates(f: &IoRates) -> [String; 7] {
    let count = |n: f64| {
        let mut text = String::new();
        write_count(&mut text, n);
        text
    };
    let time = |us: Option<f64>| us.map_or("-".into(), format_micros);
    [
        count(f.reads_per_s),
        count(f.writes_per_s),
        format_bytes(f.read_bytes_per_s as u64),
        format_bytes(f.write_bytes_per_s as u64),
        time(f.mean_us),
        f.p99_us
            .map_or("-".into(), |us| format!("{}{}", if is_beyond_buckets(us) { ">" } else { "" }, format_micros(us))),
        format_bytes(f.writeback_bytes_per_s as u64),
    ]
}

/// `dd (1234)`, sanitized. An exited process has the name it had at its I/O.
pub(crate) fn process_label(attribution: &IoAttribution, system: &SystemState, pid: u32) -> String {
    let known = system.processes.find_by_pid(pid).map(|row| row.comm());
    let name = known.or_else(|| attribution.process_name(pid).map(|n| sanitize(&**n).into()));
    format!("{} ({pid})", name.unwrap_or_else(|| "?".into()))
}

/// The owners with I/O on a device, by bytes, then by requests.
pub(crate) fn on_device<W>(all: &[OwnerIo<W>], id: DevId) -> Vec<(&W, &IoRates)> {
    let mut on: Vec<_> = all.iter().filter_map(|c| Some((&c.owner, c.on_device(id)?))).collect();
    on.sort_by(|a, b| {
        total_bytes_per_s(b.1).total_cmp(&total_bytes_per_s(a.1)).then(b.1.iops().total_cmp(&a.1.iops()))
    });
    on
}

fn total_bytes_per_s(f: &IoRates) -> f64 {
    f.read_bytes_per_s + f.write_bytes_per_s.max(f.writeback_bytes_per_s)
}

/// The writes that belong to no process; `None` if there are none.
pub(crate) fn unattributed_text(attribution: &IoAttribution, id: DevId) -> Option<String> {
    let (_, unattributed) = attribution.unattributed.iter().find(|a| a.0 == id)?;
    let parts = [
        ("metadata of a file system", unattributed.metadata),
        ("swapped out", unattributed.swap),
        ("page cache of unknown origin", unattributed.unknown),
    ];
    let texts = parts.iter().filter(|p| p.1 > 0.0).map(|(what, n)| format!("{what} {}/s", format_bytes(*n as u64)));
    let text = texts.collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then(|| format!("also written: {text}"))
}

/// The tables by process and by control group; empty where nothing is traced or nothing was done.
pub(crate) fn build_tables(system: &SystemState) -> Vec<Table> {
    let Some(attribution) = system.snapshot.io_attribution.ok() else { return Vec::new() };
    let tasks = build_table("I/O by process and device", system, &attribution.processes, |pid| {
        process_label(attribution, system, *pid)
    });
    let cgroups =
        build_table("I/O by control group and device", system, &attribution.cgroups, |path| sanitize(&**path));
    let mut out: Vec<Table> = tasks.into_iter().chain(cgroups).collect();
    if let Some(first) = out.first_mut() {
        first.notes.extend(attribution.unattributed.iter().filter_map(|(id, _)| {
            Some(format!("{}: {}", system.device_name(*id), unattributed_text(attribution, *id)?))
        }));
    }
    out
}

fn build_table<W>(title: &str, system: &SystemState, all: &[OwnerIo<W>], name: impl Fn(&W) -> String) -> Option<Table> {
    let headers: Vec<(&str, bool)> =
        [("Device", false), ("Who", false)].into_iter().chain(COLUMN_HEADERS.map(|h| (h, true))).collect();
    let mut rows: Vec<(f64, DevId, &W, &IoRates)> = Vec::new();
    for charge in all {
        rows.extend(charge.devices.iter().map(|d| (total_bytes_per_s(&d.rates), d.device, &charge.owner, &d.rates)));
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.3.iops().total_cmp(&a.3.iops())));
    let mut table = Table::new(title, &headers);
    for (_, id, who, figures) in rows.iter().take(MAX_ROWS) {
        let first = [system.device_name(*id), name(who)];
        table.rows.push(first.into_iter().chain(format_rates(figures)).collect());
    }
    if rows.len() > MAX_ROWS {
        table.notes.push(format!("{} more did less", rows.len() - MAX_ROWS));
    }
    (!rows.is_empty()).then_some(table)
}
