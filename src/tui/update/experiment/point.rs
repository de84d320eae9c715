//! Clicks into the list and the form.

use super::{LIST, PAGE, focus, select};
use crate::tui::panes::{PaneId, experiment as panes};
use crate::tui::state::App;
use ratatui::layout::Rect;

/// A click inside the list or the page.
pub fn click(app: &mut App, id: PaneId, inner: Rect, x: u16, y: u16) {
    if id == PaneId::ExperimentList {
        if let Some(row) = panes::list::row_at(app, inner.height, y - inner.y) {
            focus(app, LIST);
            select(app, row);
        }
        return;
    }
    // Before the keys go there: then the form gets more room, and stands elsewhere.
    let line = panes::form::field_at(app, inner, x, y);
    focus(app, PAGE);
    if let Some(at) = line {
        app.ui.experiment.lines.selected = at;
    }
}
