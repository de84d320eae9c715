//! The state of a view of benchmarks or experiments, and the types and texts of each kind.

use crate::bench::plan::BenchPlan;
use crate::bench::store::{Storable, StoredReport};
use crate::jobs::bench_jobs::StoreJob;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::tui::view::{Effect, PaneId, PaneSpec, RunEffect};
use smart_default::SmartDefault;

/// Indices of the panes in focus order.
pub(super) const LIST_FOCUS: usize = 0;
pub(super) const PAGE_FOCUS: usize = 1;
const MAX_NOTES: usize = 50;

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
    /// Errors when a benchmark, whose workload is `{}`, or an experiment is under way.
    pub benchmark_runs: &'static str,
    pub experiment_runs: &'static str,
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
pub trait RunTypes: Default + 'static {
    type Plan: Clone + Default;
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

    /// The reports that a reply of the store has.
    fn loaded_reports(reply: WorkerReply) -> Option<Vec<Self::Report>>;
    /// The workload's plan within a plan.
    fn bench_plan(plan: &mut Self::Plan) -> &mut BenchPlan;
}

/// A view of benchmarks or experiments.
#[derive(SmartDefault)]
pub struct RunView<K: RunTypes> {
    pub form: K,
    /// Whether it is shown in place of the view whose tab it shares.
    pub is_open: bool,
    pub selected: RunRow,
    pub(super) list_offset: usize,
    pub form_line: usize,
    /// First visible line of a page of text.
    pub text_offset: usize,
    /// A result shown instead of the page of the selected row.
    pub opened: Option<OpenedResult<K::Report>>,
    /// Stored results; `None` until they are loaded.
    pub stored: Option<Result<Vec<StoredReport>, String>>,
    /// Name of the result marked for comparison.
    pub marked: Option<String>,
    pub(super) is_listing: bool,
    /// The run under way, or the last one of this session.
    pub run: Option<Run<K>>,
    /// What the open dialog asks to start.
    pub(super) to_start: Option<K::Plan>,
}

#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub enum RunRow {
    CurrentRun,
    #[default]
    Form(usize),
    /// A stored result, by its name.
    Stored(String),
}

/// Stored results opened for display.
#[derive(Debug, PartialEq)]
pub enum OpenedResult<R> {
    /// The results of these names are being loaded.
    Loading(Vec<String>),
    Result(Box<R>),
    Comparison(Box<[R; 2]>),
    /// Why nothing can be shown.
    Failed(String),
}

#[derive(SmartDefault)]
pub struct Run<K: RunTypes> {
    /// Its number, which its events carry.
    pub number: u64,
    pub plan: K::Plan,
    pub profile: String,
    /// PID of the child process, once it has started.
    pub pid: Option<u32>,
    /// What its child process has sent so far.
    pub progress: K::Progress,
    /// Notes of the child process, newest last.
    pub notes: Vec<String>,
    /// Time of the last message, CLOCK_BOOTTIME in ns.
    pub last_message_ns: u64,
    pub is_stopping: bool,
    /// How it ended; `None` while it runs.
    pub ending: Option<RunEnding<K::Report>>,
    /// Name of the stored report, or why storing failed; `None` until then.
    pub stored: Option<Result<String, String>>,
}

#[derive(Debug)]
pub enum RunEnding<R> {
    /// With a report, complete or partial.
    Report(Box<R>),
    Refused(String),
    Failed(String),
}

impl<K: RunTypes> Run<K> {
    /// A run whose child has not sent anything yet.
    pub fn new(number: u64, mut plan: K::Plan, now_ns: u64) -> Self {
        let profile = K::bench_plan(&mut plan).profile.clone();
        Self { number, profile, plan, last_message_ns: now_ns, ..Self::default() }
    }

    pub fn add_note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(crate::sanitize::sanitize(note));
        }
    }

    /// ` (process 4711)`, if that is known.
    pub fn process_text(&self) -> String {
        self.pid.map_or(String::new(), |pid| format!(" (process {pid})"))
    }
}

impl<K: RunTypes> RunView<K> {
    /// The list.
    pub const LIST: PaneId = K::PANES[LIST_FOCUS].0;
    /// The page beside the list.
    pub const PAGE: PaneId = K::PANES[PAGE_FOCUS].0;

    /// Stored results, as far as they are loaded.
    pub fn stored_results(&self) -> &[StoredReport] {
        self.stored.as_ref().and_then(|all| all.as_deref().ok()).unwrap_or_default()
    }

    pub(super) fn selected_result(&self) -> Option<&StoredReport> {
        let RunRow::Stored(id) = &self.selected else { return None };
        self.stored_results().iter().find(|stored| stored.id == *id)
    }

    pub fn shown_form(&self) -> Option<usize> {
        match (&self.opened, &self.selected) {
            (None, RunRow::Form(form)) => Some(*form),
            _ => None,
        }
    }

    pub fn active_run(&self) -> Option<&Run<K>> {
        self.run.as_ref().filter(|run| run.ending.is_none())
    }

    /// The run on the page, under way or ended.
    pub(super) fn shown_run(&self) -> Option<&Run<K>> {
        self.run.as_ref().filter(|_| self.opened.is_none() && self.selected == RunRow::CurrentRun)
    }

    pub fn shown_report(&self) -> Option<&K::Report> {
        if let Some(OpenedResult::Result(report)) = &self.opened {
            return Some(report);
        }
        match self.shown_run()?.ending.as_ref()? {
            RunEnding::Report(report) => Some(report),
            _ => None,
        }
    }
}
