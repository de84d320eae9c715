//! The list of processes or threads.

use super::ProcessesView;
use crate::export::processes::{delays_unavailable, missing_data_notes};
use crate::export::{self, table::Table};
use crate::model::column::{Align, CellValue};
use crate::model::columns::process::{COLUMNS, ProcessColumnSet as Set, ProcessColumnSpec, ProcessTexts};
use crate::model::columns::stalls::waits_text;
use crate::model::history::HistoryFrame;
use crate::model::io_accounting::IoRates;
use crate::model::process::{ProcessColumn as Col, ProcessQuery, ProcessRow};
use crate::tui::column_priority::of_process_column;
use crate::tui::view::{Action, Context, PaneId, Shared};
use crate::tui::widgets::table::Priority;
use crate::tui::widgets::{
    CellBuffer, NotePart, Rect, Style, Theme, area_below, draw_columns, draw_reason, draw_text, draw_text_right,
    fit_parts, join_parts, table, text_width, title_note_room, title_with_filter,
};
use crate::units::format_bytes;

impl ProcessesView {
    pub fn column_set(&self, shared: &Shared, width: u16) -> &[ProcessColumnSpec] {
        if !self.chosen.is_empty() {
            return self.chosen.specs(self.show_threads, self.show_totals);
        }
        let (wide, sums) = (width >= 90, self.show_totals);
        let set = match (self.show_threads, wide, sums) {
            (false, false, _) if matches!(self.sort_column, Col::Throttled | Col::Reclaim) => Set::CompactStalls,
            (false, false, false) => Set::Compact,
            (false, true, false) if shared.snapshot().io_attribution.ok().is_some() => Set::FullTraced,
            (false, true, false) => Set::Full,
            (false, true, true) => Set::FullTotals,
            (false, false, true) => Set::CompactTotals,
            (true, false, false) => Set::Threads,
            (true, true, false) => Set::FullThreads,
            (true, false, true) => Set::ThreadTotals,
            (true, true, true) => Set::FullThreadTotals,
        };
        set.columns()
    }

    pub fn fitted_columns(&self, shared: &Shared, width: u16) -> (&[ProcessColumnSpec], table::FittedColumns) {
        let set = self.column_set(shared, width);
        let has_delays = delays_unavailable(&shared.system.processes).is_none();
        let is_traced = shared.snapshot().io_attribution.ok().is_some() && !self.show_threads;
        let priority = |i: usize| match set[i].id {
            id if id == self.sort_column => Priority::Kept,
            // Who waits is in a section with a column of its own.
            Col::Waits if self.has_sections() => Priority::Hidden,
            id if !self.chosen.is_empty() => of_process_column(id, self.is_empty_column(shared, &set[i])),
            Col::IoDelay | Col::SwapinDelay if !has_delays => Priority::Hidden,
            Col::Device if !is_traced => Priority::Hidden,
            id => of_process_column(id, self.is_empty_column(shared, &set[i])),
        };
        let history = self.history_area(shared, Rect { width, height: 1, ..Rect::default() }).width;
        // The lines of the tree stand before the command.
        let share = if self.show_tree { width / 3 } else { width / 4 };
        let least = share.max(if width < 66 { 12 } else { 18 });
        let mut fitted = table::fit_columns(set, width - history, least, self.column_offset, priority);
        if let Some(waits) = set.iter().position(|c| c.id == Col::Waits) {
            fitted.widen(waits, MAX_WAITS_WIDTH, COMMAND_WIDTH);
        }
        (set, fitted)
    }

    /// Whether a column of numbers, devices or waits is `-` or blank in every row on screen, and has been for some time: a column that
    /// came and went with each sample would move all others.
    fn is_empty_column(&self, shared: &Shared, column: &ProcessColumnSpec) -> bool {
        self.empty_columns.is_lasting(column.id as usize) && self.is_empty_now(shared, column)
    }

