//! The list of processes or threads.

use super::ProcessesView;
use crate::export::processes::{delays_unavailable, missing_data_notes};
use crate::export::{self, table::Table};
use crate::model::column::ColumnSpec;
use crate::model::columns::process::{
    COMPACT, COMPACT_STALLS, COMPACT_TOTALS, FULL, FULL_TOTALS, FULL_TRACED, SORT_KEYS, THREAD_COLUMN_SETS, cell_value,
    write_command,
};
use crate::model::process::{ProcessColumn as Col, ProcessQuery, ProcessRow};
use crate::tui::shared::Shared;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, draw_reason};
use crate::tui::widgets::table;
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use crate::units::format_bytes;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The sort column of a name in the config file.
pub fn sort_column_by_name(name: &str) -> Option<Col> {
    SORT_KEYS.iter().find(|o| o.0 == name).map(|o| o.1)
}

/// The name of a sort column in the config file.
pub fn sort_column_name(by: Col) -> &'static str {
    SORT_KEYS.iter().find(|o| o.1 == by).map_or("io", |o| o.0)
}

/// The names of all sort columns.
pub fn sort_column_names() -> Vec<&'static str> {
    SORT_KEYS.iter().map(|o| o.0).collect()
}

/// The column set for a pane of this width.
pub fn column_set(view: &ProcessesView, shared: &Shared, width: u16) -> &'static [ColumnSpec<Col>] {
    let (wide, sums) = (width >= 90, view.show_totals);
    match (view.show_threads, wide, sums) {
        (false, false, _) if matches!(view.sort_column, Col::Throttled | Col::Reclaim) => COMPACT_STALLS,
        (false, false, false) => COMPACT,
        (false, true, false) if shared.snapshot().io_attribution.ok().is_some() => FULL_TRACED,
        (false, true, false) => FULL,
        (false, true, true) => FULL_TOTALS,
        (false, false, true) => COMPACT_TOTALS,
        (true, wide, sums) => THREAD_COLUMN_SETS[usize::from(wide) + 2 * usize::from(sums)],
    }
}

/// The columns that fit into a width.
pub fn fitted_columns(
    view: &ProcessesView,
    shared: &Shared,
    width: u16,
) -> (&'static [ColumnSpec<Col>], table::FittedColumns) {
    let set = column_set(view, shared, width);
    // Reads, writes and the sort column are dropped last.
    let keep = |i: usize| {
        matches!(set[i].id, Col::Read | Col::Write | Col::AccRead | Col::AccWrite) || set[i].id == view.sort_column
    };
    (set, table::fit_columns(set, width, (width / 4).max(if width < 66 { 12 } else { 18 }), view.column_offset, keep))
}

/// The query for `height` rows from `offset` on.
pub fn task_query(view: &ProcessesView, offset: usize, height: usize) -> ProcessQuery {
    let p = &view;
    let mut filter = p.filter.clone();
    if p.show_totals && filter.only_active {
        (filter.only_active, filter.only_accumulated) = (false, true);
    }
    let by = match (p.sort_column, p.show_totals) {
        (Col::Io, true) => Col::AccIo,
        (Col::Read, true) => Col::AccRead,
        (Col::Write, true) => Col::AccWrite,
        (by, _) => by,
    };
    ProcessQuery { sort_by: by, reverse: p.reverse, filter, offset, height }
}

fn pane_title(view: &ProcessesView) -> String {
    let p = &view;
    let mut title = String::from(if p.show_threads { "Threads" } else { "Processes" });
    if p.show_totals {
        title.push_str(" · sums");
    }
    if p.filter.only_active {
        title.push_str(" · active");
    }
    if let Some(user) = &p.filter.user {
        title.push_str(&format!(" · user {}", crate::sanitize::sanitize(user)));
    }
    if let Some(text) = &p.filter.text {
        title.push_str(&format!(" · filter \"{}\"", crate::sanitize::sanitize(text)));
    }
    title
}

fn title_note(view: &ProcessesView, shared: &Shared) -> String {
    if shared.frozen_seq.is_some() {
        return format!("busiest tasks, {}", shared.interval_text());
    }
    let totals = shared.system.processes.totals();
    let mut note = format!(
        "{} · read {}/s write {}/s",
        view.matching_task_count(shared),
        format_bytes(totals.read_bytes_per_s as u64),
        format_bytes(totals.write_bytes_per_s as u64)
    );
    let procs = &shared.system.processes;
    if procs.hidden_count() > 0 {
        note.push_str(&format!(" · {} hidden", procs.hidden_count()));
    }
    if !procs.blocked_tasks().is_empty() {
        note.push_str(&format!(" · {} BLOCKED", procs.blocked_tasks().len()));
    }
    if let Some(why) = delays_unavailable(procs) {
        note.push_str(&format!(" · no IO%: {why}"));
    }
    note
}

