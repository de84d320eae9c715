//! The operations of an experiment on the machine, behind a trait, so that tests change no machine.

use super::report::{Baseline, DirtyPagesPoint, DirtyThresholds};
use crate::bench::message::BenchProgress;
use crate::bench::plan::BenchPlan;
use crate::bench::report::BenchReport;
use crate::bench::session::RunError;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RoundResult {
    pub report: BenchReport,
    pub dirty_points: Vec<DirtyPagesPoint>,
    /// Bytes made dirty by all processes over the counted time; `None` if unknown.
    pub dirtied_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
}

pub(crate) enum WorkloadEvent<'a> {
    /// Progress, and dirty pages if it counts.
    Progress(&'a BenchProgress, Option<DirtyPagesPoint>),
    Note(&'a str),
}

/// The machine that an experiment runs on.
pub(crate) trait Environment {
    /// Writes back dirty pages; returns the ms that took.
    fn drain_dirty_pages(&mut self, plan: &BenchPlan) -> Result<u64, RunError>;
    /// Measures the activity of other processes for a moment.
    fn watch_baseline(&mut self) -> Result<Baseline, RunError>;
    /// Sets values on a lease, all or none; without assignments it does nothing.
    fn apply(&mut self, words: &[String]) -> Result<(), RunError>;
    fn thresholds(&mut self) -> DirtyThresholds;
    fn run_workload(&mut self, plan: &BenchPlan, seen: &mut dyn FnMut(WorkloadEvent)) -> Result<RoundResult, RunError>;
    /// Restores what [`Environment::apply`] set, if anything. May be called twice.
    fn restore(&mut self) -> Result<(), RunError>;
    /// Sets values that outlive the experiment: until the next boot, or on a lease. Returns the change's number.
    fn apply_permanently(&mut self, words: &[String], lease_secs: Option<u64>) -> Result<u64, RunError>;
}
