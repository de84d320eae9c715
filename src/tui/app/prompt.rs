//! Editing a prompt, and what Enter does; commands after `:`.

use super::state::App;
use crate::tui::settings::INTERVAL_SECS_RANGE;
use crate::tui::shared::NOT_IN_REPLAY;
use crate::tui::view::{Effect, Overlay, Prompt, PromptPurpose};
use crate::tui::widgets::RowSearch;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const MAX_INPUT_BYTES: usize = 1024;

impl App {
    pub(super) fn on_prompt_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        let Some(Overlay::Prompt(mut prompt)) = self.screen.overlay.take() else { return };
        let owner = self.screen.overlay_owner;
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_screenshot = prompt.purpose == PromptPurpose::ScreenshotPath;
        if key.code == KeyCode::Enter
            && let Some(pick) = self.picked(&prompt)
        {
            let open = self.perform_pick(pick, prompt, effects);
            return open.into_iter().for_each(|prompt| self.open_overlay(Overlay::Prompt(prompt), owner));
        }
        match key.code {
            KeyCode::Esc if is_screenshot => return self.cancel_capture(),
            KeyCode::Char('c' | 'g') if ctrl && is_screenshot => return self.cancel_capture(),
            KeyCode::Esc => return self.cancel_prompt(&prompt, effects),
            KeyCode::Char('c' | 'g') if ctrl => return self.cancel_prompt(&prompt, effects),
            KeyCode::Left | KeyCode::Right | KeyCode::Delete if prompt.purpose == PromptPurpose::Columns => {
                self.move_column(&mut prompt, key.code, effects);
            }
            KeyCode::Left | KeyCode::Right if prompt.purpose == PromptPurpose::Explain => {
                self.move_column_choice(&mut prompt, key.code);
            }
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown if self.has_choices(&prompt) => {
                self.move_choice(&mut prompt, key.code);
            }
            KeyCode::Enter => match self.submit(prompt.purpose, prompt.text.trim(), effects) {
                Ok(()) => return,
                Err(why) => prompt.error = Some(crate::sanitize::sanitize(why)),
            },
            KeyCode::Up | KeyCode::Down | KeyCode::Tab if is_screenshot => {
                self.change_capture_option(&mut prompt, key.code);
            }
            KeyCode::Up | KeyCode::Down
                if owner.is_some_and(|pane| {
                    self.update_view(pane, effects, |view, _, _| view.on_prompt_key(&mut prompt, key.code))
                        == Some(true)
                }) => {}
            _ => {
                edit_text(&mut prompt, key, ctrl);
                prompt.choice = None;
                if owner.is_none() {
                    self.preview(&mut prompt, effects);
                }
            }
        }
        self.open_overlay(Overlay::Prompt(prompt), owner);
    }

    /// Shows what a search or filter finds while it is typed.
    fn preview(&mut self, prompt: &mut Prompt, effects: &mut Vec<Effect>) {
        match prompt.purpose {
            PromptPurpose::Filter => self.set_filter(&prompt.text, effects),
            PromptPurpose::Search if !prompt.text.is_empty() => {
                let is_found = self.select_match(&prompt.text, 0, effects);
                prompt.error = (!is_found).then(|| "no match".into());
            }
            _ => {}
        }
    }

    /// Leaves a prompt; a filter is again as it was.
    fn cancel_prompt(&mut self, prompt: &Prompt, effects: &mut Vec<Effect>) {
        if prompt.purpose == PromptPurpose::Filter && self.screen.overlay_owner.is_none() {
            self.set_filter(&prompt.original, effects);
        }
    }

    fn set_filter(&mut self, text: &str, effects: &mut Vec<Effect>) {
        let pane = self.focused_pane();
        self.update_view(pane, effects, |view, cx, _| view.set_filter(pane, text.trim(), cx));
    }

    /// Acts on the text typed, or returns what is wrong with it.
    fn submit(&mut self, purpose: PromptPurpose, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
        if let Some(pane) = self.screen.overlay_owner {
            let result = self.update_view(pane, effects, |view, cx, out| view.on_input(purpose, text, cx, out));
            return result.unwrap_or(Ok(()));
        }
        match purpose {
            PromptPurpose::Search => {
                text.clone_into(&mut self.screen.search);
                self.search(0, effects);
            }
            PromptPurpose::Filter => self.set_filter(text, effects),
            PromptPurpose::Command => self.run_command(text, effects)?,
            PromptPurpose::ScreenshotPath => self.write_capture(text, effects)?,
            // An empty text changes nothing.
            _ if text.is_empty() => {}
            PromptPurpose::Interval => self.set_interval(parse_interval(text)?, effects),
            PromptPurpose::RecordingPath => self.start_recording(text, effects)?,
            PromptPurpose::ReplayTime => self.seek_to_typed_time(text, effects)?,
            _ => {}
        }
        Ok(())
    }

    /// Runs a command, of the program or of a view, or returns what is wrong with it.
    fn run_command(&mut self, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
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
            ("theme", name) => self.select_theme(name),
            _ => self.visit_views(effects, |view, cx, out| view.on_command(word, rest, cx, out)).unwrap_or_else(|| {
                Err(format!(
                    "\"{text}\" is no command; there are: path DIR, interval S, theme NAME, tune KNOB[=VALUE], syncs MS, \
                     include RE, exclude RE, q"
                ))
            }),
        }
    }

    /// Puts a theme in force, or returns what is wrong with it.
    pub(super) fn select_theme(&mut self, name: &str) -> Result<(), String> {
        self.shared.themes.select(name)?;
        self.screen.info(self.shared.themes.describe());
        Ok(())
    }

    /// Selects the next row that contains the search text: `step` 1 after the selected one, -1 before it, 0 from it on.
    pub(super) fn search(&mut self, step: isize, effects: &mut Vec<Effect>) {
        let text = self.screen.search.clone();
        if text.is_empty() {
            return self.screen.error("nothing to search for: / asks");
        }
        if !self.select_match(&text, step, effects) {
            self.screen.error(format!("\"{text}\" not found"));
        }
    }

    /// Selects the row that a search finds. False: there is none.
    fn select_match(&mut self, text: &str, step: isize, effects: &mut Vec<Effect>) -> bool {
        let search = RowSearch { needle: text.to_lowercase(), step };
        let pane = self.focused_pane();
        self.update_view(pane, effects, |view, cx, _| view.find_row(pane, &search, cx)) == Some(true)
    }
}

