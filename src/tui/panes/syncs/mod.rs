//! Syncs: who waits for them, on which file, how long.

pub mod slow;

use super::{Pane, PaneId};
use crate::export;
use crate::export::table::Table;
use crate::model::column::ColumnSpec;
use crate::model::columns::syncs::{SYNC_COLUMNS, SyncColumn};
use crate::model::syncs::SyncRow;
use crate::model::syncs::list::{self, SyncQuery};
use crate::tui::keymap::KeyContext;
use crate::tui::state::App;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, draw_reason};
use crate::tui::widgets::table;
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::Syncs,
    contexts: &[KeyContext::List, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: |app| sync_lines(app).len(),
};

/// Cells the path keeps at least.
const MIN_PATH_WIDTH: u16 = 16;
/// Waiting for so much of the time is worth a look, per cent.
const CRITICAL_WAIT_PCT: f64 = 25.0;

fn sync_query(app: &App) -> SyncQuery<'_> {
    let s = &app.views.syncs;
    let sort = s.sort_column.and_then(|i| SYNC_COLUMNS.get(i)).map(|c| c.id);
    SyncQuery { sort, reverse: s.reverse, filter: &s.filter }
}

/// The lines shown now.
pub fn sync_lines(app: &App) -> Vec<SyncRow> {
    let syncs = app.shared.snapshot().syncs.ok();
    syncs.map_or_else(Vec::new, |s| list::sync_rows(s, app.shared.system.topology.ok(), &sync_query(app)))
}

/// The columns that fit into that width.
pub fn fitted_columns(app: &App, width: u16) -> (&'static [ColumnSpec<SyncColumn>], table::FittedColumns) {
    (
        SYNC_COLUMNS,
        table::fit_columns(SYNC_COLUMNS, width, MIN_PATH_WIDTH.max(width / 5), app.views.syncs.column_offset, |_| {
            false
        }),
    )
}

/// What is shown only if it contains a text.
fn title_with_filter(app: &App, title: &str) -> String {
    match app.views.syncs.filter.as_str() {
        "" => title.to_owned(),
        filter => format!("{title} · filter \"{}\"", crate::sanitize::sanitize(filter)),
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let inner = draw_frame(buf, area, &title_with_filter(app, "Syncs"), &app.shared.interval_text(), focused, theme);
    if inner.height == 0 {
        return;
    }
    let Some(syncs) = app.shared.snapshot().syncs.ok() else {
        let why = app.shared.snapshot().syncs.unavailable_reason(app.shared.snapshot().time.boot_ns);
        return draw_reason(buf, inner, &why.unwrap_or_default(), theme.warn);
    };
    let lines = sync_lines(app);
    let (set, fitted) = fitted_columns(app, inner.width);
    let sorted = app.views.syncs.sort_column.map(|i| (i, !app.views.syncs.reverse));
    table::draw_header(buf, inner, set, &fitted, sorted, theme);
    let notes = list::notes(syncs);
    let told = (notes.len() as u16).min(inner.height.saturating_sub(2) / 3).max(u16::from(inner.height > 3));
    let body = Rect { y: inner.y + 1, height: inner.height - 1 - told, ..inner };
    for (i, note) in notes.iter().take(usize::from(told)).enumerate() {
        draw_text(buf, inner.x, body.bottom() + i as u16, note, inner.width, theme.dim);
    }
    let mut scroll = app.views.syncs.scroll;
    scroll.scroll_into_view(lines.len(), usize::from(body.height));
    let mut scratch = String::new();
    for (n, (i, line)) in lines.iter().enumerate().skip(scroll.offset).take(usize::from(body.height)).enumerate() {
        let y = body.y + n as u16;
        table::draw_row(buf, body, y, set, &fitted, |c| line.value(c), |c| cell_style(line, c, theme), &mut scratch);
        if focused && i == scroll.selected {
            table::highlight_row(buf, body, y, theme);
        }
    }
    if lines.is_empty() && body.height > 0 {
        let text = if syncs.rows.is_empty() { "nobody has synced yet" } else { "no line matches (Esc)" };
        draw_text(buf, body.x, body.y, text, body.width, theme.dim);
    }
}

fn cell_style(line: &SyncRow, col: SyncColumn, theme: &Theme) -> Style {
    let r = &line.rate;
    match col {
        SyncColumn::Wait if r.wait_pct >= CRITICAL_WAIT_PCT => theme.crit,
        SyncColumn::Errors if r.errors > 0 => theme.crit,
        _ if r.calls_per_s > 0.0 || r.wait_pct > 0.0 => theme.text,
        _ => theme.dim,
    }
}

fn build_table(app: &App) -> Table {
    let title =
        format!("{} on {}, {}", title_with_filter(app, "Syncs"), app.shared.system.host.name, app.shared.timestamp());
    export::syncs::build_table(title, app.shared.snapshot(), app.shared.system.topology.ok(), &sync_query(app))
}
