//! The findings in a few lines at the foot of the Overview.

use super::super::{Pane, PaneId};
use super::draw_lines;
use crate::export::findings::summarize;
use crate::tui::keys::Context;
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::frame;
use crate::tui::widgets::put::put;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::FindingsStrip,
    contexts: &[Context::Findings],
    render,
    stamp,
    sheet: super::sheet,
    rows: |_| 0,
};

/// Stories shown at most: the view has them all.
const MOST: usize = 4;
/// Rows of the Overview the strip needs to be there when nothing is wrong ...
const CALM: u16 = 30;
/// ... and when something is: the devices fold away after it.
const TROUBLE: u16 = 15;

/// Rows it takes of a body of that height.
pub fn height(body: u16, stories: usize) -> u16 {
    match stories {
        0 if body < CALM => 0,
        _ if body < TROUBLE => 0,
        // Where room is scarce the worst one has to do.
        _ if body < CALM => 3,
        n => n.clamp(1, MOST) as u16 + 2,
    }
}

/// Mostly nothing is wrong, and goes on not to be.
fn stamp(app: &App) -> Option<u64> {
    app.findings.incidents().is_empty().then_some(0)
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let note = format!("{}  8 all", summarize(&app.findings));
    let inner = frame(buf, area, "Findings", &note, focused, theme);
    if app.findings.incidents().is_empty() {
        put(buf, inner.x, inner.y, "nothing wrong found", inner.width, theme.dim);
        return;
    }
    draw_lines(app, theme, inner, buf, 0, None);
}
