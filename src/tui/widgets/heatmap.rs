//! A heat map: counts as shades, by time (columns, newest right; as many samples each as a cell of a graph) and by bucket
//! (rows, lowest at the bottom).

use super::text::{draw_clipped, draw_text_right};
use super::theme::{HEAT_STEPS, Theme};
use crate::tui::widgets::cell_buffer::CellBuffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const SHADES: [&str; 4] = ["░", "▒", "▓", "█"];

const AXIS_WIDTH: u16 = 7;

/// A sample: the buckets that are not empty, with their counts; `None` for a gap.
pub(crate) type HeatmapColumn<'a> = Option<&'a [(u8, u32)]>;

/// Number of columns that an area of this width has room for.
pub(crate) fn heatmap_column_count(width: u16) -> u16 {
    width.saturating_sub(AXIS_WIDTH)
}

/// Draws `samples`, oldest first, right-aligned. `label` gives the lower bound of a bucket. Where there are more buckets
/// than rows, a row sums several. Shades and colours are logarithmic, so that a count of one shows beside thousands.
pub(crate) fn draw_heatmap<'a>(
    buf: &mut CellBuffer,
    area: Rect,
    samples: impl DoubleEndedIterator<Item = HeatmapColumn<'a>> + Clone,
    label: impl Fn(u8) -> String,
    theme: &Theme,
) {
    if area.height == 0 || area.width <= AXIS_WIDTH {
        return;
    }
    let (columns, per_column) = (heatmap_column_count(area.width), buf.symbols.samples_per_cell());
    let shown = || samples.clone().rev().take(usize::from(columns) * per_column);
    let buckets = || shown().flatten().flatten();
    let Some(low) = buckets().map(|s| s.0).min() else { return };
    let high = buckets().map(|s| s.0).max().unwrap_or(low);
    let buckets_per_row = (u16::from(high - low) / area.height + 1) as u8;
    let row = |bucket: u8| usize::from((bucket - low) / buckets_per_row);
    // By column from the right, then by row from the bottom.
    let mut sums = vec![0u64; usize::from(columns) * usize::from(area.height)];
    let mut known = vec![false; columns.into()];
    for (at, sample) in shown().enumerate() {
        let column = at / per_column;
        known[column] |= sample.is_some();
        for (bucket, n) in sample.unwrap_or_default() {
            sums[column * usize::from(area.height) + row(*bucket)] += u64::from(*n);
        }
    }
    let max = sums.iter().copied().max().unwrap_or(0).max(1);
    let place = |column: usize, row: usize| (area.right() - 1 - column as u16, area.bottom() - 1 - row as u16);
    for (column, _) in known.iter().enumerate().take(shown().count().div_ceil(per_column)).filter(|(_, known)| !**known)
    {
        let (x, y) = place(column, 0);
        draw_clipped(buf, x, y, "·", 1, theme.dim);
    }
    for (at, amount) in sums.into_iter().enumerate().filter(|(_, amount)| *amount > 0) {
        let (x, y) = place(at / usize::from(area.height), at % usize::from(area.height));
        let share = (amount as f64).ln_1p() / (max as f64).ln_1p();
        let color = theme.heat[step(share, HEAT_STEPS)];
        draw_clipped(buf, x, y, SHADES[step(share, SHADES.len())], 1, Style::new().fg(color));
    }
    for at in 0..area.height {
        let bucket = low.saturating_add((at as u8).saturating_mul(buckets_per_row));
        if bucket <= high {
            draw_text_right(buf, area.x, area.bottom() - 1 - at, &label(bucket), AXIS_WIDTH - 1, theme.dim);
        }
    }
}

/// Draws a cell of a map whose values are shares of the largest one, above 0 and at most 1.
pub(crate) fn draw_heat_cell(buf: &mut CellBuffer, x: u16, y: u16, share: f64, theme: &Theme) {
    let color = theme.heat[step(share, HEAT_STEPS)];
    draw_clipped(buf, x, y, SHADES[step(share, SHADES.len())], 1, Style::new().fg(color));
}

/// The step of a share of the largest count, 0 to 1.
fn step(share: f64, steps: usize) -> usize {
    ((share * steps as f64).ceil() as usize).clamp(1, steps) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::widgets::SymbolSet;
    use ratatui::buffer::Buffer;

    fn render(width: u16, height: u16, cells: &[HeatmapColumn]) -> Buffer {
        let mut buf = CellBuffer::new(Rect::new(0, 0, width, height));
        buf.symbols = SymbolSet::Blocks;
        let area = buf.area;
        draw_heatmap(&mut buf, area, cells.iter().copied(), |s| format!("{s} us"), &Theme::default());
        buf.to_buffer()
    }

    #[test]
    fn newest_column_is_rightmost_and_gaps_are_marked() {
        let cells: [HeatmapColumn; 4] = [Some(&[(3, 1)]), None, Some(&[(3, 2000), (5, 1)]), Some(&[(4, 40)])];
        assert_eq!(render(11, 3, &cells), Buffer::with_lines(["  5 us   ░ ", "  4 us    ▒", "  3 us ░·█ "]));
    }

    #[test]
    fn a_column_has_as_many_samples_as_a_cell_of_a_graph() {
        let mut buf = CellBuffer::new(Rect::new(0, 0, 10, 1));
        buf.symbols = SymbolSet::Braille;
        let samples: [HeatmapColumn; 5] = [None, None, Some(&[(3, 1)]), Some(&[(3, 1)]), Some(&[(3, 2)])];
        let area = buf.area;
        let padded = samples.iter().copied().chain([None]);
        draw_heatmap(&mut buf, area, padded, |_| String::new(), &Theme::default());
        assert_eq!(buf.to_buffer(), Buffer::with_lines(["       ·██"]));
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
