//! Tables: column widths, header, rows, selection.

use super::text::{draw_clipped, draw_path, draw_text, draw_text_right, patch_style};
use super::theme::Theme;
use crate::model::column::{Align, CellValue, ColumnSpec, Emphasis};
use crate::tui::widgets::cell_buffer::CellBuffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Selection and scroll position of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Scroll {
    /// First row shown.
    pub offset: usize,
    /// The selected row, counted from the first.
    pub selected: usize,
}

impl Scroll {
    /// Moves the selection by `by` rows among `len`.
    pub fn move_selection(&mut self, by: isize, len: usize) {
        self.selected = self.selected.saturating_add_signed(by).min(len.saturating_sub(1));
    }

    /// Adjusts the offset so that the selection is visible in `height` rows.
    pub fn scroll_into_view(&mut self, len: usize, height: usize) {
        self.selected = self.selected.min(len.saturating_sub(1));
        self.offset = self.offset.min(len.saturating_sub(height)).min(self.selected);
        if height > 0 && self.selected >= self.offset + height {
            self.offset = self.selected + 1 - height;
        }
    }

    /// The rows on screen in `body`, each with its `y` and whether it is selected.
    pub fn visible<'r, T>(&self, rows: &'r [T], body: Rect) -> impl Iterator<Item = (&'r T, u16, bool)> + use<'r, T> {
        let mut scroll = *self;
        scroll.scroll_into_view(rows.len(), usize::from(body.height));
        let shown = rows.iter().enumerate().skip(scroll.offset).zip(body.top()..body.bottom());
        shown.map(move |((i, row), y)| (row, y, i == scroll.selected))
    }

    /// Selects the row `n` of those on screen, if there is one.
    pub fn select(&mut self, n: usize, len: usize) {
        if self.offset + n < len {
            self.selected = self.offset + n;
        }
    }

    /// Selects the row at `y` of a table of `len` rows whose header is the first line of `inner`.
    pub fn click(&mut self, len: usize, inner: Rect, y: u16) {
        let mut scroll = *self;
        scroll.scroll_into_view(len, usize::from(inner.height.saturating_sub(1)));
        let row = scroll.offset + usize::from(y.saturating_sub(inner.y + 1));
        if row < len {
            self.selected = row;
        }
    }
}

/// Which column a list is sorted by, and how far its columns are scrolled.
#[derive(Debug, Clone, Default)]
pub struct ColumnState {
    /// Index of the sort column in the widest column set, largest first; `None`: the default order.
    pub sorted: Option<usize>,
    pub reverse: bool,
    /// Number of columns scrolled past after the first.
    pub offset: usize,
}

impl ColumnState {
    /// Moves the sort column among so many columns; before the first one comes the default order.
    pub fn move_sorted(&mut self, by: isize, columns: usize) {
        let position = (self.sorted.map_or(0, |i| i as isize + 1) + by).rem_euclid(columns as isize + 1);
        self.sort_by((position as usize).checked_sub(1));
    }

    /// Sorts by a column, in the direction that is most useful for it.
    pub fn sort_by(&mut self, column: Option<usize>) {
        self.reverse &= self.sorted == column;
        self.sorted = column;
    }

    /// The sort column, and whether its largest value comes first, for the mark in the header.
    pub(crate) fn mark<C, V>(&self, columns: &[ColumnSpec<C, V>]) -> Option<(usize, bool)> {
        let at = self.sorted?;
        Some((at, columns.get(at)?.ascending == self.reverse))
    }

    /// Whether a column must stay: the list is sorted by it.
    pub(crate) fn priority(&self, column: usize) -> Priority {
        Priority::kept_if(self.sorted == Some(column))
    }

    /// Scrolls so many columns.
    pub fn scroll(&mut self, by: isize, columns: usize) {
        self.offset = self.offset.saturating_add_signed(by).min(columns.saturating_sub(3));
    }

