//! The primary metric of a workload, by which two runs are compared.

use crate::bench::measure::latency::LatencyStats;
use crate::bench::report::format::MIB;
use crate::bench::report::{BenchReport, Measurement};
use serde::{Deserialize, Serialize};

/// The primary metric of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryMetric {
    /// Description.
    pub name: String,
    /// Unit; empty if the name says it.
    pub unit: String,
    /// Whether higher values are better.
    pub higher_is_better: bool,
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
