//! The page of a knob: what it does and costs, what may be written, and the meaning of its values on this machine.

use crate::export::table::Table;
use crate::tui::keymap::KeyContext;
use crate::tui::layout;
use crate::tui::panes::{Pane, PaneId};
use crate::tui::state::App;
use crate::tui::views::tune::cached_knobs;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, wrap};
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::KnobPage,
    contexts: &[KeyContext::Tune, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: |app| {
        let area = layout::compute_layout(app).pane_area(PaneId::KnobPage).unwrap_or_default();
        let inside = usize::from(area.height.saturating_sub(2));
        page_lines(app, area.width.saturating_sub(2)).len().saturating_sub(inside) + 1
    },
};

/// Style of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KnobLineStyle {
    Plain,
    Dim,
    Changed,
    Warn,
}

/// Label, text and style of each part.
fn page_parts(app: &App) -> Vec<(&'static str, String, KnobLineStyle)> {
    let tune = &app.views.tune;
    let Some(row) = tune.selected_knob() else { return Vec::new() };
    let meaning = |value: &String| match &tune.snapshot {
        Some(survey) => cached_knobs::describe_value(survey, &row.name, value),
        None => value.clone(),
    };
    let boot = tune.next_boot.get(&row.name);
    let mut out = vec![(
        "now",
        row.long_value.clone(),
        if row.reading.is_err() { KnobLineStyle::Warn } else { KnobLineStyle::Plain },
    )];
    if let Some(value) = tune.pending.get(&row.name) {
        out.push(("pending", format!("{}  (a applies)", meaning(value)), KnobLineStyle::Changed));
    }
    out.push(("at start", tune.initial_values.get(&row.name).map_or("-".into(), meaning), KnobLineStyle::Plain));
    out.push(("default", row.default_text.clone(), KnobLineStyle::Plain));
    out.push(match boot {
        Some(b) => {
            let text =
                format!("{}, by {}", crate::sanitize::sanitize(&b.value), crate::sanitize::sanitize(&b.decided_by));
            let loses = b.persisted.is_some() && b.overriding_line.is_some();
            ("next boot", text, if loses { KnobLineStyle::Warn } else { KnobLineStyle::Plain })
        }
        None => ("next boot", "- not read".into(), KnobLineStyle::Dim),
    });
    out.push(("allowed", row.allowed_values.clone(), KnobLineStyle::Plain));
    if !row.linked_effect.is_empty() {
        out.push(("also sets", row.linked_effect.clone(), KnobLineStyle::Plain));
    }
    out.push(("", row.description.to_owned(), KnobLineStyle::Plain));
    out.push(("writes", row.written_to.clone(), KnobLineStyle::Dim));
    out.push(("needs", row.required_privilege.to_owned(), KnobLineStyle::Dim));
    out.push(("persists", row.persist_path.clone().unwrap_or_else(|why| why), KnobLineStyle::Dim));
    out.push(("source", row.source.to_owned(), KnobLineStyle::Dim));
    out.extend(tune.boot_notes.iter().map(|note| ("note", note.clone(), KnobLineStyle::Dim)));
    out
}

/// The page as lines: label, text, style.
fn page_lines(app: &App, width: u16) -> Vec<(&'static str, String, KnobLineStyle)> {
    const LABEL_WIDTH: u16 = 10;
    let mut out = Vec::new();
    for (label, text, kind) in page_parts(app) {
        let room = if label.is_empty() { width } else { width.saturating_sub(LABEL_WIDTH) };
        for (i, line) in wrap(&text, usize::from(room.max(8))).into_iter().enumerate() {
            let indent = if label.is_empty() { String::new() } else { " ".repeat(LABEL_WIDTH.into()) };
            out.push((if i == 0 { label } else { "" }, indent + &line, kind));
        }
    }
    out
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let title = app.views.tune.selected_knob().map_or("Knob".into(), |r| r.display_name.clone());
    let inner = draw_frame(buf, area, &title, "g graph  P persist", focused, theme);
    let all = page_lines(app, inner.width);
    let most = all.len().saturating_sub(usize::from(inner.height));
    let skip = app.views.tune.page_scroll.selected.min(most);
    for ((label, text, kind), y) in all.iter().skip(skip).zip(inner.y..inner.bottom()) {
        draw_text(buf, inner.x, y, text, inner.width, line_style(theme, *kind));
        draw_text(buf, inner.x, y, label, inner.width, theme.header);
    }
    if skip < most && inner.width > 2 {
        draw_text(buf, inner.right() - 1, inner.bottom() - 1, "↓", 1, theme.dim);
    }
}

fn line_style(theme: &Theme, kind: KnobLineStyle) -> Style {
    match kind {
        KnobLineStyle::Plain => theme.text,
        KnobLineStyle::Dim => theme.dim,
        KnobLineStyle::Changed => theme.changed,
        KnobLineStyle::Warn => theme.warn,
    }
}

fn build_table(app: &App) -> Table {
    let name = app.views.tune.selected_knob().map_or(String::new(), |r| r.display_name.clone());
    let title = format!("{name} on {}, {}", app.shared.system.host.name, app.shared.timestamp());
    let mut sheet = Table::new(title, &[("", false), ("", false)]);
    sheet.rows.extend(page_parts(app).into_iter().map(|(label, text, _)| vec![label.to_owned(), text]));
    sheet
}
