//! What can be measured: one file per workload, and the list [`WORKLOADS`] that names them.

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

use super::plan::BenchPlan;
use super::session::{BenchSession, RunError};
use crate::units::format_bytes_long;

/// A workload.
pub trait Workload: Sync {
    /// As it is called on the command line.
    fn name(&self) -> &'static str;
    /// One line for the list.
    fn about(&self) -> &'static str;
    /// Whether it needs a directory.
    fn needs_directory(&self) -> bool {
        true
    }
    /// Its usual figures; the directory is still empty.
    fn defaults(&self) -> BenchPlan;
    /// Names of the [`super::params::PARAMS`] that have a meaning for it.
    fn params(&self) -> &'static [&'static str];
    /// What is wrong with a plan for this workload, beyond [`Plan::check`].
    fn check(&self, _plan: &BenchPlan) -> Result<(), String> {
        Ok(())
    }
    /// Bytes of disk space it takes while it runs.
    fn footprint(&self, plan: &BenchPlan) -> u64 {
        plan.size
    }
    /// Bytes it writes.
    fn planned_writes(&self, plan: &BenchPlan) -> PlannedWrites;
    /// What it will do, a line each, exact: shown before the start.
    fn describe(&self, plan: &BenchPlan) -> Vec<String>;
    /// Whether its parts can be placed on the ruler.
    fn has_reference_classes(&self, _plan: &BenchPlan) -> bool {
        false
    }
    /// Does it.
    fn run(&self, session: &mut BenchSession) -> Result<(), RunError>;
}

/// What a run writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedWrites {
    /// In any case, bytes.
    pub guaranteed: u64,
    /// Beyond that at most, bytes; `None`: as many as the time allows.
    pub additional: Option<u64>,
}

impl PlannedWrites {
    /// Of a plan whose counted writes end with its time, its bytes or its caps; `share`: the writes among
    /// 100 operations, `times`: measurements that run through.
    fn timed(plan: &BenchPlan, certain: u64, share: u8, times: u64) -> Self {
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
        Self { guaranteed: certain, additional: most.map(|n| n.saturating_mul(times)) }
    }
}

/// Every workload, in the order of the list.
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

/// `1 GiB, written once before counting begins`: the line every workload with a file has.
fn file_line(plan: &BenchPlan, times: &str) -> String {
    let nature = if plan.direct { "direct I/O" } else { "through the page cache" };
    format!("a nameless file of {}, filled with random data first; {times}; {nature}", format_bytes_long(plan.size))
}

/// `for 30 s after 1 s of ramp-up`.
fn duration_line(plan: &BenchPlan) -> String {
    let time = match (plan.time_ms, plan.io_bytes) {
        (0, 0) => "until cancelled".into(),
        (0, bytes) => format!("until {} are moved", format_bytes_long(bytes)),
        (ms, 0) => format!("for {} s", ms as f64 / 1e3),
        (ms, bytes) => format!("for {} s or until {} are moved", ms as f64 / 1e3, format_bytes_long(bytes)),
    };
    format!("{time}, after {} s of ramp-up that is not counted", plan.ramp_ms as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

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
