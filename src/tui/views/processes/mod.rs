//! The Processes view: processes or threads with their I/O, and a page for each task.

mod chosen_columns;
mod detail;
mod ionice;
mod list;
mod sections;
mod selection;
mod stalled;
mod written_files;

pub(crate) use chosen_columns::ChosenColumns;
pub(crate) use ionice::parse_io_priority;

use super::detail::scroll_positions;
use crate::export::table::Table;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::model::columns::figures::TASK_FIGURES;
use crate::model::columns::process::{ProcessColumnSet, ProcessColumnSpec};
use crate::model::observation::Change;
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessRow, ProcessTree, ProcessWindow, TaskKey};
use crate::tui::view::{
    Action, ColumnChoice, ColumnInfo, Context, Effect, Event, KeyContext, Outbox, PaneClick, PaneId, PaneSpec,
    PendingChange, PromptPurpose, Request, Target, View, ViewId,
};
use crate::tui::widgets::{CellBuffer, Rect, RowSearch, Scroll};
use sections::{EmptyColumns, TaskLine};
use written_files::WrittenFilesPage;

const LIST_KEYS: &[KeyContext] = &[KeyContext::Processes, KeyContext::Columns, KeyContext::List, KeyContext::Scroll];
const PAGE_KEYS: &[KeyContext] =
    &[KeyContext::ProcessDetail, KeyContext::Detail, KeyContext::Figures, KeyContext::Scroll];

#[derive(Debug, Clone, Default)]
pub struct ProcessesView {
    /// Selection among the rows that match.
    pub scroll: Scroll,
    pub sort_column: ProcessColumn,
    pub reverse: bool,
    pub filter: ProcessFilter,
    /// The columns that were chosen; none: as many as there is room for.
    pub chosen: ChosenColumns,
    /// Number of columns scrolled past after the first.
    pub column_offset: usize,
    pub show_totals: bool,
    pub show_threads: bool,
    /// Processes are below their parents.
    pub show_tree: bool,
    pub(super) tree: ProcessTree,
    /// The task to select at the next refresh, because the rows were arranged anew.
    pub(super) follow: Option<TaskKey>,
    /// The task that the user went to: it stays selected wherever it is sorted to. `None`: whichever comes first is.
    pub(super) chosen_task: Option<TaskKey>,
    /// How the selection was moved since the last refresh.
    pub(super) selection_move: Option<SelectionMove>,
    pub window: ProcessWindow,
    /// Rows of the window in the section of stalled tasks.
    stalled_rows: usize,
    /// The number of idle tasks is in the title: the pane is too low for a line of it.
    is_fold_in_title: bool,
    empty_columns: EmptyColumns,
    /// The Overview lists idle tasks, too, instead of their number.
    pub show_idle: bool,
    /// Idle tasks are folded into one line at present.
    pub(super) is_folded: bool,
    /// The task whose page was opened last, and what was read for the page.
    pub page: Option<TaskPage>,
    /// The tasks last reported to the collector as being on screen.
    pub watched_tasks: Vec<TaskKey>,
    /// What tasks wait for is traced, for the page.
    are_waits_requested: bool,
}

/// How the user moved the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SelectionMove {
    /// Up or down: who goes to the first row watches whatever comes first.
    ByRows,
    /// To a task that was searched for or clicked.
    ToTask,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    pub key: TaskKey,
    /// The lines of its counters when it was last seen.
    last_values: Vec<(String, bool)>,
    /// Files open for writing, read by a child process again and again.
    written_files: WrittenFilesPage,
    /// Limits and parents, read by a child process.
    facts: Option<WorkerReply>,
    /// Mappings, read by a child process on request.
    mappings: Option<WorkerReply>,
    /// The mappings have been requested and not received.
    mappings_requested: bool,
}

impl ProcessesView {
    fn page_of(&mut self, pid: u32, starttime: u64) -> Option<&mut TaskPage> {
        self.page.as_mut().filter(|page| (page.key.pid, page.key.starttime) == (pid, starttime))
    }

    fn on_page_action(&mut self, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        let Some(page) = &mut self.page else { return false };
        if action == Action::Ionice {
            Self::prompt_io_priority(cx.shared.system.processes.get(&page.key), out);
            return true;
        }
        let TaskKey { pid, starttime, .. } = page.key;
        match action {
            Action::LoadMappings => {
                page.mappings_requested = true;
                out.push(Effect::RunJob(WorkerJob::Mappings { pid, starttime }));
            }
            Action::TaskKnobs => {
                out.navigate(Target::Knobs(vec![format!("nofile@{pid}"), format!("ioprio@{pid}")]));
            }
            _ => return false,
        }
        true
    }

