//! The columns of the lists of hosts and of devices.

use super::host::{FleetDevice, FleetHost, HostPresence};
use super::rank::OLD_AFTER_SECS;
use crate::model::column::{CellValue, ColumnSource, ColumnSpec};

/// A column of the list of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns' help says it")]
pub enum HostColumn {
    Host,
    Finding,
    IoStall,
    Stalled,
    P99,
    Dirty,
    Throttled,
    Age,
}

/// A host with what is computed for its row.
pub struct HostRow<'a> {
    /// The host.
    pub host: &'a FleetHost,
    /// Its worst finding in words, and what else must be known of it.
    pub finding: String,
    /// Age of its sample now, seconds.
    pub age_secs: Option<f64>,
}

impl<'a> HostRow<'a> {
    /// The row of a host whose sample has this age; `time_of_day` writes seconds since 1970.
    pub fn new(host: &'a FleetHost, age_secs: Option<f64>, time_of_day: impl Fn(f64) -> String) -> Self {
        let mut parts = Vec::new();
        match (host.presence, &host.findings) {
            (HostPresence::GoneSince(seen), _) => parts.push(format!("gone: no figures since {}", time_of_day(seen))),
            (_, None) => parts.push("findings not known".to_owned()),
            (_, Some(findings)) => {
                let first = findings.first().map(|f| format!("{} {}", f.severity.symbol(), f.text()));
                parts.extend(first);
                if findings.len() > 1 {
                    parts.push(format!("+{}", findings.len() - 1));
                }
            }
        }
        parts.extend(host.clock_text());
        if host.is_duplicate {
            parts.push("name used twice".into());
        }
        Self { host, finding: parts.join("  "), age_secs }
    }

    /// Whether its figures are too old to be of now.
    pub fn is_old(&self) -> bool {
        self.host.is_gone() || self.age_secs.is_none_or(|age| age > OLD_AFTER_SECS)
    }
}

/// How a cell of a host is computed.
pub type HostValue = for<'r> fn(&'r HostRow<'_>) -> CellValue<'r>;
/// A column of the list of hosts.
pub type HostColumnSpec = ColumnSpec<HostColumn, HostValue>;

fn count(n: Option<u64>) -> CellValue<'static> {
    n.map_or(CellValue::Missing, CellValue::Int)
}

fn millis(secs: Option<f64>) -> CellValue<'static> {
    CellValue::fixed(secs.map(|secs| secs * 1e3), 1)
}

/// The list of hosts.
pub const HOST_COLUMNS: &[HostColumnSpec] = &[
    HostColumnSpec::left(HostColumn::Host, "Host", 20, |r| CellValue::Text(&r.host.name), "name of the host"),
    HostColumnSpec::left(
        HostColumn::Finding,
        "Worst finding",
        0,
        |r| CellValue::Text(&r.finding),
        "its worst finding and how many more there are; a clock that is off; a name that two targets have",
    ),
    HostColumnSpec::right(
        HostColumn::IoStall,
        "IO stall",
        8,
        |r| CellValue::fixed(r.host.io_pressure_pct, 0),
        "share of time in which some task waited for I/O, percent",
    )
    .thresholds(20.0, 60.0),
    HostColumnSpec::right(
        HostColumn::Stalled,
        "stalled",
        7,
        |r| count(r.host.stalled_devices),
        "devices with requests in flight of which none completes",
    )
    .thresholds(1.0, 1.0),
    HostColumnSpec::right(
        HostColumn::P99,
        "p99 ms",
        8,
        |r| millis(r.host.p99_secs),
        "99th percentile of the time of requests, of its slowest device, milliseconds",
    ),
    HostColumnSpec::right(
        HostColumn::Dirty,
        "dirty %",
        7,
        |r| CellValue::fixed(r.host.dirty_pct, 0),
        "dirty pages and writeback in percent of the limit at which writers wait",
    )
    .thresholds(70.0, 95.0),
    HostColumnSpec::right(
        HostColumn::Throttled,
        "thr s/s",
        7,
        |r| CellValue::fixed(r.host.throttled, 2),
        "pauses of writers because of dirty pages, seconds per second, summed over threads",
    )
    .thresholds(0.5, 4.0),
    HostColumnSpec::right(
        HostColumn::Age,
        "age s",
        6,
        |r| CellValue::fixed(r.age_secs, 0),
        "age of its newest sample, seconds",
    )
    .thresholds(OLD_AFTER_SECS / 2.0, OLD_AFTER_SECS),
];

