//! Sends the cells that differ between two frames to the terminal.
//!
//! Most of the screen stays the same, so the cost of a frame is comparing it with the one before. Only cells that differ
//! are converted to ratatui cells.

use super::cell_encoder::CellEncoder;
use super::widgets::cell_buffer::{CellBuffer, PackedCell, StyleTable};
use ratatui::buffer::{Cell, CellWidth};
use ratatui::layout::Rect;
use std::io;

/// mode 2026: the terminal shows the frame at once, not line by line.
const BEGIN_SYNCHRONIZED_UPDATE: &[u8] = b"\x1b[?2026h";
const END_SYNCHRONIZED_UPDATE: &[u8] = b"\x1b[?2026l";
/// So many unchanged cells between two changed ones are sent again rather than moved over.
const MAX_RESENT: usize = 3;

/// The frame on the terminal, and the buffer for the next one.
pub struct DiffRenderer {
    /// Blank between two frames; stores the previous frame.
    buffer: CellBuffer,
    /// The cells that differ, with their index.
    changed_cells: Vec<(u32, Cell)>,
    output: Vec<u8>,
    needs_clear: bool,
}

impl DiffRenderer {
    /// An empty screen of that size; the first frame draws everything.
    pub fn new(size: (u16, u16)) -> Self {
        let paper = CellBuffer::new(Rect::new(0, 0, size.0, size.1));
        Self { buffer: paper, changed_cells: Vec::new(), output: Vec::new(), needs_clear: true }
    }

    /// Sets the size; the next frame redraws everything.
    pub fn reset(&mut self, size: (u16, u16)) {
        self.buffer = CellBuffer::new(Rect::new(0, 0, size.0, size.1));
        self.needs_clear = true;
    }

    /// Draws a frame and passes the difference, as terminal bytes, to `send`, unless nothing differs.
    pub fn draw_frame(
        &mut self,
        draw: impl FnOnce(&mut CellBuffer),
        send: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.buffer.is_full() {
            self.reset((self.buffer.area.width, self.buffer.area.height));
        }
        draw(&mut self.buffer);
        self.changed_cells.clear();
        let changed = &mut self.changed_cells;
        self.buffer.swap(|names, row, before, now| collect_changed_cells(names, row, before, now, changed));
        if self.changed_cells.is_empty() && !self.needs_clear {
            return Ok(());
        }
        self.output.clear();
        self.output.extend_from_slice(BEGIN_SYNCHRONIZED_UPDATE);
        if std::mem::take(&mut self.needs_clear) {
            self.output.extend_from_slice(b"\x1b[0m\x1b[2J");
        }
        let width = u32::from(self.buffer.area.width.max(1));
        let mut encoder = CellEncoder::new(&mut self.output, width as u16);
        for (at, cell) in &self.changed_cells {
            encoder.write_cell(((at % width) as u16, (at / width) as u16), cell);
        }
        encoder.finish();
        self.output.extend_from_slice(END_SYNCHRONIZED_UPDATE);
        send(&self.output)?;
        if self.output.capacity() > 64 * 1024 {
            self.output = Vec::new();
        }
        if self.changed_cells.capacity() > 1024 {
            self.changed_cells = Vec::new();
        }
        Ok(())
    }
}

fn collect_changed_cells(
    names: &StyleTable,
    row: usize,
    before: &[PackedCell],
    now: &[PackedCell],
    changed: &mut Vec<(u32, Cell)>,
) {
    // A symbol of two columns affects the cell after it, so such a row is sent whole.
    let whole = before.iter().chain(now).any(|look| look.is_wide());
    let mut at = 0;
    // The cell after the last one that changed in this row.
    let mut last_end = None;
    while at < now.len() {
        let wide = now[at].is_wide();
        if whole || before[at] != now[at] {
            let from = last_end.filter(|end| !whole && is_cheaper_to_resend(&now[*end - 1..at])).unwrap_or(at);
            changed.extend((from..=at).map(|at| ((row * now.len() + at) as u32, names.unpack(now[at]))));
            last_end = Some(at + 1);
        }
        at += if wide { usize::from(names.unpack(now[at]).cell_width()) } else { 1 };
    }
}

