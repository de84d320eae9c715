//! The Bench view on screen.

use super::{Pane, PaneId};
use crate::export::sheet::Sheet;
use crate::tui::keys::Context;
use crate::tui::state::App;
use crate::tui::widgets::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::Bench,
    contexts: &[Context::Bench, Context::Scroll, Context::List],
    render,
    sheet,
    rows,
};

fn render(_app: &App, _theme: &Theme, _area: Rect, _buf: &mut Buffer, _focused: bool) {}

fn sheet(_app: &App) -> Sheet {
    Sheet::default()
}

fn rows(_app: &App) -> usize {
    0
}
