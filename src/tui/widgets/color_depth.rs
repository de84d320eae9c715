//! How many colours a terminal has, and the nearest one that it has.

use ratatui::style::Color;

/// The colours of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorDepth {
    /// The 16 that every terminal has.
    Ansi,
    /// The 256 of xterm.
    Indexed,
    /// 24 bits.
    #[default]
    Rgb,
}

impl ColorDepth {
    /// As the variables `COLORTERM` and `TERM` say.
    pub fn of_terminal(colorterm: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        match colorterm {
            Some("truecolor" | "24bit") => Self::Rgb,
            _ if term.ends_with("-direct") => Self::Rgb,
            _ if term.contains("256color") => Self::Indexed,
            _ => Self::Ansi,
        }
    }

    /// The nearest colour that such a terminal has.
    pub(crate) fn nearest(self, color: Color) -> Color {
        match (self, color) {
            (Self::Indexed, Color::Rgb(r, g, b)) => Color::Indexed(nearest_of(16..=255, [r, g, b])),
            (Self::Ansi, Color::Rgb(r, g, b)) => ansi(nearest_of(0..=15, [r, g, b])),
            (Self::Ansi, Color::Indexed(n)) => ansi(nearest_of(0..=15, rgb_of(n))),
            _ => color,
        }
    }
}

const ANSI: [(Color, [u8; 3]); 16] = [
    (Color::Black, [0, 0, 0]),
    (Color::Red, [205, 0, 0]),
    (Color::Green, [0, 205, 0]),
    (Color::Yellow, [205, 205, 0]),
    (Color::Blue, [0, 0, 238]),
    (Color::Magenta, [205, 0, 205]),
    (Color::Cyan, [0, 205, 205]),
    (Color::Gray, [229, 229, 229]),
    (Color::DarkGray, [127, 127, 127]),
    (Color::LightRed, [255, 0, 0]),
    (Color::LightGreen, [0, 255, 0]),
    (Color::LightYellow, [255, 255, 0]),
    (Color::LightBlue, [92, 92, 255]),
    (Color::LightMagenta, [255, 0, 255]),
    (Color::LightCyan, [0, 255, 255]),
    (Color::White, [255, 255, 255]),
];

fn ansi(index: u8) -> Color {
    ANSI[usize::from(index & 15)].0
}

/// The colour of an index in xterm: 16 named ones, a cube of 6 steps a side, 24 shades of gray.
fn rgb_of(index: u8) -> [u8; 3] {
    let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    match index {
        0..=15 => ANSI[usize::from(index)].1,
        16..=231 => [(index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6].map(step),
        _ => [8 + 10 * (index - 232); 3],
    }
}

fn nearest_of(candidates: std::ops::RangeInclusive<u8>, color: [u8; 3]) -> u8 {
    let distance =
        |index: &u8| -> u32 { rgb_of(*index).iter().zip(color).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum() };
    candidates.min_by_key(distance).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_the_nearest_that_the_terminal_has() {
        let orange = Color::Rgb(255, 135, 0);
        assert_eq!(ColorDepth::Rgb.nearest(orange), orange);
        assert_eq!(ColorDepth::Indexed.nearest(orange), Color::Indexed(208));
        assert_eq!(ColorDepth::Ansi.nearest(Color::Rgb(250, 250, 10)), Color::LightYellow);
        assert_eq!(ColorDepth::Ansi.nearest(Color::Indexed(196)), Color::LightRed);
        assert_eq!(ColorDepth::Indexed.nearest(Color::Rgb(8, 8, 8)), Color::Indexed(232));
        assert_eq!(ColorDepth::Ansi.nearest(Color::Cyan), Color::Cyan, "a named colour follows the user's palette");
    }

    #[test]
    fn the_environment_says_how_many_there_are() {
        let depth = |colorterm, term| ColorDepth::of_terminal(colorterm, Some(term));
        assert_eq!(depth(Some("truecolor"), "xterm"), ColorDepth::Rgb);
        assert_eq!(depth(None, "tmux-256color"), ColorDepth::Indexed);
        assert_eq!(depth(Some(""), "linux"), ColorDepth::Ansi);
    }
}
