//! A finished run as plain data: what is stored, sent by the child, and formatted by the other modules.

use crate::bench::disturbance::Disturbance;
use crate::bench::measure::depth::DepthCounts;
use crate::bench::measure::histogram::Histogram;
use crate::bench::measure::latency::{DirectionStats, LatencyStats, StallStats, SyncStats};
use crate::bench::plan::BenchPlan;
use crate::bench::target::size_hints::DeviceSizeHint;
use crate::model::disk::DiskRate;
use serde::{Deserialize, Serialize};

/// Version of the stored form.
pub const SCHEMA: u32 = 1;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Complete.
    Complete,
    /// Cancelled; the results up to then are valid.
    Cancelled,
    /// Ended by an error; the results up to then are valid.
    Failed(String),
    /// No progress for longer than the stall limit.
    Stalled(String),
}

/// Where the file of a benchmark was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportTarget {
    /// Directory, sanitized.
    pub directory: String,
    /// File system type.
    pub filesystem: String,
    /// Source of the mount, sanitized.
    pub source: String,
    /// Mount point, sanitized.
    pub mount: String,
    /// Its options.
    pub options: String,
    /// `major:minor` of the device whose counters were read.
    pub device: Option<String>,
    /// Required alignment of direct I/O, bytes.
    pub alignment: u32,
    /// Whether its files are in memory.
    #[serde(rename = "memory")]
    pub is_memory: bool,
    /// Whether it is a network file system.
    #[serde(rename = "network")]
    pub is_network: bool,
    /// Whether it passes I/O on to other file systems.
    #[serde(rename = "stacked")]
    pub is_stacked: bool,
    /// What the disk calls itself, as in sysfs; `None` for virtual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Sizes the kernel knows of its disk.
    #[serde(default)]
    #[serde(rename = "sizes")]
    pub size_hints: Vec<DeviceSizeHint>,
}

/// The report of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// ID in the store: time and profile.
    pub id: String,
    /// When it began, RFC 3339.
    pub time: String,
    /// Of this machine.
    pub host: String,
    /// Its kernel release.
    pub kernel: String,
    /// Of this program.
    pub version: String,
    /// What was requested.
    pub plan: BenchPlan,
    /// The target; `None` for workloads without a file.
    pub target: Option<ReportTarget>,
    /// The measurements, in order.
    #[serde(rename = "parts")]
    pub measurements: Vec<Measurement>,
    /// Conditions that distort the results.
    pub warnings: Vec<String>,
    /// What the result means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// The comparison with known classes of storage.
    #[serde(rename = "ruler")]
    pub reference: Option<ReferencePlacement>,
    /// How it ended.
    pub end: RunEnd,
}

impl BenchReport {
    /// The first measurement whose label begins with `label`.
    pub fn find(&self, label: &str) -> Option<&Measurement> {
        self.measurements.iter().find(|p| p.label.starts_with(label))
    }
}

/// CPU time over a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUsage {
    /// User mode, percent of one core.
    pub user_pct: f64,
    /// Kernel mode, percent of one core.
    pub system_pct: f64,
    /// Per operation in both modes, ns.
    pub ns_per_io: f64,
    /// Context switches, voluntary and not.
    pub(crate) switches: u64,
    pub(crate) major_faults: u64,
    pub(crate) minor_faults: u64,
}

/// A named result that only one workload has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadMetric {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// Unit; may be empty.
    pub(crate) unit: String,
}

/// One point of a measurement's time series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Time since the measurement began, ms.
    pub at_ms: u64,
    /// Reads, writes per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
    /// Median of `lat` in this interval, ns; `None` if nothing completed.
    pub p50_ns: Option<u64>,
    /// 99th percentile of `lat`, ns.
    pub p99_ns: Option<u64>,
    /// Means of slat, clat and lat of reads in this interval, ns; `None` if nothing completed.
    #[serde(default)]
    pub read_mean_ns: [Option<f64>; 3],
    /// The same of writes.
    #[serde(default)]
    pub write_mean_ns: [Option<f64>; 3],
    /// Bytes per second that the disk moved, whoever caused them; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes_per_s: Option<f64>,
}

/// The completion latencies of one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HistogramPoint {
    /// Time since the measurement began, ms.
    pub at_ms: u64,
    /// Of reads.
    pub read: Histogram,
    /// Of writes.
    pub write: Histogram,
}

