//! What differs between benchmarks and experiments.

use super::{FormLine, Run, RunView};
use crate::bench::plan::BenchPlan;
use crate::bench::store::Storable;
use crate::export::table::Table;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::tui::action::Action;
use crate::tui::effect::{Effect, RunEffect};
use crate::tui::event::Event;
use crate::tui::shared::{Running, Shared};
use crate::tui::view::{Context, Outbox, PaneId, PaneSpec, Target, ViewRequest};
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::styled_lines::StyledLine;
use ratatui::layout::Rect;

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
    /// Whether a job is for the store.
    const IS_STORE_JOB: fn(&WorkerJob) -> bool;
    /// The job that lists the stored reports.
    const LIST_JOB: WorkerJob;
    /// The job that loads reports of these names.
    const LOAD_JOB: fn(Vec<String>) -> WorkerJob;
    /// The job that saves a report.
    const SAVE_JOB: fn(Box<Self::Report>) -> WorkerJob;

    /// Name of the report that a job saves.
    fn saved_id(job: &WorkerJob) -> Option<&str>;
    /// The reports that a reply of the store has.
    fn loaded_reports(reply: WorkerReply) -> Option<Vec<Self::Report>>;
    /// The workload's plan within a plan.
    fn bench_plan(plan: &mut Self::Plan) -> &mut BenchPlan;
}

/// The forms; the type itself is their state.
pub trait RunForms: RunTypes + Default {
    /// Text of a form in the list.
    fn list_text(&self, form: usize) -> String;
    /// Title of a form's page.
    fn title(&self, form: usize) -> String;
    /// The lines of a form.
    fn lines(&self, form: usize, shared: &Shared) -> Vec<FormLine>;
    /// Sets a line other than the directory.
    ///
    /// # Errors
    /// What is wrong with the text; the form stays as it was.
    fn set_line(&mut self, form: usize, name: &str, text: &str) -> Result<(), String>;
    /// Resets a line to its default.
    ///
    /// # Errors
    /// Why the plan would be invalid; the form stays as it was.
    fn reset_line(&mut self, form: usize, name: &str) -> Result<(), String>;
    /// What a run would do, and the state of the target.
    fn plan_text(&self, form: usize, shared: &Shared) -> Vec<StyledLine>;
    /// The value beside `text` in the list of values of a line that is typed, if it has one.
    fn neighbour_value(_line: usize, _text: &str, _by: isize) -> Option<&'static str> {
        None
    }
}

/// A run under way.
pub trait RunProgress: RunTypes {
    /// Takes a message of its child process.
    fn receive(run: &mut Run<Self>, message: Self::Message);
    /// The run in the header, such as `bench randrw 42 %`.
    fn status_text(run: &Run<Self>) -> String;
    /// What hangs.
    fn blocked_text(run: &Run<Self>, now_ns: u64) -> Option<String>;
    /// What it is doing.
    fn phase_text(run: &Run<Self>) -> String;
    /// Finished share, 0 to 1.
    fn fraction_done(run: &Run<Self>) -> Option<f64>;
    /// The newest figures.
    fn figure_lines(run: &Run<Self>, width: usize) -> Vec<StyledLine>;
    /// Further figures for the export.
    fn summary_lines(_run: &Run<Self>) -> Vec<StyledLine> {
        Vec::new()
    }
    /// Draws graphs below the figures.
    fn draw_graphs(run: &Run<Self>, cx: &Context, area: Rect, buf: &mut CellBuffer);
}

/// Reports.
pub trait RunReports: RunTypes {
    /// The outcome in the list, in few words.
    fn outcome_text(report: &Self::Report) -> &'static str;
    /// How the run ended, for the message line.
    fn end_text(report: &Self::Report) -> String;
    /// A report as text for a page.
    fn report_lines(report: &Self::Report, shared: &Shared, width: u16) -> Vec<StyledLine>;
    /// Two reports side by side.
    ///
    /// # Errors
    /// Why they cannot be compared, and what to do.
    fn compare(both: &[Self::Report; 2], width: u16) -> Result<String, String>;
    /// A report as a table.
    fn report_table(report: &Self::Report) -> Table;
}

/// Everything that differs between benchmarks and experiments.
pub trait RunKind: RunForms + RunProgress + RunReports {
    /// Panes of its tab with their areas; `focus`: index of the focused one.
    fn arrange_panes(body: Rect, focus: usize) -> Vec<(PaneId, Rect)>;
    /// Asks to start a form, or says why that is impossible.
    fn ask_start(view: &mut RunView<Self>, form: usize, cx: &Context, out: &mut Outbox);
    /// Error when another run is under way.
    fn busy_text(running: &Running) -> String;
    /// Called after another tab, or the same one again, was shown.
    fn on_tab(view: &mut RunView<Self>, cx: &Context, out: &mut Outbox);
    /// Prepares to show a target. False: it belongs to another view.
    fn on_target(view: &mut RunView<Self>, target: &Target, cx: &Context, out: &mut Outbox) -> bool;
    /// Handles an event that is no reply of the store; returns that of another view.
    fn on_event(view: &mut RunView<Self>, event: Event, cx: &Context, out: &mut Outbox) -> Option<Event>;
    /// Does what another view asks for. False: that is for another view.
    fn on_request(_view: &mut RunView<Self>, _request: &ViewRequest, _cx: &Context, _out: &mut Outbox) -> bool {
        false
    }
    /// Called after a line of a form was changed.
    fn on_edited(_view: &mut RunView<Self>, _cx: &Context, _out: &mut Outbox) {}
    /// Called when a run has ended.
    fn on_ended(_view: &mut RunView<Self>, _cx: &Context, _out: &mut Outbox) {}
    /// Handles an action that only this kind has. False: it has no meaning.
    fn on_action(_view: &mut RunView<Self>, _action: Action, _cx: &Context, _out: &mut Outbox) -> bool {
        false
    }
    /// Handles input that is no line of a form.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn on_input(_view: &mut RunView<Self>, _text: &str, _cx: &Context, _out: &mut Outbox) -> Result<(), String> {
        Ok(())
    }
}
