//! Codes of styles in escape sequences of terminals (SGR: ECMA-48, 8.3.117, and the colours of xterm).

use super::screenshot::colour::ansi_index;
use ratatui::style::{Color, Modifier};
use std::fmt::Write as _;

/// Modifiers with the codes that begin them.
pub(crate) const MODIFIER_CODES: [(Modifier, u8); 9] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::SLOW_BLINK, 5),
    (Modifier::RAPID_BLINK, 6),
    (Modifier::REVERSED, 7),
    (Modifier::HIDDEN, 8),
    (Modifier::CROSSED_OUT, 9),
];

/// Where a colour is: the text itself or what is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColourPlace {
    Foreground,
    Background,
}

/// Appends the code of a colour: `31`, `48;5;200`, `39` for the terminal's own.
pub(crate) fn push_colour_code(out: &mut String, colour: Color, place: ColourPlace) {
    let base = match place {
        ColourPlace::Foreground => 30,
        ColourPlace::Background => 40,
    };
    // Writing to a string does not fail.
    let _ = match (colour, ansi_index(colour)) {
        (Color::Rgb(r, g, b), _) => write!(out, "{};2;{r};{g};{b}", base + 8),
        (Color::Indexed(n @ 0..16), _) | (_, Some(n)) => write!(out, "{}", ansi_code(base, n)),
        (Color::Indexed(n), _) => write!(out, "{};5;{n}", base + 8),
        _ => write!(out, "{}", base + 9),
    };
}

/// The code of one of the 16 colours that every terminal has; bright ones are 90 to 97 and 100 to 107.
fn ansi_code(base: u8, index: u8) -> u8 {
    if index < 8 { base + index } else { base + 60 + index - 8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_have_the_codes_of_xterm() {
        let code = |colour, place| {
            let mut out = String::new();
            push_colour_code(&mut out, colour, place);
            out
        };
        let text =
            [Color::Red, Color::White, Color::Indexed(9), Color::Indexed(200), Color::Rgb(1, 2, 3), Color::Reset];
        assert_eq!(text.map(|c| code(c, ColourPlace::Foreground)), ["31", "97", "91", "38;5;200", "38;2;1;2;3", "39"]);
        let behind = [Color::Gray, Color::LightBlue, Color::Indexed(7), Color::Reset];
        assert_eq!(behind.map(|c| code(c, ColourPlace::Background)), ["47", "104", "47", "49"]);
    }
}
