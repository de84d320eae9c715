//! What benchmarks and experiments have in common: a list with forms, the run of this session and stored results, and
//! beside it the page of the selected row. A form is edited in place, and started after a confirmation; a child process
//! runs it and sends its progress and a report, which is stored.

mod form;
mod kind;
mod list;
mod page;
mod update;

pub use form::FormLine;
pub use kind::{RunForms, RunKind, RunProgress, RunReports, RunTexts, RunTypes};
pub use list::list_and_page;
#[cfg(test)]
pub use list::stored_text;
pub use page::report_text;

use crate::bench::store::StoredReport;
use crate::export::table::Table;
use crate::tui::action::Action;
use crate::tui::event::Event;
use crate::tui::screen::{PendingChange, Prompt, PromptPurpose};
use crate::tui::shared::{Running, Shared};
use crate::tui::view::{Context, Outbox, PaneClick, PaneId, PaneSpec, Target, View, ViewRequest};
use crate::tui::widgets::cell_buffer::CellBuffer;
use crossterm::event::KeyCode;
use ratatui::layout::Rect;

/// Indices of the panes in focus order.
const LIST_FOCUS: usize = 0;
const PAGE_FOCUS: usize = 1;
/// Maximum number of notes stored.
const MAX_NOTES: usize = 50;

/// A view of benchmarks or experiments.
pub struct RunView<K: RunKind> {
    /// The forms.
    pub form: K,
    /// Whether it is shown in place of the view whose tab it shares.
    pub is_open: bool,
    /// The selected row of the list.
    pub selected: RunRow,
    /// First visible line of the list.
    list_offset: usize,
    /// The selected line of the form.
    pub form_line: usize,
    /// First visible line of a page of text.
    pub text_offset: usize,
    /// A result shown instead of the page of the selected row.
    pub opened: Option<OpenedResult<K::Report>>,
    /// Stored results; `None` until they are loaded.
    pub stored: Option<Result<Vec<StoredReport>, String>>,
    /// Name of the result marked for comparison.
    pub marked: Option<String>,
    /// Whether the stored results are being loaded.
    is_listing: bool,
    /// The run under way, or the last one of this session.
    pub run: Option<Run<K>>,
    /// Number of runs started.
    pub run_count: u64,
    /// What the open dialog asks to start.
    to_start: Option<K::Plan>,
}

impl<K: RunKind> Default for RunView<K> {
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
            run_count: 0,
            to_start: None,
        }
    }
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRow {
    /// The run under way, or the last one.
    CurrentRun,
    /// A form.
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
    /// One result.
    Result(Box<R>),
    /// Two results to compare.
    Comparison(Box<[R; 2]>),
    /// Why nothing can be shown.
    Failed(String),
}

/// A run of this session.
pub struct Run<K: RunTypes> {
    /// Its number, which its events carry.
    pub number: u64,
    /// What was confirmed.
    pub plan: K::Plan,
    /// Its workload.
    pub profile: String,
    /// PID of the child process, once it has started.
    pub pid: Option<u32>,
    /// What its child process has sent so far.
    pub progress: K::Progress,
    /// Notes of the child process, newest last.
    pub notes: Vec<String>,
    /// Time of the last message, CLOCK_BOOTTIME in ns.
    pub last_message_ns: u64,
    /// Whether it was asked to end.
    pub is_stopping: bool,
    /// How it ended; `None` while it runs.
    pub ending: Option<RunEnding<K::Report>>,
    /// Name of the stored report, or why storing failed; `None` until then.
    pub stored: Option<Result<String, String>>,
}

/// How a run ended.
#[derive(Debug)]
pub enum RunEnding<R> {
    /// With a report, complete or partial.
    Report(Box<R>),
    /// Refused before the start.
    Refused(String),
    /// Without a report.
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

    /// Adds a note of the child process.
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

impl<K: RunKind> RunView<K> {
    const LIST: PaneId = K::PANES[LIST_FOCUS].id;
    /// The page beside the list.
    pub const PAGE: PaneId = K::PANES[PAGE_FOCUS].id;

    /// Stored results, as far as they are loaded.
    pub fn stored_results(&self) -> &[StoredReport] {
        self.stored.as_ref().and_then(|all| all.as_deref().ok()).unwrap_or_default()
    }

    /// The selected stored result.
    fn selected_result(&self) -> Option<&StoredReport> {
        let RunRow::Stored(id) = &self.selected else { return None };
        self.stored_results().iter().find(|stored| stored.id == *id)
    }

