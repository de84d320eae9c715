//! The cells as a PNG with a palette. Shapes are drawn, text is in [`font`](super::font), so that a server without
//! fonts makes the same image.

use super::colour::{Palette, Rgb, blend};
use super::font::{self, Glyph};
use super::grid::{self, PositionedSymbol};
use super::shape::{CELL, ShapePart, symbol_shape};
use ratatui::buffer::Buffer;
use unicode_width::UnicodeWidthChar;

/// Margin around the cells in pixels.
const MARGIN: usize = 8;
/// Deflate level of 10. A higher level makes these images hardly smaller.
const COMPRESSION_LEVEL: u8 = 6;
/// Pixel rows of an underline.
const UNDERLINE_ROWS: std::ops::Range<u16> = 21..23;
/// Hexadecimal digits of 3x5 pixels, three bits a row.
const HEX_DIGITS: [u16; 16] = [
    0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71111, 0o75757, 0o75717, 0o75755, 0o65656,
    0o74447, 0o65556, 0o74647, 0o74644,
];

pub(super) fn to_png(buffer: &Buffer, palette: &Palette) -> Vec<u8> {
    let mut canvas = PngCanvas::new(buffer, palette);
    for positioned in grid::all_symbols(buffer, palette) {
        canvas.draw_symbol(&positioned);
    }
    canvas.encode()
}

struct PngCanvas {
    width: usize,
    height: usize,
    /// The palette, indexed by `pixels`.
    colours: Vec<Rgb>,
    /// Rows, each preceded by filter type 0.
    pixels: Vec<u8>,
}

impl PngCanvas {
    fn new(buffer: &Buffer, palette: &Palette) -> Self {
        let width = usize::from(buffer.area.width) * usize::from(CELL.0) + 2 * MARGIN;
        let height = usize::from(buffer.area.height) * usize::from(CELL.1) + 2 * MARGIN;
        Self { width, height, colours: vec![palette.bg], pixels: vec![0; (width + 1) * height] }
    }

    /// Palette index of a colour. Beyond 256 colours the nearest one is used.
    fn colour_index(&mut self, colour: Rgb) -> u8 {
        if let Some(at) = self.colours.iter().position(|c| *c == colour) {
            return at as u8;
        }
        if self.colours.len() < 256 {
            self.colours.push(colour);
            return (self.colours.len() - 1) as u8;
        }
        let far = |c: &Rgb| -> u32 { c.iter().zip(colour).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum() };
        (0..=255).min_by_key(|at| far(&self.colours[usize::from(*at)])).unwrap_or(0)
    }

    fn draw_symbol(&mut self, positioned: &PositionedSymbol) {
        let (w, h) = CELL;
        let origin = (MARGIN + usize::from(positioned.x * w), MARGIN + usize::from(positioned.y) * usize::from(h));
        let (style, width) = (positioned.style, positioned.width * w);
        let background = self.colour_index(style.bg);
        if background != 0 {
            self.fill_area(origin, 0..width, 0..h, background);
        }
        let ink = self.colour_index(style.fg);
        if let Some(shape) = symbol_shape(positioned.symbol) {
            let ink = self.colour_index(blend(style.fg, style.bg, shape.opacity_pct));
            for part in &shape.parts {
                fill_part(part, |x, y| self.set_pixel(origin, x, y, ink));
            }
        } else if !positioned.is_blank() {
            self.draw_text(origin, positioned, ink);
        }
        if style.is_underlined {
            self.fill_area(origin, 0..width, UNDERLINE_ROWS, ink);
        }
    }

    fn draw_text(&mut self, origin: (usize, usize), positioned: &PositionedSymbol, ink: u8) {
        let mut chars = positioned.symbol.chars().filter(|c| crate::sanitize::is_safe(*c));
        let Some(base) = chars.next() else { return };
        match font::find_glyph(base) {
            Some(glyph) => self.draw_glyph(origin, glyph, positioned.style.is_bold, ink),
            None => self.draw_missing_glyph(origin, base, positioned.width * CELL.0, ink),
        }
        for mark in chars {
            match font::find_glyph(mark).filter(|_| mark.width() == Some(0)) {
                Some(glyph) => self.draw_glyph(origin, glyph, positioned.style.is_bold, ink),
                // Mark a combining character that the font lacks.
                None => self.fill_area(origin, CELL.0 - 4..CELL.0, 0..4, ink),
            }
        }
    }

