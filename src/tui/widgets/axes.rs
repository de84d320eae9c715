//! Axes of a graph: values at the left, times below.

use super::text::{draw_clipped, draw_text, draw_text_right};
use super::theme::Theme;
use crate::tui::widgets::cell_buffer::CellBuffer;
use ratatui::layout::Rect;

/// A graph with fewer rows has no axis of times, one with fewer cells in a row no axes.
const MIN_HEIGHT: u16 = 4;
const MIN_WIDTH: u16 = 20;
/// From so many rows of the graph on, half of the scale is labelled too.
const MIN_HEIGHT_WITH_HALF: u16 = 4;
/// Cells from one time to the next.
const TIME_STEP: u16 = 20;

/// What the axes of a graph say.
pub(crate) struct Axes<'a> {
    /// The value at the top; 0 is at the bottom.
    pub top: f64,
    /// A value with its unit.
    pub value: &'a dyn Fn(f64) -> String,
    /// The time of a sample, counted from the right edge; `None`: there is no such sample.
    pub time: &'a dyn Fn(usize) -> Option<String>,
}

/// Draws the axes in as much of `area` as they need, and returns the rest, for the graph.
pub(crate) fn draw_axes(buf: &mut CellBuffer, area: Rect, axes: &Axes<'_>, theme: &Theme) -> Rect {
    if area.width < MIN_WIDTH || area.height < 2 {
        return area;
    }
    let has_times = area.height >= MIN_HEIGHT;
    let rows = area.height - u16::from(has_times);
    let labels = value_labels(axes, rows, has_times);
    let gutter = labels.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0) as u16;
    let plot = Rect { x: area.x + gutter + 1, width: area.width.saturating_sub(gutter + 1), height: rows, ..area };
    for y in plot.y..plot.bottom() {
        draw_clipped(buf, plot.x - 1, y, "│", 1, theme.dim);
    }
    if has_times {
        let per_cell = buf.symbols.samples_per_cell();
        draw_time_axis(buf, Rect { y: plot.bottom(), height: 1, ..plot }, per_cell, axes.time, theme);
    }
    for (row, text) in &labels {
        draw_text_right(buf, area.x, area.y + row, text, gutter, theme.dim);
        draw_clipped(buf, plot.x - 1, area.y + row, if *row == rows { "└" } else { "┤" }, 1, theme.dim);
    }
    plot
}

/// The rows, counted from the top, and the texts of the values: the upper end of a row is its value.
fn value_labels(axes: &Axes<'_>, rows: u16, has_times: bool) -> Vec<(u16, String)> {
    let mut out = vec![(0, (axes.value)(axes.top))];
    if rows >= MIN_HEIGHT_WITH_HALF && rows.is_multiple_of(2) {
        out.push((rows / 2, (axes.value)(axes.top / 2.0)));
    }
    if has_times {
        out.push((rows, "0".into()));
    }
    out
}

/// A value of an axis: `0.025`, `50`, `20000`.
pub(crate) fn axis_number(value: f64) -> String {
    if value >= 1000.0 {
        let mut out = String::new();
        crate::units::write_count(&mut out, value);
        return out;
    }
    let digits = format!("{value:.4}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Draws a line with times in it, each with its end below its sample, the newest at the right. `time` is that of a sample
/// counted from the right edge, as [`Axes::time`].
pub(crate) fn draw_time_axis(
    buf: &mut CellBuffer,
    area: Rect,
    per_cell: usize,
    time: &dyn Fn(usize) -> Option<String>,
    theme: &Theme,
) {
    for x in area.x..area.right() {
        draw_clipped(buf, x, area.y, "─", 1, theme.dim);
    }
    // What was drawn last begins here.
    let mut left = area.right() + 1;
    for back in (0..area.width).step_by(TIME_STEP.into()) {
        let Some(text) = time(usize::from(back) * per_cell) else { break };
        let width = text.chars().count() as u16;
        let end = area.right() - back;
        if end < area.x + width || end + 1 > left {
            continue;
        }
        left = end - width;
        draw_text(buf, left, area.y, &text, width, theme.dim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::widgets::SymbolSet;

    fn lines(width: u16, height: u16, samples: usize, symbols: SymbolSet) -> (Vec<String>, Rect) {
        let mut buf = CellBuffer::new(Rect::new(0, 0, width, height));
        buf.symbols = symbols;
        let value = |n: f64| format!("{n:.0} MB/s");
        let time = |n: usize| (n < samples).then(|| if n == 0 { "now".into() } else { format!("{n}s") });
        let area = buf.area;
        let axes = Axes { top: 200.0, value: &value, time: &time };
        let plot = draw_axes(&mut buf, area, &axes, &Theme::default());
        let drawn = buf.to_buffer();
        let line = |y| (0..width).map(|x| drawn[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        ((0..height).map(line).collect(), plot)
    }

    #[test]
    fn values_are_at_the_left_and_times_below() {
        let (shown, plot) = lines(40, 5, 1000, SymbolSet::Braille);
        let expected = ["200 MB/s┤", "        │", "100 MB/s┤", "        │", "       0└────────40s─────────────────now"];
        assert_eq!(shown, expected);
        assert_eq!(plot, Rect::new(9, 0, 31, 4));
    }

    #[test]
    fn numbers_of_an_axis_are_short() {
        let shown = [0.0, 0.025, 0.5, 1.0, 250.0, 1000.0, 50_000.0].map(axis_number);
        assert_eq!(shown, ["0", "0.025", "0.5", "1", "250", "1000", "50000"]);
    }

    #[test]
    fn a_time_without_a_sample_is_left_out() {
        let (shown, _) = lines(40, 4, 30, SymbolSet::Braille);
        assert_eq!(shown[3], "       0└────────────────────────────now");
        assert_eq!(lines(40, 4, 0, SymbolSet::Braille).0[3], "       0└───────────────────────────────");
        // A cell has one sample.
        assert!(lines(40, 4, 30, SymbolSet::Ascii).0[3].contains("20s"));
    }

    #[test]
    fn little_room_is_left_to_the_graph() {
        let (shown, plot) = lines(40, 3, 1000, SymbolSet::Braille);
        assert_eq!((shown[0].as_str(), shown[2].as_str(), plot.height), ("200 MB/s┤", "        │", 3));
        assert_eq!(lines(19, 9, 1000, SymbolSet::Braille).1, Rect::new(0, 0, 19, 9));
        assert_eq!(lines(40, 1, 1000, SymbolSet::Braille).1, Rect::new(0, 0, 40, 1));
    }
}
