//! What the terminal shows, what is drawn, and what differs between them, as bytes.
//!
//! Most of a monitor's screen stays as it was, so the time of a frame is the time of finding that out: and after a
//! second of sleep that is the time memory takes. So only the cells that differ become cells of ratatui's.

use super::widgets::canvas::{Canvas, Look, Names};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::{Cell, CellWidth};
use ratatui::layout::Rect;
use std::io;

/// mode 2026: the terminal shows the frame at once, not line by line.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// The picture as the terminal has it, and the paper for the next one.
pub struct Screen {
    /// Blank between two frames; it knows the frame before.
    paper: Canvas,
    /// What differs, by place on the screen.
    changed: Vec<(u32, Cell)>,
    bytes: Vec<u8>,
    clear: bool,
}

impl Screen {
    /// An empty screen of that size; the first frame draws everything.
    pub fn new(size: (u16, u16)) -> Self {
        let paper = Canvas::new(Rect::new(0, 0, size.0, size.1));
        Self { paper, changed: Vec::new(), bytes: Vec::new(), clear: true }
    }

    /// Takes a new size (or the same one again): the next frame draws everything.
    pub fn reset(&mut self, size: (u16, u16)) {
        self.paper = Canvas::new(Rect::new(0, 0, size.0, size.1));
        self.clear = true;
    }

    /// Makes a frame with `draw` and hands the difference, as terminal bytes, to `send`; nothing is
    /// sent if nothing differs.
    pub fn frame(
        &mut self,
        draw: impl FnOnce(&mut Canvas),
        send: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.paper.is_full() {
            self.reset((self.paper.area.width, self.paper.area.height));
        }
        draw(&mut self.paper);
        self.changed.clear();
        let changed = &mut self.changed;
        self.paper.turn(|names, row, before, now| differences(names, row, before, now, changed));
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
}

/// Takes the cells of a row that are to be sent.
fn differences(names: &Names, row: usize, before: &[Look], now: &[Look], changed: &mut Vec<(u32, Cell)>) {
    // Symbols of two columns: what stands right of one depends on it, so the row is sent whole.
    let whole = before.iter().chain(now).any(|look| look.is_wide());
    let mut at = 0;
    while at < now.len() {
        let wide = now[at].is_wide();
        if whole || before[at] != now[at] {
            changed.push(((row * now.len() + at) as u32, names.cell(now[at])));
        }
        at += if wide { usize::from(names.cell(now[at]).cell_width()) } else { 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::widgets::put::put;
    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::style::{Color, Modifier, Style};

    #[test]
    fn only_differences_travel_and_a_reset_sends_all() {
        let mut screen = Screen::new((20, 2));
        let text = |s: &'static str| {
            move |paper: &mut Canvas| {
                put(paper, 0, 0, s, 20, Style::new());
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
    fn too_many_styles_begin_anew() {
        let mut screen = Screen::new((1, 1));
        let mut wiped = 0;
        for n in 0..4_200u32 {
            let [_, r, g, b] = n.to_be_bytes();
            let style = Style::new().fg(Color::Rgb(r, g, b));
            let mut sent = String::new();
            let send = |bytes: &[u8]| {
                sent = String::from_utf8(bytes.to_vec()).unwrap();
                Ok(())
            };
            screen.frame(|paper| _ = put(paper, 0, 0, "x", 1, style), send).unwrap();
            wiped += u32::from(sent.contains("\x1b[2J"));
            assert!(sent.contains(&format!("38;2;{r};{g};{b};")), "{sent:?}");
        }
        assert!((3..100).contains(&wiped), "{wiped}");
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
                let draw = |paper: &mut Canvas| {
                    for (x, y, text, bold) in picture {
                        let modifier = if *bold { Modifier::BOLD } else { Modifier::empty() };
                        put(paper, *x, *y, text, 20, Style::new().add_modifier(modifier));
                    }
                    shown = paper.picture();
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
