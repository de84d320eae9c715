//! The list of processes or threads.

use super::ProcessesView;
use crate::export::processes::{delays_unavailable, missing_data_notes};
use crate::export::{self, table::Table};
use crate::model::column::{Align, CellValue};
use crate::model::columns::process::{ProcessColumnSet as Set, ProcessColumnSpec, ProcessTexts};
use crate::model::history::HistoryFrame;
use crate::model::io_accounting::IoRates;
use crate::model::process::{ProcessColumn as Col, ProcessQuery, ProcessRow};
use crate::tui::column_priority::of_process_column;
use crate::tui::view::{Context, PaneId, Shared};
use crate::tui::widgets::table::Priority;
use crate::tui::widgets::{
    CellBuffer, Rect, Style, Theme, draw_columns, draw_reason, draw_text, draw_text_right, table, title_with_filter,
};
use crate::units::format_bytes;

impl ProcessesView {
    pub fn column_set(&self, shared: &Shared, width: u16) -> &'static [ProcessColumnSpec] {
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

    pub fn fitted_columns(&self, shared: &Shared, width: u16) -> (&'static [ProcessColumnSpec], table::FittedColumns) {
        let set = self.column_set(shared, width);
        let has_delays = delays_unavailable(&shared.system.processes).is_none();
        let is_traced = shared.snapshot().io_attribution.ok().is_some() && !self.show_threads;
        let priority = |i: usize| match set[i].id {
            id if id == self.sort_column => Priority::Kept,
            Col::IoDelay | Col::SwapinDelay if !has_delays => Priority::Hidden,
            Col::Device if !is_traced => Priority::Hidden,
            id => of_process_column(id, self.is_empty_column(shared, &set[i])),
        };
        let history = self.history_area(shared, Rect { width, height: 1, ..Rect::default() }).width;
        // Beside a history the command is shorter, not the columns fewer.
        let least = if history > 0 { width / 6 } else { (width / 4).max(if width < 66 { 12 } else { 18 }) };
        let width = width - history;
        (set, table::fit_columns(set, width, least, self.column_offset, priority))
    }

    /// Whether a column of numbers is `-` in every row on screen.
    fn is_empty_column(&self, shared: &Shared, column: &ProcessColumnSpec) -> bool {
        let tasks = &shared.system.processes;
        let mut rows = self.window.rows.iter().map(|row| tasks.row(*row));
        column.align == Align::Right && rows.len() > 0 && rows.all(|row| column.sort_key(&row).number.is_nan())
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

    fn list_title(&self, shared: &Shared) -> String {
        let mut title = String::from(if self.show_threads { "Threads" } else { "Processes" });
        title += if self.show_tree && shared.frozen_seq.is_none() { " · tree" } else { "" };
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

    fn title_note(&self, shared: &Shared) -> String {
        if shared.frozen_seq.is_some() {
            return format!("busiest tasks, {}", shared.interval_text());
        }
        let totals = shared.system.processes.totals();
        let [read, written] = [totals.read_bytes_per_s, totals.write_bytes_per_s].map(|n| format_bytes(n as u64));
        let mut note = format!("{} · read {read}/s write {written}/s", self.matching_task_count(shared));
        let procs = &shared.system.processes;
        if procs.hidden_count > 0 {
            note.push_str(&format!(" · {} hidden", procs.hidden_count));
        }
        if !procs.blocked_tasks.is_empty() {
            note.push_str(&format!(" · {} BLOCKED", procs.blocked_tasks.len()));
        }
        if let Some(why) = delays_unavailable(procs) {
            note.push_str(&format!(" · no IO%: {why}"));
        }
        note
    }

    pub(super) fn render_list(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (shared, theme, focused) = (cx.shared, &cx.theme, cx.is_focused(PaneId::Processes));
        let title = self.list_title(shared) + &self.hidden_sort_note(shared, area.width.saturating_sub(2));
        let inner = cx.draw_frame(buf, PaneId::Processes, area, &title, &self.title_note(shared));
        if inner.height == 0 {
            return;
        }
        if let Some(why) = shared.processes_unavailable_reason() {
            draw_reason(buf, inner, &why, theme.warn);
            return;
        }
        let (set, fitted) = self.fitted_columns(shared, inner.width);
        let by = self.task_query(0, 0).sort_by;
        let descending = self.reverse == by.spec().is_ascending();
        let sorted = set.iter().position(|c| c.id == by).map(|i| (i, descending));
        table::draw_header(buf, inner, set, &fitted, sorted, theme);
        let history = self.history_area(shared, inner);
        draw_text_right(buf, history.x, inner.y, " I/O", history.width, theme.dim);
        let body = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
        let selected = self.scroll.selected - self.scroll.offset.min(self.scroll.selected);
        let mut scratch = String::new();
        let mut rows = 0;
        self.for_each_visible_task(shared, usize::from(body.height), |n, row| {
            rows = n as u16 + 1;
            let y = body.y + n as u16;
            let texts = ProcessTexts::for_screen(row);
            let value = |c: &ProcessColumnSpec| c.cell(&texts);
            let style = |c: &ProcessColumnSpec, value: &CellValue<'_>| cell_style(row, c, value, theme);
            table::draw_row(buf, body, y, set, &fitted, value, style, &mut scratch);
            draw_history(shared, row.pid(), Rect { y, ..history }, buf, theme);
            if focused && n == selected {
                table::highlight_row(buf, body, y, theme);
            }
        });
        if self.is_folded && self.window.idle > 0 {
            // The I/O of a hidden task cannot be read: it may be busy.
            let state = if shared.system.processes.hidden_count > 0 { "idle or hidden" } else { "idle" };
            let text = format!("{} {state} (o shows all)", self.window.idle);
            let y = (body.y + rows).min(body.bottom().saturating_sub(1));
            draw_text(buf, body.x, y, &text, body.width, theme.dim);
        } else if rows == 0 {
            let text = match self.filter.only_active {
                _ if shared.frozen_seq.is_some() => "no task is known to have done I/O then",
                true if shared.system.processes.hidden_count > 0 => "no task is seen to do I/O (o shows all)",
                true => "no task does any I/O (o shows all)",
                false => "no task matches (Esc)",
            };
            draw_text(buf, body.x, body.y, text, body.width, theme.dim);
        }
    }

    pub(super) fn list_table(&self, shared: &Shared) -> Table {
        let title = shared.table_title(&self.list_title(shared));
        let mut sheet = export::processes::build_table(title, self.column_set(shared, u16::MAX), |put| {
            self.for_each_visible_task(shared, 50, |_, row| put(row));
        });
        sheet.notes.extend(shared.processes_unavailable_reason());
        sheet.notes.extend(missing_data_notes(&shared.system.processes));
        sheet
    }
}

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
        draw_columns(buf, area, shown.into_iter().rev(), peak, |_| theme.graph);
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
