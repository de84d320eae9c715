//! The types and texts of a kind of run.

use crate::bench::plan::BenchPlan;
use crate::bench::store::Storable;
use crate::jobs::bench_jobs::StoreJob;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::tui::view::{Effect, PaneSpec, RunEffect};

/// Texts that differ between the kinds.
pub struct RunTexts {
    pub list: &'static str,
    pub stored: &'static str,
    /// Columns of that table.
    pub columns: [&'static str; 6],
    /// Headings above the forms and above the stored results.
    pub headings: Option<[&'static str; 2]>,
    pub run: &'static str,
    pub noun: &'static str,
    pub stored_noun: &'static str,
    /// Keys on the page of a stored report, and on that of the run of this session.
    pub report_keys: [&'static str; 2],
    pub report: &'static str,
    /// What the directory is on the storage for.
    pub purpose: &'static str,
    pub form_lines: &'static str,
    /// Below a form with changed lines that is not focused.
    pub changed: &'static str,
    /// Error when no form is selected to be started.
    pub nothing_to_start: &'static str,
    pub stopping: &'static str,
    pub killed: &'static str,
    pub after_refusal: &'static str,
    pub after_failure: &'static str,
    /// Begins the message that a run has ended; `{}` is its workload.
    pub announcement: &'static str,
    /// Follows the message that a run elsewhere has ended well.
    pub shown_by: &'static str,
}

/// The types of a kind, how they are wrapped for the rest of the program, and its texts.
pub trait RunTypes: Sized + 'static {
    type Plan: Clone;
    type Message;
    type Report: Storable + Clone + PartialEq;
    type Progress: Default;

    const IS_EXPERIMENT: bool;
    /// Both panes: the list, the page.
    const PANES: &'static [PaneSpec; 2];
    const FORMS: usize;
    const TEXTS: RunTexts;
    const EFFECT: fn(RunEffect<Self::Plan>) -> Effect;
    const STORE_JOB: fn(StoreJob<Self::Report>) -> WorkerJob;

    fn store_job(job: &WorkerJob) -> Option<&StoreJob<Self::Report>>;
    /// The reports that a reply of the store has.
    fn loaded_reports(reply: WorkerReply) -> Option<Vec<Self::Report>>;
    /// The workload's plan within a plan.
    fn bench_plan(plan: &mut Self::Plan) -> &mut BenchPlan;
}
