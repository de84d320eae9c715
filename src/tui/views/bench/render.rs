//! The panes of the Bench view: the list, and the page of the selected row.

use super::{page, plan, running};
use crate::export::table::Table;
use crate::tui::keymap::KeyContext;
use crate::tui::panes::focused_pane_inner;
use crate::tui::panes::{Pane, PaneId};
use crate::tui::state::App;
use crate::tui::views::bench::BenchRow;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::draw_frame;
use crate::tui::widgets::styled_lines::{StyledLine, draw_lines};
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The page beside the list.
pub const PANE: Pane = Pane {
    id: PaneId::BenchPage,
    contexts: &[KeyContext::Bench, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: max_scroll,
};

/// Whether the page shows a run under way.
pub fn is_showing_run(app: &App) -> bool {
    let bench = &app.views.bench;
    bench.opened.is_none() && bench.selected == BenchRow::CurrentRun && bench.active_run().is_some()
}

/// Maximum scroll position of a page of text.
pub fn max_scroll(app: &App) -> usize {
    let inner = match app.focused_pane() {
        PaneId::BenchPage => focused_pane_inner(app),
        _ => return 0,
    };
    if app.views.bench.is_planning() || is_showing_run(app) {
        return 0;
    }
    page::page_lines(app, inner.width).len().saturating_sub(usize::from(inner.height))
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let bench = &app.views.bench;
    if let Some(at) = bench.selected_profile().filter(|_| bench.is_planning()) {
        return plan::render(app, theme, area, buf, focused, at);
    }
    if let Some(run) = bench.active_run().filter(|_| is_showing_run(app)) {
        return running::render(app, theme, area, buf, focused, run);
    }
    let (title, note) = page::page_title(app);
    let inner = draw_frame(buf, area, &title, note, focused, theme);
    draw_page(theme, area, buf, &page::page_lines(app, inner.width), bench.text_offset);
}

/// Draws the text below a form from line `line` on, and the number of lines that follow on the lower edge of `area`.
pub fn draw_text_below_form(
    theme: &Theme,
    area: Rect,
    rest: Rect,
    buf: &mut CellBuffer,
    text: &[StyledLine],
    line: usize,
    focused: bool,
) {
    let below = text.len().saturating_sub(rest.height.into());
    let from = line.min(below);
    draw_lines(theme, rest, buf, text, from);
    if from < below {
        let key = if focused { "↓ scrolls" } else { "e, then z shows them" };
        let more = format!(" {} more lines: {key} ", below - from);
        draw_text(buf, area.x + 2, area.bottom() - 1, &more, area.width.saturating_sub(4), theme.dim);
    }
}

/// Draws a page of text within its frame from line `line` on, as far as there are lines; says how many follow.
pub fn draw_page(theme: &Theme, area: Rect, buf: &mut CellBuffer, lines: &[StyledLine], line: usize) {
    let inner = area.inner(ratatui::layout::Margin::new(1, 1));
    let from = line.min(lines.len().saturating_sub(usize::from(inner.height)));
    draw_lines(theme, inner, buf, lines, from);
    if from + usize::from(inner.height) < lines.len() {
        let more = format!(" {} more lines ", lines.len() - from - usize::from(inner.height));
        draw_text(buf, area.x + 2, area.bottom() - 1, &more, area.width.saturating_sub(4), theme.dim);
    }
}

fn build_table(app: &App) -> Table {
    let bench = &app.views.bench;
    match bench.selected_profile().filter(|_| bench.is_planning()) {
        Some(at) => plan::build_table(app, at),
        None => page::build_table(app),
    }
}
