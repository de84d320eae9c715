//! The workloads: one file each, and the list [`WORKLOADS`].

mod append;
mod buffered;
mod cached;
mod chunks;
mod depth;
mod fio;
mod fork;
mod fsync;
mod intrinsic;
pub mod io;
mod iocost;
mod mix;
mod steady;
mod sweep;
mod txlog;
pub(crate) mod workload;

pub use self::workload::{PrimaryMetric, Workload};
use super::report::BenchReport;

/// All workloads, in the order of the list. [`find_workload`] also knows `fio`, which needs a job file.
pub const WORKLOADS: [&Workload; 17] = [
    &io::RANDRW,
    &io::RANDREAD,
    &io::RANDWRITE,
    &io::SEQREAD,
    &io::SEQWRITE,
    &sweep::SWEEP,
    &depth::DEPTH,
    &mix::MIX,
    &steady::STEADY,
    &iocost::IOCOST,
    &fsync::FSYNC,
    &append::APPEND,
    &chunks::CHUNKS,
    &txlog::TXLOG,
    &cached::CACHED,
    &intrinsic::INTRINSIC,
    &fork::FORK,
];

/// The workload called `name`.
pub fn find_workload(name: &str) -> Option<&'static Workload> {
    WORKLOADS.into_iter().chain([&fio::FIO]).find(|w| w.name == name)
}

/// The primary metric of a workload; `None` if there is no such workload.
pub fn primary_metric(profile: &str) -> Option<PrimaryMetric> {
    let m = &find_workload(profile)?.metric;
    Some(PrimaryMetric { name: m.name.into(), unit: m.unit.into(), higher_is_better: m.higher_is_better })
}

/// Its value in a report; `None` if nothing was counted, as ratios need values above 0.
pub(crate) fn primary_value(report: &BenchReport) -> Option<f64> {
    let metric = &find_workload(&report.plan.profile)?.metric;
    (metric.value)(report).filter(|value| value.is_finite() && *value > 0.0)
}

#[cfg(test)]
mod tests {
    use super::workload::PlannedWrites;
    use super::*;
    use crate::bench::measure::latency::DirectionStats;
    use crate::bench::plan::BenchPlan;
    use crate::bench::report::Measurement;
    use crate::bench::store::tests::empty_report;

    #[test]
    fn every_workload_has_a_unique_name_and_a_valid_default_plan() {
        let mut names: Vec<_> = WORKLOADS.iter().map(|w| w.name).collect();
        for w in WORKLOADS {
            let plan = w.defaults();
            assert_eq!(plan.profile, w.name);
            assert_eq!(plan.check().and_then(|()| (w.check)(&plan)), Ok(()), "{}", w.name);
            assert!(!(w.describe)(&plan).is_empty() && !w.about.is_empty());
            assert!((1..=13).contains(&w.brief.len()), "{}: {}", w.name, w.brief);
            assert!(find_workload(w.name).is_some());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), WORKLOADS.len());
    }

    #[test]
    fn planned_writes_follow_from_the_limits() {
        let writes = |name: &str, change: fn(&mut BenchPlan)| {
            let w = find_workload(name).unwrap();
            let mut plan = w.defaults();
            change(&mut plan);
            let PlannedWrites { guaranteed: certain, additional: further } = (w.planned_writes)(&plan);
            (certain, further)
        };
        const GIB: u64 = 1 << 30;
        assert_eq!(writes("randread", |_| {}), (GIB, Some(0)));
        assert_eq!(writes("randrw", |_| {}), (GIB, None));
        assert_eq!(writes("randrw", |p| p.io_bytes = 1000), (GIB, Some(500)));
        assert_eq!(writes("randwrite", |p| p.rate_bytes = 1000), (GIB, Some(31_000)));
        assert_eq!(writes("append", |_| {}), (0, Some(3 * 20_000 * 512 * 10)));
        assert_eq!(writes("append", |p| p.rate_iops = 0), (0, Some(6 * GIB)));
        assert_eq!(writes("txlog", |_| {}), (GIB, Some(2 * 100 * 500 * 33)));
        assert_eq!(writes("fork", |_| {}), (0, Some(0)));
    }

    #[test]
    fn every_workload_has_a_primary_metric() {
        for w in WORKLOADS {
            assert!(primary_metric(w.name).is_some_and(|m| !m.name.is_empty()), "{}", w.name);
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