    /// Sorts by a column, in the direction that is most useful for it; a total's column stands for its rate, which `a` turns into the total.
    fn sort_by(&mut self, column: ProcessColumn) {
        let before = std::mem::replace(&mut self.sort_column, column);
        self.sort_column = match column {
            ProcessColumn::AccIo => ProcessColumn::Stalled,
            ProcessColumn::AccRead => ProcessColumn::Read,
            ProcessColumn::AccWrite => ProcessColumn::Write,
            other => other,
        };
        self.reverse &= self.sort_column == before;
    }

    /// The columns of the widest pane, those that only serve to sort by first.
    fn sortable_columns(&self, cx: &Context) -> Vec<&ProcessColumnSpec> {
        let total = if self.show_totals { ProcessColumn::AccIo } else { ProcessColumn::Io };
        let set = self.column_set(cx.shared, u16::MAX);
        std::iter::once(total.spec()).chain(set).collect()
    }

    /// Moves the sort column among those on screen; before the first one is the default, stalled tasks first.
    fn move_sort_column(&mut self, pane: PaneId, by: isize, cx: &Context) {
        let columns = self.column_set(cx.shared, cx.inner_area(pane).width);
        let sorted = columns.iter().position(|c| c.id == self.task_query(0, 0).sort_by);
        let position = (sorted.map_or(0, |i| i as isize + 1) + by).rem_euclid(columns.len() as isize + 1);
        let id = if position == 0 { ProcessColumn::Stalled } else { columns[position as usize - 1].id };
        self.sort_by(id);
    }

    fn scroll_columns(&mut self, by: isize, cx: &Context) {
        let columns = self.column_set(cx.shared, cx.screen.size.0).len();
        self.column_offset = self.column_offset.saturating_add_signed(by).min(columns.saturating_sub(3));
    }

    fn prompt_io_priority(task: Option<ProcessRow<'_>>, out: &mut Outbox) {
        match task {
            Some(row) => {
                let now = row.ionice();
                let now = now.as_deref().unwrap_or("-");
                let label = format!("class and level (rt/0..7, be/0..7, idle; now {now}): ");
                out.open_prompt(PromptPurpose::Ionice(row.key()), label, "");
            }
            None => out.error("no task selected"),
        }
    }

    /// Sorts by the clicked column; a second click reverses the order.
    fn click_header(&mut self, click: PaneClick, cx: &Context) {
        let area = self.table_area(click.inner);
        let (set, fitted) = self.fitted_columns(cx.shared, area.width);
        let Some(column) = click.x.checked_sub(area.x).and_then(|x| fitted.column_at(x)) else { return };
        let id = set[column].id;
        if id == self.task_query(0, 0).sort_by {
            self.reverse = !self.reverse;
        } else {
            self.sort_by(id);
        }
    }
}

