//! Themes: a style for each meaning.
//!
//! Only the terminal's own 16 colours are used, so every theme follows the user's palette. Whatever a colour says is also
//! said by a modifier or a word.

use ratatui::style::{Color, Modifier, Style};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// The themes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, IntoStaticStr, EnumString)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ThemeName {
    /// Light text on a dark background.
    #[default]
    Dark,
    /// Dark text on a light background.
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
        self.into()
    }
}

/// From which values on a graph of a level is yellow, then red.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Levels {
    pub(crate) warn: f64,
    pub(crate) crit: f64,
}

impl Levels {
    pub(crate) fn style(self, value: f64, theme: &Theme) -> Style {
        match value {
            _ if value >= self.crit => theme.graph_crit,
            _ if value >= self.warn => theme.graph_warn,
            _ => theme.graph,
        }
    }
}

/// One style per meaning.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    pub text: Style,
    /// Zeros, units, what is less important.
    pub dim: Style,
    pub border: Style,
    pub border_focused: Style,
    pub title: Style,
    pub header: Style,
    /// The head of the column sorted by.
    pub header_sorted: Style,
    pub selected: Style,
    pub warn: Style,
    pub crit: Style,
    /// Changed by the user: a setting, a mark in a graph, a lease.
    pub changed: Style,
    /// Graph of reads, or of a level.
    pub graph: Style,
    /// Graph of writes, or the second series.
    pub graph_alt: Style,
    /// Graph of a level that is worth a look, and of one that needs attention.
    pub graph_warn: Style,
    pub graph_crit: Style,
    pub key: Style,
    pub search_match: Style,
}

impl Theme {
    pub fn new(name: ThemeName) -> Self {
        use Color::{Blue, Cyan, DarkGray, Gray, Green, LightBlue, LightRed, Magenta, Red, Yellow};
        match name {
            ThemeName::Mono => Self::without_colour(),
            ThemeName::Dark => Self::coloured([DarkGray, Cyan, Yellow, LightRed, LightBlue, Green, Magenta, Yellow]),
            ThemeName::Light => Self::coloured([Gray, Blue, Magenta, Red, Green, Blue, Magenta, Red]),
            ThemeName::HighContrast => Self::high_contrast(),
        }
    }

    fn without_colour() -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let underlined = bold.add_modifier(Modifier::UNDERLINED);
        Self {
            text: plain,
            dim: plain.add_modifier(Modifier::DIM),
            border: plain.add_modifier(Modifier::DIM),
            border_focused: plain,
            title: bold,
            header: bold,
            header_sorted: underlined,
            selected: plain.add_modifier(Modifier::REVERSED),
            warn: bold,
            crit: bold.add_modifier(Modifier::REVERSED),
            changed: underlined,
            graph: plain,
            graph_alt: bold,
            graph_warn: plain,
            graph_crit: bold,
            key: bold,
            search_match: underlined,
        }
    }

    fn coloured([border, accent, warn, crit, changed, graph, graph_alt, search_match]: [Color; 8]) -> Self {
        let plain = Style::new();
        let mono = Self::without_colour();
        Self {
            dim: plain.fg(Color::DarkGray),
            border: plain.fg(border),
            border_focused: plain.fg(accent),
            header: plain.fg(accent),
            header_sorted: mono.header_sorted.fg(accent),
            warn: mono.warn.fg(warn),
            crit: mono.title.fg(crit),
            changed: mono.changed.fg(changed),
            graph: plain.fg(graph),
            graph_alt: plain.fg(graph_alt),
            graph_warn: plain.fg(warn),
            graph_crit: plain.fg(crit),
            key: mono.key.fg(accent),
            search_match: mono.search_match.fg(search_match),
            ..mono
        }
    }

    fn high_contrast() -> Self {
        use Color::{LightCyan, LightGreen, LightMagenta, LightYellow, Red, White};
        let mono = Self::without_colour();
        Self {
            dim: Style::new().fg(White),
            border_focused: mono.title.fg(LightYellow),
            header: mono.header.fg(LightCyan),
            crit: mono.title.fg(White).bg(Red),
            search_match: mono.search_match,
            ..Self::coloured([White, LightYellow, LightYellow, Red, LightCyan, LightGreen, LightMagenta, White])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alert_style_differs_without_colour() {
        for name in ThemeName::ALL {
            assert_eq!(name.name().parse(), Ok(name));
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
