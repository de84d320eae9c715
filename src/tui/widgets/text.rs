//! Draws text into cells, with a fast path for characters that need no grapheme segmentation.

use super::cell_buffer::{CellBuffer, PackedCell, PackedSymbol};
use super::symbols::{SymbolSet, text_to_ascii};
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Draws sanitized `text` at `x`, `y` and clips what exceeds `width` cells; returns the cells used. For symbols, and for
/// text that scrolls: other text is drawn by [`draw_text`].
pub(crate) fn draw_clipped(canvas: &mut CellBuffer, x: u16, y: u16, text: &str, width: u16, style: Style) -> u16 {
    if text.is_ascii() {
        let dress = canvas.style_id(style);
        let cells = canvas.cells_mut(x, y, width);
        for (cell, byte) in cells.iter_mut().zip(text.bytes()) {
            let shown = if (0x20..0x7f).contains(&byte) { byte } else { b'?' };
            *cell = PackedSymbol::single_width(char::from(shown)).with_style(dress);
        }
        return cells.len().min(text.len()) as u16;
    }
    if canvas.symbols == SymbolSet::Ascii {
        return draw_clipped(canvas, x, y, &text_to_ascii(text), width, style);
    }
    if text.chars().all(is_single_width) {
        let mut symbols = text.chars().map(PackedSymbol::single_width);
        return canvas.draw_over((x, y), width, style, |_| symbols.next());
    }
    draw_graphemes(canvas, x, y, text, width, style)
}

/// Whether a character takes one column and combines with none of these: Latin letters, box drawing, blocks, arrows.
fn is_single_width(c: char) -> bool {
    matches!(c,
        ' '..='~'
        | '\u{a1}'..='\u{ac}' | '\u{ae}'..='\u{2ff}'
        | '\u{2010}'..='\u{2027}'
        | '\u{2190}'..='\u{2193}' | '\u{2248}' | '\u{2260}'..='\u{2265}'
        | '\u{2500}'..='\u{25b5}' | '\u{2800}'..='\u{28ff}')
}

/// Draws any text, segmented into graphemes by ratatui.
fn draw_graphemes(canvas: &mut CellBuffer, x: u16, y: u16, text: &str, width: u16, style: Style) -> u16 {
    let width = canvas.cells_mut(x, y, width).len() as u16;
    let mut line = Buffer::empty(Rect::new(0, 0, width, 1));
    let (end, _) = line.set_stringn(0, 0, text, usize::from(width), Style::new());
    let mut at = 0;
    while at < end {
        let shown = line[(at, 0)].symbol();
        let columns = shown.cell_width().max(1);
        let symbol = canvas.pack_symbol(shown);
        canvas.draw_over((x + at, y), 1, style, |_| Some(symbol));
        // Its other columns are hidden.
        canvas.cells_mut(x + at + 1, y, columns - 1).fill(PackedCell::BLANK);
        at += columns;
    }
    end
}

/// Fills `area` with a symbol of one column.
pub(crate) fn fill_area(canvas: &mut CellBuffer, area: Rect, symbol: &str, style: Style) {
    let area = area.intersection(canvas.area);
    let symbol = match canvas.symbols {
        SymbolSet::Ascii => canvas.pack_symbol(&text_to_ascii(symbol)),
        _ => canvas.pack_symbol(symbol),
    };
    for y in area.top()..area.bottom() {
        canvas.draw_over((area.x, y), area.width, style, |_| Some(symbol));
    }
}

pub(crate) fn clear_area(canvas: &mut CellBuffer, area: Rect) {
    for y in area.top()..area.bottom() {
        canvas.cells_mut(area.x, y, area.width).fill(PackedCell::BLANK);
    }
}

/// Draws `text` right-aligned in `width` cells.
pub(crate) fn draw_text_right(canvas: &mut CellBuffer, x: u16, y: u16, text: &str, width: u16, style: Style) {
    let cells = if text.is_ascii() { text.len() } else { UnicodeWidthStr::width(text) };
    let pad = usize::from(width).saturating_sub(cells) as u16;
    draw_text(canvas, x + pad, y, text, width - pad.min(width), style);
}

/// Draws sanitized `text` at `x`, `y` in at most `width` cells; a mark shows where it was cut off. Returns the cells used.
pub(crate) fn draw_text(canvas: &mut CellBuffer, x: u16, y: u16, text: &str, width: u16, style: Style) -> u16 {
    let width = width.min(canvas.area.right().saturating_sub(x));
    let room = usize::from(width);
    if text.len() <= room || crate::sanitize::fit_width(text, room).0.len() == text.len() {
        return draw_clipped(canvas, x, y, text, width, style);
    }
    if width < 2 {
        return 0;
    }
    let (fits, used) = crate::sanitize::fit_width(text, room - 1);
    draw_clipped(canvas, x, y, fits, width - 1, style);
    draw_clipped(canvas, x + used as u16, y, "…", 1, style);
    used as u16 + 1
}

