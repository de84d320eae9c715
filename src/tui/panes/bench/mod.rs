//! The panes of the Bench view: the list, and the page of the selected row.

pub mod form_layout;
pub mod list;
pub mod page;
pub mod plan;
pub mod running;

use super::focused_pane_inner;
use super::{Pane, PaneId};
use crate::export::table::Table;
use crate::tui::bench::BenchRow;
use crate::tui::keymap::KeyContext;
use crate::tui::state::App;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::draw_frame;
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The page beside the list.
pub const PANE: Pane = Pane {
    id: PaneId::BenchPage,
    contexts: &[KeyContext::Bench, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: max_scroll,
};

/// Style of a line of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    /// Plain text.
    Plain,
    /// Less important.
    Dim,
    /// A heading.
    Strong,
    /// A warning about the measurements.
    Warn,
    /// Why something cannot be done.
    Crit,
}

impl TextStyle {
    fn style(self, theme: &Theme) -> Style {
        match self {
            TextStyle::Plain => theme.text,
            TextStyle::Dim => theme.dim,
            TextStyle::Strong => theme.title,
            TextStyle::Warn => theme.warn,
            TextStyle::Crit => theme.crit,
        }
    }
}

/// A line of text with its style.
pub type StyledLine = (String, TextStyle);

/// Wraps lines at blanks to `width`; continuation lines are indented by two more cells.
pub fn wrap_lines(lines: Vec<StyledLine>, width: usize) -> Vec<StyledLine> {
    let width = width.max(12);
    let mut out = Vec::with_capacity(lines.len());
    for (line, tone) in lines {
        let cells = |s: &str| unicode_width::UnicodeWidthStr::width(s);
        if cells(&line) <= width {
            out.push((line, tone));
            continue;
        }
        let indent = (line.len() - line.trim_start().len() + 2).min(width / 2);
        let mut rest = line.as_str();
        let mut pad = 0;
        while !rest.is_empty() {
            let (head, _) = crate::sanitize::fit_width(rest, width - pad);
            let mut cut = head.len();
            if cut < rest.len()
                && let Some(at) = head.rfind(' ').filter(|at| *at > cut / 2)
            {
                cut = at;
            }
            cut = cut.max(rest.chars().next().map_or(1, char::len_utf8));
            out.push((format!("{}{}", " ".repeat(pad), &rest[..cut]), tone));
            rest = rest[cut..].trim_start();
            pad = indent;
        }
    }
    out
}

/// Draws the lines from index `from` on.
pub fn draw_lines(theme: &Theme, area: Rect, buf: &mut CellBuffer, lines: &[StyledLine], from: usize) {
    for (i, (line, tone)) in lines.iter().skip(from).take(usize::from(area.height)).enumerate() {
        draw_text(buf, area.x, area.y + i as u16, line, area.width, tone.style(theme));
    }
}

/// Whether the page shows a run under way.
fn is_showing_run(app: &App) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_wrap_with_their_indent() {
        let fold = |text: &str, width| -> Vec<String> {
            wrap_lines(vec![(text.into(), TextStyle::Plain)], width).into_iter().map(|l| l.0).collect()
        };
        assert_eq!(fold("  one two three four", 12), ["  one two", "    three", "    four"]);
        assert_eq!(fold("abcdefghijklmnopqrst", 12), ["abcdefghijkl", "  mnopqrst"]);
        assert_eq!(fold("a  b   c", 20), ["a  b   c"]);
        assert_eq!(fold("", 20), [""]);
        for width in 0..40 {
            fold("写作程序 写作程序写作程序写作程序 x 写作", width);
        }
    }
}
