//! Borders with rounded corners. Where two of them meet, their lines are joined.

use super::cell_buffer::{CellBuffer, PackedSymbol};
use super::symbols::SymbolSet;
use ratatui::layout::Rect;
use ratatui::style::Style;

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// The symbol whose lines go to each set of sides, by the bits above.
const JOINED: [char; 16] = [' ', '│', '│', '│', '─', '╯', '╮', '┤', '─', '╰', '╭', '├', '─', '┴', '┬', '┼'];

/// The sides that the lines of a symbol go to; 0 for other symbols.
fn sides(symbol: char) -> u8 {
    match symbol {
        '│' | '|' => UP | DOWN,
        '─' | '-' => LEFT | RIGHT,
        '+' => 0,
        _ => JOINED.iter().rposition(|c| *c == symbol && *c != ' ').map_or(0, |at| at as u8),
    }
}

/// Draws the edges of an area and joins them with the borders already there.
pub(crate) fn draw_border(buf: &mut CellBuffer, area: Rect, style: Style) {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return;
    }
    let is_ascii = buf.symbols == SymbolSet::Ascii;
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    let mut join = |x: u16, y: u16, width: u16, new: u8| {
        buf.draw_over((x, y), width, style, |before| {
            let before = before.as_char();
            let all = before.map_or(0, sides) | new;
            let symbol = match JOINED[usize::from(all)] {
                symbol if !is_ascii => symbol,
                '─' if before != Some('+') => '-',
                '│' if before != Some('+') => '|',
                _ => '+',
            };
            Some(PackedSymbol::single_width(symbol))
        });
    };
    let inside = area.width.saturating_sub(2);
    for (y, corner) in [(area.y, DOWN), (bottom, UP)] {
        join(area.x, y, 1, corner | RIGHT);
        join(area.x + 1, y, inside, LEFT | RIGHT);
        join(right, y, 1, corner | LEFT);
    }
    for y in area.y + 1..bottom {
        join(area.x, y, 1, UP | DOWN);
        join(right, y, 1, UP | DOWN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::buffer::Buffer;

    fn two_beside_one_above(symbols: SymbolSet) -> Buffer {
        let mut buf = CellBuffer::new(Rect::new(0, 0, 8, 5));
        buf.symbols = symbols;
        for area in [Rect::new(0, 2, 8, 3), Rect::new(0, 0, 4, 3), Rect::new(3, 0, 5, 3)] {
            draw_border(&mut buf, area, Style::new());
        }
        buf.to_buffer()
    }

    #[test]
    fn neighbours_share_a_line() {
        let expected = ["╭──┬───╮", "│  │   │", "├──┴───┤", "│      │", "╰──────╯"];
        assert_eq!(two_beside_one_above(SymbolSet::Braille), Buffer::with_lines(expected));
    }

    #[test]
    fn ascii_borders_meet_in_a_plus() {
        let expected = ["+--+---+", "|  |   |", "+--+---+", "|      |", "+------+"];
        assert_eq!(two_beside_one_above(SymbolSet::Ascii), Buffer::with_lines(expected));
    }
}
