//! The cells as a PNG with a palette. Shapes are drawn, letters come from [`font`](super::font): nothing is asked
//! of the machine, so that a server without any fonts makes the same picture.

use super::colour::{Palette, Rgb, mix};
use super::font::{self, Glyph};
use super::grid::{self, Spot};
use super::shape::{CELL, Part, shape};
use ratatui::buffer::Buffer;
use unicode_width::UnicodeWidthChar;

/// Pixels around the cells.
const MARGIN: usize = 8;
/// How hard deflate tries, of 10. More makes these pictures hardly smaller.
const EFFORT: u8 = 6;
/// Rows of the line below a word.
const UNDERLINE: std::ops::Range<u16> = 21..23;
/// Digits of a code, three pixels wide and five high, a row in each three bits.
const DIGITS: [u16; 16] = [
    0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71111, 0o75757, 0o75717, 0o75755,
    0o65656, 0o74447, 0o65556, 0o74647, 0o74644,
];

/// The picture.
pub fn png(buf: &Buffer, palette: &Palette) -> Vec<u8> {
    let mut canvas = Canvas::new(buf, palette);
    for spot in grid::spots(buf, palette) {
        canvas.spot(&spot);
    }
    canvas.file()
}

struct Canvas {
    width: usize,
    height: usize,
    /// Colours, by the numbers in `pixels`.
    colours: Vec<Rgb>,
    /// Row by row, each with the byte before it that says it is not filtered.
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(buf: &Buffer, palette: &Palette) -> Self {
        let width = usize::from(buf.area.width) * usize::from(CELL.0) + 2 * MARGIN;
        let height = usize::from(buf.area.height) * usize::from(CELL.1) + 2 * MARGIN;
        Self { width, height, colours: vec![palette.bg], pixels: vec![0; (width + 1) * height] }
    }

    /// A colour's number. A palette has room for 256; what comes after them gets the nearest.
    fn number(&mut self, colour: Rgb) -> u8 {
        if let Some(at) = self.colours.iter().position(|c| *c == colour) {
            return at as u8;
        }
        if self.colours.len() < 256 {
            self.colours.push(colour);
            return (self.colours.len() - 1) as u8;
        }
        let far =
            |c: &Rgb| -> u32 { c.iter().zip(colour).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum() };
        (0..=255).min_by_key(|at| far(&self.colours[usize::from(*at)])).unwrap_or(0)
    }

    fn spot(&mut self, spot: &Spot) {
        let (w, h) = CELL;
        let place = (MARGIN + usize::from(spot.x * w), MARGIN + usize::from(spot.y) * usize::from(h));
        let (look, width) = (spot.look, spot.cells * w);
        let ground = self.number(look.bg);
        if ground != 0 {
            self.area(place, 0..width, 0..h, ground);
        }
        let ink = self.number(look.fg);
        if let Some(shape) = shape(spot.symbol) {
            let ink = self.number(mix(look.fg, look.bg, shape.share));
            for part in &shape.parts {
                fill(part, |x, y| self.dot(place, x, y, ink));
            }
        } else if !spot.is_blank() {
            self.letter(place, spot, ink);
        }
        if look.underlined {
            self.area(place, 0..width, UNDERLINE, ink);
        }
    }

    fn letter(&mut self, place: (usize, usize), spot: &Spot, ink: u8) {
        let mut chars = spot.symbol.chars().filter(|c| crate::text::is_safe(*c));
        let Some(base) = chars.next() else { return };
        match font::glyph(base) {
            Some(glyph) => self.glyph(place, glyph, spot.look.bold, ink),
            None => self.unknown(place, base, spot.cells * CELL.0, ink),
        }
        for mark in chars {
            match font::glyph(mark).filter(|_| mark.width() == Some(0)) {
                Some(glyph) => self.glyph(place, glyph, spot.look.bold, ink),
                // Something is there that this font cannot show: a corner says so.
                None => self.area(place, CELL.0 - 4..CELL.0, 0..4, ink),
            }
        }
    }

