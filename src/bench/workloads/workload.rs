//! What a workload is, and the parts that several of them share.

use crate::bench::measure::latency::LatencyStats;
use crate::bench::plan::{BenchPlan, PlanError};
use crate::bench::report::format::MIB;
use crate::bench::report::{BenchReport, Measurement};
use crate::bench::session::{BenchSession, RunError};
use crate::units::format_bytes_long;
use serde::{Deserialize, Serialize};

/// A workload. Its functions take a plan of its own, whose `profile` is its name.
pub struct Workload {
    /// On the command line.
    pub name: &'static str,
    /// In a narrow list: at most 13 letters.
    pub(crate) brief: &'static str,
    pub(crate) about: &'static str,
    pub(crate) needs_directory: bool,
    /// Names of the [`crate::bench::params::PARAMS`] that have a meaning for it, separated by blanks.
    pub(super) params: &'static str,
    pub(super) plan: fn() -> BenchPlan,
    /// Checks a plan beyond [`BenchPlan::check`].
    pub(crate) check: fn(&BenchPlan) -> Result<(), PlanError>,
    /// Disk space it uses while it runs, bytes.
    pub(crate) footprint: fn(&BenchPlan) -> u64,
    /// The most bytes that a measurement can make the disk read and write; `None`: not known.
    pub(crate) own_bytes: fn(&BenchPlan, &Measurement) -> Option<[u64; 2]>,
    /// Whether a measurement is about the device, so that an answer of a cache is worth a word.
    pub(crate) expects_device: fn(&Measurement) -> bool,
    pub(crate) planned_writes: fn(&BenchPlan) -> PlannedWrites,
    /// What it will do, one line each, shown before the start.
    pub describe: fn(&BenchPlan) -> Vec<String>,
    pub(crate) has_reference_classes: fn(&BenchPlan) -> bool,
    pub(super) metric: MetricDefinition,
    /// What a result means, in a sentence or two; what reports of series show beside it is not repeated.
    pub(crate) conclude: fn(&BenchReport) -> Option<String>,
    pub(crate) run: fn(&mut BenchSession) -> Result<(), RunError>,
}

impl Workload {
    /// Its default plan, without a directory.
    pub fn defaults(&self) -> BenchPlan {
        BenchPlan { profile: self.name.into(), ..(self.plan)() }
    }

    /// Names of the parameters that have a meaning for it.
    pub fn params(&self) -> Vec<&'static str> {
        self.params.split_whitespace().collect()
    }
}

/// The primary metric of a workload, by which two runs are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryMetric {
    pub(crate) name: String,
    /// Unit; empty if the name says it.
    pub(crate) unit: String,
    pub(crate) higher_is_better: bool,
}

pub(super) struct MetricDefinition {
    pub name: &'static str,
    pub unit: &'static str,
    pub higher_is_better: bool,
    pub value: fn(&BenchReport) -> Option<f64>,
}

pub(super) const IOPS: MetricDefinition = higher_is_better("IOPS", "", |r| Some(r.measurements.first()?.iops()));

pub(super) const fn bandwidth(name: &'static str) -> MetricDefinition {
    higher_is_better(name, "MiB/s", |r| Some(mib_per_s(r.measurements.first()?)))
}

pub(super) const fn higher_is_better(
    name: &'static str,
    unit: &'static str,
    value: fn(&BenchReport) -> Option<f64>,
) -> MetricDefinition {
    MetricDefinition { name, unit, higher_is_better: true, value }
}

pub(super) const fn lower_is_better(
    name: &'static str,
    unit: &'static str,
    value: fn(&BenchReport) -> Option<f64>,
) -> MetricDefinition {
    MetricDefinition { higher_is_better: false, ..higher_is_better(name, unit, value) }
}

pub(super) fn mib_per_s(part: &Measurement) -> f64 {
    part.bytes_per_s() / MIB
}

pub(super) fn percentile_ms(latency: &LatencyStats, percent: f64) -> Option<f64> {
    Some(latency.percentile(percent)? as f64 / 1e6)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedWrites {
    /// Bytes written in any case.
    pub guaranteed: u64,
    /// At most this many more; `None`: as many as the time allows.
    pub additional: Option<u64>,
}

impl PlannedWrites {
    pub(super) const NONE: Self = Self { guaranteed: 0, additional: Some(0) };

    /// The writes of a plan with limits; `share`: percentage of writes; `times`: number of measurements.
    pub(super) fn timed(plan: &BenchPlan, guaranteed: u64, share: u8, times: u64) -> Self {
        let cap = |rate: u64, unit: u64| {
            let all = rate.saturating_mul(unit).saturating_mul(plan.time_ms + plan.ramp_ms) / 1000;
            (rate > 0 && plan.time_ms > 0).then_some(all)
        };
        let limits = [
            (plan.io_bytes > 0).then_some(plan.io_bytes),
            cap(plan.rate_bytes, 1),
            cap(plan.rate_iops, plan.block.into()),
        ];
        let most = match share {
            0 => Some(0),
            share => limits.into_iter().flatten().min().map(|n| n / 100 * u64::from(share)),
        };
        Self { guaranteed, additional: most.map(|n| n.saturating_mul(times)) }
    }
}

/// Bytes that pages, a journal and metadata take for each sync of a small write: 18 KiB on ext4, 6 KiB on xfs.
const BYTES_PER_SYNC: u64 = 32 << 10;

/// [`Workload::own_bytes`] of a log: the pages around each record are read where they are not in the cache, and written.
pub(super) fn log_bytes(_plan: &BenchPlan, part: &Measurement) -> Option<[u64; 2]> {
    let pages = part.write.bytes.saturating_mul(2);
    Some([pages, pages.saturating_add(part.sync.ios.saturating_mul(BYTES_PER_SYNC))])
}

pub(super) fn file_line(plan: &BenchPlan, times: &str) -> String {
    let nature = if plan.direct { "direct I/O" } else { "through the page cache" };
    format!("a nameless file of {}, filled with random data first; {times}; {nature}", format_bytes_long(plan.size))
}

/// `for 30 s after 1 s of ramp-up`.
pub(super) fn duration_line(plan: &BenchPlan) -> String {
    let time = match (plan.time_ms, plan.io_bytes) {
        (0, 0) => "until cancelled".into(),
        (0, bytes) => format!("until {} are moved", format_bytes_long(bytes)),
        (ms, 0) => format!("for {} s", ms as f64 / 1e3),
        (ms, bytes) => format!("for {} s or until {} are moved", ms as f64 / 1e3, format_bytes_long(bytes)),
    };
    format!("{time}, after {} s of ramp-up that is not counted", plan.ramp_ms as f64 / 1e3)
}
