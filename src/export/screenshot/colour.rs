//! RGB values of the terminal's colours for PNG, SVG and HTML.
//!
//! A program cannot know what the user's terminal shows as "red"; these values are readable on their background and the
//! same in every image.

use ratatui::style::Color;

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// Background, foreground and the sixteen ANSI colours.
#[derive(Debug, PartialEq, Eq)]
pub struct Palette {
    /// Default text colour.
    pub(crate) fg: Rgb,
    pub(crate) bg: Rgb,
    /// In the order of their SGR numbers, bright ones last.
    pub(crate) ansi: [Rgb; 16],
}

/// Light text on a dark background.
pub static DARK: Palette = Palette {
    fg: rgb(0xd0d4dc),
    bg: rgb(0x14171c),
    ansi: rgbs([
        0x000000, 0xcc4b4b, 0x5fb36a, 0xd7a94b, 0x5b8bd9, 0xb978c9, 0x4fb3bf, 0xb4bac4, 0x767d89, 0xff6b6b, 0x8be28f,
        0xffd479, 0x8ab4f8, 0xdba3ea, 0x7fdbe6, 0xffffff,
    ]),
};

/// Dark text on a light background.
pub(crate) static LIGHT: Palette = Palette {
    fg: rgb(0x1f2328),
    bg: rgb(0xffffff),
    ansi: rgbs([
        0x000000, 0xb3261e, 0x1b7837, 0x8a6100, 0x1f5fbf, 0x8a3ba0, 0x0f7580, 0xa8b0ba, 0x5f6771, 0xd13a32, 0x2c9a4b,
        0xb07d00, 0x3b7de0, 0xa855c2, 0x1896a3, 0xffffff,
    ]),
};

const fn rgbs(hex: [u32; 16]) -> [Rgb; 16] {
    let (mut out, mut i) = ([[0; 3]; 16], 0);
    while i < 16 {
        out[i] = rgb(hex[i]);
        i += 1;
    }
    out
}

const fn rgb(hex: u32) -> Rgb {
    [(hex >> 16) as u8, (hex >> 8) as u8, hex as u8]
}

/// Index of an ANSI colour, bright ones from 8.
pub(in crate::export) fn ansi_index(colour: Color) -> Option<u8> {
    use Color::*;
    let normal = [Black, Red, Green, Yellow, Blue, Magenta, Cyan, Gray];
    let bright = [DarkGray, LightRed, LightGreen, LightYellow, LightBlue, LightMagenta, LightCyan, White];
    normal.iter().chain(&bright).position(|c| *c == colour).map(|at| at as u8)
}

impl Palette {
    /// The RGB value of a cell's colour; `default` for `Reset`.
    pub(crate) fn resolve(&self, colour: Color, default: Rgb) -> Rgb {
        match colour {
            Color::Reset => default,
            Color::Rgb(r, g, b) => [r, g, b],
            Color::Indexed(n) => self.resolve_indexed(n),
            named => ansi_index(named).map_or(default, |nth| self.ansi[usize::from(nth)]),
        }
    }

    /// xterm's 256 colours: 16 ANSI colours, a cube of 6x6x6, 24 greys.
    fn resolve_indexed(&self, n: u8) -> Rgb {
        let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
        match n {
            0..=15 => self.ansi[usize::from(n)],
            16..=231 => [level((n - 16) / 36), level((n - 16) / 6 % 6), level((n - 16) % 6)],
            232..=255 => [8 + 10 * (n - 232); 3],
        }
    }
}

/// `share` per cent of `a`, the rest of `b`.
pub(crate) fn blend(a: Rgb, b: Rgb, share: u16) -> Rgb {
    std::array::from_fn(|i| ((u16::from(a[i]) * share + u16::from(b[i]) * (100 - share) + 50) / 100) as u8)
}

/// `#rrggbb`
pub(crate) fn to_hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_variant_is_resolved() {
        assert_eq!(DARK.resolve(Color::Reset, DARK.fg), DARK.fg);
        assert_eq!(to_hex(DARK.resolve(Color::Red, DARK.fg)), "#cc4b4b");
        assert_eq!(DARK.resolve(Color::Indexed(9), DARK.fg), DARK.resolve(Color::LightRed, DARK.fg));
        assert_eq!(to_hex(DARK.resolve(Color::Indexed(196), DARK.fg)), "#ff0000");
        assert_eq!(to_hex(DARK.resolve(Color::Indexed(255), DARK.fg)), "#eeeeee");
        assert_eq!(LIGHT.resolve(Color::Rgb(1, 2, 3), LIGHT.fg), [1, 2, 3]);
        assert_eq!(blend([255, 0, 100], [0, 0, 0], 60), [153, 0, 60]);
    }

    /// Contrast as defined by WCAG; its minimum is 3 for large text and graphics, 4.5 for text.
    #[test]
    fn text_has_enough_contrast_in_both_palettes() {
        let light = |c: Rgb| {
            let part = |v: u8| {
                let v = f64::from(v) / 255.0;
                if v <= 0.03928 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2])
        };
        let contrast = |a: Rgb, b: Rgb| {
            let (a, b) = (light(a), light(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        // White on white and black on black are unreadable in a terminal as well.
        for (palette, used) in [(&DARK, 1..16), (&LIGHT, 0..7), (&LIGHT, 8..15)] {
            assert!(contrast(palette.fg, palette.bg) > 7.0);
            for nth in used {
                let got = contrast(palette.ansi[nth], palette.bg);
                assert!(got > 3.0, "colour {nth} on {:?}: {got:.1}", palette.bg);
            }
        }
    }
}
