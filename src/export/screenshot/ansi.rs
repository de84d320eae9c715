//! The cells as text with SGR escape sequences: `cat` shows the screen in the colours of the reader's terminal.

use crate::export::sgr::{ColourPlace, MODIFIER_CODES, push_colour_code};
use crate::sanitize::is_safe;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Color;
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// The screen; colours are reset at the end of each line.
pub(super) fn to_ansi(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let cells: Vec<&Cell> =
            (0..buffer.area.width).map(|x| &buffer[(buffer.area.x + x, buffer.area.y + y)]).collect();
        push_row(&mut out, &cells);
    }
    out
}

fn push_row(out: &mut String, cells: &[&Cell]) {
    let plain = Cell::EMPTY;
    let style = |c: &Cell| (c.fg, c.bg, c.modifier);
    let blank = |c: &&Cell| c.symbol().trim().is_empty() && style(c) == style(&plain);
    let end = cells.iter().rposition(|c| !blank(c)).map_or(0, |at| at + 1);
    let (mut x, mut now) = (0, style(&plain));
    while x < end {
        let cell = cells[x];
        if style(cell) != now {
            now = style(cell);
            push_sgr(out, cell);
        }
        out.extend(cell.symbol().chars().filter(|c| is_safe(*c)));
        x += cell.symbol().width().max(1);
    }
    if now != style(&plain) {
        out.push_str("\x1b[0m");
    }
    out.push('\n');
}

/// Sets the complete style, so that any part of a line looks the same.
fn push_sgr(out: &mut String, cell: &Cell) {
    out.push_str("\x1b[0");
    for (_, number) in MODIFIER_CODES.iter().filter(|(m, _)| cell.modifier.contains(*m)) {
        let _ = write!(out, ";{number}");
    }
    for (colour, place) in [(cell.fg, ColourPlace::Foreground), (cell.bg, ColourPlace::Background)] {
        if colour != Color::Reset {
            out.push(';');
            push_colour_code(out, colour, place);
        }
    }
    out.push('m');
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::{Modifier, Style};

    #[test]
    fn cell_colours_are_written_and_reset_at_the_line_end() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 3));
        buffer.set_string(0, 0, "写a", Style::new().fg(Color::LightRed).add_modifier(Modifier::BOLD));
        buffer.set_string(4, 0, "b", Style::new());
        buffer.set_string(0, 1, "c", Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Indexed(7)));
        assert_eq!(to_ansi(&buffer), "\x1b[0;1;91m写a\x1b[0m b\n\x1b[0;38;2;1;2;3;47mc\x1b[0m\n\n");
    }

    #[test]
    fn a_terminal_emulator_shows_the_same_cells() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 2));
        buffer.set_string(1, 0, "│写 x", Style::new().fg(Color::Cyan).add_modifier(Modifier::REVERSED));
        buffer.set_string(3, 1, "é_", Style::new().add_modifier(Modifier::UNDERLINED));
        let mut terminal = vt100::Parser::new(2, 20, 0);
        terminal.process(to_ansi(&buffer).trim_end().replace('\n', "\r\n").as_bytes());
        let seen = terminal.screen();
        assert_eq!(seen.contents(), " │写 x\n   é_");
        assert!(seen.cell(0, 1).unwrap().inverse() && !seen.cell(0, 0).unwrap().inverse());
        assert_eq!(seen.cell(0, 2).unwrap().fgcolor(), vt100::Color::Idx(6));
        assert!(seen.cell(1, 3).unwrap().underline());
    }
}
