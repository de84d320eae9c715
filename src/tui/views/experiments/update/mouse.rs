//! Mouse clicks in the list and the form.

use crate::tui::panes::PaneId;
use crate::tui::state::App;
use crate::tui::views::experiments as panes;
use crate::tui::views::experiments::update::{LIST_PANE, PAGE_PANE, focus_pane, select_row};
use ratatui::layout::Rect;

/// Handles a click inside the list or the page.
pub fn on_click(app: &mut App, id: PaneId, inner: Rect, x: u16, y: u16) {
    if id == PaneId::ExperimentList {
        if let Some(row) = panes::list::row_at(app, inner.height, y - inner.y) {
            focus_pane(app, LIST_PANE);
            select_row(app, row);
        }
        return;
    }
    // Find the line before focusing the page, which changes the layout.
    let line = panes::form_page::field_at(app, inner, x, y);
    focus_pane(app, PAGE_PANE);
    if let Some(at) = line {
        app.views.experiments.form_scroll.selected = at;
    }
}
