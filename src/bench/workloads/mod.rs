//! What can be measured: one file per workload, and the list [`WORKLOADS`] that names them.

mod append;
mod cached;
mod chunks;
mod fork;
mod fsync;
pub mod headline;
mod intrinsic;
pub mod io;
mod sweep;
mod txlog;

use super::plan::Plan;
use super::session::{Session, Stop};
use crate::units::bytes_long;

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
    fn defaults(&self) -> Plan;
    /// What is wrong with a plan for this workload, beyond [`Plan::check`].
    fn check(&self, _plan: &Plan) -> Result<(), String> {
        Ok(())
    }
    /// Bytes of disk space it takes while it runs.
    fn footprint(&self, plan: &Plan) -> u64 {
        plan.size
    }
    /// What it will do, a line each, exact: shown before the start.
    fn describe(&self, plan: &Plan) -> Vec<String>;
    /// Whether its parts can be placed on the ruler.
    fn on_ruler(&self, _plan: &Plan) -> bool {
        false
    }
    /// Does it.
    fn run(&self, session: &mut Session) -> Result<(), Stop>;
}

/// Every workload, in the order of the list.
pub const WORKLOADS: [&dyn Workload; 13] = [
    &io::RANDRW,
    &io::RANDREAD,
    &io::RANDWRITE,
    &io::SEQREAD,
    &io::SEQWRITE,
    &sweep::Sweep,
    &fsync::Fsync,
    &append::Append,
    &chunks::Chunks,
    &txlog::TxLogTest,
    &cached::Cached,
    &intrinsic::Intrinsic,
    &fork::Fork,
];

/// The workload called `name`.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    WORKLOADS.iter().copied().find(|w| w.name() == name)
}

/// `1 GiB, written once before counting begins`: the line every workload with a file has.
fn file_line(plan: &Plan, times: &str) -> String {
    let nature = if plan.direct { "direct I/O" } else { "through the page cache" };
    format!("a nameless file of {}, filled with random data first; {times}; {nature}", bytes_long(plan.size))
}

/// `for 30 s after 1 s of ramp-up`.
fn span_line(plan: &Plan) -> String {
    let time = match (plan.time_ms, plan.io_bytes) {
        (0, 0) => "until cancelled".into(),
        (0, bytes) => format!("until {} are moved", bytes_long(bytes)),
        (ms, 0) => format!("for {} s", ms as f64 / 1e3),
        (ms, bytes) => format!("for {} s or until {} are moved", ms as f64 / 1e3, bytes_long(bytes)),
    };
    format!("{time}, after {} s of ramp-up that is not counted", plan.ramp_ms as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_a_name_of_its_own_and_a_sound_plan() {
        let mut names: Vec<_> = WORKLOADS.iter().map(|w| w.name()).collect();
        for w in WORKLOADS {
            let plan = w.defaults();
            assert_eq!(plan.profile, w.name());
            assert_eq!(plan.check().and_then(|()| w.check(&plan)), Ok(()), "{}", w.name());
            assert!(!w.describe(&plan).is_empty() && !w.about().is_empty());
            assert!(find(w.name()).is_some());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), WORKLOADS.len());
    }
}
