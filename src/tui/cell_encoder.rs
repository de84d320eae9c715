//! The terminal bytes for cells that changed, as few as that takes: a line to a slow or distant terminal has little room.
//!
//! A change of style sends only what differs from the style before, and a move the shorter of a relative and an absolute
//! one. At the end of a frame the terminal is without style again.

use crate::export::sgr::{ColourPlace, MODIFIER_CODES, push_colour_code};
use ratatui::buffer::{Cell, CellWidth};
use ratatui::style::{Color, Modifier};
use std::fmt::Write as _;

/// Modifiers that show on a blank cell.
const SHOWN_ON_BLANK: Modifier = Modifier::UNDERLINED
    .union(Modifier::REVERSED)
    .union(Modifier::CROSSED_OUT)
    .union(Modifier::SLOW_BLINK)
    .union(Modifier::RAPID_BLINK);
/// Modifiers that one code ends, both.
const INTENSITY: Modifier = Modifier::BOLD.union(Modifier::DIM);
#[derive(Clone, Copy, PartialEq)]
struct CellStyle {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

const PLAIN: CellStyle = CellStyle { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty() };

/// Writes cells for a terminal of a width, and knows what state they leave it in.
pub(super) struct CellEncoder<'a> {
    out: &'a mut Vec<u8>,
    width: u16,
    /// Column and row; `None`: not certain.
    cursor: Option<(u16, u16)>,
    style: CellStyle,
    /// Of the style that is being set, each with a semicolon.
    codes: String,
}

impl<'a> CellEncoder<'a> {
    /// The terminal is without style, its cursor anywhere.
    pub(super) fn new(out: &'a mut Vec<u8>, width: u16) -> Self {
        Self { out, width, cursor: None, style: PLAIN, codes: String::new() }
    }

    /// Writes the symbol of a cell in its style at column `x` of row `y`.
    pub(super) fn write_cell(&mut self, (x, y): (u16, u16), cell: &Cell) {
        self.move_to(x, y);
        self.set_style(cell);
        let symbol = cell.symbol();
        self.out.extend_from_slice(symbol.as_bytes());
        let end = x.saturating_add(cell.cell_width());
        // In the last column a terminal waits for the next symbol before it goes on.
        self.cursor = (end < self.width && has_certain_width(symbol)).then_some((end, y));
    }

    /// Ends the frame.
    pub(super) fn finish(self) {
        if self.style != PLAIN {
            self.out.extend_from_slice(b"\x1b[m");
        }
    }

    fn move_to(&mut self, x: u16, y: u16) {
        if self.cursor == Some((x, y)) {
            return;
        }
        let absolute = format!("\x1b[{};{}H", y + 1, x + 1);
        let relative = self.cursor.filter(|at| at.1 <= y).map(|(from_x, from_y)| {
            let across = if x >= from_x { relative_move(x - from_x, 'C') } else { relative_move(from_x - x, 'D') };
            relative_move(y - from_y, 'B') + &across
        });
        let shortest = relative.filter(|moves| moves.len() < absolute.len()).unwrap_or(absolute);
        self.out.extend_from_slice(shortest.as_bytes());
    }

    fn set_style(&mut self, cell: &Cell) {
        let (wanted, now) = (CellStyle { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }, self.style);
        // The colour of a blank is nowhere to be seen, unless it is reversed.
        let shown = |style: CellStyle| (style.bg, style.modifier.intersection(SHOWN_ON_BLANK));
        let is_reversed = wanted.modifier.contains(Modifier::REVERSED);
        if wanted == now || cell.symbol() == " " && !is_reversed && shown(wanted) == shown(now) {
            return;
        }
        self.style = wanted;
        if wanted == PLAIN {
            self.out.extend_from_slice(b"\x1b[m");
            return;
        }
        self.codes.clear();
        let mut from = now;
        let ended = now.modifier.difference(wanted.modifier);
        if INTENSITY.contains(ended) && !ended.is_empty() && !wanted.modifier.intersects(INTENSITY) {
            self.push_code(22);
            from.modifier.remove(INTENSITY);
        } else if !ended.is_empty() {
            self.push_code(0);
            from = PLAIN;
        }
        for (modifier, code) in MODIFIER_CODES {
            if wanted.modifier.difference(from.modifier).contains(modifier) {
                self.push_code(code);
            }
        }
        if wanted.fg != from.fg {
            self.push_colour(wanted.fg, ColourPlace::Foreground);
        }
        if wanted.bg != from.bg {
            self.push_colour(wanted.bg, ColourPlace::Background);
        }
        self.out.extend_from_slice(b"\x1b[");
        self.out.extend_from_slice(self.codes.trim_end_matches(';').as_bytes());
        self.out.push(b'm');
    }

    fn push_code(&mut self, code: u8) {
        // Writing to a string does not fail.
        _ = write!(self.codes, "{code};");
    }

    fn push_colour(&mut self, colour: Color, place: ColourPlace) {
        push_colour_code(&mut self.codes, colour, place);
        self.codes.push(';');
    }
}

fn relative_move(by: u16, direction: char) -> String {
    match by {
        0 => String::new(),
        1 => format!("\x1b[{direction}"),
        _ => format!("\x1b[{by}{direction}"),
    }
}

/// Whether every terminal gives a symbol the same columns: Latin letters, and the lines, blocks and braille of panes.
fn has_certain_width(symbol: &str) -> bool {
    let mut chars = symbol.chars();
    chars.next().is_some_and(|c| matches!(c, ' '..='\u{2ff}' | '\u{2000}'..='\u{2bff}')) && chars.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Style;

    fn encoded(cells: &[(u16, u16, &'static str, Style)]) -> String {
        let mut out = Vec::new();
        let mut encoder = CellEncoder::new(&mut out, 20);
        for (x, y, symbol, style) in cells {
            let mut cell = Cell::new(symbol);
            cell.set_style(*style);
            encoder.write_cell((*x, *y), &cell);
        }
        encoder.finish();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_differs_of_a_style_is_sent() {
        let red = Style::new().fg(Color::Red);
        let cells = [
            (0, 0, "a", red),
            (1, 0, "b", red.add_modifier(Modifier::BOLD)),
            // A blank needs no other colour.
            (2, 0, " ", Style::new()),
            (3, 0, "c", red),
            (4, 0, "d", red.bg(Color::Indexed(200))),
            (5, 0, "e", Style::new()),
            (6, 0, "f", Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::LightBlue)),
        ];
        let expected = "\x1b[1;1H\x1b[31ma\x1b[1mb \x1b[22mc\x1b[48;5;200md\x1b[me\x1b[38;2;1;2;3;104mf\x1b[m";
        assert_eq!(encoded(&cells), expected);
    }

    #[test]
    fn a_reversed_blank_has_its_style() {
        let cells = [(0, 0, "a", Style::new()), (1, 0, " ", Style::new().add_modifier(Modifier::REVERSED))];
        assert_eq!(encoded(&cells), "\x1b[1;1Ha\x1b[7m \x1b[m");
    }

    #[test]
    fn moves_are_the_shorter_of_relative_and_absolute() {
        let at = |x, y| (x, y, "x", Style::new());
        let cells = [at(0, 0), at(2, 0), at(9, 0), at(9, 1), at(19, 1), at(0, 2), (1, 2, "写", Style::new()), at(3, 2)];
        let expected = "\x1b[1;1Hx\x1b[Cx\x1b[6Cx\x1b[B\x1b[Dx\x1b[9Cx\x1b[3;1Hx写\x1b[3;4Hx";
        assert_eq!(encoded(&cells), expected);
    }
}