    /// Sorts by a clicked column; a second click reverses the order.
    pub fn click(&mut self, column: Option<usize>) {
        if self.sorted == column { self.reverse = !self.reverse } else { self.sort_by(column) }
    }
}

/// A search among the rows of a list.
pub struct RowSearch {
    /// A lower-case text.
    pub needle: String,
    /// Where it begins: 1 after the selected row, -1 before it, 0 at it.
    pub step: isize,
}

impl RowSearch {
    pub(crate) fn matches(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.needle)
    }

    /// Selects the first row that matches, around the end if need be; `rows`: whether each row does.
    pub(crate) fn select(&self, rows: impl Iterator<Item = bool>, selected: &mut usize) -> bool {
        let rows: Vec<bool> = rows.collect();
        let (n, from) = (rows.len() as isize, *selected as isize + self.step);
        let order = (0..n).map(|i| (from + if self.step < 0 { -i } else { i }).rem_euclid(n) as usize);
        let found = order.into_iter().find(|i| rows[*i]);
        *selected = found.unwrap_or(*selected);
        found.is_some()
    }
}

/// Stands for 0 in a table, so that what is not 0 stands out.
const ZERO: char = '·';

/// Columns with their positions and widths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedColumns {
    /// Index into the column list, x within the area, width.
    pub columns: Vec<(usize, u16, u16)>,
}

/// How long a column stays when room gets short; of equals the last one goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// Not shown at all.
    Hidden,
    /// Dropped in this order, lowest first.
    Rank(u8),
    /// Never dropped.
    Kept,
}

impl Priority {
    pub(crate) fn kept_if(is_kept: bool) -> Self {
        if is_kept { Priority::Kept } else { Priority::Rank(0) }
    }
}

/// Fits columns into a width. The column of width 0 takes the rest; if that is less than `least`, columns are dropped by
/// their priority, except the flexible one.
pub(crate) fn fit_columns<C, V>(
    columns: &[ColumnSpec<C, V>],
    width: u16,
    least: u16,
    skip: usize,
    priority: impl Fn(usize) -> Priority,
) -> FittedColumns {
    let passed = |i: usize| i > 0 && i <= skip && columns[i].width > 0;
    let mut used: Vec<usize> = (0..columns.len()).filter(|i| !passed(*i) && priority(*i) != Priority::Hidden).collect();
    let fixed =
        |used: &[usize]| -> u16 { used.iter().filter(|i| columns[**i].width > 0).map(|i| columns[*i].width + 1).sum() };
    while fixed(&used) + least > width {
        let may_go = |i: usize| columns[i].width > 0 && (skip > 0 || priority(i) != Priority::Kept);
        let rank = |i: usize| (if skip > 0 { Priority::Rank(0) } else { priority(i) }, std::cmp::Reverse(i));
        let Some(least_important) = used.iter().copied().filter(|i| may_go(*i)).min_by_key(|i| rank(*i)) else {
            break;
        };
        used.retain(|i| *i != least_important);
    }
    let flex = width.saturating_sub(fixed(&used));
    let (mut x, mut fitted) = (0, Vec::with_capacity(used.len()));
    for i in used {
        let width = if columns[i].width > 0 { columns[i].width } else { flex };
        fitted.push((i, x, width));
        x += width + 1;
    }
    FittedColumns { columns: fitted }
}

impl FittedColumns {
    /// Widens a column to `width` cells at most, from what the last one has above `least`.
    pub(crate) fn widen(&mut self, column: usize, width: u16, least: u16) {
        let spare = self.columns.last().map_or(0, |(.., last)| last.saturating_sub(least));
        let Some(at) = self.columns.iter().position(|(i, ..)| *i == column) else { return };
        let by = spare.min(width.saturating_sub(self.columns[at].2));
        if at + 1 == self.columns.len() || by == 0 {
            return;
        }
        self.columns[at].2 += by;
        self.columns[at + 1..].iter_mut().for_each(|(_, x, _)| *x += by);
        if let Some((.., last)) = self.columns.last_mut() {
            *last -= by;
        }
    }

