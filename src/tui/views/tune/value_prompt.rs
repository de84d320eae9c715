//! The prompt for a knob's value, with the allowed values and the meaning of the typed text.

use super::TuneView;
use crate::tui::view::{Context, PaneId, Prompt};
use crate::tui::widgets::{CellBuffer, Rect, area_below, clear_area, draw_column, draw_frame, draw_input, wrap};

impl TuneView {
    /// Draws it below the selected row, or above where there is no room below.
    pub(super) fn render_value_prompt(&self, prompt: &Prompt, cx: &Context, buf: &mut CellBuffer) {
        let theme = &cx.theme();
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
