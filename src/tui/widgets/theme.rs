//! Themes: a style for each meaning, read from TOML.
//!
//! Whatever a colour says is also said by a modifier, a word or the height of a graph.

use super::color_depth::ColorDepth;
use ratatui::style::{Color, Modifier, Style};
use serde::Deserialize;

/// Steps of the colours of a heat map.
pub(crate) const HEAT_STEPS: usize = 6;

/// Defines the styles of a theme once: for drawing and in the file.
macro_rules! theme_styles {
    ($($(#[$doc:meta])* $name:ident: $what:literal,)*) => {
        /// One style per meaning.
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct Theme {
            $(#[doc = $what] pub $name: Style,)*
            /// Colours of a heat map, fewest to most; `Reset`: only the shade says how many.
            pub heat: [Color; HEAT_STEPS],
        }

        /// The styles of a theme by their names in the file, with what each is for.
        pub const THEME_STYLES: &[(&str, &str)] = &[$((stringify!($name), $what),)*];

        #[derive(Debug, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct StyleTable {
            $($name: ParsedStyle,)*
        }

        impl Theme {
            fn from_file(file: &ThemeFile) -> Self {
                let heat = file.heatmap.colors.map(|color| color.0);
                Self { $($name: file.styles.$name.0,)* heat }
            }

            /// The theme in the colours that a terminal has.
            pub(crate) fn at_depth(self, depth: ColorDepth) -> Self {
                let nearest = |style: Style| {
                    let [fg, bg] = [style.fg, style.bg].map(|color| color.map(|color| depth.nearest(color)));
                    Style { fg, bg, ..style }
                };
                Self { $($name: nearest(self.$name),)* heat: self.heat.map(|color| depth.nearest(color)) }
            }
        }
    };
}

theme_styles! {
    text: "everything that is not one of the others",
    dim: "zeros, units, what is less important",
    border: "borders",
    border_focused: "the border of the pane that keys act on",
    title: "titles",
    header: "heads of columns",
    header_sorted: "the head of the column sorted by",
    selected: "the selected row, over the styles of its cells",
    good: "a figure below its thresholds",
    warn: "worth a look",
    crit: "needs attention",
    changed: "changed by you: a setting, a mark in a graph",
    graph: "graphs of reads or of a level",
    graph_alt: "graphs of writes, or of the second series",
    graph_warn: "the part of a graph that is worth a look",
    graph_crit: "the part of a graph that needs attention",
    key: "keys in the footer and in lists of keys",
    search_match: "what a search has found",
}

/// A theme as its file has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ThemeFile {
    background: Background,
    styles: StyleTable,
    heatmap: Heatmap,
}

/// What a theme is made for; the page of pictures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    #[default]
    Dark,
    Light,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Heatmap {
    colors: [ParsedColor; HEAT_STEPS],
}

/// `#rrggbb`, a name of the 16 colours or the number of one of 256.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(try_from = "String")]
struct ParsedColor(Color);

/// `[COLOUR] [on COLOUR] [bold] [dim] [italic] [underlined] [reversed]`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(try_from = "String")]
struct ParsedStyle(Style);

impl TryFrom<String> for ParsedColor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let name = text.replace('-', "");
        name.parse().map(Self).map_err(|_| {
            let text = crate::sanitize::sanitize(&text);
            format!("\"{text}\" is no colour: #rrggbb, 0 to 255, or a name such as red, light-red, gray")
        })
    }
}

impl TryFrom<String> for ParsedStyle {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut style = Style::new();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let color = |word: &str| ParsedColor::try_from(word.to_owned()).map(|color| color.0);
            style = match word {
                "bold" => style.add_modifier(Modifier::BOLD),
                "dim" => style.add_modifier(Modifier::DIM),
                "italic" => style.add_modifier(Modifier::ITALIC),
                "underlined" => style.add_modifier(Modifier::UNDERLINED),
                "reversed" => style.add_modifier(Modifier::REVERSED),
                "on" => style.bg(color(words.next().unwrap_or_default())?),
                word => style.fg(color(word)?),
            };
        }
        Ok(Self(style))
    }
}

impl Theme {
    /// Parses a theme file; styles it does not have are plain.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn parse(text: &str) -> Result<(Self, Background), String> {
        let file: ThemeFile = crate::toml_file::parse(text)?;
        Ok((Self::from_file(&file), file.background))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_words() {
        let style = |text: &str| ParsedStyle::try_from(text.to_owned()).map(|style| style.0);
        let plain = Style::new();
        assert_eq!(style(""), Ok(plain));
        assert_eq!(style("bold #0a0B0c on light-red"), Ok(plain.bold().fg(Color::Rgb(10, 11, 12)).bg(Color::LightRed)));
        assert_eq!(style("208 underlined"), Ok(plain.fg(Color::Indexed(208)).underlined()));
        for wrong in ["pink", "on", "#12", "bold on", "256", "red\u{1b}[2J"] {
            let why = style(wrong).unwrap_err();
            assert!(why.contains("is no colour") && why.chars().all(crate::sanitize::is_safe), "{why}");
        }
    }

    #[test]
    fn errors_of_a_theme_name_the_line() {
        let error = |text: &str| Theme::parse(text).unwrap_err();
        assert!(error("[styles]\nwarn = \"yellow\"\nwran = \"red\"\n").starts_with("line 3: "));
        let why = error("[styles]\nwarn = \"yelow bold\"\n");
        assert!(why.starts_with("line 2: ") && why.contains("\"yelow\" is no colour"), "{why}");
        assert!(error("background = \"blue\"").starts_with("line 1: "));
        assert!(error("[heatmap]\ncolors = [\"red\"]").starts_with("line 2: "));
    }
}
