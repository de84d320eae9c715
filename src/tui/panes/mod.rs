//! One file per pane, and the list [`PANES`]. Rendering is pure: state in, cells out.

use super::keymap::KeyContext;
use super::state::App;
pub use super::view::PaneId;
use super::widgets::theme::Theme;
use crate::export::table::Table;
use crate::tui::widgets::cell_buffer::CellBuffer;
use ratatui::layout::Rect;

/// A pane: who it is, which keys act in it, how it looks on screen and on paper.
pub struct Pane {
    /// Which.
    pub id: PaneId,
    /// Contexts of its keys, most specific first; `Global` is always behind them.
    pub contexts: &'static [KeyContext],
    /// Draws it.
    pub render: fn(&App, &Theme, Rect, &mut CellBuffer, bool),
    /// For one that hardly ever changes: a number that is another one whenever what it draws in the same place looks
    /// different, so that most frames take it over from the one before. `None`: draw it.
    pub content_hash: fn(&App) -> Option<u64>,
    /// The same as a table to keep.
    pub table: fn(&App) -> Table,
    /// Rows the selection can move among.
    pub row_count: fn(&App) -> usize,
}

/// All panes.
pub const PANES: &[Pane] =
    &[super::views::tune::render::PANE, super::views::tune::knob::PANE, super::views::tune::changes::PANE];

/// The inside of the focused pane.
pub fn focused_pane_inner(app: &App) -> Rect {
    let area = super::layout::compute_layout(app).pane_area(app.focused_pane()).unwrap_or_default();
    area.inner(ratatui::layout::Margin::new(1, 1))
}

/// The content of a pane as a table.
pub fn table(app: &App, id: PaneId) -> Table {
    app.with_view(id, |view, cx| view.table(id, cx)).unwrap_or_else(|| (pane_by_id(id).table)(app))
}

/// Rows the selection of a pane can move among.
pub fn row_count(app: &App, id: PaneId) -> usize {
    app.with_view(id, |view, cx| view.row_count(id, cx)).unwrap_or_else(|| (pane_by_id(id).row_count)(app))
}

/// Key contexts of a pane.
pub fn key_contexts(app: &App, id: PaneId) -> &'static [KeyContext] {
    let spec = app.views.of_pane(id).and_then(|view| view.panes().iter().find(|p| p.id == id));
    spec.map_or_else(|| pane_by_id(id).contexts, |spec| spec.contexts)
}

/// The pane of that name.
pub fn pane_by_id(id: PaneId) -> &'static Pane {
    PANES.iter().find(|p| p.id == id).unwrap_or(&PANES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pane_is_listed_once() {
        for p in PANES {
            assert_eq!(PANES.iter().filter(|other| other.id == p.id).count(), 1, "{:?}", p.id);
            assert_eq!(pane_by_id(p.id).id, p.id);
        }
    }
}