    fn glyph(&mut self, place: (usize, usize), glyph: Glyph, bold: bool, ink: u8) {
        for y in 0..CELL.1 {
            for x in 0..CELL.0 {
                // Bold: every stroke a pixel wider.
                if glyph.is_set(x, y) || (bold && x > 0 && glyph.is_set(x - 1, y)) {
                    self.dot(place, x, y, ink);
                }
            }
        }
    }

    /// A box with the character's code, as the font has nothing better.
    fn unknown(&mut self, place: (usize, usize), c: char, width: u16, ink: u8) {
        let (left, right, top, bottom) = (1, width - 1, 2, 22);
        for (x, y) in [(left..right, top..top + 1), (left..right, bottom - 1..bottom)] {
            self.area(place, x, y, ink);
        }
        for x in [left..left + 1, right - 1..right] {
            self.area(place, x, top..bottom, ink);
        }
        let code = format!("{:04X}", c as u32);
        let across = if width > CELL.0 { 3 } else { 2 };
        let lines = code.len().div_ceil(across) as u16;
        let first = (CELL.1 - lines * 6).div_ceil(2);
        let start = (width - across as u16 * 4).div_ceil(2);
        for (i, digit) in code.chars().filter_map(|d| d.to_digit(16)).enumerate() {
            let (x, y) = (start + (i % across) as u16 * 4, first + (i / across) as u16 * 6);
            for bit in 0..15u16 {
                if DIGITS[digit as usize] >> (14 - bit) & 1 == 1 {
                    self.dot(place, x + bit % 3, y + bit / 3, ink);
                }
            }
        }
    }

    fn area(&mut self, place: (usize, usize), x: std::ops::Range<u16>, y: std::ops::Range<u16>, ink: u8) {
        for y in y {
            for x in x.clone() {
                self.dot(place, x, y, ink);
            }
        }
    }

    fn dot(&mut self, (left, top): (usize, usize), x: u16, y: u16, ink: u8) {
        let at = (top + usize::from(y)) * (self.width + 1) + 1 + left + usize::from(x);
        if let Some(pixel) = self.pixels.get_mut(at) {
            *pixel = ink;
        }
    }

    /// Signature, header, palette, pixels, end.
    fn file(self) -> Vec<u8> {
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        // Eight bits, by palette; deflate, no filter, not interlaced.
        header.extend([8, 3, 0, 0, 0]);
        chunk(&mut out, b"IHDR", &header);
        chunk(&mut out, b"PLTE", &self.colours.concat());
        chunk(&mut out, b"IDAT", &miniz_oxide::deflate::compress_to_vec_zlib(&self.pixels, EFFORT));
        chunk(&mut out, b"IEND", &[]);
        out
    }
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    out.extend((data.len() as u32).to_be_bytes());
    let from = out.len();
    out.extend(kind);
    out.extend(data);
    let sum = crc32fast::hash(&out[from..]);
    out.extend(sum.to_be_bytes());
}

/// Calls `dot` for the pixels of a part within its cell.
pub fn fill(part: &Part, mut dot: impl FnMut(u16, u16)) {
    match part {
        Part::Rect(x, y, w, h) => {
            let span = |from: f32, size: f32| {
                let first = from.round() as u16;
                first..((from + size).round() as u16).max(first + 1)
            };
            for y in span(*y, *h).filter(|y| *y < CELL.1) {
                span(*x, *w).filter(|x| *x < CELL.0).for_each(|x| dot(x, y));
            }
        }
        Part::Polygon(corners) => {
            for y in 0..CELL.1 {
                (0..CELL.0)
                    .filter(|x| is_inside(corners, f32::from(*x) + 0.5, f32::from(y) + 0.5))
                    .for_each(|x| dot(x, y));
            }
        }
    }
}

