//! Two buffers and what differs between them, as bytes.
//!
//! Most of a monitor's screen stays as it was, so the time of a frame is the time of finding that out: rows
//! are compared with no regard to how wide a symbol is, and only those that differ are looked at closely.

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::Rect;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

/// mode 2026: the terminal shows the frame at once, not line by line.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

#[derive(Clone, Default)]
struct Bytes(Rc<RefCell<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The picture as the terminal has it, and the one being made.
pub struct Screen {
    shown: Buffer,
    /// Blank between two frames.
    next: Buffer,
    /// What differs, by place in the buffer.
    changed: Vec<u32>,
    bytes: Bytes,
    backend: CrosstermBackend<Bytes>,
    clear: bool,
}

impl Screen {
    /// An empty screen of that size; the first frame draws everything.
    pub fn new(size: (u16, u16)) -> Self {
        let area = Rect::new(0, 0, size.0, size.1);
        let bytes = Bytes::default();
        Self {
            shown: Buffer::empty(area),
            next: Buffer::empty(area),
            changed: Vec::new(),
            backend: CrosstermBackend::new(bytes.clone()),
            bytes,
            clear: true,
        }
    }

    /// Takes a new size (or the same one again): the next frame draws everything.
    pub fn reset(&mut self, size: (u16, u16)) {
        let area = Rect::new(0, 0, size.0, size.1);
        self.shown = Buffer::empty(area);
        self.next = Buffer::empty(area);
        self.clear = true;
    }

    /// Makes a frame with `draw` and hands the difference, as terminal bytes, to `send`; nothing is
    /// sent if nothing differs.
    pub fn frame(
        &mut self,
        draw: impl FnOnce(&mut Buffer),
        send: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        draw(&mut self.next);
        self.compare();
        std::mem::swap(&mut self.shown, &mut self.next);
        if self.changed.is_empty() && !self.clear {
            return Ok(());
        }
        {
            let mut bytes = self.bytes.0.borrow_mut();
            bytes.clear();
            bytes.extend_from_slice(BEGIN);
            if std::mem::take(&mut self.clear) {
                bytes.extend_from_slice(b"\x1b[0m\x1b[2J");
            }
        }
        let (cells, width) = (&self.shown.content, u32::from(self.shown.area.width.max(1)));
        let place = |at: &u32| ((at % width) as u16, (at / width) as u16, &cells[*at as usize]);
        self.backend.draw(self.changed.iter().map(place))?;
        let mut bytes = self.bytes.0.borrow_mut();
        bytes.extend_from_slice(END);
        send(&bytes)?;
        if bytes.capacity() > 64 * 1024 {
            *bytes = Vec::new();
        }
        Ok(())
    }

    /// Finds what of `next` differs from `shown`, and blanks `shown` row by row on the way: it is the next
    /// frame's paper, and at hand right now.
    fn compare(&mut self) {
        self.changed.clear();
        let width = usize::from(self.shown.area.width).max(1);
        let rows = self.shown.content.chunks_mut(width).zip(self.next.content.chunks(width));
        for (row, (old, new)) in rows.enumerate() {
            if let Some(first) = old.iter().zip(new).position(|(old, new)| !same(old, new)) {
                differences(old, new, first, (row * width) as u32, &mut self.changed);
            }
            old.fill(Cell::EMPTY);
        }
    }

    /// The picture last handed over.
    pub fn shown(&self) -> &Buffer {
        &self.shown
    }
}

/// The cells of a row to send, none of them before `first`; `start` is the row's place in the buffer.
fn differences(old: &[Cell], new: &[Cell], first: usize, start: u32, changed: &mut Vec<u32>) {
    if !old.iter().any(is_wide) && !new.iter().any(is_wide) {
        let at = (first..new.len()).filter(|at| !same(&old[*at], &new[*at]));
        return changed.extend(at.map(|at| start + at as u32));
    }
    // Symbols of two columns: what stands right of one depends on it, so the row is sent whole.
    let mut at = 0;
    while at < new.len() {
        changed.push(start + at as u32);
        at += usize::from(new[at].cell_width().max(1));
    }
}

/// Whether a symbol takes two columns. Box drawing and block elements (U+2500 to U+259F) and braille (U+2800 to
/// U+28FF), which graphs and frames are made of, do not, and are known by their bytes.
fn is_wide(cell: &Cell) -> bool {
    match cell.symbol().as_bytes() {
        [_] | [0xe2, 0x94..=0x96 | 0xa0..=0xa3, _] => false,
        _ => cell.cell_width() != 1,
    }
}

/// Whether two cells look the same. An empty cell is a blank.
fn same(a: &Cell, b: &Cell) -> bool {
    (a.modifier, a.fg, a.bg) == (b.modifier, b.fg, b.bg) && {
        let (a, b) = (a.symbol().as_bytes(), b.symbol().as_bytes());
        // Symbols are a few bytes: a call to compare them costs more than comparing them.
        a.len() == b.len() && a.iter().eq(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::{Modifier, Style};

    #[test]
    fn only_differences_travel_and_a_reset_sends_all() {
        let mut screen = Screen::new((20, 2));
        let text = |s: &'static str| {
            move |b: &mut Buffer| {
                b.set_string(0, 0, s, Style::new());
            }
        };
        let mut sizes = Vec::new();
        for (s, reset) in
            [("hello there", false), ("hello there", false), ("hello thera", false), ("x", true)]
        {
            if reset {
                screen.reset((20, 2));
            }
            let mut got = Vec::new();
            screen
                .frame(text(s), |b| {
                    got.extend_from_slice(b);
                    Ok(())
                })
                .unwrap();
            sizes.push(got.len());
        }
        assert!(sizes[0] > sizes[2] && sizes[1] == 0 && sizes[2] > 0);
        assert!(sizes[3] > BEGIN.len() + END.len() + 4);
    }

    #[test]
    fn symbols_known_by_their_bytes_take_one_column() {
        for code in (0x2500..0x25c0).chain(0x2800..0x2900) {
            let symbol = char::from_u32(code).unwrap().to_string();
            assert_eq!(unicode_width::UnicodeWidthStr::width(symbol.as_str()), 1, "U+{code:X}");
        }
        assert!(is_wide(&Cell::new("写")) && !is_wide(&Cell::new("é")) && !is_wide(&Cell::new("⠿")));
    }

    proptest! {
        /// Whatever was there before, the terminal shows the new picture.
        #[test]
        fn a_terminal_shows_what_was_drawn(
            pictures in proptest::collection::vec(
                proptest::collection::vec((0u16..22, 0u16..4, "[ab 写é│]{1,5}", any::<bool>()), 0..6), 1..5)
        ) {
            let mut screen = Screen::new((20, 3));
            let mut terminal = vt100::Parser::new(3, 20, 0);
            for picture in &pictures {
                screen
                    .frame(
                        |buf| for (x, y, text, bold) in picture {
                            let modifier = if *bold { Modifier::BOLD } else { Modifier::empty() };
                            crate::tui::widgets::put::put(
                                buf, *x, *y, text, 20, Style::new().add_modifier(modifier));
                        },
                        |bytes| { terminal.process(bytes); Ok(()) },
                    )
                    .unwrap();
                let shown = screen.shown();
                for y in 0..3 {
                    let mut x = 0;
                    while x < 20 {
                        let (ours, theirs) = (&shown[(x, y)], terminal.screen().cell(y, x).unwrap());
                        let seen = if theirs.has_contents() { theirs.contents() } else { " " };
                        prop_assert_eq!(ours.symbol(), seen, "at {},{}", x, y);
                        prop_assert_eq!(ours.modifier.contains(Modifier::BOLD), theirs.bold());
                        x += ours.cell_width().max(1);
                    }
                }
            }
        }
    }
}
