//! The workloads: one file each, and the list [`WORKLOADS`].

mod append;
mod cached;
mod chunks;
mod fork;
mod fsync;
mod intrinsic;
pub mod io;
pub mod primary_metric;
mod sweep;
mod txlog;
pub mod workload;

pub use self::workload::{PlannedWrites, Workload};

/// All workloads, in the order of the list.
pub const WORKLOADS: [&dyn Workload; 13] = [
    &io::RANDRW,
    &io::RANDREAD,
    &io::RANDWRITE,
    &io::SEQREAD,
    &io::SEQWRITE,
    &sweep::SweepWorkload,
    &fsync::FsyncWorkload,
    &append::AppendWorkload,
    &chunks::ChunksWorkload,
    &txlog::TxLogWorkload,
    &cached::CachedReadWorkload,
    &intrinsic::IntrinsicLatencyWorkload,
    &fork::ForkWorkload,
];

/// The workload called `name`.
pub fn find_workload(name: &str) -> Option<&'static dyn Workload> {
    WORKLOADS.iter().copied().find(|w| w.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::BenchPlan;

    #[test]
    fn every_workload_has_a_unique_name_and_a_valid_default_plan() {
        let mut names: Vec<_> = WORKLOADS.iter().map(|w| w.name()).collect();
        for w in WORKLOADS {
            let plan = w.defaults();
            assert_eq!(plan.profile, w.name());
            assert_eq!(plan.check().and_then(|()| w.check(&plan)), Ok(()), "{}", w.name());
            assert!(!w.describe(&plan).is_empty() && !w.about().is_empty());
            assert!(find_workload(w.name()).is_some());
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
            let PlannedWrites { guaranteed: certain, additional: further } = w.planned_writes(&plan);
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
}
