//! Time series over the window of a report, for the machine and its busiest devices.

use super::window_findings::WindowFindings;
use crate::doctor::RuleEngine;
use crate::doctor::finding::Severity;
use crate::doctor::incident::Incident;
use crate::model::disk::{DevId, DiskRate};
use crate::model::snapshot::Snapshot;
use crate::model::system_state::SystemState;
use crate::units::format_time_of_day;
use std::collections::HashMap;

/// Points of a graph; of merged points the largest is kept.
const MAX_POINTS: usize = 60;
const MAX_DEVICES: usize = 6;

/// A quantity over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Quantity and unit, sanitized.
    pub name: String,
    /// Oldest first; `None` where it was not read.
    pub points: Vec<Option<f64>>,
}

impl Graph {
    /// The largest value.
    pub fn max(&self) -> f64 {
        self.points.iter().flatten().copied().fold(0.0, f64::max)
    }

    pub(crate) fn latest(&self) -> Option<f64> {
        self.points.last().copied().flatten()
    }
}

/// The graphs of a window, which have one time axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Charts {
    /// The graphs.
    pub graphs: Vec<Graph>,
    /// Local time of day at the start and at the end.
    pub times: [String; 2],
    /// Warnings and critical findings, the worst last.
    pub marks: Vec<FindingMark>,
}

/// When a finding was there.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingMark {
    /// Severity.
    pub severity: Severity,
    /// Title.
    pub title: String,
    /// Its start and its end as shares of the window, 0 to 1.
    pub span: [f64; 2],
}

impl Charts {
    /// The same with all texts changed.
    pub(super) fn map_text(&self, mut change: impl FnMut(&str) -> String) -> Self {
        Self {
            graphs: self.graphs.iter().map(|g| Graph { name: change(&g.name), ..g.clone() }).collect(),
            times: self.times.each_ref().map(|time| change(time)),
            marks: self.marks.iter().map(|m| FindingMark { title: change(&m.title), ..m.clone() }).collect(),
        }
    }
}

type SystemQuantity = fn(&Snapshot) -> Option<f64>;

const SYSTEM_GRAPHS: &[(&str, SystemQuantity)] = &[
    ("CPU waiting for I/O, %", |s| s.cpu.ok().map(|c| c.iowait_pct)),
    ("pressure io full avg10, %", |s| Some(s.pressure.ok()?.io.full?.avg10)),
    ("pressure memory full avg10, %", |s| Some(s.pressure.ok()?.memory.full?.avg10)),
    ("dirty, MiB", |s| to_mib(s.writeback.ok()?.dirty_bytes.map(|n| n as f64))),
    ("writeback, MiB", |s| to_mib(s.writeback.ok()?.writeback_bytes.map(|n| n as f64))),
    ("swapped in, MiB/s", |s| to_mib(s.swap.ok()?.in_bytes_per_s)),
    ("swapped out, MiB/s", |s| to_mib(s.swap.ok()?.out_bytes_per_s)),
];

type DeviceQuantity = fn(&DiskRate) -> f64;

const DEVICE_GRAPHS: &[(&str, DeviceQuantity)] = &[
    ("MB_read/s", |d| d.read_mb_per_s),
    ("MB_wrtn/s", |d| d.write_mb_per_s),
    ("await, ms", |d| d.await_ms),
    ("in flight", |d| d.in_flight as f64),
    ("%util", |d| d.util_pct),
];

fn to_mib(bytes: Option<f64>) -> Option<f64> {
    bytes.map(|n| n / f64::from(1 << 20))
}

/// The graphs with a value above 0, and the findings of the window.
pub fn build_charts(system: &SystemState, engine: &RuleEngine, seen: &WindowFindings, utc_offset_secs: i64) -> Charts {
    let times: Vec<_> = system.history.iter().filter(|f| !f.snapshot.is_since_boot).map(|f| f.snapshot.time).collect();
    let time_of_day = |wall_ns: Option<i64>| format_time_of_day(wall_ns.unwrap_or_default(), utc_offset_secs);
    // A position is that of the sample, as in the graphs, whatever the time between samples.
    let position = |boot_ns: u64| {
        let earlier = times.iter().filter(|time| time.boot_ns < boot_ns).count();
        earlier as f64 / times.len().max(1) as f64
    };
    let mark = |incident: &Incident, end: f64| FindingMark {
        severity: incident.severity,
        title: incident.cause().title.clone(),
        span: [incident.since_ns().map_or(0.0, position), end],
    };
    let current = engine.incidents.iter().map(|incident| mark(incident, 1.0));
    let past = seen.past_incidents(engine).map(|(incident, last)| mark(incident, position(last.boot_ns)));
    let mut marks: Vec<_> = current.chain(past).filter(|mark| mark.severity > Severity::Note).collect();
    marks.sort_by_key(|mark| mark.severity);
    Charts {
        graphs: build_graphs(system, &concerned_devices(engine, seen)),
        times: [times.first(), times.last()].map(|time| time_of_day(time.map(|t| t.wall_ns))),
        marks,
    }
}

