//! Detail pages: lines of text that scroll.

use crate::export::table::Table;
use crate::tui::view::Context;
use crate::tui::widgets::{CellBuffer, Rect, draw_column};

/// The text of a detail page: its lines, `true` for an emphasised one.
#[derive(Debug, Default)]
pub(super) struct DetailText(pub(super) Vec<(String, bool)>);

impl DetailText {
    pub(super) fn line(&mut self, text: impl Into<String>) {
        self.0.push((text.into(), false));
    }

    pub(super) fn strong(&mut self, text: impl Into<String>) {
        self.0.push((text.into(), true));
    }

    /// A blank line and a heading.
    pub(super) fn section(&mut self, heading: impl Into<String>) {
        self.line("");
        self.strong(heading);
    }

    pub(super) fn fact(&mut self, name: &str, value: impl std::fmt::Display) {
        self.line(format!("{name:<12} {value}"));
    }
}

/// Number of positions that a page of `lines` lines can be scrolled to; at the last one its end is visible.
pub(super) fn scroll_positions(lines: usize, height: u16) -> usize {
    lines.saturating_sub(usize::from(height)) + 1
}

/// Draws the lines of the open detail page from its scroll position on; `true` marks an emphasised line.
pub(super) fn draw_detail_lines(cx: &Context, area: Rect, buf: &mut CellBuffer, lines: &[(String, bool)]) {
    let last = lines.len().saturating_sub(usize::from(area.height));
    let skip = cx.screen.detail_scroll.selected.min(last);
    let style = |strong| if strong { cx.theme.title } else { cx.theme.text };
    draw_column(buf, area, lines.iter().skip(skip).map(|(line, strong)| (line, style(*strong))));
}

/// The page as a table with one column; `subject` is its title.
pub(super) fn detail_table(subject: &str, cx: &Context, lines: Vec<(String, bool)>) -> Table {
    let mut table = Table::new(cx.shared.table_title(subject), &[("", false)]);
    table.rows.extend(lines.into_iter().map(|line| vec![line.0]));
    table
}