    fn is_empty_now(&self, shared: &Shared, column: &ProcessColumnSpec) -> bool {
        let tasks = shared.tasks();
        let mut rows = self.window.rows.iter().map(|row| tasks.row(*row));
        let may_be_empty = column.align == Align::Right || matches!(column.id, Col::Device | Col::Cgroup | Col::Waits);
        let is_missing = |row: ProcessRow<'_>| match column.id {
            Col::Cgroup => row.cgroup().is_none() && row.container().is_none(),
            Col::Waits => waits_text(&row).is_empty(),
            _ => column.sort_key(&row).number.is_nan(),
        };
        may_be_empty && rows.len() > 0 && rows.all(is_missing)
    }

    /// Counts for how many samples each column has been empty; once a sample.
    pub(super) fn count_empty_columns(&mut self, shared: &Shared) {
        let seq = shared.snapshot().seq;
        if self.empty_columns.has_counted(seq) || self.window.rows.is_empty() {
            return;
        }
        let empty: Vec<bool> = COLUMNS.iter().map(|column| self.is_empty_now(shared, column)).collect();
        self.empty_columns.count(seq, &empty);
    }

    /// The headings of columns that are not shown because no row has a value, with the reason.
    fn empty_columns(&self, shared: &Shared, width: u16) -> Vec<(Vec<&'static str>, &'static str)> {
        let is_elsewhere = |id: Col| match id {
            Col::IoDelay | Col::SwapinDelay => true,
            Col::Waits => self.has_sections(),
            _ => id == self.sort_column,
        };
        let columns = self.column_set(shared, width).iter().filter(|c| !is_elsewhere(c.id));
        let (mut of_requests, mut waits, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for column in columns.filter(|column| self.is_empty_column(shared, column)) {
            match column.id {
                Col::Device | Col::IoLatency => of_requests.push(column.header),
                Col::Waits => waits.push(column.header),
                _ => others.push(column.header),
            }
        }
        let mut out = vec![(of_requests, "no requests"), (waits, "no task waits"), (others, "unknown for these tasks")];
        out.retain(|(headers, _)| !headers.is_empty());
        out
    }

    /// What says which columns are not shown and why, from the longest form to the shortest.
    fn missing_columns_notes(&self, shared: &Shared, width: u16) -> [Vec<NotePart>; 3] {
        let empty = self.empty_columns(shared, width);
        let no_delays = delays_unavailable(&shared.system.processes);
        let with_reasons =
            || empty.iter().map(|(headers, why)| NotePart::of(format!("no {}: {why}", headers.join(", "))));
        let explains = format!("({} says why)", shared.key(Action::Explain));
        let short = no_delays.map(|_| NotePart::of(format!("no IO% {explains}")));
        let long = no_delays.map(|why| NotePart::of(format!("no IO%: {why}")));
        let all = empty.iter().flat_map(|(headers, _)| headers.iter().copied()).chain(no_delays.map(|_| "IO%"));
        let all: Vec<&str> = all.collect();
        let one = (!all.is_empty()).then(|| NotePart::of(format!("no {} {explains}", all.join(", "))));
        [with_reasons().chain(long).collect(), with_reasons().chain(short).collect(), one.into_iter().collect()]
    }

    /// The first row of the column at the right that has the history of I/O; empty where there is no room, or no tracing.
    fn history_area(&self, shared: &Shared, inner: Rect) -> Rect {
        let is_traced = shared.snapshot().io_attribution.ok().is_some() && !self.show_threads;
        let width = if is_traced && inner.width >= MIN_WIDTH_WITH_HISTORY { HISTORY_WIDTH } else { 0 };
        Rect { x: inner.right() - width, width, height: 1, ..inner }
    }

    /// The query for `height` rows from `offset` on.
    pub fn task_query(&self, offset: usize, height: usize) -> ProcessQuery {
        let mut filter = self.filter.clone();
        filter.only_active |= self.is_folded;
        if self.show_totals && filter.only_active {
            (filter.only_active, filter.only_accumulated) = (false, true);
        }
        let by = match (self.sort_column, self.show_totals) {
            (Col::Io | Col::Stalled, true) => Col::AccIo,
            (Col::Read, true) => Col::AccRead,
            (Col::Write, true) => Col::AccWrite,
            (by, _) => by,
        };
        ProcessQuery { sort_by: by, reverse: self.reverse, filter, offset, height }
    }

    fn list_title(&self) -> String {
        let mut title = String::from(if self.show_threads { "Threads" } else { "Processes" });
        title += if self.show_tree { " · tree" } else { "" };
        title += if self.show_totals { " · sums" } else { "" };
        title += if self.filter.only_active { " · active" } else { "" };
        if let Some(user) = &self.filter.user {
            title += &format!(" · user {}", crate::sanitize::sanitize(user));
        }
        title_with_filter(title, self.filter.text.as_deref().unwrap_or_default())
    }

    /// ` · by SWAP` while the list is sorted by a column that is not shown, other than the default order.
    fn hidden_sort_note(&self, shared: &Shared, width: u16) -> String {
        let by = self.task_query(0, 0).sort_by;
        let (set, fitted) = self.fitted_columns(shared, width);
        match by {
            Col::Stalled => String::new(),
            _ if fitted.columns.iter().any(|(i, ..)| set[*i].id == by) => String::new(),
            _ => format!(" · by {}", by.spec().header),
        }
    }

    /// What stands right of a title of so many cells: all of it in words, or shorter where the pane is narrow.
    fn title_note(&self, shared: &Shared, width: u16, title_width: usize) -> String {
        let parts = match shared.frozen_seq {
            Some(_) => vec![NotePart::of(format!("busiest tasks, {}", shared.interval_text()))],
            None => self.live_notes(shared),
        };
        let room = title_note_room(width + 2, title_width);
        let forms = self.missing_columns_notes(shared, width).map(|notes| [parts.clone(), notes].concat());
        let whole = forms.iter().map(|parts| join_parts(parts)).find(|text| text_width(text) <= room.into());
        whole.unwrap_or_else(|| fit_parts(&forms[2], room))
    }

    /// Number of tasks, their sums, and what is missing among them.
    fn live_notes(&self, shared: &Shared) -> Vec<NotePart> {
        let procs = &shared.system.processes;
        let totals = procs.totals();
        let [read, written] = [totals.read_bytes_per_s, totals.write_bytes_per_s].map(|n| format_bytes(n as u64));
        let mut parts = vec![NotePart::of(self.window.matching.to_string())];
        parts.extend(self.is_fold_in_title.then(|| NotePart::of(format!("{} idle", self.window.idle))));
        parts.push(NotePart::new(format!("read {read}/s write {written}/s"), format!("r {read} w {written}")));
        let counted = [(procs.hidden_count, "hidden"), (procs.blocked_tasks.len(), "BLOCKED")];
        parts.extend(counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| NotePart::of(format!("{n} {what}"))));
        parts
    }

    pub(super) fn render_list(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (shared, theme) = (cx.shared, &cx.theme);
        let width = area.width.saturating_sub(2);
        let title = self.list_title() + &self.hidden_sort_note(shared, width);
        let note = self.title_note(shared, width, text_width(&title));
        let inner = cx.draw_frame(buf, PaneId::Processes, area, &title, &note);
        if inner.height == 0 {
            return;
        }
        if let Some(why) = shared.processes_unavailable_reason() {
            draw_reason(buf, inner, &why, theme.warn);
            return;
        }
        let table_area = self.table_area(inner);
        if self.stalled_rows > 0 {
            let width = table_area.width - self.history_area(shared, table_area).width;
            self.render_stalled(shared, Rect { width, ..table_area }, buf, theme);
        }
        let rows = self.draw_rows(cx, inner, buf);
        if self.is_folded && !self.is_fold_in_title && self.window.idle > 0 {
            // The I/O of a hidden task cannot be read: it may be busy.
            let state = if shared.system.processes.hidden_count > 0 { "idle or hidden" } else { "idle" };
            let key = shared.keymap.key_of(Action::ToggleActiveOnly);
            let text = format!("{} {state} ({key} shows all)", self.window.idle);
            let y = rows.min(inner.bottom().saturating_sub(1));
            draw_text(buf, table_area.x, y, &text, table_area.width, theme.dim);
        } else if self.window.matching == 0 {
            draw_text(buf, table_area.x, rows, &self.no_task_text(shared), table_area.width, theme.dim);
        }
    }

    /// Why the list is empty.
    fn no_task_text(&self, shared: &Shared) -> String {
        let [all, back] = [Action::ToggleActiveOnly, Action::Back].map(|action| shared.keymap.key_of(action));
        match self.filter.only_active || self.is_folded {
            _ if shared.frozen_seq.is_some() => "no task is known to have done I/O then".into(),
            true if shared.system.processes.hidden_count > 0 => format!("no task is seen to do I/O ({all} shows all)"),
            true => format!("no task does any I/O ({all} shows all)"),
            false => format!("no task matches ({back})"),
        }
    }

    /// Draws the headings of the busy tasks, and for every task its row, unless it is in the section above, its history and
    /// the selection; returns the line below.
    fn draw_rows(&self, cx: &Context, inner: Rect, buf: &mut CellBuffer) -> u16 {
        let (shared, theme) = (cx.shared, &cx.theme);
        let (all, area) = (self.table_area(inner), self.table_area(self.busy_area(inner)));
        let (set, fitted) = self.fitted_columns(shared, area.width);
        let has_busy = self.stalled_rows == 0 || self.window.rows.len() > self.stalled_rows;
        let history = self.history_area(shared, all);
        draw_text_right(buf, history.x, inner.y, " I/O", history.width, theme.dim);
        if has_busy && area.height > 0 {
            let by = self.task_query(0, 0).sort_by;
            let descending = self.reverse == by.spec().ascending;
            let sorted = set.iter().position(|c| c.id == by).map(|i| (i, descending));
            table::draw_header(buf, area, set, &fitted, sorted, theme);
            if self.has_sections() {
                draw_text(buf, inner.x, area.y, "Busy", 7, theme.title);
            }
        }
        let body = area_below(area, u16::from(has_busy));
        let selected = self.scroll.selected - self.scroll.offset.min(self.scroll.selected);
        let (mut scratch, mut end) = (String::new(), body.y);
        let room = self.stalled_rows + usize::from(body.height);
        self.for_each_visible_task(shared, room, |n, row| {
            let y = match n.checked_sub(self.stalled_rows) {
                Some(n) => body.y + n as u16,
                None => all.y + 1 + n as u16,
            };
            if n >= self.stalled_rows {
                let texts = ProcessTexts::for_screen(row);
                let value = |c: &ProcessColumnSpec| c.cell(&texts);
                let style = |c: &ProcessColumnSpec, value: &CellValue<'_>| cell_style(row, c, value, theme);
                table::draw_row(buf, body, y, set, &fitted, value, style, &mut scratch);
                end = y + 1;
            }
            draw_history(shared, row.pid(), Rect { y, ..history }, buf, theme);
            if cx.is_focused(PaneId::Processes) && n == selected {
                table::highlight_row(buf, inner, y, theme);
            }
        });
        end
    }

    pub(super) fn list_table(&self, shared: &Shared) -> Table {
        let title = shared.table_title(&self.list_title());
        let mut sheet = export::processes::build_table(title, self.column_set(shared, u16::MAX), |put| {
            self.for_each_visible_task(shared, 50, |_, row| put(row));
        });
        sheet.notes.extend(shared.processes_unavailable_reason());
        sheet.notes.extend(missing_data_notes(&shared.system.processes));
        sheet
    }
}

