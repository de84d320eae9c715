//! What an experiment needs of the machine. The order of things is told apart from how they are done, so that
//! tests conduct experiments on a machine that is not there.

use super::report::{Calm, Point};
use crate::bench::message::Progress as BenchProgress;
use crate::bench::plan::Plan;
use crate::bench::report::Report as BenchReport;
use crate::tune::plan::Refusal;

/// Why a step did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fail {
    /// Somebody stopped it.
    Cancelled,
    /// Not to be done here; nothing was done.
    Refused(Refusal),
    /// It went wrong.
    Failed(String),
}

/// What a round came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Worked {
    /// The workload's report, complete or not.
    pub report: BenchReport,
    /// Dirty pages while it counted.
    pub points: Vec<Point>,
    /// Bytes made dirty while it counted, by anybody; `None` where the kernel does not say.
    pub dirtied: Option<u64>,
    /// Bytes written back meanwhile.
    pub written: Option<u64>,
}

/// Something seen while the workload runs.
pub enum Seen<'a> {
    /// How far it is, and dirty pages if it counts.
    Progress(&'a BenchProgress, Option<Point>),
    /// Something it said.
    Note(&'a str),
}

/// The machine.
pub trait Lab {
    /// Has dirty pages written; ms it took.
    fn drain(&mut self, plan: &Plan) -> Result<u64, Fail>;
    /// Watches what others do on the machine for a moment.
    fn calm(&mut self) -> Result<Calm, Fail>;
    /// Sets values on a lease, all or none; no words: nothing.
    fn apply(&mut self, words: &[String]) -> Result<(), Fail>;
    /// Background threshold and limit in force, bytes.
    fn thresholds(&mut self) -> (Option<u64>, Option<u64>);
    /// Runs a workload to its end.
    fn work(&mut self, plan: &Plan, seen: &mut dyn FnMut(Seen)) -> Result<Worked, Fail>;
    /// Puts back what [`Lab::apply`] set, if it set anything. Safe to call twice.
    fn restore(&mut self) -> Result<(), Fail>;
    /// Sets values that outlive the experiment: until the boot, or on a lease of so many seconds. The change's
    /// number.
    fn leave(&mut self, words: &[String], lease_secs: Option<u64>) -> Result<u64, Fail>;
}