    fn draw_glyph(&mut self, origin: (usize, usize), glyph: Glyph, bold: bool, ink: u8) {
        for y in 0..CELL.1 {
            for x in 0..CELL.0 {
                // Bold strokes are one pixel wider.
                if glyph.is_set(x, y) || (bold && x > 0 && glyph.is_set(x - 1, y)) {
                    self.set_pixel(origin, x, y, ink);
                }
            }
        }
    }

    /// A box with the code point of a character that the font lacks.
    fn draw_missing_glyph(&mut self, origin: (usize, usize), c: char, width: u16, ink: u8) {
        let (left, right, top, bottom) = (1, width - 1, 2, 22);
        for (x, y) in [(left..right, top..top + 1), (left..right, bottom - 1..bottom)] {
            self.fill_area(origin, x, y, ink);
        }
        for x in [left..left + 1, right - 1..right] {
            self.fill_area(origin, x, top..bottom, ink);
        }
        let code = format!("{:04X}", c as u32);
        let across = if width > CELL.0 { 3 } else { 2 };
        let lines = code.len().div_ceil(across) as u16;
        let first = (CELL.1 - lines * 6).div_ceil(2);
        let start = (width - across as u16 * 4).div_ceil(2);
        for (i, digit) in code.chars().filter_map(|d| d.to_digit(16)).enumerate() {
            let (x, y) = (start + (i % across) as u16 * 4, first + (i / across) as u16 * 6);
            for bit in 0..15u16 {
                if HEX_DIGITS[digit as usize] >> (14 - bit) & 1 == 1 {
                    self.set_pixel(origin, x + bit % 3, y + bit / 3, ink);
                }
            }
        }
    }

    fn fill_area(&mut self, origin: (usize, usize), x: std::ops::Range<u16>, y: std::ops::Range<u16>, ink: u8) {
        for y in y {
            for x in x.clone() {
                self.set_pixel(origin, x, y, ink);
            }
        }
    }

    fn set_pixel(&mut self, (left, top): (usize, usize), x: u16, y: u16, ink: u8) {
        let at = (top + usize::from(y)) * (self.width + 1) + 1 + left + usize::from(x);
        if let Some(pixel) = self.pixels.get_mut(at) {
            *pixel = ink;
        }
    }

    /// The file: signature, IHDR, PLTE, IDAT, IEND.
    fn encode(self) -> Vec<u8> {
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        // Eight bits, palette; deflate, no filter, not interlaced.
        header.extend([8, 3, 0, 0, 0]);
        push_chunk(&mut out, b"IHDR", &header);
        push_chunk(&mut out, b"PLTE", &self.colours.concat());
        push_chunk(&mut out, b"IDAT", &miniz_oxide::deflate::compress_to_vec_zlib(&self.pixels, COMPRESSION_LEVEL));
        push_chunk(&mut out, b"IEND", &[]);
        out
    }
}

fn push_chunk(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    out.extend((data.len() as u32).to_be_bytes());
    let from = out.len();
    out.extend(kind);
    out.extend(data);
    let sum = crc32fast::hash(&out[from..]);
    out.extend(sum.to_be_bytes());
}

/// Calls `dot` for each pixel of a part.
pub(super) fn fill_part(part: &ShapePart, mut dot: impl FnMut(u16, u16)) {
    match part {
        ShapePart::Rect(x, y, w, h) => {
            let span = |from: f32, size: f32| {
                let first = from.round() as u16;
                first..((from + size).round() as u16).max(first + 1)
            };
            for y in span(*y, *h).filter(|y| *y < CELL.1) {
                span(*x, *w).filter(|x| *x < CELL.0).for_each(|x| dot(x, y));
            }
        }
        ShapePart::Polygon(corners) => {
            for y in 0..CELL.1 {
                (0..CELL.0)
                    .filter(|x| is_inside_polygon(corners, f32::from(*x) + 0.5, f32::from(y) + 0.5))
                    .for_each(|x| dot(x, y));
            }
        }
    }
}

