//! Slow syncs: those under way, so that one that hangs is seen while it hangs, then the newest that are over.

use super::super::{Pane, PaneId};
use super::filtered;
use crate::export;
use crate::export::table::Table;
use crate::model::columns::syncs::{SLOW_SYNC_COLUMNS, SlowSyncColumn};
use crate::model::syncs::SlowSyncRow;
use crate::model::syncs::list;
use crate::tui::keys::Context;
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::frame;
use crate::tui::widgets::put::put;
use crate::tui::widgets::table;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::SlowSyncs,
    contexts: &[Context::List, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: |app| lines(app).len(),
};

/// Cells the path keeps at least.
const PATH: u16 = 14;

/// The lines shown now.
pub fn lines(app: &App) -> Vec<SlowSyncRow> {
    let syncs = app.snap().syncs.ok();
    syncs.map_or_else(Vec::new, |s| list::slow_sync_rows(s, app.world.topology.ok(), &app.ui.syncs.filter))
}

fn title(app: &App) -> String {
    filtered(app, &format!("Slow syncs, from {} ms", app.ui.syncs.threshold_ms))
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let syncs = app.snap().syncs.ok();
    let flying = syncs.map_or(0, |s| s.in_flight.len());
    let note = if flying > 0 { format!("{flying} under way") } else { String::new() };
    let inner = frame(buf, area, &title(app), &note, focused, theme);
    if inner.height == 0 || syncs.is_none() {
        return;
    }
    let lines = lines(app);
    // What it waited on is worth more than errno, which goes first.
    let keep = |i: usize| SLOW_SYNC_COLUMNS[i].id == SlowSyncColumn::WaitedOn;
    let fitted = table::fit(SLOW_SYNC_COLUMNS, inner.width, PATH, 0, keep);
    table::heads(buf, inner, SLOW_SYNC_COLUMNS, &fitted, None, theme);
    let body = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
    let mut scroll = app.ui.syncs.slow;
    scroll.follow(lines.len(), usize::from(body.height));
    let mut scratch = String::new();
    for (n, (i, line)) in
        lines.iter().enumerate().skip(scroll.offset).take(usize::from(body.height)).enumerate()
    {
        let y = body.y + n as u16;
        let ended = app.clock_text(app.snap().time.wall_ns_at(line.started_ns + line.duration_ns));
        let value = |c| line.value(c, &ended);
        table::row(buf, body, y, SLOW_SYNC_COLUMNS, &fitted, value, |c| style(line, c, theme), &mut scratch);
        if focused && i == scroll.selected {
            table::select(buf, body, y, theme);
        }
    }
    if lines.is_empty() {
        put(buf, body.x, body.y, "none", body.width, theme.dim);
    }
}

fn style(line: &SlowSyncRow, col: SlowSyncColumn, theme: &Theme) -> Style {
    match col {
        SlowSyncColumn::EndedAt | SlowSyncColumn::Duration if line.is_in_flight => theme.crit,
        SlowSyncColumn::Error if line.error > 0 => theme.crit,
        _ => theme.text,
    }
}

fn sheet(app: &App) -> Table {
    let title = format!("Slow syncs on {}, {}", app.world.host.name, app.stamp());
    let there = export::syncs::build_slow_table(&title, app.snap(), app.world.topology.ok(), &app.ui.syncs.filter);
    there.unwrap_or_else(|| {
        let mut none = Table::new(title, &[]);
        none.notes.extend(app.snap().syncs.unavailable_reason(app.snap().time.boot_ns));
        none
    })
}
