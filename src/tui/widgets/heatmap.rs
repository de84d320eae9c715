//! A heat map: amounts over time (columns, newest right) and over a scale (rows, low below), as shades.

use super::text::{draw_text, draw_text_right};
use crate::tui::widgets::cell_buffer::CellBuffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const SHADES: [&str; 4] = ["░", "▒", "▓", "█"];

/// Cells the labels of the rows take.
const AXIS_WIDTH: u16 = 7;

/// A column: steps of the scale that are not empty, and how much is in them; `None` where nothing was read.
pub type HeatmapColumn<'a> = Option<&'a [(u8, u32)]>;

/// Cells that columns have in so wide an area.
pub fn heatmap_column_count(width: u16) -> usize {
    usize::from(width.saturating_sub(AXIS_WIDTH))
}

/// Draws `cells`, oldest first, right-aligned. `label` names the lower end of a step. Rows take several steps
/// where there are more steps than rows. Shades follow the logarithm: one is seen beside thousands.
pub fn draw_heatmap<'a>(
    buf: &mut CellBuffer,
    area: Rect,
    cells: impl DoubleEndedIterator<Item = HeatmapColumn<'a>> + Clone,
    label: impl Fn(u8) -> String,
    (style, dim): (Style, Style),
) {
    if area.height == 0 || area.width <= AXIS_WIDTH {
        return;
    }
    let shown = || cells.clone().rev().take(heatmap_column_count(area.width));
    let steps = || shown().flatten().flatten();
    let Some(low) = steps().map(|s| s.0).min() else { return };
    let high = steps().map(|s| s.0).max().unwrap_or(low);
    let each = (u16::from(high - low) / area.height + 1) as u8;
    let row = |step: u8| area.bottom() - 1 - u16::from((step - low) / each);
    let (mut most, mut sums) = (0, Vec::new());
    for (at, column) in shown().enumerate() {
        let x = area.right() - 1 - at as u16;
        let Some(column) = column else {
            draw_text(buf, x, area.bottom() - 1, "·", 1, dim);
            continue;
        };
        for (step, n) in column {
            let y = row(*step);
            match sums.last_mut() {
                Some((before, amount)) if *before == (x, y) => *amount += u64::from(*n),
                _ => sums.push(((x, y), u64::from(*n))),
            }
            most = sums.last().map_or(most, |s| most.max(s.1));
        }
    }
    for ((x, y), amount) in sums {
        draw_text(buf, x, y, SHADES[shade_index(amount, most)], 1, style);
    }
    for at in 0..area.height {
        let step = low.saturating_add((at as u8).saturating_mul(each));
        if step <= high {
            draw_text_right(buf, area.x, area.bottom() - 1 - at, &label(step), AXIS_WIDTH - 1, dim);
        }
    }
}

fn shade_index(amount: u64, most: u64) -> usize {
    let share = (amount as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    ((share * SHADES.len() as f64).ceil() as usize).clamp(1, SHADES.len()) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::buffer::Buffer;

    fn render(width: u16, height: u16, cells: &[HeatmapColumn]) -> Buffer {
        let mut buf = CellBuffer::new(Rect::new(0, 0, width, height));
        let area = buf.area;
        draw_heatmap(&mut buf, area, cells.iter().copied(), |s| format!("{s} us"), (Style::new(), Style::new()));
        buf.to_buffer()
    }

    #[test]
    fn newest_column_is_rightmost_and_gaps_are_marked() {
        let cells: [HeatmapColumn; 4] = [Some(&[(3, 1)]), None, Some(&[(3, 2000), (5, 1)]), Some(&[(4, 40)])];
        assert_eq!(render(11, 3, &cells), Buffer::with_lines(["  5 us   ░ ", "  4 us    ▒", "  3 us ░·█ "]));
    }

    #[test]
    fn buckets_share_rows_when_rows_are_few() {
        let cells: [HeatmapColumn; 2] = [Some(&[(10, 1), (11, 1), (14, 5)]), Some(&[(13, 5)])];
        assert_eq!(render(9, 2, &cells), Buffer::with_lines([" 13 us ██", " 10 us ▓ "]));
    }

    #[test]
    fn nothing_is_drawn_without_data_or_room() {
        assert_eq!(render(9, 1, &[None, Some(&[])]), Buffer::with_lines(["         "]));
        assert_eq!(render(5, 1, &[Some(&[(1, 1)])]), Buffer::with_lines(["     "]));
    }
}
