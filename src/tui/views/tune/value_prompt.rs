//! The prompt for a knob's value, with the allowed values and the meaning of the typed text.

use crate::tui::layout;
use crate::tui::panes::PaneId;
use crate::tui::state::{App, Prompt};
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, draw_input, wrap};
use crate::tui::widgets::text::{clear_area, draw_text};
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// Draws it below the selected row, or above where there is no room below.
pub fn render(app: &App, p: &Prompt, theme: &Theme, buf: &mut CellBuffer) {
    let tune = &app.views.tune;
    let Some(row) = tune.editing_knob.as_ref().and_then(|name| tune.knob(name)) else { return };
    let list = layout::compute_layout(app).pane_area(PaneId::TuneKnobs).unwrap_or(buf.area);
    let width = buf.area.width.min(88);
    let room = width.saturating_sub(4);
    let mut lines = Vec::new();
    match (&p.error, &tune.preview) {
        (Some(error), _) => lines.extend(wrap(error, room.into()).into_iter().map(|l| (l, theme.crit))),
        (None, Ok(meaning)) => lines.push((format!("= {meaning}"), theme.changed)),
        // An unfinished word is not an error yet: show only the allowed values.
        (None, Err(_)) => {
            let allowed = wrap(&format!("allowed: {}", row.allowed_values), room.into());
            lines.extend(allowed.into_iter().map(|l| (l, theme.warn)));
        }
    }
    if p.error.is_none() && tune.preview.is_ok() {
        let allowed = wrap(&format!("allowed: {}", row.allowed_values), room.into());
        lines.extend(allowed.into_iter().map(|l| (l, theme.dim)));
    }
    lines.extend(wrap(&format!("now {}", row.long_value), room.into()).into_iter().map(|l| (l, theme.dim)));
    if !row.linked_effect.is_empty() {
        lines.push((row.linked_effect.clone(), theme.dim));
    }
    let height = (lines.len() as u16 + 3).min(buf.area.height);
    let at = popup_area(app, list, width, height, buf.area);
    clear_area(buf, at);
    let inner = draw_frame(buf, at, &row.display_name, "Enter OK  Esc Cancel", true, theme);
    let line = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), height: 1, ..inner };
    draw_input(buf, line, "new value: ", &p.text, p.cursor, theme);
    for ((text, style), y) in lines.iter().zip(inner.y + 1..inner.bottom()) {
        draw_text(buf, inner.x + 1, y, text, inner.width.saturating_sub(1), *style);
    }
}

fn popup_area(app: &App, list: Rect, width: u16, height: u16, screen: Rect) -> Rect {
    let tune = &app.views.tune;
    let lines = tune.list_lines().len();
    let mut scroll = tune.scroll;
    scroll.scroll_into_view(lines, usize::from(list.height.saturating_sub(3)));
    let row = list.y + 2 + (scroll.selected - scroll.offset) as u16;
    let y = match row + 1 + height <= screen.bottom() {
        true => row + 1,
        false => row.saturating_sub(height).min(screen.bottom() - height),
    };
    Rect { x: screen.x + (screen.width - width).min(2), y, width, height }
}
