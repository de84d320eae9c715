//! One knob: what it does and costs, what may be written, its five values with what they mean here.

use super::super::{Pane, PaneId};
use crate::export::table::Table;
use crate::tui::keys::Context;
use crate::tui::layout;
use crate::tui::state::App;
use crate::tui::tuning::known;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::{frame, wrap};
use crate::tui::widgets::put::put;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::TuneKnob,
    contexts: &[Context::Tune, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: |app| {
        let area = layout::arrange(app).area(PaneId::TuneKnob).unwrap_or_default();
        let inside = usize::from(area.height.saturating_sub(2));
        lines(app, area.width.saturating_sub(2)).len().saturating_sub(inside) + 1
    },
};

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Dim,
    Changed,
    Warn,
}

/// Label and text of each part.
fn parts(app: &App) -> Vec<(&'static str, String, Kind)> {
    let tune = &app.ui.tune;
    let Some(row) = tune.selected() else { return Vec::new() };
    let meaning = |value: &String| match &tune.survey {
        Some(survey) => known::meaning(survey, &row.name, value),
        None => value.clone(),
    };
    let boot = tune.boot.get(&row.name);
    let mut out =
        vec![("now", row.long.clone(), if row.reading.is_err() { Kind::Warn } else { Kind::Plain })];
    if let Some(value) = tune.proposed.get(&row.name) {
        out.push(("proposed", format!("{}  (a applies)", meaning(value)), Kind::Changed));
    }
    out.push(("at start", tune.start.get(&row.name).map_or("-".into(), meaning), Kind::Plain));
    out.push(("default", row.default.clone(), Kind::Plain));
    out.push(match boot {
        Some(b) => {
            let text = format!("{}, by {}", crate::text::sanitize(&b.value), crate::text::sanitize(&b.by));
            let loses = b.ours.is_some() && b.stronger.is_some();
            ("next boot", text, if loses { Kind::Warn } else { Kind::Plain })
        }
        None => ("next boot", "- not read yet".into(), Kind::Dim),
    });
    out.push(("allowed", row.allowed.clone(), Kind::Plain));
    if !row.link.is_empty() {
        out.push(("with it", row.link.clone(), Kind::Plain));
    }
    out.push(("", row.about.to_owned(), Kind::Plain));
    out.push(("writes", row.target.clone(), Kind::Dim));
    out.push(("needs", row.needs.to_owned(), Kind::Dim));
    out.push(("lasts by", row.lasts.clone().unwrap_or_else(|why| why), Kind::Dim));
    out.push(("source", row.source.to_owned(), Kind::Dim));
    out.extend(tune.boot_notes.iter().map(|note| ("note", note.clone(), Kind::Dim)));
    out
}

/// The page as lines: label, text, how it stands out.
fn lines(app: &App, width: u16) -> Vec<(&'static str, String, Kind)> {
    const LABEL: u16 = 10;
    let mut out = Vec::new();
    for (label, text, kind) in parts(app) {
        let room = if label.is_empty() { width } else { width.saturating_sub(LABEL) };
        for (i, line) in wrap(&text, usize::from(room.max(8))).into_iter().enumerate() {
            let indent = if label.is_empty() { String::new() } else { " ".repeat(LABEL.into()) };
            out.push((if i == 0 { label } else { "" }, indent + &line, kind));
        }
    }
    out
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let title = app.ui.tune.selected().map_or("Knob".into(), |r| r.shown.clone());
    let inner = frame(buf, area, &title, "g graph  P persist", focused, theme);
    let all = lines(app, inner.width);
    let most = all.len().saturating_sub(usize::from(inner.height));
    let skip = app.ui.tune.page.selected.min(most);
    for ((label, text, kind), y) in all.iter().skip(skip).zip(inner.y..inner.bottom()) {
        put(buf, inner.x, y, text, inner.width, style(theme, *kind));
        put(buf, inner.x, y, label, inner.width, theme.head);
    }
    if skip < most && inner.width > 2 {
        put(buf, inner.right() - 1, inner.bottom() - 1, "↓", 1, theme.dim);
    }
}

fn style(theme: &Theme, kind: Kind) -> Style {
    match kind {
        Kind::Plain => theme.text,
        Kind::Dim => theme.dim,
        Kind::Changed => theme.changed,
        Kind::Warn => theme.warn,
    }
}

fn sheet(app: &App) -> Table {
    let name = app.ui.tune.selected().map_or(String::new(), |r| r.shown.clone());
    let title = format!("{name} on {}, {}", app.world.host.name, app.stamp());
    let mut sheet = Table::new(title, &[("", false), ("", false)]);
    sheet.rows.extend(parts(app).into_iter().map(|(label, text, _)| vec![label.to_owned(), text]));
    sheet
}
