//! Slow syncs: those under way, so that one that hangs is seen while it hangs, then the newest that are over.

use super::super::{Pane, PaneId};
use super::title_with_filter;
use crate::export;
use crate::export::table::Table;
use crate::model::columns::syncs::{SLOW_SYNC_COLUMNS, SlowSyncColumn};
use crate::model::syncs::SlowSyncRow;
use crate::model::syncs::list;
use crate::tui::keymap::KeyContext;
use crate::tui::state::App;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::draw_frame;
use crate::tui::widgets::table;
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::SlowSyncs,
    contexts: &[KeyContext::List, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: |app| slow_sync_lines(app).len(),
};

/// Cells the path keeps at least.
const MIN_PATH_WIDTH: u16 = 14;

/// The lines shown now.
pub fn slow_sync_lines(app: &App) -> Vec<SlowSyncRow> {
    let syncs = app.shared.snapshot().syncs.ok();
    syncs.map_or_else(Vec::new, |s| list::slow_sync_rows(s, app.shared.system.topology.ok(), &app.views.syncs.filter))
}

fn pane_title(app: &App) -> String {
    title_with_filter(app, &format!("Slow syncs, from {} ms", app.views.syncs.threshold_ms))
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let syncs = app.shared.snapshot().syncs.ok();
    let flying = syncs.map_or(0, |s| s.in_flight.len());
    let note = if flying > 0 { format!("{flying} under way") } else { String::new() };
    let inner = draw_frame(buf, area, &pane_title(app), &note, focused, theme);
    if inner.height == 0 || syncs.is_none() {
        return;
    }
    let lines = slow_sync_lines(app);
    // What it waited on is worth more than errno, which goes first.
    let keep = |i: usize| SLOW_SYNC_COLUMNS[i].id == SlowSyncColumn::WaitedOn;
    let fitted = table::fit_columns(SLOW_SYNC_COLUMNS, inner.width, MIN_PATH_WIDTH, 0, keep);
    table::draw_header(buf, inner, SLOW_SYNC_COLUMNS, &fitted, None, theme);
    let body = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
    let mut scroll = app.views.syncs.slow_scroll;
    scroll.scroll_into_view(lines.len(), usize::from(body.height));
    let mut scratch = String::new();
    for (n, (i, line)) in lines.iter().enumerate().skip(scroll.offset).take(usize::from(body.height)).enumerate() {
        let y = body.y + n as u16;
        let ended =
            app.shared.format_time_of_day(app.shared.snapshot().time.wall_ns_at(line.started_ns + line.duration_ns));
        let value = |c| line.value(c, &ended);
        table::draw_row(buf, body, y, SLOW_SYNC_COLUMNS, &fitted, value, |c| cell_style(line, c, theme), &mut scratch);
        if focused && i == scroll.selected {
            table::highlight_row(buf, body, y, theme);
        }
    }
    if lines.is_empty() {
        draw_text(buf, body.x, body.y, "none", body.width, theme.dim);
    }
}

fn cell_style(line: &SlowSyncRow, col: SlowSyncColumn, theme: &Theme) -> Style {
    match col {
        SlowSyncColumn::EndedAt | SlowSyncColumn::Duration if line.is_in_flight => theme.crit,
        SlowSyncColumn::Error if line.error > 0 => theme.crit,
        _ => theme.text,
    }
}

fn build_table(app: &App) -> Table {
    let title = format!("Slow syncs on {}, {}", app.shared.system.host.name, app.shared.timestamp());
    let there = export::syncs::build_slow_table(
        &title,
        app.shared.snapshot(),
        app.shared.system.topology.ok(),
        &app.views.syncs.filter,
    );
    there.unwrap_or_else(|| {
        let mut none = Table::new(title, &[]);
        none.notes.extend(app.shared.snapshot().syncs.unavailable_reason(app.shared.snapshot().time.boot_ns));
        none
    })
}