/// Even-odd: how many edges lie to the right of the point.
fn is_inside(corners: &[(f32, f32)], x: f32, y: f32) -> bool {
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

    /// As somebody else's decoder sees it: width, height, RGB.
    fn decode(file: &[u8]) -> (usize, usize, Vec<Rgb>) {
        let mut decoder = ::png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(::png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let pixels = bytes.chunks(3).map(|p| [p[0], p[1], p[2]]).collect();
        (info.width as usize, info.height as usize, pixels)
    }

    /// The pixels of some cells that are not of the ground: a line each row.
    fn drawn(text: &str, style: Style) -> Vec<String> {
        let mut buf = Buffer::empty(Rect::new(0, 0, 6, 1));
        buf.set_string(0, 0, text, style);
        let (width, height, pixels) = decode(&png(&buf, &DARK));
        assert_eq!((width, height), (6 * 12 + 16, 24 + 16));
        let line = |y: usize| {
            let row = &pixels[y * width..(y + 1) * width];
            row[MARGIN..width - MARGIN].iter().map(|p| if *p == DARK.bg { '.' } else { '#' }).collect()
        };
        (MARGIN..height - MARGIN).map(line).collect()
    }

    fn ink(picture: &[String]) -> usize {
        picture.concat().matches('#').count()
    }

    #[test]
    fn a_foreign_decoder_sees_the_cells_in_their_colours() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 2, 1));
        buf.set_string(0, 0, "█", Style::new().fg(Color::Red));
        buf.set_string(1, 0, " ", Style::new().bg(Color::Indexed(21)));
        let (width, _, pixels) = decode(&png(&buf, &DARK));
        let at = |x: usize, y: usize| pixels[(MARGIN + y) * width + MARGIN + x];
        assert_eq!(
            (at(0, 0), at(11, 23), at(12, 0), at(23, 23)),
            ([0xcc, 0x4b, 0x4b], [0xcc, 0x4b, 0x4b], [0, 0, 255], [0, 0, 255])
        );
        assert_eq!(pixels[0], DARK.bg);
    }

    #[test]
    fn letters_differ_bold_is_heavier_and_nothing_is_silently_blank() {
        let plain = Style::new();
        assert_ne!(drawn("a", plain), drawn("b", plain));
        assert!(ink(&drawn("a", plain.add_modifier(Modifier::BOLD))) > ink(&drawn("a", plain)));
        assert!(ink(&drawn("a", plain.add_modifier(Modifier::UNDERLINED))) == ink(&drawn("a", plain)) + 24);
        for known in ["é", "‼", "·", "…", "µ", "↓", "▾", "⣿", "Ж"] {
            assert!(ink(&drawn(known, plain)) > 0, "{known}");
        }
        assert_ne!(drawn("e\u{301}", plain), drawn("e", plain), "a mark that is not in the font");
    }

    #[test]
    fn a_character_that_is_not_in_the_font_is_a_box_with_its_code() {
        // 写 is U+5199, in two cells: between its frame the digits 5 1 9 and 9 below.
        let wide = drawn("写", Style::new());
        assert_eq!(&wide[2][..24], ".######################.");
        assert_eq!(&wide[6][..24], ".#....###..#..###.....#.");
        assert_ne!(wide, drawn("作", Style::new()));
        let narrow = drawn("ᚠ", Style::new());
        assert_eq!(&narrow[2][..12], ".##########.");
        assert!(narrow.iter().all(|row| !row[12..].contains('#')), "one cell wide");
        // Five digits in three lines.
        assert!(ink(&drawn("\u{10280}", Style::new())) > ink(&narrow));
    }

    #[test]
    fn more_colours_than_a_palette_holds_become_their_nearest() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 300, 1));
        for x in 0..300u16 {
            buf.set_string(x, 0, "█", Style::new().fg(Color::Rgb((x % 256) as u8, (x / 256) as u8, 0)));
        }
        let (width, _, pixels) = decode(&png(&buf, &DARK));
        let at = |cell: usize| pixels[MARGIN * width + MARGIN + cell * 12];
        assert_eq!(at(100), [100, 0, 0]);
        assert!(at(290)[0].abs_diff(34) <= 1, "{:?}", at(290));
    }
}
