//! A finished run: plain data, and one file per way to write it down.

pub mod chart;
pub mod course;
pub mod fio;
pub mod markdown;
pub mod ruler;
pub mod scale;
pub mod sweep;
pub mod text;
pub mod warnings;

use super::measure::depth::Depths;
use super::measure::latency::{Direction, Latency, Sync};
use super::plan::Plan;
use super::target::sizes::KnownSize;
use crate::model::disk::DiskRate;
use serde::{Deserialize, Serialize};

/// Version of the stored form.
pub const SCHEMA: u32 = 1;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All of it was done.
    Complete,
    /// Somebody stopped it; what was measured up to then is valid.
    Cancelled,
    /// An error stopped it; what was measured up to then is valid.
    Failed(String),
    /// Nothing moved for longer than the stall limit.
    Stalled(String),
}

/// Where the file was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Directory, cleaned for showing.
    pub directory: String,
    /// File system type.
    pub filesystem: String,
    /// What it is mounted from, cleaned.
    pub source: String,
    /// Mount point, cleaned.
    pub mount: String,
    /// Its options.
    pub options: String,
    /// `major:minor` of the device whose counters were watched.
    pub device: Option<String>,
    /// Required alignment of direct I/O, bytes.
    pub alignment: u32,
    /// Whether its files live in memory.
    pub memory: bool,
    /// Whether a network is in between.
    pub network: bool,
    /// Whether it passes I/O on to other file systems.
    pub stacked: bool,
    /// Sizes the kernel knows of its disk.
    #[serde(default)]
    pub sizes: Vec<KnownSize>,
}

/// A run's report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name in the store: time and profile.
    pub id: String,
    /// When it began, RFC 3339.
    pub time: String,
    /// Of this machine.
    pub host: String,
    /// Its kernel release.
    pub kernel: String,
    /// Of this program.
    pub version: String,
    /// What was asked for.
    pub plan: Plan,
    /// Where; `None` for workloads without a file.
    pub target: Option<Target>,
    /// What was measured, in order.
    pub parts: Vec<Part>,
    /// What to know before believing the figures.
    pub warnings: Vec<String>,
    /// Where it lies among known storage.
    pub ruler: Option<ruler::Placement>,
    /// How it ended.
    pub end: End,
}

/// CPU time over a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Per cent of one core in user mode.
    pub user_pct: f64,
    /// Per cent of one core in the kernel.
    pub system_pct: f64,
    /// Per operation, ns, both modes.
    pub ns_per_io: f64,
    /// Context switches, voluntary and not.
    pub switches: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

/// Spans without any completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// How many of at least 100 ms.
    pub count: u64,
    /// Their sum, ns.
    pub total_ns: u64,
    /// The longest span without a completion, stall or not, ns.
    pub longest_ns: u64,
}

/// A named figure of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what; may be empty.
    pub unit: String,
}

/// One point of a part's course.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Since the part began, ms.
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
}

/// One measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Which.
    pub label: String,
    /// Engine and what it was set up with.
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
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Syncs, or what [`Part::verb`] says.
    pub sync: Sync,
    /// What was timed instead of syncs, in workloads that do no I/O; empty: syncs.
    #[serde(default)]
    pub verb: String,
    /// How deep it really was; all zero in results of before this was counted.
    #[serde(default)]
    pub depths: Depths,
    /// CPU time; `None` where other work of this process would be in it.
    pub cpu: Option<CpuUse>,
    /// Spans without any completion.
    pub stalls: Stalls,
    /// The device's own counters over the same time.
    pub device: Option<DiskRate>,
    /// The time those counters cover, ns: more than `elapsed_ns` when the run hung at its end.
    #[serde(default)]
    pub device_ns: u64,
    /// What only this workload has.
    pub figures: Vec<Figure>,
    /// Its course.
    pub series: Vec<Point>,
}

impl Part {
    /// Seconds counted.
    pub fn secs(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    /// Operations per second of a count.
    pub fn per_s(&self, n: u64) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { n as f64 / self.secs() }
    }

    /// Reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.per_s(self.read.ios + self.write.ios)
    }

    /// Bytes read and written per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.per_s(self.read.bytes + self.write.bytes)
    }

    /// `lat` of reads and writes together.
    pub fn lat(&self) -> Latency {
        self.read.lat.merged(&self.write.lat)
    }

    /// A figure by name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|f| f.name == name).map(|f| f.value)
    }

    /// Adds a figure.
    pub fn say(&mut self, name: &str, value: f64, unit: &str) {
        self.figures.push(Figure { name: name.into(), value, unit: unit.into() });
    }

    /// Application bytes per byte the device moved, reads and writes together; `None` where there is
    /// nothing to compare.
    pub fn app_to_device(&self) -> Option<f64> {
        let device = self.device.as_ref()?;
        let app = (self.read.bytes + self.write.bytes) as f64 / 1_048_576.0;
        let moved = (device.read_mb_per_s + device.write_mb_per_s) * self.device_ns as f64 / 1e9;
        (app > 0.0).then(|| if moved > 0.0 { app / moved } else { f64::INFINITY })
    }
}

/// One kind of operation of a part, as tables list it.
pub struct Row<'a> {
    /// `read`, `write`, or what was timed.
    pub what: &'a str,
    /// Completed.
    pub ios: u64,
    /// Moved.
    pub bytes: u64,
    /// `lat`.
    pub lat: &'a Latency,
}

/// The kinds that occurred.
pub fn rows(p: &Part) -> Vec<Row<'_>> {
    let timed = if p.verb.is_empty() { "sync" } else { &p.verb };
    let all = [
        Row { what: "read", ios: p.read.ios, bytes: p.read.bytes, lat: &p.read.lat },
        Row { what: "write", ios: p.write.ios, bytes: p.write.bytes, lat: &p.write.lat },
        Row { what: timed, ios: p.sync.ios, bytes: 0, lat: &p.sync.lat },
    ];
    all.into_iter().filter(|row| row.ios > 0).collect()
}
