//! The presets: purpose and cost of each, and what it would change here.

use crate::tui::state::App;
use crate::tui::views::tune::presets::{PresetRow, preset_rows};
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, wrap};
use crate::tui::widgets::text::{draw_text, patch_style};
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Draws the presets, with the one at index `at` selected.
pub fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, at: usize) {
    let inner = draw_frame(buf, area, "Presets", "Enter apply  e experiment  Esc close", true, theme);
    let all = preset_rows(&app.views.tune);
    for (i, (choice, y)) in all.iter().zip(inner.y..inner.bottom()).enumerate() {
        draw_text(buf, inner.x + 1, y, choice.name, 12, theme.key);
        draw_text(buf, inner.x + 13, y, choice.title, inner.width.saturating_sub(13), theme.text);
        if i == at {
            patch_style(buf, inner.x, y, inner.width, theme.selected);
        }
    }
    let top = (all.len() as u16 + 1).min(inner.height);
    let rest = Rect { y: inner.y + top, height: inner.height - top, ..inner };
    if let Some(choice) = all.get(at) {
        draw_preset(theme, rest, buf, choice);
    }
}

fn draw_preset(theme: &Theme, area: Rect, buf: &mut CellBuffer, choice: &PresetRow) {
    let width = usize::from(area.width.min(100));
    let mut lines: Vec<(String, Style)> = Vec::new();
    let mut add = |text: &str, style| lines.extend(wrap(text, width).into_iter().map(|l| (l, style)));
    add(choice.description, theme.text);
    add(&format!("Source: {}", choice.source), theme.dim);
    add("", theme.text);
    match &choice.diff {
        Err(why) => add(&format!("! {why}"), theme.crit),
        Ok(diff) => {
            for (text, same) in diff {
                add(text, if *same { theme.dim } else { theme.changed });
            }
        }
    }
    for missing in &choice.missing_knobs {
        add(&format!("{missing}: not available on this machine, left out"), theme.dim);
    }
    for ((line, style), y) in lines.iter().zip(area.y..area.bottom()) {
        draw_text(buf, area.x, y, line, area.width, *style);
    }
}
