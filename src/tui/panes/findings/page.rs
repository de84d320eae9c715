//! One story, whole: cause first, its figures, why it matters, what to try and what that costs. Lines that one
//! key leads on from are marked, and one of them is selected.

use super::super::{Pane, PaneId};
use super::{missing, style};
use crate::diagnose::finding::NavTarget;
use crate::diagnose::incident::Incident;
use crate::export::findings::{ParagraphKind, IncidentParagraph, incident_paragraphs};
use crate::export::table::Table;
use crate::tui::keys::Context;
use crate::tui::layout;
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::{frame, wrap};
use crate::tui::widgets::put::{put, tint};
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::FindingPage,
    contexts: &[Context::Findings, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: |app| jumps(app).len(),
};

/// Cells of the words at the left.
const LABEL: u16 = 9;

/// A line of the page.
struct Line {
    label: &'static str,
    text: String,
    kind: ParagraphKind,
    /// Its place among the jumps.
    jump: Option<usize>,
}

/// The selected story.
pub fn story(app: &App) -> Option<&Incident> {
    let stories = app.findings.incidents();
    stories.get(app.ui.findings.scroll.selected.min(stories.len().checked_sub(1)?))
}

/// Where the selected story leads, in the order of the page.
pub fn jumps(app: &App) -> Vec<NavTarget> {
    let all = story(app).map(|s| incident_paragraphs(s, app.world.now())).unwrap_or_default();
    all.into_iter().filter_map(|p| p.nav_target).collect()
}

fn lines(app: &App, width: u16) -> Vec<Line> {
    let Some(story) = story(app) else {
        let rest =
            missing(app, width).into_iter().map(|text| Line { label: "", text, kind: ParagraphKind::Secondary, jump: None });
        let head = Line { label: "", text: "Not judged:".into(), kind: ParagraphKind::Detail, jump: None };
        return if app.findings.skipped_rules().is_empty() {
            Vec::new()
        } else {
            [head].into_iter().chain(rest).collect()
        };
    };
    let mut out = Vec::new();
    let mut jump = 0;
    for part in incident_paragraphs(story, app.world.now()) {
        let place = part.nav_target.is_some().then_some(jump);
        jump += usize::from(place.is_some());
        paragraph(&part, place, width, &mut out);
    }
    let gaps = missing(app, width.saturating_sub(LABEL));
    if !gaps.is_empty() {
        out.push(Line { label: "", text: String::new(), kind: ParagraphKind::Secondary, jump: None });
    }
    for (i, text) in gaps.into_iter().enumerate() {
        let label = if i == 0 { "unjudged" } else { "" };
        out.push(Line { label, text: indented(&text), kind: ParagraphKind::Secondary, jump: None });
    }
    out
}

fn indented(text: &str) -> String {
    format!("{}{text}", " ".repeat(LABEL.into()))
}

fn paragraph(part: &IncidentParagraph, place: Option<usize>, width: u16, out: &mut Vec<Line>) {
    let title = matches!(part.kind, ParagraphKind::Title(_));
    let room = if title { width } else { width.saturating_sub(LABEL) };
    let mut text = part.text.clone();
    if let (Some(jump), false) = (&part.nav_target, part.label == "see") {
        text.push_str(&format!("  → {}", jump.label()));
    }
    for (i, line) in wrap(&text, usize::from(room.max(20))).into_iter().enumerate() {
        out.push(Line {
            label: if i == 0 { part.label } else { "" },
            text: if title { line } else { indented(&line) },
            kind: part.kind,
            jump: place,
        });
    }
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let title = story(app).map_or("", |s| s.cause().rule);
    let inner =
        frame(buf, area, if title.is_empty() { "Story" } else { title }, "Enter goes there", focused, theme);
    let all = lines(app, inner.width);
    let height = usize::from(inner.height);
    let selected = app.ui.findings.jump;
    let skip = offset(&all, selected, height, focused);
    for (line, y) in all.iter().skip(skip).zip(inner.y..inner.bottom()) {
        let look = match line.kind {
            ParagraphKind::Title(severity) => style(theme, severity),
            ParagraphKind::Detail | ParagraphKind::Remedy => theme.text,
            ParagraphKind::Secondary => theme.dim,
        };
        put(buf, inner.x, y, &line.text, inner.width, look);
        put(buf, inner.x, y, line.label, LABEL, theme.head);
        if focused && line.jump.is_some_and(|at| at == selected) {
            tint(buf, inner.x, y, inner.width, theme.selected);
        }
    }
    if skip + height < all.len() && inner.width > 2 && inner.height > 0 {
        put(buf, inner.right() - 1, inner.bottom() - 1, "↓", 1, theme.dim);
    }
}

/// The first line on screen: the selected jump is in sight while the page has the keys, with what follows it.
fn offset(lines: &[Line], selected: usize, height: usize, focused: bool) -> usize {
    let most = lines.len().saturating_sub(height);
    if !focused || selected == 0 {
        return 0;
    }
    let last = lines.iter().rposition(|l| l.jump == Some(selected)).unwrap_or(0);
    let is_end = lines.iter().filter_map(|l| l.jump).max() == Some(selected);
    if is_end { most } else { (last + 3).saturating_sub(height).min(most) }
}

/// The jump in line `y` of the page.
pub fn jump_at(app: &App, y: u16) -> Option<usize> {
    let area = layout::arrange(app).area(PaneId::FindingPage)?;
    let (width, height) = (area.width.saturating_sub(2), usize::from(area.height.saturating_sub(2)));
    let all = lines(app, width);
    let skip = offset(&all, app.ui.findings.jump, height, app.focused() == PaneId::FindingPage);
    all.get(skip + usize::from(y))?.jump
}

fn sheet(app: &App) -> Table {
    let title = story(app).map_or("Nothing wrong found".into(), |s| s.cause().title.clone());
    let title =
        format!("{title}, {}, {}", app.world.host.name, crate::units::format_rfc3339(app.world.now().wall_ns));
    let mut sheet = Table::new(title, &[("", false), ("", false)]);
    let all = story(app).map(|s| incident_paragraphs(s, app.world.now())).unwrap_or_default();
    sheet.rows.extend(all.into_iter().map(|p| vec![p.label.to_owned(), p.text]));
    sheet
}