impl View for ProcessesView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[(PaneId::Processes, "processes", LIST_KEYS), (PaneId::ProcessDetail, "process", PAGE_KEYS)]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        match pane {
            PaneId::Processes => self.render_list(cx, area, buf),
            _ => self.render_detail(cx, area, buf),
        }
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        match pane {
            PaneId::Processes => self.list_table(cx.shared),
            _ => self.detail_table(cx),
        }
    }

    fn row_count(&self, pane: PaneId, cx: &Context) -> usize {
        let inner = cx.inner_area(pane);
        scroll_positions(self.scrolled_lines(cx, inner), inner.height)
    }

    fn move_selection(&mut self, _: PaneId, by: isize, _: &Context) -> bool {
        self.scroll.move_selection(by, self.window.listed);
        self.selection_move = Some(SelectionMove::ByRows);
        true
    }

    fn on_action(&mut self, pane: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        if pane == PaneId::ProcessDetail {
            return self.on_page_action(action, cx, out);
        }
        match action {
            Action::Open => {
                if let Some(row) = self.selected_task(cx.shared) {
                    out.navigate(Target::Task(row.key()));
                }
            }
            Action::SortLeft => self.move_sort_column(pane, -1, cx),
            Action::SortRight => self.move_sort_column(pane, 1, cx),
            Action::ColumnsLeft => self.scroll_columns(-1, cx),
            Action::ColumnsRight => self.scroll_columns(1, cx),
            Action::ReverseSort => self.reverse = !self.reverse,
            Action::ToggleActiveOnly if cx.screen.view == ViewId::Overview && !self.filter.only_active => {
                self.show_idle = !self.show_idle;
            }
            Action::ToggleActiveOnly => self.filter.only_active = !self.filter.only_active,
            Action::ToggleTotals => self.show_totals = !self.show_totals,
            Action::ToggleThreads => {
                self.show_threads = !self.show_threads;
                out.push(Effect::ScanThreads(self.show_threads));
            }
            Action::ToggleTree => {
                self.follow = self.selected_task(cx.shared).map(|row| row.key());
                self.show_tree = !self.show_tree;
            }
            Action::ToggleGroups => {
                out.navigate(Target::Tab(ViewId::Processes));
                out.navigate(Target::Groups);
            }
            Action::ToggleFold => self.toggle_fold(cx, out),
            Action::UserFilter => {
                let user = self.filter.user.clone().unwrap_or_default();
                out.open_prompt(PromptPurpose::UserFilter, "user (name or number, empty: all): ", user);
            }
            Action::Ionice => Self::prompt_io_priority(self.selected_task(cx.shared), out),
            Action::Kill => match self.selected_task(cx.shared).map(|row| row.pid()) {
                Some(pid) => out.info(format!("iotop-plus sends no signals: `kill {pid}` in a shell does")),
                None => out.error("no task selected"),
            },
            _ => return false,
        }
        true
    }

    fn on_target(&mut self, target: &Target, cx: &Context, out: &mut Outbox) -> bool {
        if let Target::Processes(filter) = target {
            self.set_filter(PaneId::Processes, filter, cx);
            return true;
        }
        let Target::Task(key) = *target else { return false };
        if cx.shared.system.processes.get(&key).is_none() {
            out.error(format!("task {} has exited", key.tid));
            return true;
        }
        let mut page = TaskPage::new(key);
        if cx.shared.replay.is_some() {
            // These facts are read on request, so a recording has none.
            let missing = |what: &str| Some(WorkerReply::Failed(format!("{what} are not in a recording")));
            (page.facts, page.mappings) = (missing("limits and parents"), missing("mappings"));
            page.written_files = WrittenFilesPage::unavailable("files that are open are not in a recording");
        } else {
            out.push(Effect::RunJob(WorkerJob::TaskDetails { pid: key.pid, starttime: key.starttime }));
        }
        self.page = Some(page);
        out.request(Request::OpenPage(PaneId::ProcessDetail));
        true
    }

    fn on_change(&mut self, change: Change, cx: &Context, _: &mut Outbox) {
        if change == Change::Tasks {
            let last = cx.shared.tasks().len().saturating_sub(1);
            self.scroll.selected = self.scroll.selected.min(last);
            if let Some(page) = &mut self.page {
                page.keep_last_values(cx.shared);
            }
        }
    }

    fn on_event(&mut self, event: Event, _: &Context, out: &mut Outbox) -> Option<Event> {
        match event {
            Event::JobReply(WorkerJob::TaskDetails { pid, starttime }, reply) => {
                if let Some(page) = self.page_of(pid, starttime) {
                    page.facts = Some(reply);
                }
            }
            Event::JobReply(WorkerJob::WrittenFiles { pid, starttime }, reply) => {
                if let Some(page) = self.page_of(pid, starttime) {
                    page.written_files.receive(reply);
                }
            }
            Event::JobReply(WorkerJob::Mappings { pid, starttime }, reply) => {
                if let Some(page) = self.page_of(pid, starttime) {
                    page.mappings_requested = false;
                    page.mappings = Some(reply);
                }
            }
            Event::IoPrioSet(key, Ok(prio)) => {
                out.info(format!("task {}: I/O priority is now {prio} (read back)", key.tid));
            }
            Event::IoPrioSet(_, Err(why)) => out.error(why),
            other => return Some(other),
        }
        None
    }

    fn on_confirm(&mut self, change: PendingChange, _: &Context, out: &mut Outbox) {
        if let PendingChange::IoPrio(key, prio) = change {
            out.push(Effect::SetIoPrio { key, prio });
        }
    }

    fn on_click(&mut self, click: PaneClick, cx: &Context, _: &mut Outbox) {
        if click.pane != PaneId::Processes {
            return;
        }
        match self.line_at(click.inner, click.y) {
            TaskLine::Heading => self.click_header(click, cx),
            TaskLine::StalledHeading => {}
            TaskLine::Row(n) => {
                self.scroll.select(n, self.window.listed);
                self.selection_move = Some(SelectionMove::ToTask);
            }
        }
    }

    /// Recomputes the rows on screen and tells the collector of them: it reads more of tasks on screen.
    fn refresh(&mut self, cx: &Context, out: &mut Outbox) {
        let is_narrowed = self.filter.text.is_some() || self.filter.user.is_some() || self.filter.only_active;
        self.is_folded = cx.screen.view == ViewId::Overview && !self.show_idle && !is_narrowed;
        self.refresh_window(cx.shared, cx.layout.pane_area(PaneId::Processes));
        self.count_empty_columns(cx.shared);
        let tasks = cx.shared.tasks();
        let mut keys: Vec<_> = self.window.rows.iter().map(|row| tasks.row(*row).key()).collect();
        if cx.screen.detail == Some(PaneId::ProcessDetail) {
            keys.extend(self.page.iter().map(|page| page.key));
        }
        let is_page = cx.screen.detail == Some(PaneId::ProcessDetail);
        let now_ns = cx.shared.system.now().boot_ns;
        if is_page
            && let Some(page) = &mut self.page
            && page.written_files.is_due(now_ns)
        {
            let TaskKey { pid, starttime, .. } = page.key;
            out.push(Effect::RunJob(WorkerJob::WrittenFiles { pid, starttime }));
        }
        if is_page != self.are_waits_requested {
            self.are_waits_requested = is_page;
            out.push(Effect::TraceWaits(is_page));
        }
        if keys != self.watched_tasks {
            self.watched_tasks.clone_from(&keys);
            out.push(Effect::WatchTasks(keys));
        }
    }

    fn on_input(&mut self, purpose: PromptPurpose, text: &str, cx: &Context, out: &mut Outbox) -> Result<(), String> {
        match purpose {
            PromptPurpose::Ionice(_) if text.is_empty() => {}
            PromptPurpose::Ionice(key) => {
                out.open_dialog(ionice::confirmation(cx.shared, key, parse_io_priority(text)?));
            }
            _ => self.filter.user = (!text.is_empty()).then(|| text.to_owned()),
        }
        Ok(())
    }

    fn filter(&self, _: PaneId) -> &str {
        self.filter.text.as_deref().unwrap_or_default()
    }

    fn set_filter(&mut self, _: PaneId, text: &str, _: &Context) {
        self.filter.text = (!text.is_empty()).then(|| text.to_owned());
    }

    fn clear_filter(&mut self, _: PaneId, _: &Context) {
        (self.filter.text, self.filter.user) = (None, None);
    }

    fn columns(&self, pane: PaneId, cx: &Context) -> Vec<ColumnInfo> {
        let info = |c: &ProcessColumnSpec| ColumnInfo::new(c, c.id.source());
        if pane != PaneId::Processes {
            let columns = ProcessColumnSet::FullTraced.columns().iter().map(info);
            return columns.chain(ColumnInfo::of_figures(TASK_FIGURES)).collect();
        }
        let sorted = self.task_query(0, 0).sort_by;
        let columns = self.sortable_columns(cx).into_iter();
        columns.map(|c| ColumnInfo { is_sorted: c.id == sorted, can_sort: true, ..info(c) }).collect()
    }

    fn column_choices(&self, _: PaneId, cx: &Context) -> Vec<ColumnChoice> {
        let shown = match self.chosen.is_empty() {
            true => {
                let usual = Self { show_threads: false, show_totals: false, ..Self::default() };
                usual.column_set(cx.shared, u16::MAX).to_vec()
            }
            false => self.chosen.specs(false, false).to_vec(),
        };
        ColumnChoice::list(&shown, ProcessColumn::choices())
    }

    fn set_columns(&mut self, _: PaneId, headers: &[&str], _: &Context) {
        self.chosen = ChosenColumns::new(headers);
    }

    fn column_at(&self, click: PaneClick, cx: &Context) -> Option<usize> {
        let area = self.table_area(self.busy_area(click.inner));
        if click.pane != PaneId::Processes || click.y < area.y {
            return None;
        }
        let (set, fitted) = self.fitted_columns(cx.shared, area.width);
        let id = set[fitted.column_at(click.x.checked_sub(area.x)?)?].id;
        self.sortable_columns(cx).iter().position(|column| column.id == id)
    }

    fn sort_by(&mut self, _: PaneId, column: Option<usize>, cx: &Context) {
        let id = column.and_then(|i| self.sortable_columns(cx).get(i).map(|spec| spec.id));
        self.sort_by(id.unwrap_or(ProcessColumn::Stalled));
    }

    fn find_row(&mut self, _: PaneId, search: &RowSearch, cx: &Context) -> bool {
        let rows = self.tasks_containing(cx.shared, search);
        if search.select(rows.into_iter(), &mut self.scroll.selected) {
            self.selection_move = Some(SelectionMove::ToTask);
            return true;
        }
        if self.find_folded_row(cx.shared, search) {
            return true;
        }
        // Perhaps an idle task is searched for.
        if !std::mem::take(&mut self.is_folded) {
            return false;
        }
        self.show_idle = self.find_row(PaneId::Processes, search, cx);
        self.is_folded = !self.show_idle;
        self.show_idle
    }
}
