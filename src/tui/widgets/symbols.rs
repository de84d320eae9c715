//! The characters that the terminal is trusted to have: braille, blocks, or only ASCII.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// What graphs are drawn with; ASCII holds for everything on screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, IntoStaticStr, EnumString)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SymbolSet {
    /// Braille, two samples to a cell. Blocks on the console of Linux, whose fonts have no braille.
    #[default]
    Auto,
    /// Braille, two samples to a cell.
    Braille,
    /// Eighths of a block, one sample to a cell.
    Blocks,
    /// ASCII for borders, graphs and marks; other characters of names become `?`.
    Ascii,
}

impl SymbolSet {
    /// Settles `Auto` for a terminal of this name (the variable `TERM`).
    pub fn for_terminal(self, term: Option<&str>) -> Self {
        match (self, term) {
            (Self::Auto, Some("linux")) => Self::Blocks,
            (Self::Auto, _) => Self::Braille,
            (set, _) => set,
        }
    }

    /// Number of samples that a cell of a graph shows side by side.
    pub(crate) fn samples_per_cell(self) -> usize {
        if matches!(self, Self::Auto | Self::Braille) { 2 } else { 1 }
    }
}

/// The ASCII character in place of another one of one column.
pub(crate) fn to_ascii(c: char) -> char {
    match c {
        ' '..='~' => c,
        '─' | '┄' | '╌' => '-',
        '│' | '┃' | '┊' => '|',
        '╭' | '╮' | '╰' | '╯' | '├' | '┤' | '┬' | '┴' | '┼' | '┌' | '┐' | '└' | '┘' => '+',
        '·' | '░' | '▁' | '▂' | '▃' => '.',
        '▄' | '▅' | '▒' => ':',
        '▆' | '▇' | '▓' => '=',
        '█' | '▉' | '▊' | '▋' => '#',
        '▌' | '▍' | '▎' | '▏' => '=',
        '…' => '~',
        '→' => '>',
        '←' => '<',
        '↑' | '▴' => '^',
        '↓' | '▾' => 'v',
        '×' => 'x',
        '‼' => '!',
        '≥' => '>',
        '≤' => '<',
        '≈' => '~',
        'µ' | 'μ' => 'u',
        _ => '?',
    }
}

/// A text in ASCII, of the same number of columns.
pub(crate) fn text_to_ascii(text: &str) -> String {
    let columns = |c: char| unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
    text.chars().flat_map(|c| std::iter::repeat_n(to_ascii(c), columns(c))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_text_keeps_its_columns() {
        assert_eq!(text_to_ascii("a·b… ▾tps é写\u{301}"), "a.b~ vtps ???");
    }

    #[test]
    fn the_console_gets_blocks_unless_told_otherwise() {
        use SymbolSet::{Ascii, Auto, Blocks, Braille};
        assert_eq!([Some("linux"), Some("xterm"), None].map(|t| Auto.for_terminal(t)), [Blocks, Braille, Braille]);
        assert_eq!([Braille, Ascii].map(|set| set.for_terminal(Some("linux"))), [Braille, Ascii]);
    }
}
