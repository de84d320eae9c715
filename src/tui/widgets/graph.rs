//! Small graphs of one or more rows in eighths of a block, and bars with marks for thresholds.

use super::text::draw_clipped;
use crate::tui::widgets::cell_buffer::CellBuffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws `values` (oldest first, `None` for a gap, drawn as `·`) right-aligned, scaled to `max`. A value above 0 is at
/// least one step high.
pub fn draw_columns(
    buf: &mut CellBuffer,
    area: Rect,
    values: impl DoubleEndedIterator<Item = Option<f64>>,
    max: f64,
    style: Style,
) {
    let steps = u32::from(area.height) * 8;
    for (i, value) in values.rev().take(usize::from(area.width)).enumerate() {
        let x = area.right() - 1 - i as u16;
        let Some(value) = value else {
            draw_clipped(buf, x, area.bottom() - 1, "·", 1, style);
            continue;
        };
        let filled = filled_steps(value, max, steps);
        for row in 0..area.height {
            let cell = filled.saturating_sub(u32::from(row) * 8).min(8);
            // What lies behind the graph stays where it is empty.
            if cell > 0 {
                draw_clipped(buf, x, area.bottom() - 1 - row, EIGHTHS[cell as usize], 1, style);
            }
        }
    }
}

/// Marks columns, counted from the right edge, with a dashed line over their whole height.
pub(crate) fn draw_column_markers(buf: &mut CellBuffer, area: Rect, columns: &[usize], style: Style) {
    for at in columns.iter().filter(|at| **at < usize::from(area.width)) {
        for y in area.y..area.bottom() {
            draw_clipped(buf, area.right() - 1 - *at as u16, y, "┊", 1, style);
        }
    }
}

/// Draws a symbol at the top of columns, counted from the right edge.
pub(crate) fn draw_column_labels(buf: &mut CellBuffer, area: Rect, columns: &[(usize, &str)], style: Style) {
    if area.height > 0 {
        for (at, symbol) in columns.iter().filter(|(at, _)| *at < usize::from(area.width)) {
            draw_clipped(buf, area.right() - 1 - *at as u16, area.y, symbol, 1, style);
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

/// Rounds the maximum of a scale up to 1, 2 or 5 times a power of ten, so that the scale rarely changes.
pub(crate) fn round_up_scale(max: f64) -> f64 {
    if max <= 0.0 || !max.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(max.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|n| *n >= max).unwrap_or(max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::buffer::Buffer;

    #[test]
    fn newest_value_is_rightmost_and_gaps_are_marked() {
        let mut buf = CellBuffer::new(Rect::new(0, 0, 4, 1));
        let area = buf.area;
        draw_columns(&mut buf, area, [Some(8.0), None, Some(0.01), Some(4.0)].into_iter(), 8.0, Style::new());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["█·▁▄"]));
    }

    #[test]
    fn two_rows_give_sixteen_steps() {
        let mut buf = CellBuffer::new(Rect::new(0, 0, 2, 2));
        let area = buf.area;
        draw_columns(&mut buf, area, [Some(16.0), Some(9.0)].into_iter(), 16.0, Style::new());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["█▁", "██"]));
    }

    #[test]
    fn marked_columns_show_whatever_the_value() {
        let mut buf = CellBuffer::new(Rect::new(0, 0, 4, 2));
        let area = buf.area;
        draw_columns(&mut buf, area, [8.0; 4].map(Some).into_iter(), 8.0, Style::new());
        draw_column_markers(&mut buf, area, &[1, 3, 4, 900], Style::new());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["┊█┊█", "┊█┊█"]));
    }

    #[test]
    fn labels_are_drawn_at_the_top_of_their_columns() {
        let mut buf = CellBuffer::new(Rect::new(0, 0, 3, 2));
        let area = buf.area;
        draw_columns(&mut buf, area, [8.0; 3].map(Some).into_iter(), 8.0, Style::new());
        draw_column_labels(&mut buf, area, &[(0, "t"), (2, "r"), (3, "t")], Style::new());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["r█t", "███"]));
    }

    #[test]
    fn bar_draws_threshold_ticks() {
        let mut buf = CellBuffer::new(Rect::new(0, 0, 8, 1));
        let area = buf.area;
        draw_bar(&mut buf, area, 4.0, 8.0, &[(6.0, "┊")], Style::new(), Style::new());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["████  ┊ "]));
    }

    #[test]
    fn scale_tops_are_round_numbers() {
        assert_eq!(
            (round_up_scale(0.0), round_up_scale(3.0), round_up_scale(100.0), round_up_scale(51.0)),
            (1.0, 5.0, 100.0, 100.0)
        );
    }
}