pub(super) fn render(
    view: &ProcessesView,
    shared: &Shared,
    theme: &Theme,
    area: Rect,
    buf: &mut CellBuffer,
    focused: bool,
) {
    let inner = draw_frame(buf, area, &pane_title(view), &title_note(view, shared), focused, theme);
    if inner.height == 0 {
        return;
    }
    if let Some(why) = shared.processes_unavailable_reason() {
        draw_reason(buf, inner, &why, theme.warn);
        return;
    }
    let (set, fitted) = fitted_columns(view, shared, inner.width);
    let by = task_query(view, 0, 0).sort_by;
    let descending = view.reverse == by.is_ascending_by_default();
    let sorted = set.iter().position(|c| c.id == by).map(|i| (i, descending));
    table::draw_header(buf, inner, set, &fitted, sorted, theme);
    let body = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
    let selected = view.scroll.selected - view.scroll.offset.min(view.scroll.selected);
    let (mut scratch, mut text) = (String::new(), String::new());
    let mut any = false;
    view.for_each_visible_task(shared, usize::from(body.height), |n, row| {
        any = true;
        let y = body.y + n as u16;
        text.clear();
        write_command(&mut text, row);
        let cell = |c| cell_value(row, c, &text);
        table::draw_row(buf, body, y, set, &fitted, cell, |c| cell_style(row, c, theme), &mut scratch);
        if focused && n == selected {
            table::highlight_row(buf, body, y, theme);
        }
    });
    if !any {
        let text = match view.filter.only_active {
            _ if shared.frozen_seq.is_some() => "no task is known to have done I/O then",
            true => "no task does any I/O (o shows all)",
            false => "no task matches (Esc)",
        };
        draw_text(buf, body.x, body.y, text, body.width, theme.dim);
    }
}

fn cell_style(row: &ProcessRow<'_>, col: Col, theme: &Theme) -> Style {
    if row.exited {
        return theme.dim;
    }
    let busy = |n: Option<f64>| n.is_some_and(|n| n > 0.0);
    match col {
        Col::State if row.state == 'D' || row.blocked => theme.crit,
        Col::Command if row.state == 'D' => theme.warn,
        Col::Command if row.kernel_thread => theme.dim,
        Col::IoDelay if row.io_delay_pct.is_some_and(|n| n >= 50.0) => theme.warn,
        Col::Read if !busy(row.read_bytes_per_s) => theme.dim,
        Col::Write if !busy(row.write_bytes_per_s) => theme.dim,
        Col::Writeback if !busy(row.attributed_io.map(|c| c.writeback_bytes_per_s)) => theme.dim,
        Col::Iops if !busy(row.attributed_io.map(|c| c.iops())) => theme.dim,
        Col::Swap if row.swap_bytes.is_none_or(|n| n == 0) => theme.dim,
        Col::Throttled if row.throttled_pct.is_some_and(|n| n >= 20.0) => theme.warn,
        Col::Throttled if !busy(row.throttled_pct) => theme.dim,
        Col::Reclaim if row.reclaim_pct.is_some_and(|n| n >= 20.0) => theme.warn,
        Col::Reclaim if !busy(row.reclaim_pct) => theme.dim,
        Col::IoDelay if !busy(row.io_delay_pct) => theme.dim,
        Col::SwapinDelay if !busy(row.swapin_delay_pct) => theme.dim,
        Col::MajorFaults if !busy(row.major_faults_per_s) => theme.dim,
        Col::Cancelled if !busy(row.cancelled_bytes_per_s) => theme.dim,
        _ => theme.text,
    }
}

pub(super) fn build_table(view: &ProcessesView, shared: &Shared) -> Table {
    let title = format!("{} on {}, {}", pane_title(view), shared.system.host.name, shared.timestamp());
    let mut sheet = export::processes::build_table(title, column_set(view, shared, u16::MAX), |put| {
        view.for_each_visible_task(shared, 50, |_, row| put(row));
    });
    sheet.notes.extend(shared.processes_unavailable_reason());
    sheet.notes.extend(missing_data_notes(&shared.system.processes));
    sheet
}
