//! The types and texts of a kind of run.

use crate::bench::plan::BenchPlan;
use crate::bench::store::Storable;
use crate::jobs::bench_jobs::StoreJob;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::tui::view::{Effect, PaneSpec, RunEffect};

/// Texts that differ between the kinds.
pub struct RunTexts {
    /// Title of the list.
    pub list: &'static str,
    /// Title of the table of stored results.
    pub stored: &'static str,
    /// Columns of that table.
    pub columns: [&'static str; 6],
    /// Headings above the forms and above the stored results.
    pub headings: Option<[&'static str; 2]>,
    /// Title of the page of a run.
    pub run: &'static str,
    /// What is run.
    pub noun: &'static str,
    /// What is stored of it.
    pub stored_noun: &'static str,
    /// Keys on the page of a stored report, and on that of the run of this session.
    pub report_keys: [&'static str; 2],
    /// Title of the page of a report.
    pub report: &'static str,
    /// What the directory is on the storage for.
    pub purpose: &'static str,
    /// What the lines of a form are called.
    pub form_lines: &'static str,
    /// Below a form with changed lines that is not focused.
    pub changed: &'static str,
    /// Error when no form is selected to be started.
    pub nothing_to_start: &'static str,
    /// Message when a run is asked to end.
    pub stopping: &'static str,
    /// How a killed run ended.
    pub killed: &'static str,
    /// What follows from a refusal.
    pub after_refusal: &'static str,
    /// What follows from a failure.
    pub after_failure: &'static str,
    /// Begins the message that a run has ended; `{}` is its workload.
    pub announcement: &'static str,
    /// Follows the message that a run elsewhere has ended well.
    pub shown_by: &'static str,
}

/// The types of a kind, how they are wrapped for the rest of the program, and its texts.
pub trait RunTypes: Sized + 'static {
    /// What is started.
    type Plan: Clone;
    /// A message of the child process.
    type Message;
    /// The result of a run.
    type Report: Storable + Clone + PartialEq;
    /// What the child process of a run has sent.
    type Progress: Default;

    /// Whether these are experiments.
    const IS_EXPERIMENT: bool;
    /// Both panes: the list, the page.
    const PANES: &'static [PaneSpec; 2];
    /// Number of forms.
    const FORMS: usize;
    /// Its texts.
    const TEXTS: RunTexts;
    /// Wraps work for the runner.
    const EFFECT: fn(RunEffect<Self::Plan>) -> Effect;
    /// Wraps work on stored reports.
    const STORE_JOB: fn(StoreJob<Self::Report>) -> WorkerJob;

    /// Unwraps it.
    fn store_job(job: &WorkerJob) -> Option<&StoreJob<Self::Report>>;
    /// The reports that a reply of the store has.
    fn loaded_reports(reply: WorkerReply) -> Option<Vec<Self::Report>>;
    /// The workload's plan within a plan.
    fn bench_plan(plan: &mut Self::Plan) -> &mut BenchPlan;
}