/// Draws a path; a mark shows that its beginning was cut off. Returns the cells used.
pub(crate) fn draw_path(canvas: &mut CellBuffer, x: u16, y: u16, path: &str, width: u16, style: Style) -> u16 {
    let room = usize::from(width);
    if path.len() <= room || UnicodeWidthStr::width(path) <= room || width < 2 {
        return draw_text(canvas, x, y, path, width, style);
    }
    draw_clipped(canvas, x, y, "…", 1, style);
    1 + draw_clipped(canvas, x + 1, y, path_end(path, room - 1), width - 1, style)
}

/// The longest end of a sanitized path that is at most `cells` wide.
pub(crate) fn path_end(path: &str, cells: usize) -> &str {
    // Sanitized text has no characters that take no cell.
    let mut used = 0;
    let end = path.char_indices().rev().take_while(|(_, c)| {
        used += c.width().unwrap_or(0);
        used <= cells
    });
    end.last().map_or("", |(at, _)| &path[at..])
}

/// Applies a style to `width` cells of a row and keeps their text.
pub(crate) fn patch_style(canvas: &mut CellBuffer, x: u16, y: u16, width: u16, style: Style) {
    canvas.draw_over((x, y), width, style, |before| Some(before.symbol()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::{Color, Modifier};

    #[test]
    fn text_stays_within_its_width_and_the_canvas() {
        let mut canvas = CellBuffer::new(Rect::new(0, 0, 6, 1));
        assert_eq!(draw_clipped(&mut canvas, 0, 0, "abcdef", 3, Style::new()), 3);
        assert_eq!(draw_clipped(&mut canvas, 4, 0, "写作", 9, Style::new()), 2);
        assert_eq!(draw_clipped(&mut canvas, 9, 0, "x", 1, Style::new()), 0);
        assert_eq!(draw_clipped(&mut canvas, 0, 5, "x", 1, Style::new()), 0);
        assert_eq!(canvas.to_buffer(), Buffer::with_lines(["abc 写"]));
    }

    #[test]
    fn a_path_keeps_its_end() {
        let shown = |path: &str, width: u16| {
            let mut canvas = CellBuffer::new(Rect::new(0, 0, 12, 1));
            let used = draw_path(&mut canvas, 0, 0, path, width, Style::new());
            let buf = canvas.to_buffer();
            let text: String = (0..12).map(|x| buf[(x, 0)].symbol()).collect();
            assert!(used <= width);
            text.trim_end().to_owned()
        };
        assert_eq!(shown("/var/lib/pg/base", 12), "…lib/pg/base");
        assert_eq!(shown("/srv/data", 12), "/srv/data");
        // A wide character takes two cells.
        assert_eq!(shown("/srv/データ/ファイル", 8), "…ァ イ ル");
        assert_eq!((shown("/srv", 1), shown("/srv", 0)), (String::new(), String::new()));
    }

    #[test]
    fn right_alignment_counts_cells() {
        let mut canvas = CellBuffer::new(Rect::new(0, 0, 8, 2));
        draw_text_right(&mut canvas, 0, 0, "12", 5, Style::new());
        draw_text_right(&mut canvas, 0, 1, "写", 5, Style::new());
        assert_eq!(canvas.to_buffer(), Buffer::with_lines(["   12   ", "   写   "]));
    }

    #[test]
    fn single_width_characters_take_one_column() {
        for c in (0x80..0x3000).filter_map(char::from_u32).filter(|c| is_single_width(*c)) {
            assert_eq!(unicode_width::UnicodeWidthChar::width(c), Some(1), "U+{:X}", u32::from(c));
        }
    }

    proptest! {
        /// Text is drawn as ratatui draws it.
        #[test]
        fn text_looks_as_in_a_buffer_of_ratatui(
            texts in proptest::collection::vec(
                (0u16..14, 0u16..3, "[ab é×│▾…写🚒\u{301}\u{200d}\u{7f}\u{ad}\u{9b}]{0,6}", 0u16..9, any::<[bool; 3]>()), 1..6)
        ) {
            let area = Rect::new(0, 0, 12, 2);
            let (mut canvas, mut buf) = (CellBuffer::new(area), Buffer::empty(area));
            for (x, y, text, width, [red, bold, tinted]) in &texts {
                let text = format!("é{text}");
                let style = if *red { Style::new().fg(Color::Red) } else { Style::new() };
                let style = if *bold { style.add_modifier(Modifier::BOLD) } else { style };
                let used = draw_clipped(&mut canvas, *x, *y, &text, *width, style);
                if *x < area.width && *y < area.height {
                    let (end, _) = buf.set_stringn(*x, *y, &text, usize::from((*width).min(area.width - *x)), style);
                    prop_assert_eq!(used, end - *x);
                }
                if *tinted {
                    let style = Style::new().bg(Color::Blue).remove_modifier(Modifier::BOLD);
                    patch_style(&mut canvas, *x, *y, *width, style);
                    buf.set_style(Rect::new(*x, *y, *width, 1).intersection(area), style);
                }
            }
            prop_assert_eq!(canvas.to_buffer(), buf);
        }
    }
}