/// Even-odd rule: counts the edges to the right of the point.
fn is_inside_polygon(corners: &[(f32, f32)], x: f32, y: f32) -> bool {
    let next = corners.iter().cycle().skip(1);
    let crossed = corners
        .iter()
        .zip(next)
        .filter(|((ax, ay), (bx, by))| (*ay > y) != (*by > y) && x < (bx - ax) * (y - ay) / (by - ay) + ax);
    crossed.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::super::colour::DARK;
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Modifier, Style};

    /// Decodes a file with the `png` crate: width, height, RGB.
    fn decode(file: &[u8]) -> (usize, usize, Vec<Rgb>) {
        let mut decoder = ::png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(::png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let pixels = bytes.chunks(3).map(|p| [p[0], p[1], p[2]]).collect();
        (info.width as usize, info.height as usize, pixels)
    }

    /// The rendered cells, one line a pixel row, `#` where the background is covered.
    fn render_text(text: &str, style: Style) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        buffer.set_string(0, 0, text, style);
        let (width, height, pixels) = decode(&to_png(&buffer, &DARK));
        assert_eq!((width, height), (6 * 12 + 16, 24 + 16));
        let line = |y: usize| {
            let row = &pixels[y * width..(y + 1) * width];
            row[MARGIN..width - MARGIN].iter().map(|p| if *p == DARK.bg { '.' } else { '#' }).collect()
        };
        (MARGIN..height - MARGIN).map(line).collect()
    }

    fn ink_pixels(picture: &[String]) -> usize {
        picture.concat().matches('#').count()
    }

    #[test]
    fn png_decoder_reads_the_cell_colours() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 2, 1));
        buffer.set_string(0, 0, "█", Style::new().fg(Color::Red));
        buffer.set_string(1, 0, " ", Style::new().bg(Color::Indexed(21)));
        let (width, _, pixels) = decode(&to_png(&buffer, &DARK));
        let at = |x: usize, y: usize| pixels[(MARGIN + y) * width + MARGIN + x];
        assert_eq!(
            (at(0, 0), at(11, 23), at(12, 0), at(23, 23)),
            ([0xcc, 0x4b, 0x4b], [0xcc, 0x4b, 0x4b], [0, 0, 255], [0, 0, 255])
        );
        assert_eq!(pixels[0], DARK.bg);
    }

    #[test]
    fn letters_differ_bold_is_heavier_and_known_symbols_are_drawn() {
        let plain = Style::new();
        assert_ne!(render_text("a", plain), render_text("b", plain));
        assert!(
            ink_pixels(&render_text("a", plain.add_modifier(Modifier::BOLD))) > ink_pixels(&render_text("a", plain))
        );
        assert!(
            ink_pixels(&render_text("a", plain.add_modifier(Modifier::UNDERLINED)))
                == ink_pixels(&render_text("a", plain)) + 24
        );
        for known in ["é", "‼", "·", "…", "µ", "↓", "▾", "⣿", "Ж"] {
            assert!(ink_pixels(&render_text(known, plain)) > 0, "{known}");
        }
        assert_ne!(render_text("e\u{301}", plain), render_text("e", plain), "a mark that is not in the font");
    }

    #[test]
    fn a_character_missing_from_the_font_is_a_box_with_its_code() {
        // 写 is U+5199, two cells wide: digits 5 1 9 with 9 below.
        let wide = render_text("写", Style::new());
        assert_eq!(&wide[2][..24], ".######################.");
        assert_eq!(&wide[6][..24], ".#....###..#..###.....#.");
        assert_ne!(wide, render_text("作", Style::new()));
        let narrow = render_text("ᚠ", Style::new());
        assert_eq!(&narrow[2][..12], ".##########.");
        assert!(narrow.iter().all(|row| !row[12..].contains('#')), "one cell wide");
        // Five digits in three lines.
        assert!(ink_pixels(&render_text("\u{10280}", Style::new())) > ink_pixels(&narrow));
    }

    #[test]
    fn colours_beyond_256_map_to_the_nearest() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 300, 1));
        for x in 0..300u16 {
            buffer.set_string(x, 0, "█", Style::new().fg(Color::Rgb((x % 256) as u8, (x / 256) as u8, 0)));
        }
        let (width, _, pixels) = decode(&to_png(&buffer, &DARK));
        let at = |cell: usize| pixels[MARGIN * width + MARGIN + cell * 12];
        assert_eq!(at(100), [100, 0, 0]);
        assert!(at(290)[0].abs_diff(34) <= 1, "{:?}", at(290));
    }
}
