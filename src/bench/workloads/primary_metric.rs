//! The primary metric of each workload, by which two runs are compared.

use crate::bench::measure::latency::LatencyStats;
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

/// A primary metric and how to compute it.
struct MetricDefinition {
    profile: &'static str,
    name: &'static str,
    unit: &'static str,
    higher_is_better: bool,
    value: fn(&BenchReport) -> Option<f64>,
}

const MIB: f64 = 1_048_576.0;

const fn iops_metric(profile: &'static str) -> MetricDefinition {
    MetricDefinition {
        profile,
        name: "IOPS",
        unit: "",
        higher_is_better: true,
        value: |r| positive(r.measurements.first()?.iops()),
    }
}

const fn bandwidth_metric(profile: &'static str, name: &'static str) -> MetricDefinition {
    MetricDefinition {
        profile,
        name,
        unit: "MiB/s",
        higher_is_better: true,
        value: |r| positive(mib_per_s(r.measurements.first()?)),
    }
}

/// One per workload.
const METRICS: [MetricDefinition; 13] = [
    iops_metric("randrw"),
    iops_metric("randread"),
    iops_metric("randwrite"),
    bandwidth_metric("seqread", "bandwidth"),
    bandwidth_metric("seqwrite", "bandwidth"),
    // A geometric mean gives every step the same weight.
    MetricDefinition {
        profile: "sweep",
        name: "geometric mean of all steps",
        unit: "MiB/s",
        higher_is_better: true,
        value: |r| {
            let logs: Vec<f64> = r.measurements.iter().map(mib_per_s).filter(|v| *v > 0.0).map(f64::ln).collect();
            (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
        },
    },
    MetricDefinition {
        profile: "fsync",
        name: "fdatasync p99",
        unit: "ms",
        higher_is_better: false,
        value: |r| percentile_ms(&r.measurements.first()?.sync.lat, 99.0),
    },
    // The delay of a write while the sync of the second thread runs.
    MetricDefinition {
        profile: "append",
        name: "write p99.9 with a sync every second",
        unit: "ms",
        higher_is_better: false,
        value: |r| percentile_ms(&find_measurement(r, "sync every second")?.write.lat, 99.9),
    },
    // The effect of a large file with one sync at its end on other processes.
    MetricDefinition {
        profile: "chunks",
        name: "bystander's p99 sync beside one sync at the end",
        unit: "ms",
        higher_is_better: false,
        value: |r| find_measurement(r, "sync once")?.metric("bystander: p99 sync"),
    },
    MetricDefinition {
        profile: "txlog",
        name: "tx/s",
        unit: "",
        higher_is_better: true,
        value: |r| r.measurements.first()?.metric("tx/s").and_then(positive),
    },
    bandwidth_metric("cached", "cold read"),
    MetricDefinition {
        profile: "intrinsic",
        name: "worst run",
        unit: "us",
        higher_is_better: false,
        value: |r| r.measurements.first()?.metric("worst run").and_then(positive),
    },
    MetricDefinition {
        profile: "fork",
        name: "fork per GiB",
        unit: "ms",
        higher_is_better: false,
        value: |r| r.measurements.first()?.metric("fork per GiB").and_then(positive),
    },
];

fn mib_per_s(part: &Measurement) -> f64 {
    part.bytes_per_s() / MIB
}

fn percentile_ms(latency: &LatencyStats, percent: f64) -> Option<f64> {
    positive(latency.percentile(percent)? as f64 / 1e6)
}

fn find_measurement<'r>(report: &'r BenchReport, label: &str) -> Option<&'r Measurement> {
    report.measurements.iter().find(|p| p.label.starts_with(label))
}

/// Ratios need values above 0.
fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

fn find_definition(profile: &str) -> Option<&'static MetricDefinition> {
    METRICS.iter().find(|h| h.profile == profile)
}

/// The primary metric of a workload; `None` if there is no such workload.
pub fn primary_metric(profile: &str) -> Option<PrimaryMetric> {
    find_definition(profile).map(|h| PrimaryMetric {
        name: h.name.into(),
        unit: h.unit.into(),
        higher_is_better: h.higher_is_better,
    })
}

/// Its value in a report; `None` if nothing was counted.
pub fn primary_value(report: &BenchReport) -> Option<f64> {
    (find_definition(&report.plan.profile)?.value)(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::bench::plan::BenchPlan;
    use crate::bench::store::tests::empty_report;
    use crate::bench::workloads::WORKLOADS;

    #[test]
    fn every_workload_has_a_primary_metric() {
        for w in WORKLOADS {
            assert!(primary_metric(w.name()).is_some_and(|m| !m.name.is_empty()), "{}", w.name());
        }
        assert_eq!(primary_metric("nothing"), None);
    }

    #[test]
    fn values_come_from_their_measurement_and_missing_is_not_zero() {
        let mut r = empty_report("1-x");
        r.plan = BenchPlan { profile: "txlog".into(), ..BenchPlan::default() };
        assert_eq!(primary_value(&r), None);
        let mut p = Measurement { elapsed_ns: 2_000_000_000, ..Measurement::default() };
        p.add_metric("tx/s", 41.0, "");
        p.read = DirectionStats { ios: 512, bytes: 8 << 20, ..DirectionStats::default() };
        r.measurements = vec![p];
        assert_eq!(primary_value(&r), Some(41.0));
        for (profile, want) in [("randrw", Some(256.0)), ("seqread", Some(4.0)), ("sweep", Some(4.0)), ("fsync", None)]
        {
            r.plan.profile = profile.into();
            let got = primary_value(&r);
            assert!(got == want || got.zip(want).is_some_and(|(a, b)| (a - b).abs() < 1e-9), "{profile}: {got:?}");
        }
    }
}
