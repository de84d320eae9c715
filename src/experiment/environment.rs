//! What an experiment needs of the machine. The order of things is told apart from how they are done, so that
//! tests conduct experiments on a machine that is not there.

use super::report::{Baseline, DirtyPagesPoint};
use crate::bench::message::BenchProgress;
use crate::bench::plan::BenchPlan;
use crate::bench::report::BenchReport;
use crate::tuning::plan::TuneError;

/// Why a step did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepError {
    /// Somebody stopped it.
    Cancelled,
    /// Not to be done here; nothing was done.
    Refused(TuneError),
    /// It went wrong.
    Failed(String),
}

/// What a round came to.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundResult {
    /// The workload's report, complete or not.
    pub report: BenchReport,
    /// Dirty pages while it counted.
    pub dirty_points: Vec<DirtyPagesPoint>,
    /// Bytes made dirty while it counted, by anybody; `None` where the kernel does not say.
    pub dirtied_bytes: Option<u64>,
    /// Bytes written back meanwhile.
    pub written_bytes: Option<u64>,
}

/// Something seen while the workload runs.
pub enum WorkloadEvent<'a> {
    /// How far it is, and dirty pages if it counts.
    Progress(&'a BenchProgress, Option<DirtyPagesPoint>),
    /// Something it said.
    Note(&'a str),
}

/// The machine.
pub trait Environment {
    /// Has dirty pages written; ms it took.
    fn drain_dirty_pages(&mut self, plan: &BenchPlan) -> Result<u64, StepError>;
    /// Watches what others do on the machine for a moment.
    fn watch_baseline(&mut self) -> Result<Baseline, StepError>;
    /// Sets values on a lease, all or none; no words: nothing.
    fn apply(&mut self, words: &[String]) -> Result<(), StepError>;
    /// Background threshold and limit in force, bytes.
    fn thresholds(&mut self) -> (Option<u64>, Option<u64>);
    /// Runs a workload to its end.
    fn run_workload(&mut self, plan: &BenchPlan, seen: &mut dyn FnMut(WorkloadEvent))
    -> Result<RoundResult, StepError>;
    /// Puts back what [`Lab::apply`] set, if it set anything. Safe to call twice.
    fn restore(&mut self) -> Result<(), StepError>;
    /// Sets values that outlive the experiment: until the boot, or on a lease of so many seconds. The change's
    /// number.
    fn apply_permanently(&mut self, words: &[String], lease_secs: Option<u64>) -> Result<u64, StepError>;
}
