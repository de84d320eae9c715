//! The cells as an SVG image. Text stays text, so that it can be searched and copied; its position and width do not
//! depend on the viewer's font. Shapes and backgrounds are one path a colour, so that adjacent parts have no seam at
//! any scale.

use super::colour::{Palette, Rgb, blend, to_hex};
use super::grid::{self, PositionedSymbol};
use super::shape::{CELL, ShapePart, symbol_shape};
use crate::export::escape_html;
use ratatui::buffer::Buffer;
use std::fmt::Write;

const WIDTH: f32 = CELL.0 as f32;
const HEIGHT: f32 = CELL.1 as f32;
/// Margin around the cells in units.
const MARGIN: f32 = 10.0;
/// Pixels per unit: cells are 9 by 18 pixels.
const SCALE: f32 = 0.75;
/// Baseline of the text, and top and height of an underline.
const BASELINE: f32 = 18.5;
const UNDERLINE: (f32, f32) = (21.0, 1.5);
/// Most monospaced fonts are 0.6 of their size wide, which fills a cell.
const FONT_SIZE: f32 = 20.0;

/// The SVG file. `title` is for readers that do not show images.
pub fn to_svg(buffer: &Buffer, palette: &Palette, title: &str) -> String {
    let (w, h) = (f32::from(buffer.area.width) * WIDTH, f32::from(buffer.area.height) * HEIGHT);
    let (w, h) = (w + 2.0 * MARGIN, h + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{}\" height=\"{}\" role=\"img\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n\
         <g transform=\"translate({MARGIN},{MARGIN})\">\n",
        w * SCALE,
        h * SCALE,
        escape_html(title),
        to_hex(palette.bg)
    );
    out.push_str(&svg_paths(buffer, palette));
    let _ = writeln!(
        out,
        "<g font-family=\"ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace\" font-size=\"{FONT_SIZE}\">"
    );
    for y in 0..buffer.area.height {
        push_row(&mut out, &grid::row_symbols(buffer, palette, y).collect::<Vec<_>>());
    }
    out.push_str("</g>\n</g>\n</svg>\n");
    out
}

/// Paths of backgrounds, then of shapes and underlines; for the SVG, and for the one behind the text in HTML.
pub(crate) fn svg_paths(buffer: &Buffer, palette: &Palette) -> String {
    let (mut backgrounds, mut shapes) = (PathsByColour::default(), PathsByColour::default());
    for positioned in grid::all_symbols(buffer, palette) {
        let (x, y) = (f32::from(positioned.x) * WIDTH, f32::from(positioned.y) * HEIGHT);
        let (style, width) = (positioned.style, f32::from(positioned.width) * WIDTH);
        if style.bg != palette.bg {
            backgrounds.push_rect(style.bg, x, y, width, HEIGHT);
        }
        if let Some(shape) = symbol_shape(positioned.symbol) {
            let colour = blend(style.fg, style.bg, shape.opacity_pct);
            shape.parts.iter().for_each(|part| shapes.push_part(colour, x, y, part));
        }
        if style.is_underlined {
            shapes.push_rect(style.fg, x, y + UNDERLINE.0, width, UNDERLINE.1);
        }
    }
    backgrounds.into_svg() + &shapes.into_svg()
}

/// One path a colour, in order of appearance.
#[derive(Default)]
struct PathsByColour(Vec<ColourPath>);

struct ColourPath {
    colour: Rgb,
    path: String,
    /// The last rectangle, which may still grow to the right.
    open_rect: Option<[f32; 4]>,
}

