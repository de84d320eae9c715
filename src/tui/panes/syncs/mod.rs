//! Syncs: who waits for them, on which file, how long.

pub mod slow;

use super::{Pane, PaneId, when};
use crate::export;
use crate::export::table::Table;
use crate::model::column::ColumnSpec;
use crate::model::columns::syncs::{SYNC_COLUMNS, SyncColumn};
use crate::model::syncs::SyncRow;
use crate::model::syncs::list::{self, SyncQuery};
use crate::tui::keys::Context;
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::{frame, reason};
use crate::tui::widgets::put::put;
use crate::tui::widgets::table;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::Syncs,
    contexts: &[Context::List, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: |app| lines(app).len(),
};

/// Cells the path keeps at least.
const PATH: u16 = 16;
/// Waiting for so much of the time is worth a look, per cent.
const MUCH: f64 = 25.0;

fn query(app: &App) -> SyncQuery<'_> {
    let s = &app.ui.syncs;
    let sort = s.sort.and_then(|i| SYNC_COLUMNS.get(i)).map(|c| c.id);
    SyncQuery { sort, reverse: s.reverse, filter: &s.filter }
}

/// The lines shown now.
pub fn lines(app: &App) -> Vec<SyncRow> {
    let syncs = app.snap().syncs.ok();
    syncs.map_or_else(Vec::new, |s| list::sync_rows(s, app.world.topology.ok(), &query(app)))
}

/// The columns that fit into that width.
pub fn fitted(app: &App, width: u16) -> (&'static [ColumnSpec<SyncColumn>], table::Fitted) {
    (SYNC_COLUMNS, table::fit(SYNC_COLUMNS, width, PATH.max(width / 5), app.ui.syncs.shift, |_| false))
}

/// What is shown only if it contains a text.
fn filtered(app: &App, title: &str) -> String {
    match app.ui.syncs.filter.as_str() {
        "" => title.to_owned(),
        filter => format!("{title} · filter \"{}\"", crate::text::sanitize(filter)),
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let inner = frame(buf, area, &filtered(app, "Syncs"), &when(app), focused, theme);
    if inner.height == 0 {
        return;
    }
    let Some(syncs) = app.snap().syncs.ok() else {
        let why = app.snap().syncs.unavailable_reason(app.snap().time.boot_ns);
        return reason(buf, inner, &why.unwrap_or_default(), theme.warn);
    };
    let lines = lines(app);
    let (set, fitted) = fitted(app, inner.width);
    let sorted = app.ui.syncs.sort.map(|i| (i, !app.ui.syncs.reverse));
    table::heads(buf, inner, set, &fitted, sorted, theme);
    let notes = list::notes(syncs);
    let told = (notes.len() as u16).min(inner.height.saturating_sub(2) / 3).max(u16::from(inner.height > 3));
    let body = Rect { y: inner.y + 1, height: inner.height - 1 - told, ..inner };
    for (i, note) in notes.iter().take(usize::from(told)).enumerate() {
        put(buf, inner.x, body.bottom() + i as u16, note, inner.width, theme.dim);
    }
    let mut scroll = app.ui.syncs.scroll;
    scroll.follow(lines.len(), usize::from(body.height));
    let mut scratch = String::new();
    for (n, (i, line)) in
        lines.iter().enumerate().skip(scroll.offset).take(usize::from(body.height)).enumerate()
    {
        let y = body.y + n as u16;
        table::row(buf, body, y, set, &fitted, |c| line.value(c), |c| style(line, c, theme), &mut scratch);
        if focused && i == scroll.selected {
            table::select(buf, body, y, theme);
        }
    }
    if lines.is_empty() && body.height > 0 {
        let text = if syncs.rows.is_empty() { "nobody has synced yet" } else { "no line matches (Esc)" };
        put(buf, body.x, body.y, text, body.width, theme.dim);
    }
}

fn style(line: &SyncRow, col: SyncColumn, theme: &Theme) -> Style {
    let r = &line.rate;
    match col {
        SyncColumn::Wait if r.wait_pct >= MUCH => theme.crit,
        SyncColumn::Errors if r.errors > 0 => theme.crit,
        _ if r.calls_per_s > 0.0 || r.wait_pct > 0.0 => theme.text,
        _ => theme.dim,
    }
}

fn sheet(app: &App) -> Table {
    let title = format!("{} on {}, {}", filtered(app, "Syncs"), app.world.host.name, app.stamp());
    export::syncs::build_table(title, app.snap(), app.world.topology.ok(), &query(app))
}
