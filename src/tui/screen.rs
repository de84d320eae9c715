//! What the terminal shows, what is drawn, and what differs between them, as bytes.
//!
//! Most of a monitor's screen stays as it was, so the time of a frame is the time of finding that out: and after a
//! second of sleep that is the time memory takes. So only one buffer of cells is there, blank between two frames; what
//! the terminal shows is kept in a few bytes a cell.

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use std::io;

/// mode 2026: the terminal shows the frame at once, not line by line.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// Styles told apart; a screen has a few dozen.
const MOST_STYLES: usize = 1 << 12;
/// Symbols of more than four bytes told apart.
const MOST_LONG: usize = 1 << 10;

/// What a cell looks like, in one number: equal if and only if they look the same. The symbol's bytes (or the place of
/// a longer one), the place of the style, and whether it takes two columns.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look(u64);

impl Look {
    /// A blank without style.
    const BLANK: Self = Self(b' ' as u64);
    const LONG: u64 = 1 << 62;
    const WIDE: u64 = 1 << 63;

    fn is_wide(self) -> bool {
        self.0 & Self::WIDE != 0
    }
}

/// Foreground, background, modifier.
type Dress = (Color, Color, Modifier);

/// The styles and long symbols that [`Look`]s name by their places.
struct Looks {
    styles: Vec<Dress>,
    /// The place of the style met last: most cells have their neighbour's.
    last: usize,
    long: Vec<Box<str>>,
}

impl Looks {
    fn new() -> Self {
        Self { styles: vec![(Color::Reset, Color::Reset, Modifier::empty())], last: 0, long: Vec::new() }
    }

    /// There are too many to go on naming them.
    fn is_full(&self) -> bool {
        self.styles.len() > MOST_STYLES || self.long.len() > MOST_LONG
    }

    fn of(&mut self, cell: &Cell) -> Look {
        let symbol = match cell.symbol().as_bytes() {
            [one] => u64::from(*one),
            more => self.symbol(cell, more),
        };
        Look(symbol | (self.style((cell.fg, cell.bg, cell.modifier)) as u64) << 32)
    }

    fn style(&mut self, style: Dress) -> usize {
        if self.styles[self.last] != style {
            self.last = self.styles.iter().position(|known| *known == style).unwrap_or_else(|| {
                self.styles.push(style);
                self.styles.len() - 1
            });
        }
        self.last
    }

    /// A symbol that is not one byte. UTF-8 has no zero bytes in it.
    fn symbol(&mut self, cell: &Cell, bytes: &[u8]) -> u64 {
        let wide = if is_wide(cell) { Look::WIDE } else { 0 };
        if bytes.len() <= 4 {
            return bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)) | wide;
        }
        let at = self.long.iter().position(|known| known.as_bytes() == bytes).unwrap_or_else(|| {
            self.long.push(cell.symbol().into());
            self.long.len() - 1
        });
        at as u64 | Look::LONG | wide
    }
}

/// The picture as the terminal has it, and the paper for the next one.
pub struct Screen {
    shown: Vec<Look>,
    looks: Looks,
    /// Blank between two frames.
    paper: Buffer,
    /// What of a row is drawn.
    row: Vec<Look>,
    /// What differs, by place in the buffer.
    changed: Vec<(u32, Cell)>,
    bytes: Vec<u8>,
    clear: bool,
}

impl Screen {
    /// An empty screen of that size; the first frame draws everything.
    pub fn new(size: (u16, u16)) -> Self {
        let mut screen = Self {
            shown: Vec::new(),
            looks: Looks::new(),
            paper: Buffer::default(),
            row: Vec::new(),
            changed: Vec::new(),
            bytes: Vec::new(),
            clear: true,
        };
        screen.reset(size);
        screen
    }

    /// Takes a new size (or the same one again): the next frame draws everything.
    pub fn reset(&mut self, size: (u16, u16)) {
        self.paper = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        self.forget();
    }

    /// The next frame begins with a blank terminal.
    fn forget(&mut self) {
        self.looks = Looks::new();
        self.shown = vec![Look::BLANK; self.paper.content.len()];
        self.clear = true;
    }

