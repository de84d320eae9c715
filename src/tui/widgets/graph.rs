//! Small graphs of one or more rows in braille or eighths of a block, and bars with marks for thresholds.

use super::symbols::SymbolSet;
use super::text::draw_clipped;
use crate::tui::widgets::cell_buffer::CellBuffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Braille dots of a column of a cell, filled from the bottom, by the number of dots: left, then right.
const DOTS: [[u32; 5]; 2] = [[0, 0x40, 0x44, 0x46, 0x47], [0, 0x80, 0xa0, 0xb0, 0xb8]];

/// Draws `values` (oldest first, `None` for a gap, drawn as `·`) right-aligned, scaled to `max`, each in the style of its
/// value. A value above 0 is at least one step high.
pub fn draw_columns(
    buf: &mut CellBuffer,
    area: Rect,
    values: impl DoubleEndedIterator<Item = Option<f64>>,
    max: f64,
    style: impl Fn(f64) -> Style,
) {
    if area.height == 0 {
        return;
    }
    let is_braille = buf.symbols.samples_per_cell() == 2;
    let steps = u32::from(area.height) * if is_braille { 4 } else { 8 };
    let mut values = values.rev().peekable();
    for x in (area.x..area.right()).rev() {
        if values.peek().is_none() {
            return;
        }
        // From right to left.
        let pair = [values.next().flatten(), if is_braille { values.next().flatten() } else { None }];
        let Some(highest) = pair.into_iter().flatten().reduce(f64::max) else {
            draw_clipped(buf, x, area.bottom() - 1, "·", 1, style(0.0));
            continue;
        };
        let style = style(highest);
        let filled = pair.map(|value| value.map_or(0, |value| filled_steps(value, max, steps)));
        for row in 0..area.height {
            let symbol = match filled.map(|n| n.saturating_sub(u32::from(row) * if is_braille { 4 } else { 8 })) {
                // What lies behind the graph stays where it is empty.
                [0, 0] => break,
                [right, left] if is_braille => {
                    let dots = DOTS[0][left.min(4) as usize] | DOTS[1][right.min(4) as usize];
                    char::from_u32(0x2800 | dots).unwrap_or(' ')
                }
                [only, _] => EIGHTHS[only.min(8) as usize],
            };
            draw_clipped(buf, x, area.bottom() - 1 - row, symbol.encode_utf8(&mut [0; 4]), 1, style);
        }
    }
}

/// Values, oldest first, as a line of text of at most `width` cells, drawn as by [`draw_columns`].
pub(crate) fn columns_text(values: &[f64], max: f64, width: u16, symbols: SymbolSet) -> String {
    let cells = values.len().div_ceil(symbols.samples_per_cell()).min(width.into()) as u16;
    let mut buf = CellBuffer::new(Rect::new(0, 0, cells, 1));
    buf.symbols = symbols;
    draw_columns(&mut buf, Rect::new(0, 0, cells, 1), values.iter().copied().map(Some), max, |_| Style::new());
    let drawn = buf.to_buffer();
    (0..cells).map(|x| drawn[(x, 0)].symbol()).collect()
}

/// Marks samples, counted from the right edge, with a dashed line over the whole height of a graph.
pub(crate) fn draw_sample_markers(buf: &mut CellBuffer, area: Rect, samples: &[usize], style: Style) {
    let per_cell = buf.symbols.samples_per_cell();
    let cells: Vec<usize> = samples.iter().map(|at| at / per_cell).collect();
    draw_column_markers(buf, area, &cells, style);
}

/// Marks columns, counted from the right edge, with a dashed line over their whole height.
pub(crate) fn draw_column_markers(buf: &mut CellBuffer, area: Rect, columns: &[usize], style: Style) {
    for at in columns.iter().filter(|at| **at < usize::from(area.width)) {
        for y in area.y..area.bottom() {
            draw_clipped(buf, area.right() - 1 - *at as u16, y, "┊", 1, style);
        }
    }
}

/// Draws a symbol above samples, counted from the right edge.
pub(crate) fn draw_sample_labels(buf: &mut CellBuffer, area: Rect, samples: &[(usize, &str)], style: Style) {
    let per_cell = buf.symbols.samples_per_cell();
    if area.height > 0 {
        for (at, symbol) in samples.iter().filter(|(at, _)| at / per_cell < usize::from(area.width)) {
            draw_clipped(buf, area.right() - 1 - (at / per_cell) as u16, area.y, symbol, 1, style);
        }
    }
}

fn filled_steps(value: f64, max: f64, steps: u32) -> u32 {
    if value <= 0.0 || max <= 0.0 || !value.is_finite() {
        return 0;
    }
    ((value / max * f64::from(steps)).round() as u32).clamp(1, steps)
}

