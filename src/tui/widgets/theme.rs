//! Colours with a meaning, and their twins without colour.
//!
//! Only the terminal's own 16 colours are used, so every theme follows the person's palette and works
//! on a 16-colour terminal. Whatever a colour says is also said by a modifier or a word.

use ratatui::style::{Color, Modifier, Style};

/// The named looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum ThemeName {
    /// Light text on a dark ground.
    #[default]
    Dark,
    /// Dark text on a light ground.
    Light,
    /// No colour at all; also what `NO_COLOR` gives.
    Mono,
    /// Brightest colours, no dim text.
    HighContrast,
}

impl ThemeName {
    /// All of them, in the order the key cycles through.
    pub const ALL: [ThemeName; 4] = [ThemeName::Dark, ThemeName::Light, ThemeName::Mono, ThemeName::HighContrast];

    /// Its name in the config file.
    pub fn name(self) -> &'static str {
        match self {
            ThemeName::Dark => "dark",
            ThemeName::Light => "light",
            ThemeName::Mono => "mono",
            ThemeName::HighContrast => "high-contrast",
        }
    }

    /// The theme of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }
}

/// One style per meaning.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    /// Plain values.
    pub text: Style,
    /// Zeros, units, what may be overlooked.
    pub dim: Style,
    /// Pane borders.
    pub border: Style,
    /// Border of the pane that has the keys.
    pub border_focused: Style,
    /// Pane titles.
    pub title: Style,
    /// Column heads.
    pub header: Style,
    /// The head of the column sorted by.
    pub header_sorted: Style,
    /// The selected row.
    pub selected: Style,
    /// Worth a look.
    pub warn: Style,
    /// Wrong.
    pub crit: Style,
    /// Changed by the person: a setting, a mark in a graph, a lease that runs.
    pub changed: Style,
    /// Graph of reads, or of a level.
    pub graph: Style,
    /// Graph of writes, or the second series.
    pub graph_alt: Style,
    /// Keys in the footer.
    pub key: Style,
    /// Where a search hit is.
    pub search_match: Style,
}

impl Theme {
    /// The styles of a named look.
    pub fn new(name: ThemeName) -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let reverse = plain.add_modifier(Modifier::REVERSED);
        let mono = Self {
            text: plain,
            dim: plain.add_modifier(Modifier::DIM),
            border: plain.add_modifier(Modifier::DIM),
            border_focused: plain,
            title: bold,
            header: bold,
            header_sorted: bold.add_modifier(Modifier::UNDERLINED),
            selected: reverse,
            warn: bold,
            crit: bold.add_modifier(Modifier::REVERSED),
            changed: bold.add_modifier(Modifier::UNDERLINED),
            graph: plain,
            graph_alt: bold,
            key: bold,
            search_match: bold.add_modifier(Modifier::UNDERLINED),
        };
        match name {
            ThemeName::Mono => mono,
            ThemeName::Dark => Self {
                dim: plain.fg(Color::DarkGray),
                border: plain.fg(Color::DarkGray),
                border_focused: plain.fg(Color::Cyan),
                header: plain.fg(Color::Cyan),
                header_sorted: bold.fg(Color::Cyan).add_modifier(Modifier::UNDERLINED),
                warn: bold.fg(Color::Yellow),
                crit: bold.fg(Color::LightRed),
                changed: bold.fg(Color::LightBlue).add_modifier(Modifier::UNDERLINED),
                graph: plain.fg(Color::Green),
                graph_alt: plain.fg(Color::Magenta),
                key: bold.fg(Color::Cyan),
                search_match: bold.fg(Color::Yellow).add_modifier(Modifier::UNDERLINED),
                ..mono
            },
            ThemeName::Light => Self {
                dim: plain.fg(Color::DarkGray),
                border: plain.fg(Color::Gray),
                border_focused: plain.fg(Color::Blue),
                header: plain.fg(Color::Blue),
                header_sorted: bold.fg(Color::Blue).add_modifier(Modifier::UNDERLINED),
                warn: bold.fg(Color::Magenta),
                crit: bold.fg(Color::Red),
                changed: bold.fg(Color::Green).add_modifier(Modifier::UNDERLINED),
                graph: plain.fg(Color::Blue),
                graph_alt: plain.fg(Color::Magenta),
                key: bold.fg(Color::Blue),
                search_match: bold.fg(Color::Red).add_modifier(Modifier::UNDERLINED),
                ..mono
            },
            ThemeName::HighContrast => Self {
                dim: plain.fg(Color::White),
                border: plain.fg(Color::White),
                border_focused: bold.fg(Color::LightYellow),
                header: bold.fg(Color::LightCyan),
                header_sorted: bold.fg(Color::LightYellow).add_modifier(Modifier::UNDERLINED),
                warn: bold.fg(Color::LightYellow),
                crit: bold.fg(Color::White).bg(Color::Red),
                changed: bold.fg(Color::LightCyan).add_modifier(Modifier::UNDERLINED),
                graph: plain.fg(Color::LightGreen),
                graph_alt: plain.fg(Color::LightMagenta),
                key: bold.fg(Color::LightYellow),
                ..mono
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alert_style_differs_without_colour() {
        for name in ThemeName::ALL {
            assert_eq!(ThemeName::parse(name.name()), Some(name));
            let t = Theme::new(name);
            assert_ne!(t.warn.add_modifier, t.text.add_modifier);
            assert_ne!(t.changed.add_modifier, t.text.add_modifier);
            assert_ne!(t.changed.add_modifier, t.warn.add_modifier);
            assert!(t.selected.add_modifier.contains(Modifier::REVERSED));
        }
        let mono = Theme::new(ThemeName::Mono);
        for style in
            [mono.text, mono.dim, mono.warn, mono.crit, mono.graph, mono.graph_alt, mono.search_match, mono.changed]
        {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
