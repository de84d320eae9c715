//! Lines of text, each in one style: wrapping and drawing.

use super::cell_buffer::CellBuffer;
use super::dialog::draw_column;
use super::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    Plain,
    Dim,
    Strong,
    /// A warning about the measurements.
    Warn,
    /// Why something cannot be done.
    Crit,
}

impl TextStyle {
    fn style(self, theme: &Theme) -> Style {
        match self {
            TextStyle::Plain => theme.text,
            TextStyle::Dim => theme.dim,
            TextStyle::Strong => theme.title,
            TextStyle::Warn => theme.warn,
            TextStyle::Crit => theme.crit,
        }
    }
}

pub(crate) type StyledLine = (String, TextStyle);

/// Wraps lines at blanks to `width`; continuation lines are indented by two more cells.
pub(crate) fn wrap_lines(lines: Vec<StyledLine>, width: usize) -> Vec<StyledLine> {
    let width = width.max(12);
    let mut out = Vec::with_capacity(lines.len());
    for (line, tone) in lines {
        let cells = |s: &str| unicode_width::UnicodeWidthStr::width(s);
        if cells(&line) <= width {
            out.push((line, tone));
            continue;
        }
        let indent = (line.len() - line.trim_start().len() + 2).min(width / 2);
        let mut rest = line.as_str();
        let mut pad = 0;
        while !rest.is_empty() {
            let (head, _) = crate::sanitize::fit_width(rest, width - pad);
            let mut cut = head.len();
            if cut < rest.len()
                && let Some(at) = head.rfind(' ').filter(|at| *at > cut / 2)
            {
                cut = at;
            }
            cut = cut.max(rest.chars().next().map_or(1, char::len_utf8));
            out.push((format!("{}{}", " ".repeat(pad), &rest[..cut]), tone));
            rest = rest[cut..].trim_start();
            pad = indent;
        }
    }
    out
}

/// Draws the lines from index `from` on.
pub(crate) fn draw_lines(theme: &Theme, area: Rect, buf: &mut CellBuffer, lines: &[StyledLine], from: usize) {
    draw_column(buf, area, lines.iter().skip(from).map(|(line, tone)| (line, tone.style(theme))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_wrap_with_their_indent() {
        let fold = |text: &str, width| -> Vec<String> {
            wrap_lines(vec![(text.into(), TextStyle::Plain)], width).into_iter().map(|l| l.0).collect()
        };
        assert_eq!(fold("  one two three four", 12), ["  one two", "    three", "    four"]);
        assert_eq!(fold("abcdefghijklmnopqrst", 12), ["abcdefghijkl", "  mnopqrst"]);
        assert_eq!(fold("a  b   c", 20), ["a  b   c"]);
        assert_eq!(fold("", 20), [""]);
        for width in 0..40 {
            fold("写作程序 写作程序写作程序写作程序 x 写作", width);
        }
    }
}
