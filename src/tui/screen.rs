//! Two buffers and what differs between them, as bytes.

use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
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
    next: Buffer,
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
        self.next.reset();
        draw(&mut self.next);
        {
            let mut bytes = self.bytes.0.borrow_mut();
            bytes.clear();
            bytes.extend_from_slice(BEGIN);
            if self.clear {
                bytes.extend_from_slice(b"\x1b[0m\x1b[2J");
            }
        }
        let mut updates = self.shown.diff_iter(&self.next).peekable();
        if updates.peek().is_some() || self.clear {
            self.backend.draw(updates)?;
            let mut bytes = self.bytes.0.borrow_mut();
            bytes.extend_from_slice(END);
            send(&bytes)?;
            if bytes.capacity() > 64 * 1024 {
                *bytes = Vec::new();
            }
        }
        self.clear = false;
        std::mem::swap(&mut self.shown, &mut self.next);
        Ok(())
    }

    /// The picture last handed over.
    pub fn shown(&self) -> &Buffer {
        &self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
