//! Editing a knob's value: the prompt with the allowed values, what the typed text means, and why it is refused.

use super::{TuneView, cached_knobs};
use crate::sanitize::sanitize;
use crate::tui::settings::LEASE_SECS_RANGE;
use crate::tui::view::{Action, Context, Outbox, PaneId, Prompt, PromptPurpose};
use crate::tui::widgets::{CellBuffer, Rect, area_below, clear_area, draw_column, draw_frame, draw_input, wrap};
use crate::tuning::knob::{AllowedValues, KnobLink, KnobUnit};
use crossterm::event::KeyCode;

impl TuneView {
    pub(super) fn edit_selected(&mut self, out: &mut Outbox) {
        let Some(row) = self.selected_knob() else { return };
        match &row.reading {
            Ok(reading) => {
                let text = self.pending.get(&row.name).unwrap_or(&reading.value).clone();
                self.editing_knob = Some(row.name.clone());
                out.open_prompt(PromptPurpose::KnobValue, "", text);
            }
            Err(error) => self.error = Some(sanitize(format!("cannot be changed: {error}"))),
        }
    }

    pub(super) fn set_lease_duration(&mut self, text: &str, cx: &Context, out: &mut Outbox) -> Result<(), String> {
        let secs = text.parse::<u64>().ok().filter(|s| LEASE_SECS_RANGE.contains(s));
        self.knobs.lease_secs = secs.ok_or_else(|| format!("\"{text}\": a lease is 1 to 86400 seconds"))?;
        let save = cx.shared.key(Action::SaveConfig);
        out.info(format!("changes revert after {} s; {save} saves this", self.knobs.lease_secs));
        Ok(())
    }

    /// Returns the edited knob and the typed text as the value the kernel takes.
    fn typed_value(&self, text: &str) -> Result<(String, String), String> {
        let (Some(snapshot), Some(name)) = (&self.knobs.snapshot, &self.editing_knob) else {
            return Err("this knob no longer exists".into());
        };
        Ok((name.clone(), cached_knobs::canonical_value(snapshot, name, text)?))
    }

    /// What the text typed so far means; `None` if it is not a value.
    pub(super) fn typed_meaning(&self, text: &str) -> Option<String> {
        let (name, value) = self.typed_value(text.trim()).ok()?;
        Some(cached_knobs::describe_value(self.knobs.snapshot.as_ref()?, &name, &value))
    }

    /// Makes the typed value pending, unless the knob has it already. Of a pair of knobs only one can be pending.
    pub(super) fn propose_typed(&mut self, text: &str, out: &mut Outbox) -> Result<(), String> {
        let (name, value) = self.typed_value(text)?;
        let Some(row) = self.knobs.knob(&name) else { return Ok(()) };
        if row.reading.as_ref().is_ok_and(|r| r.value == value) {
            self.pending.remove(&name);
            out.info(format!("{} has this value already", sanitize(name)));
            return Ok(());
        }
        if let KnobLink::Pair(other) = row.knob().link
            && let Some(other) = row.id.sibling(other)
        {
            self.pending.remove(&other.to_string());
        }
        self.pending.insert(name, value);
        Ok(())
    }

    /// Goes to the next or previous of the words to choose from.
    pub(super) fn cycle_choice(&self, prompt: &mut Prompt, key: KeyCode) {
        let Some(row) = self.editing_knob.as_ref().and_then(|name| self.knobs.knob(name)) else { return };
        let knob = row.knob();
        let listed: Vec<&str> = match &row.reading {
            Ok(reading) => reading.choices.iter().map(String::as_str).collect(),
            Err(_) => Vec::new(),
        };
        let words: &[&str] = match (knob.values, knob.unit) {
            (AllowedValues::Listed, _) => &listed,
            (AllowedValues::Atime, _) => &["relatime", "noatime", "strictatime"],
            (_, KnobUnit::Switch) => &["0", "1"],
            _ => return,
        };
        let at = words.iter().position(|w| *w == prompt.text).unwrap_or(0);
        let by = if key == KeyCode::Up { words.len().saturating_sub(1) } else { 1 };
        if let Some(word) = words.get((at + by) % words.len().max(1)) {
            prompt.set_text(*word);
        }
    }

    /// Draws the prompt below the selected row, or above where there is no room below.
    pub(super) fn render_value_prompt(&self, prompt: &Prompt, cx: &Context, buf: &mut CellBuffer) {
        let theme = &cx.theme;
        let (Some(name), Some(snapshot)) = (&self.editing_knob, &self.knobs.snapshot) else { return };
        let Some(row) = self.knobs.knob(name) else { return };
        let list = cx.layout.pane_area(PaneId::TuneKnobs).unwrap_or(buf.area);
        let width = buf.area.width.min(88);
        let mut lines = Vec::new();
        let mut add = |text: &str, style| {
            lines.extend(wrap(text, width.saturating_sub(4).into()).into_iter().map(|line| (line, style)));
        };
        let allowed = format!("allowed: {}", row.allowed_values(&snapshot.machine));
        match (&prompt.error, self.typed_meaning(&prompt.text)) {
            (Some(error), _) => add(error, theme.crit),
            (None, Some(meaning)) => {
                add(&format!("= {meaning}"), theme.changed);
                add(&allowed, theme.dim);
            }
            // An unfinished word is not an error yet: show only the allowed values.
            (None, None) => add(&allowed, theme.warn),
        }
        add(&format!("now {}", row.long_value(&snapshot.machine)), theme.dim);
        lines.extend(Some((row.linked_effect(), theme.dim)).filter(|(text, _)| !text.is_empty()));
        let height = (lines.len() as u16 + 3).min(buf.area.height);
        let at = self.popup_area(list, width, height, buf.area);
        clear_area(buf, at);
        let inner = draw_frame(buf, at, &row.display_name, "Enter OK  Esc Cancel", true, theme);
        let line = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), height: 1, ..inner };
        draw_input(buf, line, "new value: ", &prompt.text, prompt.cursor, theme);
        let below = area_below(inner, 1);
        draw_column(buf, Rect { x: inner.x + 1, width: inner.width.saturating_sub(1), ..below }, lines);
    }

    fn popup_area(&self, list: Rect, width: u16, height: u16, screen: Rect) -> Rect {
        let lines = self.list_lines().len();
        let mut scroll = self.scroll;
        scroll.scroll_into_view(lines, usize::from(list.height.saturating_sub(3)));
        let row = list.y + 2 + (scroll.selected - scroll.offset) as u16;
        let y = match row + 1 + height <= screen.bottom() {
            true => row + 1,
            false => row.saturating_sub(height).min(screen.bottom() - height),
        };
        Rect { x: screen.x + (screen.width - width).min(2), y, width, height }
    }
}
