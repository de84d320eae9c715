//! Boxes over the screen: a frame, a question, a line of input.

use super::put::put;
use super::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::symbols::border;
use ratatui::widgets::{Block, Clear, Widget};

/// A frame with a title on its top edge and, at the right of it, a note; returns the inside.
pub fn frame(buf: &mut Buffer, area: Rect, title: &str, note: &str, focused: bool, theme: &Theme) -> Rect {
    let style = if focused { theme.border_focus } else { theme.border };
    let block = Block::bordered().border_set(border::PLAIN).border_style(style);
    let inner = block.inner(area);
    block.render(area, buf);
    if area.width > 6 {
        let room = area.width - 4;
        let mut x = area.x + 1;
        x += put(buf, x, area.y, " ", 1, theme.title);
        x += put(buf, x, area.y, title, room - 1, theme.title);
        put(buf, x, area.y, " ", 1, theme.title);
        let cells = unicode_width::UnicodeWidthStr::width(note) as u16;
        let free = (area.right() - 2).saturating_sub(x + 1);
        if !note.is_empty() && free > 8 {
            let shown = cells.min(free - 2);
            let at = area.right() - 3 - shown;
            put(buf, at, area.y, " ", 1, theme.dim);
            put(buf, at + 1, area.y, note, shown, theme.dim);
            put(buf, at + 1 + shown, area.y, " ", 1, theme.dim);
        }
    }
    inner
}

/// A box of `width` by `height` in the middle of `area`, cleared and framed; returns the inside.
pub fn popup(buf: &mut Buffer, area: Rect, title: &str, width: u16, height: u16, theme: &Theme) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    let at =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(at, buf);
    frame(buf, at, title, "", true, theme)
}

/// A line of input with its label and a block for the cursor (a byte offset at a character boundary).
pub fn input(buf: &mut Buffer, area: Rect, label: &str, text: &str, cursor: usize, theme: &Theme) {
    let mut x = area.x;
    let mut style = |buf: &mut Buffer, s: &str, style: Style| {
        x += put(buf, x, area.y, s, area.right().saturating_sub(x), style);
    };
    for column in area.x..area.right() {
        buf[(column, area.y)].reset();
    }
    style(buf, label, theme.key);
    let (before, after) = text.split_at(cursor.min(text.len()));
    style(buf, before, theme.text);
    let reverse = theme.text.add_modifier(Modifier::REVERSED);
    let mut rest = after.chars();
    match rest.next() {
        Some(c) => style(buf, c.encode_utf8(&mut [0; 4]), reverse),
        None => style(buf, " ", reverse),
    }
    style(buf, rest.as_str(), theme.text);
}

/// `text` cut into lines of at most `width` cells, at blanks where there are any.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let mut word = word;
            loop {
                let gap = usize::from(!line.is_empty());
                let used = unicode_width::UnicodeWidthStr::width(line.as_str());
                let cells = unicode_width::UnicodeWidthStr::width(word);
                if used + gap + cells <= width {
                    if gap == 1 {
                        line.push(' ');
                    }
                    line.push_str(word);
                    break;
                }
                if line.is_empty() {
                    let (head, _) = crate::text::fit(word, width.max(2));
                    let cut = head.len().max(word.chars().next().map_or(1, char::len_utf8));
                    line.push_str(&word[..cut]);
                    word = &word[cut..];
                }
                lines.push(std::mem::take(&mut line));
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_and_long_ones_are_cut() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 4), ["abcd", "efgh", "i"]);
        assert_eq!(wrap("写作程序", 4), ["写作", "程序"]);
        assert_eq!(wrap("a\n\nb", 9), ["a", "", "b"]);
    }
}
