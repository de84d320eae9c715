//! Commands after `:`.

use super::prompt::parse_interval;
use super::state::App;
use crate::tui::shared::NOT_IN_REPLAY;
use crate::tui::view::Effect;
use crate::tui::widgets::ThemeName;

impl App {
    /// Runs a command, of the program or of a view, or returns what is wrong with it.
    pub(super) fn run_command(&mut self, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
        let (word, rest) = text.split_once(' ').map_or((text, ""), |(w, r)| (w, r.trim()));
        if self.shared.replay.is_some() && matches!(word, "path" | "interval" | "tune" | "syncs") {
            return Err(format!("{word}: {NOT_IN_REPLAY}"));
        }
        match (word, rest) {
            ("", _) => Ok(()),
            ("jump", time) if self.shared.replay.is_some() => self.seek_to_typed_time(time, effects),
            ("q" | "quit", "") => {
                self.quit(effects);
                Ok(())
            }
            ("interval", secs) => {
                self.set_interval(parse_interval(secs)?, effects);
                Ok(())
            }
            ("theme", name) => {
                let names = ThemeName::ALL.map(ThemeName::name).join(", ");
                self.shared.theme_name =
                    ThemeName::parse(name).ok_or_else(|| format!("theme \"{name}\": there are {names}"))?;
                Ok(())
            }
            _ => self.visit_views(effects, |view, cx, out| view.on_command(word, rest, cx, out)).unwrap_or_else(|| {
                Err(format!(
                    "\"{text}\" is no command; there are: path DIR, interval S, theme NAME, tune KNOB, syncs MS, \
                     include RE, exclude RE, q"
                ))
            }),
        }
    }
}