/// Whether the cells after the first one are cheaper to send again than to move over: few letters of its style.
fn is_cheaper_to_resend(cells: &[PackedCell]) -> bool {
    let is_letter = |cell: &PackedCell| cell.as_char().is_some_and(|c| c.is_ascii()) && cell.has_style_of(cells[0]);
    cells.len() <= MAX_RESENT + 1 && cells[1..].iter().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::widgets::draw_text;
    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::style::{Color, Modifier, Style};

    #[test]
    fn only_changed_cells_are_sent_until_a_reset() {
        let mut screen = DiffRenderer::new((20, 2));
        let text = |s: &'static str| {
            move |paper: &mut CellBuffer| {
                draw_text(paper, 0, 0, s, 20, Style::new());
            }
        };
        let mut sizes = Vec::new();
        for (s, reset) in [("hello there", false), ("hello there", false), ("hello thera", false), ("x", true)] {
            if reset {
                screen.reset((20, 2));
            }
            let mut got = Vec::new();
            screen
                .draw_frame(text(s), |b| {
                    got.extend_from_slice(b);
                    Ok(())
                })
                .unwrap();
            sizes.push(got.len());
        }
        assert!(sizes[0] > sizes[2] && sizes[1] == 0 && sizes[2] > 0);
        assert!(sizes[3] > BEGIN_SYNCHRONIZED_UPDATE.len() + END_SYNCHRONIZED_UPDATE.len() + 4);
    }

    #[test]
    fn too_many_styles_force_a_full_redraw() {
        let mut screen = DiffRenderer::new((1, 1));
        let mut wiped = 0;
        for n in 0..4_200u32 {
            let [_, r, g, b] = n.to_be_bytes();
            let style = Style::new().fg(Color::Rgb(r, g, b));
            let mut sent = String::new();
            let send = |bytes: &[u8]| {
                sent = String::from_utf8(bytes.to_vec()).unwrap();
                Ok(())
            };
            screen.draw_frame(|paper| _ = draw_text(paper, 0, 0, "x", 1, style), send).unwrap();
            wiped += u32::from(sent.contains("\x1b[2J"));
            assert!(sent.contains(&format!("38;2;{r};{g};{b}m")), "{sent:?}");
        }
        assert!((3..100).contains(&wiped), "{wiped}");
    }

    const COLORS: [(Color, Color); 4] = [
        (Color::Reset, Color::Reset),
        (Color::Red, Color::Reset),
        (Color::Indexed(200), Color::LightBlue),
        (Color::Rgb(1, 2, 3), Color::Reset),
    ];

    fn vt100_color(color: Color) -> vt100::Color {
        match color {
            Color::Red => vt100::Color::Idx(1),
            Color::LightBlue => vt100::Color::Idx(12),
            Color::Indexed(n) => vt100::Color::Idx(n),
            Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
            _ => vt100::Color::Default,
        }
    }

    proptest! {
        /// Whatever the previous frame was, the terminal shows the new one.
        #[test]
        fn a_terminal_shows_what_was_drawn(
            pictures in proptest::collection::vec(
                proptest::collection::vec((0u16..22, 0u16..4, "[ab 写é│\u{301}]{1,5}", any::<bool>(), 0u8..4), 0..6), 1..5)
        ) {
            let mut screen = DiffRenderer::new((20, 3));
            let mut terminal = vt100::Parser::new(3, 20, 0);
            for picture in &pictures {
                let mut shown = Buffer::default();
                let draw = |paper: &mut CellBuffer| {
                    for (x, y, text, bold, color) in picture {
                        let modifier = if *bold { Modifier::BOLD } else { Modifier::empty() };
                        let (fg, bg) = COLORS[usize::from(*color)];
                        draw_text(paper, *x, *y, text, 20, Style::new().fg(fg).bg(bg).add_modifier(modifier));
                    }
                    shown = paper.to_buffer();
                };
                screen.draw_frame(draw, |bytes| { terminal.process(bytes); Ok(()) }).unwrap();
                for y in 0..3 {
                    let mut x = 0;
                    while x < 20 {
                        let (ours, theirs) = (&shown[(x, y)], terminal.screen().cell(y, x).unwrap());
                        let seen = if theirs.has_contents() { theirs.contents() } else { " " };
                        prop_assert_eq!(ours.symbol(), seen, "at {},{}", x, y);
                        prop_assert_eq!(vt100_color(ours.bg), theirs.bgcolor(), "at {},{}", x, y);
                        // Of a blank neither is to be seen.
                        if seen != " " {
                            prop_assert_eq!(ours.modifier.contains(Modifier::BOLD), theirs.bold(), "at {},{}", x, y);
                            prop_assert_eq!(vt100_color(ours.fg), theirs.fgcolor(), "at {},{}", x, y);
                        }
                        x += ours.cell_width().max(1);
                    }
                }
            }
        }
    }
}
