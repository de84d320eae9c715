//! The state of a view of benchmarks or experiments.

use super::types::RunTypes;
use crate::bench::store::StoredReport;
use crate::tui::view::PaneId;

/// Indices of the panes in focus order.
pub(super) const LIST_FOCUS: usize = 0;
pub(super) const PAGE_FOCUS: usize = 1;
const MAX_NOTES: usize = 50;

/// A view of benchmarks or experiments.
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

impl<K: RunTypes + Default> Default for RunView<K> {
    fn default() -> Self {
        Self {
            form: K::default(),
            is_open: false,
            selected: RunRow::default(),
            list_offset: 0,
            form_line: 0,
            text_offset: 0,
            opened: None,
            stored: None,
            marked: None,
            is_listing: false,
            run: None,
            to_start: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRow {
    CurrentRun,
    Form(usize),
    /// A stored result, by its name.
    Stored(String),
}

impl Default for RunRow {
    fn default() -> Self {
        Self::Form(0)
    }
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
        Self {
            number,
            profile: K::bench_plan(&mut plan).profile.clone(),
            plan,
            pid: None,
            progress: K::Progress::default(),
            notes: Vec::new(),
            last_message_ns: now_ns,
            is_stopping: false,
            ending: None,
            stored: None,
        }
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
    pub const LIST: PaneId = K::PANES[LIST_FOCUS].id;
    /// The page beside the list.
    pub const PAGE: PaneId = K::PANES[PAGE_FOCUS].id;

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