    /// The column under `x` (relative to the table's area).
    pub fn column_at(&self, x: u16) -> Option<usize> {
        self.columns.iter().find(|(_, at, w)| x >= *at && x <= at + w).map(|c| c.0)
    }
}

/// Draws the header; the sort column has an arrow.
pub(crate) fn draw_header<C, V>(
    buf: &mut CellBuffer,
    area: Rect,
    columns: &[ColumnSpec<C, V>],
    fitted: &FittedColumns,
    sorted: Option<(usize, bool)>,
    theme: &Theme,
) {
    let mut text = String::new();
    for (i, x, w) in &fitted.columns {
        let column = &columns[*i];
        text.clear();
        let style = match sorted {
            Some((at, descending)) if at == *i => {
                text.push_str(if descending { "▾" } else { "▴" });
                theme.header_sorted
            }
            _ => theme.header,
        };
        text.push_str(column.header);
        let x = area.x + x;
        match column.align {
            Align::Left | Align::Path => _ = draw_clipped(buf, x, area.y, &text, *w, style),
            Align::Right => {
                // A heading wider than its column may use the gap before it.
                let lean = u16::from(x > area.x);
                draw_text_right(buf, x - lean, area.y, &text, w + lean, style);
            }
        }
    }
}

pub(crate) fn cell_style<C: Copy, V: Copy>(
    column: &ColumnSpec<C, V>,
    cell: &CellValue<'_>,
    normal: Style,
    theme: &Theme,
) -> Style {
    match column.emphasis(cell) {
        Emphasis::Critical => theme.crit,
        Emphasis::Warning => theme.warn,
        Emphasis::Good => Style { fg: theme.good.fg, ..normal },
        Emphasis::Normal => normal,
    }
}

/// Draws a row; `scratch` is a reused buffer.
#[allow(clippy::too_many_arguments)]
pub(crate) fn draw_row<'v, C, V: Copy>(
    buf: &mut CellBuffer,
    area: Rect,
    y: u16,
    columns: &[ColumnSpec<C, V>],
    fitted: &FittedColumns,
    value: impl Fn(&ColumnSpec<C, V>) -> CellValue<'v>,
    style: impl Fn(&ColumnSpec<C, V>, &CellValue<'v>) -> Style,
    scratch: &mut String,
) {
    for (i, x, w) in &fitted.columns {
        let column = &columns[*i];
        let x = area.x + x;
        let cell = value(column);
        let style = style(column, &cell);
        if let CellValue::Text(text) = cell
            && column.align != Align::Right
        {
            let draw = if column.align == Align::Path { draw_path } else { draw_text };
            draw(buf, x, y, text, *w, style);
            continue;
        }
        scratch.clear();
        match cell.is_zero() {
            true => scratch.push(ZERO),
            false => cell.write(scratch),
        }
        match column.align {
            Align::Left | Align::Path => _ = draw_text(buf, x, y, scratch, *w, style),
            Align::Right => draw_text_right(buf, x, y, scratch, *w, style),
        }
    }
}