/// Where the columns of hosts come from.
pub const HOST_SOURCE: ColumnSource = ColumnSource::new(
    "the metrics of `iotop-plus export` in Prometheus",
    "there if the metric was not exported, is too old for Prometheus, or its query failed",
);

/// A column of the list of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns' help says it")]
pub enum FleetDeviceColumn {
    Model,
    Host,
    Device,
    Mean,
    P99,
    Requests,
    Bytes,
    State,
}

/// A device with what is computed for its row.
pub struct FleetDeviceRow<'a> {
    /// The device.
    pub device: &'a FleetDevice,
    /// What is wrong with it.
    pub state: String,
}

impl<'a> FleetDeviceRow<'a> {
    /// The row of a device.
    pub fn new(device: &'a FleetDevice) -> Self {
        let stalled = device.is_stalled.then_some("stalled");
        let parts: Vec<&str> = [stalled, device.verdict.as_deref()].into_iter().flatten().collect();
        Self { device, state: parts.join("; ") }
    }

    /// The order by default: by model, what is stalled or slow first, then the longest mean.
    pub fn compare_in_class(a: &Self, b: &Self) -> std::cmp::Ordering {
        let is_unknown = |row: &Self| row.device.model.is_none();
        let mean = |row: &Self| row.device.mean_secs.unwrap_or(-1.0);
        is_unknown(a)
            .cmp(&is_unknown(b))
            .then_with(|| a.device.model.cmp(&b.device.model))
            .then_with(|| a.state.is_empty().cmp(&b.state.is_empty()))
            .then_with(|| mean(b).total_cmp(&mean(a)))
            .then_with(|| (&a.device.host_name, &a.device.device).cmp(&(&b.device.host_name, &b.device.device)))
    }
}

/// How a cell of a device is computed.
pub type FleetDeviceValue = for<'r> fn(&'r FleetDeviceRow<'_>) -> CellValue<'r>;
/// A column of the list of devices.
pub type FleetDeviceColumnSpec = ColumnSpec<FleetDeviceColumn, FleetDeviceValue>;

/// The list of devices, those of a model beside each other. Where there is little room the last columns go first, and times
/// are what devices are compared by.
pub const FLEET_DEVICE_COLUMNS: &[FleetDeviceColumnSpec] = &[
    ColumnSpec::left(
        FleetDeviceColumn::Model,
        "Model",
        24,
        |r| CellValue::Text(r.device.class_name()),
        "hardware model; devices of one are compared with each other",
    ),
    ColumnSpec::left(FleetDeviceColumn::Host, "Host", 18, |r| CellValue::Text(&r.device.host_name), "name of the host"),
    ColumnSpec::left(
        FleetDeviceColumn::Device,
        "Device",
        10,
        |r| CellValue::Text(&r.device.device),
        "name of the device",
    ),
    ColumnSpec::right(
        FleetDeviceColumn::Mean,
        "mean ms",
        8,
        |r| millis(r.device.mean_secs),
        "mean time of a request from allocation to completion, milliseconds",
    ),
    ColumnSpec::right(
        FleetDeviceColumn::P99,
        "p99 ms",
        8,
        |r| millis(r.device.p99_secs),
        "99th percentile of the same, milliseconds",
    ),
    ColumnSpec::right(
        FleetDeviceColumn::Requests,
        "req/s",
        7,
        |r| r.device.requests_per_sec.map_or(CellValue::Missing, CellValue::Count),
        "completed requests per second",
    ),
    ColumnSpec::right(
        FleetDeviceColumn::Bytes,
        "B/s",
        6,
        |r| CellValue::bytes(r.device.bytes_per_sec),
        "bytes read and written per second; exported with --all only",
    ),
    ColumnSpec::left(
        FleetDeviceColumn::State,
        "State",
        0,
        |r| CellValue::Text(&r.state),
        "stalled, or slower than devices of the same model at the same load",
    ),
];