fn parse_interval(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|s| INTERVAL_SECS_RANGE.contains(s))
        .ok_or_else(|| format!("\"{text}\": the interval is 0.1 to 3600 seconds"))
}

/// Edits the text at the cursor.
pub(in crate::tui) fn edit_text(p: &mut Prompt, key: KeyEvent, ctrl: bool) {
    let before = |p: &Prompt| p.text[..p.cursor].chars().next_back().map_or(0, char::len_utf8);
    let after = |p: &Prompt| p.text[p.cursor..].chars().next().map_or(0, char::len_utf8);
    p.error = None;
    match key.code {
        KeyCode::Char('u') if ctrl => {
            p.text.drain(..p.cursor);
            p.cursor = 0;
        }
        KeyCode::Char('a') if ctrl => p.cursor = 0,
        KeyCode::Char('e') if ctrl => p.cursor = p.text.len(),
        KeyCode::Char('w') if ctrl => {
            let head = p.text[..p.cursor].trim_end();
            let keep = head.rfind(' ').map_or(0, |at| at + 1);
            p.text.drain(keep..p.cursor);
            p.cursor = keep;
        }
        KeyCode::Char(c) if !ctrl && crate::sanitize::is_safe(c) && p.text.len() < MAX_INPUT_BYTES => {
            p.text.insert(p.cursor, c);
            p.cursor += c.len_utf8();
        }
        KeyCode::Backspace => {
            let n = before(p);
            p.text.drain(p.cursor - n..p.cursor);
            p.cursor -= n;
        }
        KeyCode::Delete => {
            let n = after(p);
            p.text.drain(p.cursor..p.cursor + n);
        }
        KeyCode::Left => p.cursor -= before(p),
        KeyCode::Right => p.cursor += after(p),
        KeyCode::Home => p.cursor = 0,
        KeyCode::End => p.cursor = p.text.len(),
        _ => {}
    }
}