/// A horizontal bar of `value` against `max`, with a tick at each of `marks`.
pub(crate) fn draw_bar(
    buf: &mut CellBuffer,
    area: Rect,
    value: f64,
    max: f64,
    marks: &[(f64, &str)],
    style: Style,
    dim: Style,
) {
    const EIGHTHS_WIDE: [&str; 9] = [" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];
    let filled = filled_steps(value, max, u32::from(area.width) * 8);
    for i in 0..area.width {
        let cell = filled.saturating_sub(u32::from(i) * 8).min(8);
        draw_clipped(buf, area.x + i, area.y, EIGHTHS_WIDE[cell as usize], 1, style);
    }
    for (at, symbol) in marks {
        if max > 0.0 && *at <= max && area.width > 0 {
            let x = area.x + ((at / max * f64::from(area.width)) as u16).min(area.width - 1);
            draw_clipped(buf, x, area.y, symbol, 1, dim);
        }
    }
}

/// Rounds the maximum of a scale up to a round number, so that the scale rarely changes and most of a graph is used.
pub(crate) fn round_up_scale(max: f64) -> f64 {
    if max <= 0.0 || !max.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(max.log10().floor());
    [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|m| m * power).into_iter().find(|n| *n >= max).unwrap_or(max)
}

/// The same for a number of bytes: a round number of KiB, MiB or whatever unit it is shown in.
pub(crate) fn round_up_bytes(max: f64) -> f64 {
    let mut unit = 1.0;
    while max.is_finite() && max >= unit * 1024.0 {
        unit *= 1024.0;
    }
    round_up_scale(max / unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::widgets::SymbolSet;
    use ratatui::buffer::Buffer;

    fn canvas(width: u16, height: u16, symbols: SymbolSet) -> (CellBuffer, Rect) {
        let area = Rect::new(0, 0, width, height);
        let mut buf = CellBuffer::new(area);
        buf.symbols = symbols;
        (buf, area)
    }

    fn plain(_: f64) -> Style {
        Style::new()
    }

    #[test]
    fn braille_shows_two_samples_in_a_cell() {
        let (mut buf, area) = canvas(3, 2, SymbolSet::Braille);
        let values = [None, None, Some(8.0), Some(4.0), Some(0.01), Some(5.0)];
        draw_columns(&mut buf, area, values.into_iter(), 8.0, plain);
        assert_eq!(buf.to_buffer(), Buffer::with_lines([" ⡇⢀", "·⣿⣸"]));
    }

    #[test]
    fn each_value_has_its_own_style() {
        use ratatui::style::Color;
        let (mut buf, area) = canvas(2, 1, SymbolSet::Blocks);
        let by_level = |value| Style::new().fg(if value > 70.0 { Color::Red } else { Color::Green });
        draw_columns(&mut buf, area, [Some(10.0), Some(90.0)].into_iter(), 100.0, by_level);
        let shown = buf.to_buffer();
        assert_eq!([shown[(0, 0)].fg, shown[(1, 0)].fg], [Color::Green, Color::Red]);
    }

    #[test]
    fn ascii_graphs_and_bars_have_only_ascii() {
        let (mut buf, area) = canvas(4, 2, SymbolSet::Ascii);
        draw_columns(&mut buf, area, [Some(8.0), None, Some(2.0), Some(6.5)].into_iter(), 8.0, plain);
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["#  :", "#.:#"]));
        let (mut buf, area) = canvas(8, 1, SymbolSet::Ascii);
        draw_bar(&mut buf, area, 3.5, 8.0, &[(6.0, "┊")], Style::new(), Style::new());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["###=  | "]));
    }

    #[test]
    fn newest_value_is_rightmost_and_gaps_are_marked() {
        let (mut buf, area) = canvas(4, 1, SymbolSet::Blocks);
        draw_columns(&mut buf, area, [Some(8.0), None, Some(0.01), Some(4.0)].into_iter(), 8.0, plain);
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["█·▁▄"]));
    }

    #[test]
    fn two_rows_give_sixteen_steps() {
        let (mut buf, area) = canvas(2, 2, SymbolSet::Blocks);
        draw_columns(&mut buf, area, [Some(16.0), Some(9.0)].into_iter(), 16.0, plain);
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["█▁", "██"]));
    }

    #[test]
    fn marked_columns_show_whatever_the_value() {
        let (mut buf, area) = canvas(4, 2, SymbolSet::Blocks);
        draw_columns(&mut buf, area, [8.0; 4].map(Some).into_iter(), 8.0, plain);
        draw_column_markers(&mut buf, area, &[1, 3, 4, 900], Style::new());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["┊█┊█", "┊█┊█"]));
    }

    #[test]
    fn labels_are_drawn_above_their_samples() {
        let (mut buf, area) = canvas(3, 2, SymbolSet::Blocks);
        draw_columns(&mut buf, area, [8.0; 3].map(Some).into_iter(), 8.0, plain);
        draw_sample_labels(&mut buf, area, &[(0, "t"), (2, "r"), (3, "t")], Style::new());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["r█t", "███"]));
    }

    #[test]
    fn bar_draws_threshold_ticks() {
        let (mut buf, area) = canvas(8, 1, SymbolSet::Blocks);
        draw_bar(&mut buf, area, 4.0, 8.0, &[(6.0, "┊")], Style::new(), Style::new());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["████  ┊ "]));
    }

    #[test]
    fn scale_tops_of_bytes_are_round_in_their_unit() {
        let (kib, mib) = (1024.0, 1_048_576.0);
        assert_eq!([0.0, 700.0, 3.0 * kib, 180.0 * mib].map(round_up_bytes), [1.0, 800.0, 3.0 * kib, 200.0 * mib]);
    }

    #[test]
    fn scale_tops_are_round_numbers() {
        assert_eq!(
            (round_up_scale(0.0), round_up_scale(2.1), round_up_scale(100.0), round_up_scale(51.0)),
            (1.0, 3.0, 100.0, 60.0)
        );
    }
}