/// Highlights a row over its whole width.
pub(crate) fn highlight_row(buf: &mut CellBuffer, area: Rect, y: u16, theme: &Theme) {
    // One style for the whole row: reversed dim cells would look like holes.
    patch_style(buf, area.x, y, area.width, Style::reset().patch(theme.selected));
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[ColumnSpec<u8, ()>] = &[
        ColumnSpec::left(0, "Name", 0, (), ""),
        ColumnSpec::right(1, "tps", 5, (), ""),
        ColumnSpec::right(2, "util", 5, (), ""),
    ];

    #[test]
    fn columns_are_dropped_by_priority_from_the_end() {
        assert_eq!(
            fit_columns(COLUMNS, 30, 6, 0, |_| Priority::Rank(0)).columns,
            vec![(0, 0, 18), (1, 19, 5), (2, 25, 5)]
        );
        assert_eq!(fit_columns(COLUMNS, 14, 6, 0, |_| Priority::Rank(0)).columns, vec![(0, 0, 8), (1, 9, 5)]);
        assert_eq!(fit_columns(COLUMNS, 14, 6, 0, |i| Priority::kept_if(i == 2)).columns, vec![(0, 0, 8), (2, 9, 5)]);
        let first_goes = |i: usize| if i == 1 { Priority::Rank(0) } else { Priority::Rank(9) };
        assert_eq!(fit_columns(COLUMNS, 14, 6, 0, first_goes).columns, vec![(0, 0, 8), (2, 9, 5)]);
        let hidden = |i: usize| if i == 1 { Priority::Hidden } else { Priority::Rank(0) };
        assert_eq!(fit_columns(COLUMNS, 30, 6, 0, hidden).columns, vec![(0, 0, 24), (2, 25, 5)]);
        assert_eq!(fit_columns(COLUMNS, 3, 6, 0, |_| Priority::Rank(0)).columns, vec![(0, 0, 3)]);
        assert_eq!(fit_columns(COLUMNS, 14, 6, 1, |i| Priority::kept_if(i == 1)).columns, vec![(0, 0, 8), (2, 9, 5)]);
    }

    #[test]
    fn a_column_grows_only_by_what_the_last_one_can_spare() {
        let columns = || FittedColumns { columns: vec![(0, 0, 4), (1, 5, 6), (2, 12, 20)] };
        let widened = |column, width, least| {
            let mut fitted = columns();
            fitted.widen(column, width, least);
            fitted.columns
        };
        assert_eq!(widened(1, 10, 15), vec![(0, 0, 4), (1, 5, 10), (2, 16, 16)]);
        assert_eq!(widened(1, 30, 15), vec![(0, 0, 4), (1, 5, 11), (2, 17, 15)]);
        assert_eq!(widened(1, 10, 20), columns().columns);
        assert_eq!(widened(2, 30, 0), columns().columns);
    }

    #[test]
    fn column_at_finds_the_clicked_column() {
        let f = fit_columns(COLUMNS, 30, 6, 0, |_| Priority::Rank(0));
        assert_eq!((f.column_at(0), f.column_at(20), f.column_at(99)), (Some(0), Some(1), None));
    }

    #[test]
    fn selection_is_scrolled_into_view() {
        let mut s = Scroll::default();
        s.move_selection(30, 100);
        s.scroll_into_view(100, 10);
        assert_eq!(s, Scroll { offset: 21, selected: 30 });
        s.move_selection(-25, 100);
        s.scroll_into_view(100, 10);
        assert_eq!(s, Scroll { offset: 5, selected: 5 });
        s.scroll_into_view(3, 10);
        assert_eq!(s, Scroll { offset: 0, selected: 2 });
    }

    #[test]
    fn header_and_rows_are_aligned() {
        let mut buf = CellBuffer::new(Rect::new(0, 0, 20, 2));
        let (area, theme) = (buf.area, Theme::default());
        let f = fit_columns(COLUMNS, 20, 6, 0, |_| Priority::Rank(0));
        draw_header(&mut buf, area, COLUMNS, &f, Some((1, true)), &theme);
        let value = |c: &ColumnSpec<u8, ()>| if c.id == 0 { CellValue::Text("sda") } else { CellValue::Fixed(1.25, 1) };
        draw_row(&mut buf, area, 1, COLUMNS, &f, value, |_, _| Style::new(), &mut String::new());
        let seen = buf.to_buffer();
        let text: Vec<String> = (0..2).map(|y| (0..20).map(|x| seen[(x, y)].symbol().to_string()).collect()).collect();
        assert_eq!(text, ["Name      ▾tps  util", "sda        1.2   1.2"]);
    }
}
