//! Frames, popups and input lines.

use super::border::draw_border;
use super::text::{clear_area, draw_clipped, draw_text};
use super::theme::Theme;
use super::title_note::title_note_room;
pub(crate) use crate::sanitize::wrap;
use crate::tui::widgets::cell_buffer::CellBuffer;
use ratatui::layout::{Margin, Rect};
use ratatui::style::{Modifier, Style};

/// Draws a frame with a title at the left of its top edge and a note at the right; returns the inside.
pub(crate) fn draw_frame(
    buf: &mut CellBuffer,
    area: Rect,
    title: &str,
    note: &str,
    focused: bool,
    theme: &Theme,
) -> Rect {
    let style = if focused { theme.border_focused } else { theme.border };
    draw_border(buf, area, style);
    draw_title(buf, area, title, note, theme)
}

/// Draws the title and the note of a frame whose border is there; returns the inside.
pub(crate) fn draw_title(buf: &mut CellBuffer, area: Rect, title: &str, note: &str, theme: &Theme) -> Rect {
    if area.width > 6 {
        let room = area.width - 4;
        let mut x = area.x + 1;
        x += draw_text(buf, x, area.y, " ", 1, theme.title);
        x += draw_text(buf, x, area.y, title, room - 1, theme.title);
        draw_text(buf, x, area.y, " ", 1, theme.title);
        let cells = unicode_width::UnicodeWidthStr::width(note) as u16;
        let free = title_note_room(area.width, usize::from(x - area.x - 2));
        if !note.is_empty() && free > 6 {
            let shown = cells.min(free);
            let at = area.right() - 3 - shown;
            draw_text(buf, at, area.y, " ", 1, theme.dim);
            draw_text(buf, at + 1, area.y, note, shown, theme.dim);
            draw_text(buf, at + 1 + shown, area.y, " ", 1, theme.dim);
        }
    }
    area.inner(Margin::new(1, 1))
}

/// Draws an empty framed box in the middle of the screen; returns the inside.
pub(crate) fn draw_popup(buf: &mut CellBuffer, title: &str, width: u16, height: u16, theme: &Theme) -> Rect {
    let area = buf.area;
    let (width, height) = (width.min(area.width), height.min(area.height));
    let at = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    clear_area(buf, at);
    draw_frame(buf, at, title, "", true, theme)
}

/// Draws an empty framed box that ends above row `bottom`; returns the inside.
pub(crate) fn draw_popup_above(
    buf: &mut CellBuffer,
    bottom: u16,
    (title, note): (&str, &str),
    width: u16,
    height: u16,
    theme: &Theme,
) -> Rect {
    let area = buf.area;
    let (width, height) = (width.min(area.width), height.min(bottom.saturating_sub(area.y)));
    let at = Rect { x: area.x, y: bottom - height, width, height };
    clear_area(buf, at);
    draw_frame(buf, at, title, note, true, theme)
}

/// Draws an input line with a label and a block cursor (a byte offset of `text` at a character boundary). Cuts off the
/// start of a long text so that the cursor stays visible.
pub(crate) fn draw_input(buf: &mut CellBuffer, area: Rect, label: &str, text: &str, cursor: usize, theme: &Theme) {
    let mut x = area.x;
    let mut style = |buf: &mut CellBuffer, s: &str, style: Style| {
        x += draw_clipped(buf, x, area.y, s, area.right().saturating_sub(x), style);
    };
    clear_area(buf, Rect { height: 1, ..area });
    let cells = |s: &str| unicode_width::UnicodeWidthStr::width(s);
    // Sanitizing changes lengths, so both parts are sanitized separately.
    let (before, after) = text.split_at(cursor.min(text.len()));
    let (before, after) = (crate::sanitize::sanitize(before), crate::sanitize::sanitize(after));
    let width = usize::from(area.width);
    let label = if cells(label) + 8 > width { "" } else { label };
    // The cursor needs a cell, two on a wide character.
    let room = width.saturating_sub(cells(label) + 2);
    let mut shown = before.as_str();
    while cells(shown) > room {
        let first = shown.chars().next().map_or(shown.len(), char::len_utf8);
        shown = &shown[first..];
    }
    style(buf, label, theme.key);
    style(buf, shown, theme.text);
    let reverse = theme.text.add_modifier(Modifier::REVERSED);
    let mut rest = after.chars();
    match rest.next() {
        Some(c) if unicode_width::UnicodeWidthChar::width(c) > Some(0) => {
            style(buf, c.encode_utf8(&mut [0; 4]), reverse);
        }
        _ => style(buf, " ", reverse),
    }
    style(buf, rest.as_str(), theme.text);
}

/// A title, and the filter in force.
pub(crate) fn title_with_filter(title: impl Into<String>, filter: &str) -> String {
    match filter {
        "" => title.into(),
        filter => format!("{} · filter \"{}\"", title.into(), crate::sanitize::sanitize(filter)),
    }
}

/// Draws lines from the top of an area, as many as fit.
pub(crate) fn draw_column<T: AsRef<str>>(
    buf: &mut CellBuffer,
    area: Rect,
    lines: impl IntoIterator<Item = (T, Style)>,
) {
    for ((line, style), y) in lines.into_iter().zip(area.top()..area.bottom()) {
        draw_text(buf, area.x, y, line.as_ref(), area.width, style);
    }
}

/// Draws a text wrapped to the width of an area, as much as fits; returns the rows used.
pub(crate) fn draw_wrapped(buf: &mut CellBuffer, area: Rect, text: &str, style: Style) -> u16 {
    let lines = wrap(text, usize::from(area.width));
    draw_column(buf, area, lines.iter().map(|line| (line, style)));
    (lines.len() as u16).min(area.height)
}

/// Draws why there is no data, wrapped.
pub(crate) fn draw_reason(buf: &mut CellBuffer, area: Rect, text: &str, style: Style) {
    draw_wrapped(buf, area, &format!("- {text}"), style);
}

/// The rows that [`draw_reason`] takes in so many cells.
pub(crate) fn reason_rows(text: &str, width: u16) -> u16 {
    wrap(&format!("- {text}"), width.into()).len() as u16
}

/// The first `rows` rows of an area, and the rest.
pub(crate) fn split_rows(area: Rect, rows: u16) -> [Rect; 2] {
    [Rect { height: rows.min(area.height), ..area }, area_below(area, rows)]
}

/// The first `columns` columns of an area, and the rest.
pub(crate) fn split_columns(area: Rect, columns: u16) -> [Rect; 2] {
    let width = columns.min(area.width);
    [Rect { width, ..area }, Rect { x: area.x + width, width: area.width - width, ..area }]
}

/// `area` without its first `rows` rows.
pub(crate) fn area_below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect { y: area.y + rows, height: area.height - rows, ..area }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_cursor_is_always_visible() {
        let theme = Theme::default();
        // Marks beyond the third are not shown: what is on screen is shorter than what was typed.
        let marks = format!("e{}éé写写写写写写写写写写", "\u{20d0}".repeat(4));
        for text in ["", "abc", "0123456789012345678901234567890", &marks] {
            for cursor in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                for width in [0, 1, 5, 12, 24] {
                    let mut buf = CellBuffer::new(Rect::new(0, 0, width, 1));
                    let area = buf.area;
                    draw_input(&mut buf, area, "label: ", text, cursor, &theme);
                    let cursors =
                        buf.to_buffer().content.iter().filter(|c| c.modifier.contains(Modifier::REVERSED)).count();
                    assert!(cursors == 1 || width < 2, "{text:?} at {cursor} in {width}: {cursors}");
                }
            }
        }
    }
}
