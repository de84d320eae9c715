//! A heat map: amounts over time (columns, newest right) and over a scale (rows, low below), as shades.

use super::put::{put, put_right};
use crate::tui::widgets::canvas::Canvas;
use ratatui::layout::Rect;
use ratatui::style::Style;

const SHADES: [&str; 4] = ["░", "▒", "▓", "█"];

/// Cells the labels of the rows take.
const AXIS: u16 = 7;

/// A column: steps of the scale that are not empty, and how much is in them; `None` where nothing was read.
pub type Column<'a> = Option<&'a [(u8, u32)]>;

/// Cells that columns have in so wide an area.
pub fn columns(width: u16) -> usize {
    usize::from(width.saturating_sub(AXIS))
}

/// Draws `cells`, oldest first, right-aligned. `label` names the lower end of a step. Rows take several steps
/// where there are more steps than rows. Shades follow the logarithm: one is seen beside thousands.
pub fn heat<'a>(
    buf: &mut Canvas,
    area: Rect,
    cells: impl DoubleEndedIterator<Item = Column<'a>> + Clone,
    label: impl Fn(u8) -> String,
    (style, dim): (Style, Style),
) {
    if area.height == 0 || area.width <= AXIS {
        return;
    }
    let shown = || cells.clone().rev().take(columns(area.width));
    let steps = || shown().flatten().flatten();
    let Some(low) = steps().map(|s| s.0).min() else { return };
    let high = steps().map(|s| s.0).max().unwrap_or(low);
    let each = (u16::from(high - low) / area.height + 1) as u8;
    let row = |step: u8| area.bottom() - 1 - u16::from((step - low) / each);
    let (mut most, mut sums) = (0, Vec::new());
    for (at, column) in shown().enumerate() {
        let x = area.right() - 1 - at as u16;
        let Some(column) = column else {
            put(buf, x, area.bottom() - 1, "·", 1, dim);
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
        put(buf, x, y, SHADES[shade(amount, most)], 1, style);
    }
    for at in 0..area.height {
        let step = low.saturating_add((at as u8).saturating_mul(each));
        if step <= high {
            put_right(buf, area.x, area.bottom() - 1 - at, &label(step), AXIS - 1, dim);
        }
    }
}

fn shade(amount: u64, most: u64) -> usize {
    let share = (amount as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    ((share * SHADES.len() as f64).ceil() as usize).clamp(1, SHADES.len()) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::buffer::Buffer;

    fn drawn(width: u16, height: u16, cells: &[Column]) -> Buffer {
        let mut buf = Canvas::new(Rect::new(0, 0, width, height));
        let area = buf.area;
        heat(&mut buf, area, cells.iter().copied(), |s| format!("{s} us"), (Style::new(), Style::new()));
        buf.picture()
    }

    #[test]
    fn time_goes_right_and_the_scale_up_and_gaps_show() {
        let cells: [Column; 4] = [Some(&[(3, 1)]), None, Some(&[(3, 2000), (5, 1)]), Some(&[(4, 40)])];
        assert_eq!(drawn(11, 3, &cells), Buffer::with_lines(["  5 us   ░ ", "  4 us    ▒", "  3 us ░·█ "]));
    }

    #[test]
    fn steps_share_rows_where_rows_are_few() {
        let cells: [Column; 2] = [Some(&[(10, 1), (11, 1), (14, 5)]), Some(&[(13, 5)])];
        assert_eq!(drawn(9, 2, &cells), Buffer::with_lines([" 13 us ██", " 10 us ▓ "]));
    }

    #[test]
    fn without_anything_nothing_is_drawn() {
        assert_eq!(drawn(9, 1, &[None, Some(&[])]), Buffer::with_lines(["         "]));
        assert_eq!(drawn(5, 1, &[Some(&[(1, 1)])]), Buffer::with_lines(["     "]));
    }
}