/// One measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The directory.
    pub label: String,
    /// Engine and its options.
    pub engine: String,
    /// Bytes of one operation.
    pub block: u32,
    /// Operations in flight.
    pub depth: u32,
    /// Worker threads.
    pub jobs: u32,
    /// From the end of the ramp-up to the last completion, ns.
    pub elapsed_ns: u64,
    /// Reads.
    pub read: DirectionStats,
    /// Writes.
    pub write: DirectionStats,
    /// Trims.
    #[serde(default)]
    pub trim: DirectionStats,
    /// Syncs, or [`Self::timed_operation`].
    pub sync: SyncStats,
    /// The operation that was timed instead of syncs, in workloads without I/O; empty: syncs.
    #[serde(default)]
    #[serde(rename = "verb")]
    pub timed_operation: String,
    /// Depth counts; all 0 in results of older versions.
    #[serde(default)]
    pub depths: DepthCounts,
    /// CPU time; `None` if it would include other work of this process.
    pub cpu: Option<CpuUsage>,
    /// Gaps without any completion.
    pub stalls: StallStats,
    /// The device's counters over the same time.
    pub device: Option<DiskRate>,
    /// The time those counters cover, ns: more than `elapsed_ns` if the run stalled at its end.
    #[serde(default)]
    pub device_ns: u64,
    /// The counters of the whole disk, if `device` is a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_disk: Option<DiskRate>,
    /// Spans in which the rates say nothing about the storage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
    /// Bytes that the disk moved beyond all that this run can have caused, percent of its bytes; `None` if nothing can
    /// be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_pct: Option<f64>,
    /// A cache answered where the workload is about the device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_cache: bool,
    /// Results that only this workload has.
    #[serde(rename = "figures")]
    pub metrics: Vec<WorkloadMetric>,
    /// Time series.
    pub series: Vec<SeriesPoint>,
    /// Histograms of clat over the same time, if the plan asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<HistogramPoint>,
}

impl Measurement {
    pub(crate) fn elapsed_secs(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    pub(crate) fn rate_of(&self, n: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { n as f64 / self.elapsed_secs() }
    }

    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.rate_of(self.ios())
    }

    /// Reads and writes.
    pub fn ios(&self) -> u64 {
        self.read.ios.saturating_add(self.write.ios).saturating_add(self.trim.ios)
    }

    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read.bytes.saturating_add(self.write.bytes).saturating_add(self.trim.bytes)
    }

    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.rate_of(self.bytes())
    }

    /// `lat` of reads and writes together.
    pub fn combined_lat(&self) -> LatencyStats {
        self.read.lat.merge(&self.write.lat).merge(&self.trim.lat)
    }

    /// The metric called `name`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|f| f.name == name).map(|f| f.value)
    }

    pub(crate) fn add_metric(&mut self, name: &str, value: f64, unit: &str) {
        self.metrics.push(WorkloadMetric { name: name.into(), value, unit: unit.into() });
    }

    /// Application bytes per byte the device read or wrote; `None` if there is nothing to compare.
    pub(crate) fn app_to_device_ratio(&self) -> Option<f64> {
        let device = self.device.as_ref()?;
        let app = self.bytes() as f64 / 1_048_576.0;
        let moved = (device.read_mb_per_s + device.write_mb_per_s) * self.device_ns as f64 / 1e9;
        (app > 0.0).then(|| if moved > 0.0 { app / moved } else { f64::INFINITY })
    }
}

/// A kind of operation of a measurement, as a table row.
pub(crate) struct OperationRow<'a> {
    /// `read`, `write`, or what was timed.
    pub operation: &'a str,
    pub ios: u64,
    pub bytes: u64,
    pub lat: &'a LatencyStats,
}

/// The kinds of operations that occurred.
pub(crate) fn operation_rows(p: &Measurement) -> Vec<OperationRow<'_>> {
    let timed = if p.timed_operation.is_empty() { "sync" } else { &p.timed_operation };
    let row = |operation, ios, bytes, lat| OperationRow { operation, ios, bytes, lat };
    let all = [
        row("read", p.read.ios, p.read.bytes, &p.read.lat),
        row("write", p.write.ios, p.write.bytes, &p.write.lat),
        row("trim", p.trim.ios, p.trim.bytes, &p.trim.lat),
        row(timed, p.sync.ios, 0, &p.sync.lat),
    ];
    all.into_iter().filter(|row| row.ios > 0 || row.lat.count > 0).collect()
}

/// The comparison of a result with the classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferencePlacement {
    /// IOPS per direction of the result.
    pub(crate) iops: f64,
    /// Name of the nearest class on a logarithmic scale; `None` if the result says nothing about storage.
    pub(crate) class: Option<String>,
    /// 0 (10 IOPS) to 1 (1,000,000 IOPS) on a logarithmic scale.
    pub(crate) position: f64,
    pub(crate) sentence: String,
}

pub(crate) fn is_sweep(r: &BenchReport) -> bool {
    r.plan.profile == "sweep" && !r.measurements.is_empty()
}
