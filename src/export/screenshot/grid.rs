//! The symbols of a buffer with their resolved colours.

use super::colour::{Palette, Rgb, blend};
use ratatui::buffer::Buffer;
use ratatui::style::Modifier;
use unicode_width::UnicodeWidthStr;

/// Per cent of its colour that dim text keeps.
const DIM_SHARE: u16 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ResolvedStyle {
    pub(super) fg: Rgb,
    pub(super) bg: Rgb,
    pub(super) is_bold: bool,
    pub(super) is_underlined: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PositionedSymbol<'a> {
    /// Column of its first cell, from 0.
    pub(super) x: u16,
    pub(super) y: u16,
    pub(super) symbol: &'a str,
    /// Width in cells: two for a wide symbol.
    pub(super) width: u16,
    pub(super) style: ResolvedStyle,
}

impl PositionedSymbol<'_> {
    /// Whether only the background is visible.
    pub(super) fn is_blank(&self) -> bool {
        self.symbol.trim().is_empty()
    }
}

/// The symbols of row `y`, from left to right.
pub(super) fn row_symbols<'a>(
    buffer: &'a Buffer,
    palette: &'a Palette,
    y: u16,
) -> impl Iterator<Item = PositionedSymbol<'a>> {
    let mut x = 0;
    std::iter::from_fn(move || {
        if x >= buffer.area.width {
            return None;
        }
        let cell = &buffer[(buffer.area.x + x, buffer.area.y + y)];
        let symbol = cell.symbol();
        let cells = (symbol.width().max(1) as u16).min(buffer.area.width - x);
        let (mut fg, mut bg) = (palette.resolve(cell.fg, palette.fg), palette.resolve(cell.bg, palette.bg));
        if cell.modifier.contains(Modifier::DIM) {
            fg = blend(fg, bg, DIM_SHARE);
        }
        if cell.modifier.contains(Modifier::REVERSED) {
            std::mem::swap(&mut fg, &mut bg);
        }
        let style = ResolvedStyle {
            fg,
            bg,
            is_bold: cell.modifier.contains(Modifier::BOLD),
            is_underlined: cell.modifier.contains(Modifier::UNDERLINED),
        };
        let positioned = PositionedSymbol { x, y, symbol, width: cells, style };
        x += cells;
        Some(positioned)
    })
}

pub(super) fn all_symbols<'a>(buffer: &'a Buffer, palette: &'a Palette) -> impl Iterator<Item = PositionedSymbol<'a>> {
    (0..buffer.area.height).flat_map(move |y| row_symbols(buffer, palette, y))
}

#[cfg(test)]
mod tests {
    use super::super::colour::DARK;
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Style};

    #[test]
    fn wide_symbols_take_two_cells_and_reversed_cells_swap_colours() {
        let mut buffer = Buffer::empty(Rect::new(3, 1, 5, 1));
        buffer.set_string(3, 1, "写a", Style::new().fg(Color::Red).add_modifier(Modifier::REVERSED));
        let all: Vec<_> =
            all_symbols(&buffer, &DARK).map(|s| (s.x, s.symbol, s.width, s.style.fg, s.style.bg)).collect();
        let red = DARK.ansi[1];
        assert_eq!(
            all,
            [
                (0, "写", 2, DARK.bg, red),
                (2, "a", 1, DARK.bg, red),
                (3, " ", 1, DARK.fg, DARK.bg),
                (4, " ", 1, DARK.fg, DARK.bg)
            ]
        );
    }
}
