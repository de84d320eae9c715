//! A screen as an SVG picture: real text in a fixed grid, so that it can be searched and copied.

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

/// A cell's size and the line's baseline in user units.
const CELL: (f64, f64) = (8.4, 18.0);
const BASELINE: f64 = 13.5;
const FOREGROUND: &str = "#d0d4dc";
const BACKGROUND: &str = "#14171c";

/// How a run of cells looks.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

/// The picture. `title` is for readers that do not show pictures.
pub fn svg(buf: &Buffer, title: &str) -> String {
    let (w, h) = (f64::from(buf.area.width) * CELL.0 + 16.0, f64::from(buf.area.height) * CELL.1 + 16.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w:.0} {h:.0}\" width=\"{w:.0}\" height=\"{h:.0}\" \
         role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n\
         <g transform=\"translate(8,8)\" font-family=\"ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace\" \
         font-size=\"14\" xml:space=\"preserve\">\n",
        escape(title)
    );
    for y in 0..buf.area.height {
        row(&mut out, buf, y);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn row(out: &mut String, buf: &Buffer, y: u16) {
    let mut x = 0;
    while x < buf.area.width {
        let look = look(buf, x, y);
        let (start, mut text) = (x, String::new());
        let mut cells = 0;
        while x < buf.area.width && self::look(buf, x, y) == look {
            let symbol = buf[(x, y)].symbol();
            let wide = unicode_width::UnicodeWidthStr::width(symbol).max(1) as u16;
            text.push_str(symbol);
            x += wide;
            cells += wide;
        }
        run(out, &text, start, y, cells, look);
    }
}

fn look(buf: &Buffer, x: u16, y: u16) -> Look {
    let cell = &buf[(x, y)];
    Look { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }
}

fn run(out: &mut String, text: &str, x: u16, y: u16, cells: u16, look: Look) {
    let (mut fg, mut bg) = (colour(look.fg, FOREGROUND), colour(look.bg, BACKGROUND));
    if look.modifier.contains(Modifier::REVERSED) {
        std::mem::swap(&mut fg, &mut bg);
    }
    let (px, py, pw) = (f64::from(x) * CELL.0, f64::from(y) * CELL.1, f64::from(cells) * CELL.0);
    if bg != BACKGROUND {
        let _ = writeln!(
            out,
            "<rect x=\"{px:.1}\" y=\"{py:.1}\" width=\"{pw:.1}\" height=\"{}\" fill=\"{bg}\"/>",
            CELL.1
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let mut style = String::new();
    if look.modifier.contains(Modifier::BOLD) {
        style.push_str(" font-weight=\"bold\"");
    }
    if look.modifier.contains(Modifier::DIM) {
        style.push_str(" opacity=\"0.6\"");
    }
    if look.modifier.contains(Modifier::UNDERLINED) {
        style.push_str(" text-decoration=\"underline\"");
    }
    let ty = py + BASELINE;
    let _ = writeln!(
        out,
        "<text x=\"{px:.1}\" y=\"{ty:.1}\" textLength=\"{pw:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{fg}\"{style}>{}</text>",
        escape(text)
    );
}

fn colour(c: Color, default: &'static str) -> &'static str {
    match c {
        Color::Black => "#000000",
        Color::Red => "#cc4b4b",
        Color::Green => "#5fb36a",
        Color::Yellow => "#d7a94b",
        Color::Blue => "#5b8bd9",
        Color::Magenta => "#b978c9",
        Color::Cyan => "#4fb3bf",
        Color::Gray => "#b4bac4",
        Color::DarkGray => "#767d89",
        Color::LightRed => "#ff6b6b",
        Color::LightGreen => "#8be28f",
        Color::LightYellow => "#ffd479",
        Color::LightBlue => "#8ab4f8",
        Color::LightMagenta => "#dba3ea",
        Color::LightCyan => "#7fdbe6",
        Color::White => "#ffffff",
        _ => default,
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| crate::text::is_safe(*c)) {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn text_is_escaped_and_runs_keep_their_place() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 10, 1));
        buf.set_string(0, 0, "a<b", Style::new());
        buf.set_string(4, 0, "写", Style::new().fg(Color::Red));
        let svg = svg(&buf, "x & \"y\"");
        assert!(svg.contains(">a&lt;b </text>"), "{svg}");
        assert!(svg.contains("x=\"33.6\"") && svg.contains("fill=\"#cc4b4b\">写</text>"), "{svg}");
        assert!(svg.contains("<title>x &amp; &quot;y&quot;</title>"));
    }
}
