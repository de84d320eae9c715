//! Text into cells, quickly: most of a monitor is ASCII, which needs no grapheme work.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use std::sync::LazyLock;

/// A cell for each character: copying one is quicker than setting its symbol.
static ASCII: LazyLock<[Cell; 128]> = LazyLock::new(|| {
    std::array::from_fn(|n| {
        let mut cell = Cell::EMPTY;
        cell.set_char(if (0x20..0x7f).contains(&n) { n as u8 as char } else { '?' });
        cell
    })
});

/// Writes `text` (cleaned) at `x`,`y`, at most `width` cells; returns the cells used.
pub fn put(buf: &mut Buffer, x: u16, y: u16, text: &str, width: u16, style: Style) -> u16 {
    let area = buf.area;
    if y < area.top() || y >= area.bottom() || x < area.left() || x >= area.right() {
        return 0;
    }
    let width = width.min(area.right() - x);
    if text.is_ascii() {
        let n = text.len().min(usize::from(width)) as u16;
        let (fg, bg) = (style.fg.unwrap_or(Color::Reset), style.bg.unwrap_or(Color::Reset));
        let from = buf.index_of(x, y);
        let cells = &mut buf.content[from..from + usize::from(n)];
        for (cell, byte) in cells.iter_mut().zip(text.bytes()) {
            cell.clone_from(&ASCII[usize::from(byte & 0x7f)]);
            (cell.fg, cell.bg, cell.modifier) = (fg, bg, style.add_modifier);
        }
        return n;
    }
    let (end, _) = buf.set_stringn(x, y, text, usize::from(width), style);
    end - x
}

/// Puts one symbol of one cell's width into every cell of `area`.
pub fn fill(buf: &mut Buffer, area: Rect, symbol: &str, style: Style) {
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        let from = buf.index_of(area.x, y);
        for cell in &mut buf.content[from..from + usize::from(area.width)] {
            cell.set_symbol(symbol).set_style(style);
        }
    }
}

/// Writes `text` so that it ends before `x + width`.
pub fn put_right(buf: &mut Buffer, x: u16, y: u16, text: &str, width: u16, style: Style) {
    let cells = match text.is_ascii() {
        true => text.len(),
        false => unicode_width::UnicodeWidthStr::width(text),
    };
    let pad = usize::from(width).saturating_sub(cells) as u16;
    put(buf, x + pad, y, text, width - pad.min(width), style);
}

/// Styles `width` cells of a row without touching their text.
pub fn tint(buf: &mut Buffer, x: u16, y: u16, width: u16, style: Style) {
    let right = (x + width).min(buf.area.right());
    if y < buf.area.top() || y >= buf.area.bottom() {
        return;
    }
    for x in x..right {
        buf[(x, y)].set_style(style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_within_its_width_and_the_buffer() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 6, 1));
        assert_eq!(put(&mut buf, 0, 0, "abcdef", 3, Style::new()), 3);
        assert_eq!(put(&mut buf, 4, 0, "写作", 9, Style::new()), 2);
        assert_eq!(put(&mut buf, 9, 0, "x", 1, Style::new()), 0);
        assert_eq!(put(&mut buf, 0, 5, "x", 1, Style::new()), 0);
        assert_eq!(buf, Buffer::with_lines(["abc 写"]));
    }

    #[test]
    fn right_alignment_counts_cells() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 8, 2));
        put_right(&mut buf, 0, 0, "12", 5, Style::new());
        put_right(&mut buf, 0, 1, "写", 5, Style::new());
        assert_eq!(buf, Buffer::with_lines(["   12   ", "   写   "]));
    }
}