impl PathsByColour {
    fn path_of(&mut self, colour: Rgb) -> &mut ColourPath {
        let at = self.0.iter().position(|s| s.colour == colour).unwrap_or_else(|| {
            self.0.push(ColourPath { colour, path: String::new(), open_rect: None });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    fn push_rect(&mut self, colour: Rgb, x: f32, y: f32, w: f32, h: f32) {
        let stroke = self.path_of(colour);
        match &mut stroke.open_rect {
            Some([left, top, width, height]) if (*top, *height, *left + *width) == (y, h, x) => *width += w,
            _ => {
                stroke.close_rect();
                stroke.open_rect = Some([x, y, w, h]);
            }
        }
    }

    fn push_part(&mut self, colour: Rgb, x: f32, y: f32, part: &ShapePart) {
        match part {
            ShapePart::Rect(left, top, w, h) => self.push_rect(colour, x + left, y + top, *w, *h),
            ShapePart::Polygon(corners) => {
                let stroke = self.path_of(colour);
                for (i, (cx, cy)) in corners.iter().enumerate() {
                    let (sign, cx, cy) =
                        (if i == 0 { 'M' } else { 'L' }, round_hundredths(x + cx), round_hundredths(y + cy));
                    let _ = write!(stroke.path, "{sign}{cx} {cy}");
                }
                stroke.path.push('z');
            }
        }
    }

    fn into_svg(mut self) -> String {
        let mut out = String::new();
        for stroke in &mut self.0 {
            stroke.close_rect();
            let _ = writeln!(out, "<path fill=\"{}\" d=\"{}\"/>", to_hex(stroke.colour), stroke.path);
        }
        out
    }
}

impl ColourPath {
    fn close_rect(&mut self) {
        if let Some(rect) = self.open_rect.take() {
            let [x, y, w, h] = rect.map(round_hundredths);
            let _ = write!(self.path, "M{x} {y}h{w}v{h}h-{w}z");
        }
    }
}

fn round_hundredths(units: f32) -> f32 {
    (units * 100.0).round() / 100.0
}

fn is_text(positioned: &PositionedSymbol) -> bool {
    !positioned.is_blank() && symbol_shape(positioned.symbol).is_none()
}

/// Adds the text of a row: ASCII words of one style together, stretched to their width; other symbols, which may come
/// from another font, one by one.
fn push_row(out: &mut String, symbols: &[PositionedSymbol]) {
    let mut at = 0;
    while at < symbols.len() {
        let first = &symbols[at];
        if !is_text(first) {
            at += 1;
            continue;
        }
        let mut end = at + 1;
        if first.symbol.is_ascii() {
            let style = |s: &PositionedSymbol| (s.style.fg, s.style.is_bold);
            let goes_on = |s: &PositionedSymbol| s.symbol.is_ascii() && style(s) == style(first);
            while end < symbols.len() && goes_on(&symbols[end]) {
                // A single space between words belongs to the run; a gap ends it.
                if symbols[end].is_blank() && !symbols.get(end + 1).is_some_and(|s| goes_on(s) && is_text(s)) {
                    break;
                }
                end += 1;
            }
        }
        push_text_run(out, &symbols[at..end]);
        at = end;
    }
}

fn push_text_run(out: &mut String, symbols: &[PositionedSymbol]) {
    let first = &symbols[0];
    let text: String = symbols.iter().map(|s| s.symbol).collect();
    let cells: u16 = symbols.iter().map(|s| s.width).sum();
    let (x, y) = (f32::from(first.x) * WIDTH, f32::from(first.y) * HEIGHT + BASELINE);
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\"{}>{}</text>",
        f32::from(cells) * WIDTH,
        to_hex(first.style.fg),
        if first.style.is_bold { " font-weight=\"bold\"" } else { "" },
        escape_html(&text)
    );
}

#[cfg(test)]
mod tests {
    use super::super::colour::DARK;
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Modifier, Style};

    fn render(put: impl Fn(&mut Buffer)) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 1));
        put(&mut buffer);
        to_svg(&buffer, &DARK, "x & \"y\"")
    }

    #[test]
    fn text_is_escaped_and_runs_are_positioned() {
        let svg = render(|buffer| {
            buffer.set_string(0, 0, "a<b c", Style::new());
            buffer.set_string(7, 0, "写d", Style::new().fg(Color::Red));
        });
        assert!(svg.contains("<text x=\"0\" y=\"18.5\" textLength=\"60\""), "{svg}");
        assert!(svg.contains(">a&lt;b c</text>"), "{svg}");
        assert!(svg.contains("x=\"84\" y=\"18.5\" textLength=\"24\""), "{svg}");
        assert!(svg.contains("fill=\"#cc4b4b\">写</text>") && svg.contains("x=\"108\""), "{svg}");
        assert!(svg.contains("<title>x &amp; &quot;y&quot;</title>"));
    }

    #[test]
    fn a_horizontal_line_is_one_path_without_text() {
        let svg = render(|buffer| {
            buffer.set_string(0, 0, "────────────", Style::new().fg(Color::Cyan));
        });
        assert!(svg.contains("<path fill=\"#4fb3bf\" d=\"M0 11h144v2h-144z\"/>"), "{svg}");
        assert!(!svg.contains("<text"));
    }

    #[test]
    fn a_reversed_row_is_one_rectangle_and_underlines_are_drawn() {
        let style = Style::new().add_modifier(Modifier::REVERSED | Modifier::UNDERLINED);
        let svg = render(|buffer| {
            buffer.set_string(0, 0, "one two     ", style);
        });
        assert!(svg.contains("<path fill=\"#d0d4dc\" d=\"M0 0h144v24h-144z\"/>"), "{svg}");
        assert!(svg.contains("<path fill=\"#14171c\" d=\"M0 21h144v1.5h-144z\"/>"), "{svg}");
        assert!(svg.contains("fill=\"#14171c\">one two</text>"), "{svg}");
    }
}