/// With room to spare, names of kernel functions are shown whole.
const MAX_WAITS_WIDTH: u16 = 24;
/// The command keeps this much of it.
const COMMAND_WIDTH: u16 = 40;

/// Cells of the history of a task's I/O, with a blank before it.
const HISTORY_WIDTH: u16 = 9;
/// From this width on there is one.
const MIN_WIDTH_WITH_HISTORY: u16 = 110;

/// Draws the bytes per second of a process at the devices, from tracing, scaled to its own peak.
fn draw_history(shared: &Shared, pid: u32, area: Rect, buf: &mut CellBuffer, theme: &Theme) {
    let bytes = |frame: &HistoryFrame| {
        let rates = frame.snapshot.io_attribution.ok()?.process(pid).map_or(IoRates::default(), |io| io.total);
        Some(rates.read_bytes_per_s + rates.write_bytes_per_s.max(rates.writeback_bytes_per_s))
    };
    // A blank separates it from the command.
    let area = Rect { x: area.x + area.width.min(1), width: area.width.saturating_sub(1), ..area };
    let samples = shared.graph_samples(area.width);
    let shown: Vec<Option<f64>> = shared.history_to_shown().rev().take(samples).map(bytes).collect();
    let peak = shown.iter().flatten().copied().fold(0.0, f64::max);
    if peak > 0.0 && area.width > 0 {
        draw_columns(buf, area, shared.graph_values(shown.into_iter().rev()), peak, |_| theme.graph);
    }
}

fn cell_style(row: &ProcessRow<'_>, column: &ProcessColumnSpec, value: &CellValue<'_>, theme: &Theme) -> Style {
    match column.id {
        _ if row.has_exited() || row.tree_position().is_some_and(|place| place.is_context) => theme.dim,
        Col::State if row.state() == 'D' || row.is_blocked() => theme.crit,
        Col::Waits => theme.warn,
        Col::Command if row.raw.kernel_thread => theme.dim,
        _ if column.is_dim_when_zero() && !value.is_positive() => theme.dim,
        _ => table::cell_style(column, value, theme.text, theme),
    }
}
