//! Mouse clicks in the Bench view.

use crate::tui::panes::PaneId;
use crate::tui::state::App;
use crate::tui::views::bench as panes;
use crate::tui::views::bench::update::{LIST_PANE, PAGE_PANE, select_row};
use ratatui::layout::Rect;

/// Handles a click inside the list or the page.
pub fn on_click(app: &mut App, id: PaneId, inner: Rect, x: u16, y: u16) {
    if id == PaneId::BenchResults {
        if let Some(row) = panes::list::row_at(app, inner.height, y - inner.y) {
            crate::tui::views::bench::update::focus_pane(app, LIST_PANE);
            select_row(app, row);
        }
        return;
    }
    // Find the line before focusing the page, which changes the layout.
    let line = panes::plan::field_at(app, inner, x, y);
    crate::tui::views::bench::update::focus_pane(app, PAGE_PANE);
    if let Some(at) = line {
        app.views.bench.params_scroll.selected = at;
    }
}