/// The devices that incidents of the window are about, the worst first.
fn concerned_devices(engine: &RuleEngine, seen: &WindowFindings) -> Vec<DevId> {
    let past = seen.past_incidents(engine).map(|(incident, _)| incident);
    let mut incidents: Vec<&Incident> = engine.incidents.iter().chain(past).collect();
    incidents.sort_by_key(|incident| std::cmp::Reverse(incident.severity));
    incidents.iter().flat_map(|incident| incident.findings.iter().flat_map(|f| f.devices.iter().copied())).collect()
}

/// The graphs with a value above 0: of the `first` devices, which the findings are about, of the machine, and of busier
/// devices.
pub fn build_graphs(system: &SystemState, first: &[DevId]) -> Vec<Graph> {
    let snaps: Vec<&Snapshot> = system.history.iter().map(|f| &*f.snapshot).filter(|s| !s.is_since_boot).collect();
    let of_machine =
        SYSTEM_GRAPHS.iter().map(|(name, value)| downsample((*name).into(), snaps.iter().map(|s| value(s)).collect()));
    let of_device = |(id, name): &(DevId, String)| {
        let course = |value: &DeviceQuantity| snaps.iter().map(|s| s.device(*id).map(value)).collect();
        let graph =
            |(quantity, value): &(&str, DeviceQuantity)| downsample(format!("{name} {quantity}"), course(value));
        DEVICE_GRAPHS.iter().map(graph).collect::<Vec<Graph>>()
    };
    let devices = busiest_devices(&snaps, first);
    let (concerned, others): (Vec<_>, Vec<_>) = devices.into_iter().partition(|(id, _)| first.contains(id));
    let mut out: Vec<Graph> = concerned.iter().flat_map(of_device).collect();
    out.extend(of_machine);
    out.extend(others.iter().flat_map(of_device));
    out.retain(|g| g.max() > 0.0);
    out
}

fn busiest_devices(snaps: &[&Snapshot], first: &[DevId]) -> Vec<(DevId, String)> {
    let mut sums: HashMap<DevId, (f64, String)> = HashMap::new();
    for d in snaps.iter().filter_map(|s| s.devices.ok()).flatten() {
        let sum = sums.entry(d.id).or_insert_with(|| (0.0, crate::sanitize::sanitize(&*d.name)));
        // A stalled device completes nothing, but matters most.
        sum.0 += d.tps + d.in_flight as f64;
    }
    let mut all: Vec<_> = sums.into_iter().filter(|(_, (sum, _))| *sum > 0.0).collect();
    let rank = |id: DevId| first.iter().position(|other| *other == id).unwrap_or(first.len());
    all.sort_by(|a, b| rank(a.0).cmp(&rank(b.0)).then(b.1.0.total_cmp(&a.1.0)).then(a.0.cmp(&b.0)));
    all.into_iter().take(MAX_DEVICES).map(|(id, (_, name))| (id, name)).collect()
}

fn downsample(name: String, all: Vec<Option<f64>>) -> Graph {
    let each = all.len().div_ceil(MAX_POINTS).max(1);
    let most = |part: &[Option<f64>]| part.iter().flatten().copied().reduce(f64::max);
    Graph { name, points: all.chunks(each).map(most).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downsampling_keeps_peaks_and_gaps() {
        let mut all: Vec<Option<f64>> = vec![Some(1.0); 600];
        all[77] = Some(9.0);
        all[100..120].fill(None);
        let got = downsample("x".into(), all);
        assert_eq!((got.points.len(), got.max(), got.latest()), (60, 9.0, Some(1.0)));
        assert_eq!((got.points[7], got.points[10], got.points[12]), (Some(9.0), None, Some(1.0)));
        assert_eq!(downsample("x".into(), vec![Some(2.0); 3]).points.len(), 3);
    }
}
