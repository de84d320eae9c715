//! The one figure by which two runs of a workload are compared: what it was made to show.

use crate::bench::measure::latency::Latency;
use crate::bench::report::{Part, Report};
use serde::{Deserialize, Serialize};

/// A workload's figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// What it is.
    pub name: String,
    /// Of what; empty where the name says it.
    pub unit: String,
    /// Whether more of it is better.
    pub higher_is_better: bool,
}

/// How to get it.
struct Headline {
    profile: &'static str,
    name: &'static str,
    unit: &'static str,
    higher: bool,
    value: fn(&Report) -> Option<f64>,
}

const MIB: f64 = 1_048_576.0;

const fn rate(profile: &'static str) -> Headline {
    Headline { profile, name: "IOPS", unit: "", higher: true, value: |r| positive(r.parts.first()?.iops()) }
}

const fn bandwidth(profile: &'static str, name: &'static str) -> Headline {
    Headline { profile, name, unit: "MiB/s", higher: true, value: |r| positive(mib(r.parts.first()?)) }
}

/// A line per workload.
const HEADLINES: [Headline; 13] = [
    rate("randrw"),
    rate("randread"),
    rate("randwrite"),
    bandwidth("seqread", "bandwidth"),
    bandwidth("seqwrite", "bandwidth"),
    // No step counts more than another.
    Headline {
        profile: "sweep",
        name: "geometric mean of all steps",
        unit: "MiB/s",
        higher: true,
        value: |r| {
            let logs: Vec<f64> = r.parts.iter().map(mib).filter(|v| *v > 0.0).map(f64::ln).collect();
            (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
        },
    },
    Headline {
        profile: "fsync",
        name: "fdatasync p99",
        unit: "ms",
        higher: false,
        value: |r| ms(&r.parts.first()?.sync.lat, 99.0),
    },
    // The stall of a write while the second thread's sync runs.
    Headline {
        profile: "append",
        name: "write p99.9 with a sync every second",
        unit: "ms",
        higher: false,
        value: |r| ms(&part(r, "sync every second")?.write.lat, 99.9),
    },
    // What a big file with one sync at its end does to others.
    Headline {
        profile: "chunks",
        name: "bystander's p99 sync beside one sync at the end",
        unit: "ms",
        higher: false,
        value: |r| part(r, "sync once")?.figure("bystander: p99 sync"),
    },
    Headline {
        profile: "txlog",
        name: "tx/s",
        unit: "",
        higher: true,
        value: |r| r.parts.first()?.figure("tx/s").and_then(positive),
    },
    bandwidth("cached", "cold read"),
    Headline {
        profile: "intrinsic",
        name: "worst run",
        unit: "us",
        higher: false,
        value: |r| r.parts.first()?.figure("worst run").and_then(positive),
    },
    Headline {
        profile: "fork",
        name: "fork per GiB",
        unit: "ms",
        higher: false,
        value: |r| r.parts.first()?.figure("fork per GiB").and_then(positive),
    },
];

fn mib(part: &Part) -> f64 {
    part.bytes_per_s() / MIB
}

fn ms(latency: &Latency, percent: f64) -> Option<f64> {
    positive(latency.percentile(percent)? as f64 / 1e6)
}

fn part<'r>(report: &'r Report, label: &str) -> Option<&'r Part> {
    report.parts.iter().find(|p| p.label.starts_with(label))
}

/// Ratios need figures above 0.
fn positive(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

fn find(profile: &str) -> Option<&'static Headline> {
    HEADLINES.iter().find(|h| h.profile == profile)
}

/// The figure of a workload; `None`: there is no such workload.
pub fn metric(profile: &str) -> Option<Metric> {
    find(profile).map(|h| Metric { name: h.name.into(), unit: h.unit.into(), higher_is_better: h.higher })
}

/// Its value in a report; `None` where nothing was counted.
pub fn value(report: &Report) -> Option<f64> {
    (find(&report.plan.profile)?.value)(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::latency::Direction;
    use crate::bench::plan::Plan;
    use crate::bench::store::tests::report;
    use crate::bench::workloads::WORKLOADS;

    #[test]
    fn every_workload_has_one() {
        for w in WORKLOADS {
            assert!(metric(w.name()).is_some_and(|m| !m.name.is_empty()), "{}", w.name());
        }
        assert_eq!(metric("nothing"), None);
    }

    #[test]
    fn figures_come_from_their_part_and_nothing_is_no_zero() {
        let mut r = report("1-x");
        r.plan = Plan { profile: "txlog".into(), ..Plan::default() };
        assert_eq!(value(&r), None);
        let mut p = Part { elapsed_ns: 2_000_000_000, ..Part::default() };
        p.say("tx/s", 41.0, "");
        p.read = Direction { ios: 512, bytes: 8 << 20, ..Direction::default() };
        r.parts = vec![p];
        assert_eq!(value(&r), Some(41.0));
        for (profile, want) in
            [("randrw", Some(256.0)), ("seqread", Some(4.0)), ("sweep", Some(4.0)), ("fsync", None)]
        {
            r.plan.profile = profile.into();
            let got = value(&r);
            assert!(
                got == want || got.zip(want).is_some_and(|(a, b)| (a - b).abs() < 1e-9),
                "{profile}: {got:?}"
            );
        }
    }
}