    /// Makes a frame with `draw` and hands the difference, as terminal bytes, to `send`; nothing is
    /// sent if nothing differs.
    pub fn frame(
        &mut self,
        draw: impl FnOnce(&mut Buffer),
        send: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.looks.is_full() {
            self.forget();
        }
        draw(&mut self.paper);
        self.compare();
        if self.changed.is_empty() && !self.clear {
            return Ok(());
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(BEGIN);
        if std::mem::take(&mut self.clear) {
            self.bytes.extend_from_slice(b"\x1b[0m\x1b[2J");
        }
        let width = u32::from(self.paper.area.width.max(1));
        let changed = self.changed.iter();
        CrosstermBackend::new(&mut self.bytes)
            .draw(changed.map(|(at, cell)| ((at % width) as u16, (at / width) as u16, cell)))?;
        self.bytes.extend_from_slice(END);
        send(&self.bytes)?;
        if self.bytes.capacity() > 64 * 1024 {
            self.bytes = Vec::new();
        }
        if self.changed.capacity() > 1024 {
            self.changed = Vec::new();
        }
        Ok(())
    }

    /// Finds what of the paper differs from what is shown, and blanks the paper row by row on the way: it is at hand
    /// right now.
    fn compare(&mut self) {
        self.changed.clear();
        let width = usize::from(self.paper.area.width).max(1);
        let rows = self.shown.chunks_mut(width).zip(self.paper.content.chunks_mut(width));
        for (row, (old, cells)) in rows.enumerate() {
            self.row.clear();
            self.row.extend(cells.iter().map(|cell| self.looks.of(cell)));
            if *old != *self.row {
                differences(old, &self.row, cells, (row * width) as u32, &mut self.changed);
                old.copy_from_slice(&self.row);
            }
            // Memory that is not written to need not be written back.
            let drawn = cells.iter_mut().zip(&self.row).filter(|(_, look)| **look != Look::BLANK);
            drawn.for_each(|(cell, _)| *cell = Cell::EMPTY);
        }
    }
}

/// Takes the cells of a row that are to be sent; `start` is the row's place in the buffer.
fn differences(old: &[Look], new: &[Look], cells: &mut [Cell], start: u32, changed: &mut Vec<(u32, Cell)>) {
    // Symbols of two columns: what stands right of one depends on it, so the row is sent whole.
    let whole = old.iter().chain(new).any(|look| look.is_wide());
    let mut at = 0;
    while at < new.len() {
        let width = if new[at].is_wide() { cells[at].cell_width().max(1) } else { 1 };
        if whole || old[at] != new[at] {
            changed.push((start + at as u32, std::mem::replace(&mut cells[at], Cell::EMPTY)));
        }
        at += usize::from(width);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::style::Style;

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

    #[test]
    fn what_looks_the_same_is_named_the_same() {
        let mut looks = Looks::new();
        let mut of = |symbol: &str, fg: Color| {
            let mut cell = Cell::EMPTY;
            cell.set_symbol(symbol).set_fg(fg);
            looks.of(&cell)
        };
        let long = "👩\u{200d}🚒";
        let symbols = [" ", "a", "é", "│", "写", "🚒", "a\u{301}", long, "👩\u{200d}🔬"];
        let all: Vec<Look> =
            [Color::Reset, Color::Red].iter().flat_map(|fg| symbols.map(|s| of(s, *fg))).collect();
        for (n, look) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|l| l == look), Some(n), "{n} looks like an earlier one");
        }
        assert!(of(" ", Color::Reset) == Look::BLANK && looks.of(&Cell::EMPTY) == Look::BLANK);
        let again = looks.of(Cell::EMPTY.clone().set_symbol(long));
        assert!(again == all[7] && again.is_wide());
    }

    #[test]
    fn too_many_styles_begin_anew() {
        let mut screen = Screen::new((1, 1));
        for n in 0..MOST_STYLES as u32 {
            let [_, r, g, b] = n.to_be_bytes();
            screen
                .frame(
                    |buf| {
                        buf.content[0].set_symbol("x").set_fg(Color::Rgb(r, g, b));
                    },
                    |_| Ok(()),
                )
                .unwrap();
        }
        assert!(screen.looks.is_full());
        let mut sent = Vec::new();
        screen
            .frame(
                |buf| {
                    buf.content[0].set_symbol("y");
                },
                |bytes| {
                    sent.extend(bytes);
                    Ok(())
                },
            )
            .unwrap();
        assert!(String::from_utf8(sent).unwrap().contains("\x1b[2J"));
        assert!(!screen.looks.is_full());
    }

    proptest! {
        /// Whatever was there before, the terminal shows the new picture.
        #[test]
        fn a_terminal_shows_what_was_drawn(
            pictures in proptest::collection::vec(
                proptest::collection::vec((0u16..22, 0u16..4, "[ab 写é│\u{301}]{1,5}", any::<bool>()), 0..6), 1..5)
        ) {
            let mut screen = Screen::new((20, 3));
            let mut terminal = vt100::Parser::new(3, 20, 0);
            for picture in &pictures {
                let mut shown = Buffer::default();
                let draw = |buf: &mut Buffer| {
                    for (x, y, text, bold) in picture {
                        let modifier = if *bold { Modifier::BOLD } else { Modifier::empty() };
                        crate::tui::widgets::put::put(
                            buf, *x, *y, text, 20, Style::new().add_modifier(modifier));
                    }
                    shown = buf.clone();
                };
                screen.frame(draw, |bytes| { terminal.process(bytes); Ok(()) }).unwrap();
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