    /// The form on the page.
    pub fn shown_form(&self) -> Option<usize> {
        match (&self.opened, &self.selected) {
            (None, RunRow::Form(form)) => Some(*form),
            _ => None,
        }
    }

    /// The run under way.
    pub fn active_run(&self) -> Option<&Run<K>> {
        self.run.as_ref().filter(|run| run.ending.is_none())
    }

    /// The run on the page, under way or ended.
    fn shown_run(&self) -> Option<&Run<K>> {
        self.run.as_ref().filter(|_| self.opened.is_none() && self.selected == RunRow::CurrentRun)
    }

    /// The report on the page.
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

impl<K: RunKind> View for RunView<K> {
    fn panes(&self) -> &'static [PaneSpec] {
        K::PANES
    }

    fn layout(&self, cx: &Context, body: Rect) -> Vec<(PaneId, Rect)> {
        K::arrange_panes(body, cx.screen.focus)
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        if pane == Self::LIST { self.render_list(cx, area, buf) } else { self.render_page(cx, area, buf) }
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        if pane == Self::LIST { self.list_table(cx) } else { self.page_table(cx) }
    }

    fn move_selection(&mut self, pane: PaneId, by: isize, cx: &Context) -> bool {
        if pane == Self::LIST {
            self.move_row(by, cx)
        } else {
            self.scroll_page(by, cx)
        }
        true
    }

    fn on_action(&mut self, pane: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        match action {
            Action::Open => self.open_selected(pane, cx, out),
            Action::Back => return self.close_topmost(cx, out),
            Action::Run(action) => self.apply_action(action, cx, out),
            other => return K::on_action(self, other, cx, out),
        }
        true
    }

    fn on_click(&mut self, click: PaneClick, cx: &Context, _: &mut Outbox) {
        if click.pane == Self::LIST {
            if let Some(row) = self.row_at(click.inner.height, click.y - click.inner.y) {
                self.select(row, cx);
            }
        } else if let Some(line) = self.form_line_at(click, cx) {
            self.form_line = line;
        }
    }

    fn on_tab(&mut self, cx: &Context, out: &mut Outbox) {
        K::on_tab(self, cx, out);
    }

    fn on_target(&mut self, target: &Target, cx: &Context, out: &mut Outbox) -> bool {
        K::on_target(self, target, cx, out)
    }

    fn on_request(&mut self, request: &ViewRequest, cx: &Context, out: &mut Outbox) -> bool {
        K::on_request(self, request, cx, out)
    }

    fn on_event(&mut self, event: Event, cx: &Context, out: &mut Outbox) -> Option<Event> {
        match event {
            Event::JobReply(job, reply) if (K::IS_STORE_JOB)(&job) => self.on_store_reply(job, reply, out),
            other => return K::on_event(self, other, cx, out),
        }
        None
    }

    fn on_confirm(&mut self, _: PendingChange, cx: &Context, out: &mut Outbox) {
        self.start_confirmed(cx, out);
    }

    fn on_input(&mut self, purpose: PromptPurpose, text: &str, cx: &Context, out: &mut Outbox) -> Result<(), String> {
        match purpose {
            PromptPurpose::FormLine(_, line) => self.set_typed_line(line, text, cx, out),
            _ => K::on_input(self, text, cx, out),
        }
    }

    fn on_prompt_key(&mut self, prompt: &mut Prompt, key: KeyCode) -> bool {
        let PromptPurpose::FormLine(_, line) = prompt.purpose else { return false };
        let by = if key == KeyCode::Up { -1 } else { 1 };
        let Some(text) = K::neighbour_value(line, &prompt.text, by) else { return false };
        (prompt.text, prompt.cursor, prompt.error) = (text.into(), text.len(), None);
        true
    }

    fn prompt_label(&self, _: PromptPurpose, _: &Context) -> String {
        "write the report to (.md, .json, else text; a new file): ".into()
    }

    /// The page draws the prompt of a line of its form.
    fn draw_prompt(&self, prompt: &Prompt, _: &Context, _: &mut CellBuffer) -> bool {
        matches!(prompt.purpose, PromptPurpose::FormLine(..))
    }

    fn publish(&self, shared: &mut Shared) {
        let running = self.active_run().map(|run| Running {
            is_experiment: K::IS_EXPERIMENT,
            profile: run.profile.clone(),
            status: K::status_text(run),
        });
        if running.is_some() || shared.running.as_ref().is_some_and(|r| r.is_experiment == K::IS_EXPERIMENT) {
            shared.running = running;
        }
    }
}
