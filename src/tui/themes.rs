//! The themes to choose from: six that are part of the program, and those of the user.

use super::widgets::ColorDepth;
use super::widgets::theme::{Background, Theme};

/// The themes of the program: name and file.
const SHIPPED: [(&str, &str); 6] = [
    ("dark", include_str!("../../assets/themes/dark.toml")),
    ("light", include_str!("../../assets/themes/light.toml")),
    ("slate", include_str!("../../assets/themes/slate.toml")),
    ("color-blind", include_str!("../../assets/themes/color-blind.toml")),
    ("high-contrast", include_str!("../../assets/themes/high-contrast.toml")),
    (MONO, include_str!("../../assets/themes/mono.toml")),
];

/// The theme without colour.
const MONO: &str = "mono";

/// A theme of the user: its name, and the text of its file or why that could not be read.
pub type ThemeSource = (String, Result<String, String>);

/// A theme, or what is wrong with its file.
#[derive(Debug, Clone)]
struct NamedTheme {
    name: String,
    parsed: Result<(Theme, Background), String>,
}

/// All themes, one of them in force.
#[derive(Debug, Clone)]
pub struct ThemeList {
    all: Vec<NamedTheme>,
    current: usize,
    no_color: bool,
    colors: ColorDepth,
    /// The current theme in the colours of the terminal.
    in_force: Theme,
}

impl Default for ThemeList {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl ThemeList {
    /// The program's themes and those of the user, of which one replaces the program's of the same name.
    pub fn new(own: Vec<ThemeSource>) -> Self {
        let shipped = SHIPPED.iter().map(|(name, text)| ((*name).to_owned(), Ok((*text).to_owned())));
        let mut all: Vec<NamedTheme> = Vec::new();
        for (name, text) in shipped.chain(own) {
            let parsed = text.and_then(|text| Theme::parse(&text));
            match all.iter_mut().find(|theme| theme.name == name) {
                Some(theme) => theme.parsed = parsed,
                None => all.push(NamedTheme { name, parsed }),
            }
        }
        let mut list =
            Self { all, current: 0, no_color: false, colors: ColorDepth::default(), in_force: Theme::default() };
        list.refresh();
        list
    }

    fn refresh(&mut self) {
        let shown = if self.no_color { self.all.iter().find(|t| t.name == MONO) } else { self.all.get(self.current) };
        let theme = shown.and_then(|theme| theme.parsed.as_ref().ok());
        self.in_force = theme.map_or(self.in_force, |(theme, _)| theme.at_depth(self.colors));
    }

    /// Shows all themes as this terminal can.
    pub fn adapt_to(&mut self, no_color: bool, colors: ColorDepth) {
        (self.no_color, self.colors) = (no_color, colors);
        self.refresh();
    }

    /// The theme in force, in the colours of the terminal.
    pub fn theme(&self) -> Theme {
        self.in_force
    }

    /// The name of the theme in force.
    pub fn name(&self) -> &str {
        &self.all[self.current].name
    }

    /// Whether the theme in force is made for a light background.
    pub fn is_light(&self) -> bool {
        !self.no_color && self.all[self.current].parsed.as_ref().is_ok_and(|(_, on)| *on == Background::Light)
    }

    /// The theme in force, in words.
    pub(crate) fn describe(&self) -> String {
        let note = if self.no_color { " (NO_COLOR is set: shown without colour)" } else { "" };
        format!("theme {}{note}", crate::sanitize::sanitize(self.name()))
    }

    /// The names of all themes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|theme| theme.name.as_str())
    }

    /// Puts a theme in force.
    ///
    /// # Errors
    /// There is none of that name, or its file is wrong.
    pub fn select(&mut self, name: &str) -> Result<(), String> {
        let shown = crate::sanitize::sanitize(name);
        let Some(at) = self.all.iter().position(|theme| theme.name == name) else {
            return Err(format!("theme \"{shown}\": there are {}", self.names().collect::<Vec<_>>().join(", ")));
        };
        if let Err(why) = &self.all[at].parsed {
            return Err(format!("theme {shown}: {why}"));
        }
        self.current = at;
        self.refresh();
        Ok(())
    }

    /// Puts the next theme in force whose file is right.
    pub fn select_next(&mut self) {
        let next = (1..=self.all.len()).map(|by| (self.current + by) % self.all.len());
        self.current = next.into_iter().find(|at| self.all[*at].parsed.is_ok()).unwrap_or(self.current);
        self.refresh();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::{Color, Modifier};

    fn theme(name: &str) -> Theme {
        let mut list = ThemeList::default();
        list.select(name).unwrap();
        list.theme()
    }

    #[test]
    fn every_shipped_theme_tells_alerts_apart_without_colour() {
        for (name, _) in SHIPPED {
            let t = theme(name);
            assert_ne!(t.warn.add_modifier, t.text.add_modifier, "{name}");
            assert_ne!(t.changed.add_modifier, t.text.add_modifier, "{name}");
            assert_ne!(t.changed.add_modifier, t.warn.add_modifier, "{name}");
            assert!(t.selected.add_modifier.contains(Modifier::REVERSED) || t.selected.bg.is_some(), "{name}");
        }
    }

    #[test]
    fn no_color_shows_every_theme_without_colour() {
        for (name, _) in SHIPPED {
            let mut list = ThemeList::default();
            list.select(name).unwrap();
            list.adapt_to(true, ColorDepth::Rgb);
            assert_eq!(list.theme(), theme(MONO), "{name}");
        }
        let mono = theme(MONO);
        for style in [mono.text, mono.dim, mono.warn, mono.crit, mono.graph, mono.graph_alt, mono.changed, mono.good] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
        assert_eq!(mono.heat, [Color::Reset; 6]);
    }

    #[test]
    fn a_terminal_of_16_colours_gets_no_others() {
        for (name, _) in SHIPPED {
            let mut list = ThemeList::default();
            list.adapt_to(false, ColorDepth::Ansi);
            list.select(name).unwrap();
            let t = list.theme();
            let all = [t.text, t.dim, t.border, t.crit, t.graph, t.selected].map(|s| [s.fg, s.bg]);
            let colors = all.into_iter().flatten().flatten().chain(t.heat);
            assert!(colors.into_iter().all(|c| !matches!(c, Color::Rgb(..) | Color::Indexed(_))), "{name}");
        }
    }

    #[test]
    fn a_theme_of_the_user_is_added_or_replaces_one() {
        let own = |text: &str| Ok(text.to_owned());
        let mut list = ThemeList::new(vec![
            ("dark".into(), own("[styles]\nwarn = \"blue\"")),
            ("broken".into(), own("[styles]\nwarn = \"blu\"")),
            ("mine".into(), own("background = \"light\"\n[styles]\ncrit = \"#010203\"")),
            ("unread".into(), Err("belongs to user 7".into())),
        ]);
        assert_eq!(list.theme().warn.fg, Some(Color::Blue));
        assert!(list.select("broken").unwrap_err().starts_with("theme broken: line 2: "));
        assert!(list.select("unread").unwrap_err().contains("belongs to user 7"));
        assert_eq!(list.name(), "dark");
        list.select("mine").unwrap();
        assert!(list.is_light() && list.theme().crit.fg == Some(Color::Rgb(1, 2, 3)));
        list.select_next();
        assert_eq!(list.name(), "dark", "those that are wrong are passed over");
        assert!(list.select("p\u{1b}").unwrap_err().contains("there are dark, light"));
    }
}
