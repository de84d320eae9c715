//! The list of incidents, the worst first; the worst in a few rows at the top of the Overview.

use super::checks::judged_text;
use super::{FindingsView, involved};
use crate::doctor::finding::Severity;
use crate::export::findings::{build_table as paper, incident_line, skipped_rule_notes, summarize};
use crate::export::table::Table;
use crate::tui::view::{Action, Context, PaneId, Shared, ViewId};
use crate::tui::widgets::{
    CellBuffer, Rect, Style, Theme, area_below, draw_column, draw_text, split_columns, split_rows, table, wrap,
};
use crate::units::format_rfc3339;

/// From this width on the page is beside a long list instead of below it.
const SIDE_BY_SIDE_WIDTH: u16 = 170;
/// Most incidents in the strip at the top of the Overview; the Findings tab has all.
const MAX_INCIDENTS: usize = 4;
/// Rows that the Overview must have for the strip to appear without incidents.
const MIN_BODY_WHEN_HEALTHY: u16 = 30;
/// Rows that the Overview must have for the strip to appear with incidents.
const MIN_BODY_WITH_INCIDENTS: u16 = 15;

pub(super) fn severity_style(theme: &Theme, severity: Severity) -> Style {
    match severity {
        Severity::Note => theme.text,
        Severity::Warn => theme.warn,
        Severity::Critical => theme.crit,
    }
}

fn no_incident_text(shared: &Shared) -> String {
    match shared.findings.seq {
        0 => "nothing was looked at yet".into(),
        _ => format!("nothing wrong found, {}", judged_text(shared)),
    }
}

/// Draws the incidents from the `first` on, one a row, and highlights the selected one.
pub(super) fn draw_incidents(cx: &Context, area: Rect, buf: &mut CellBuffer, first: usize, selected: Option<usize>) {
    let (shared, theme) = (cx.shared, &cx.theme);
    for (i, story) in shared.findings.incidents.iter().enumerate().skip(first).take(area.height.into()) {
        let y = area.y + (i - first) as u16;
        let text = format!("{} {}", story.severity.symbol(), incident_line(story));
        draw_text(buf, area.x, y, &text, area.width, severity_style(theme, story.severity));
        if selected == Some(i) {
            table::highlight_row(buf, area, y, theme);
        }
    }
}

impl FindingsView {
    pub(super) fn list_layout(body: Rect, stories: usize) -> Vec<(PaneId, Rect)> {
        let wanted = stories.min(100) as u16 + 2;
        let is_long = wanted > body.height / 2;
        let [list, page] = match body.width >= SIDE_BY_SIDE_WIDTH && is_long {
            true => split_columns(body, body.width * 2 / 5),
            false => split_rows(body, wanted.clamp(4, (body.height / 3).max(4))),
        };
        vec![(PaneId::Findings, list), (PaneId::IncidentPage, page)]
    }

    pub(super) fn list_table(shared: &Shared) -> Table {
        let now = format_rfc3339(shared.system.now().wall_ns);
        let title = format!("Findings on {}, {now}", shared.system.host.name);
        let mut sheet = paper(title, &shared.findings, shared.system.now());
        sheet.notes.extend(skipped_rule_notes(&shared.findings).into_iter().map(|gap| format!("not judged: {gap}")));
        sheet
    }

    pub(super) fn render_list(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let shared = cx.shared;
        let inner = cx.draw_frame(buf, PaneId::Findings, area, "Findings", &summarize(&shared.findings));
        if shared.findings.incidents.is_empty() {
            draw_text(buf, inner.x, inner.y, &no_incident_text(shared), inner.width, cx.theme.dim);
            return;
        }
        let mut scroll = self.scroll;
        scroll.scroll_into_view(shared.findings.incidents.len(), inner.height.into());
        draw_incidents(cx, inner, buf, scroll.offset, Some(scroll.selected));
    }

    /// The incident at row `y` of a pane of this height.
    pub fn row_at(&self, shared: &Shared, height: u16, y: u16) -> Option<usize> {
        let mut scroll = self.scroll;
        scroll.scroll_into_view(shared.findings.incidents.len(), height.into());
        let at = scroll.offset + usize::from(y);
        (at < shared.findings.incidents.len()).then_some(at)
    }

    /// Rows of the strip in a body of this size.
    pub fn summary_height(body: Rect, shared: &Shared) -> u16 {
        let incidents = &shared.findings.incidents;
        match incidents.len() {
            0 if body.height < MIN_BODY_WHEN_HEALTHY => 0,
            _ if body.height < MIN_BODY_WITH_INCIDENTS => 0,
            // A low screen shows only the worst incident.
            _ if body.height < MIN_BODY_WHEN_HEALTHY => 4,
            0 => 3,
            n => n.min(MAX_INCIDENTS) as u16 + 2 + worst_lines(shared, body.width.saturating_sub(2)).len() as u16,
        }
    }

    pub(super) fn render_summary(cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (shared, is_empty) = (cx.shared, cx.shared.findings.incidents.is_empty());
        let summary = if is_empty { String::new() } else { summarize(&shared.findings) + "  " };
        let note = format!("{summary}{} all", shared.keymap.key_of(Action::ShowView(ViewId::Findings)));
        let inner = cx.draw_frame(buf, PaneId::FindingsSummary, area, "What is wrong", &note);
        if is_empty {
            draw_text(buf, inner.x, inner.y, &no_incident_text(shared), inner.width, cx.theme.dim);
            return;
        }
        let room = inner.width.saturating_sub(2);
        let Some(line) = involved::worst_line(shared, room).filter(|_| inner.height > 1) else {
            return draw_incidents(cx, inner, buf, 0, None);
        };
        let worst = worst_lines(shared, inner.width);
        // A low screen has one row for it.
        if inner.height > 2 && worst.len() > 1 {
            let style = shared.findings.incidents.first().map(|incident| severity_style(&cx.theme, incident.severity));
            draw_column(buf, inner, worst.iter().zip(std::iter::repeat(style.unwrap_or_default())));
        } else {
            draw_incidents(cx, Rect { height: 1, ..inner }, buf, 0, None);
        }
        let below = area_below(inner, if inner.height > 2 { worst.len() as u16 } else { 1 });
        draw_text(buf, below.x + 2, below.y, &line, room, cx.theme.text);
        draw_incidents(cx, area_below(below, 1), buf, 1, None);
    }
}

/// Rows that the sentence of the worst incident has at the most.
const MAX_WORST_ROWS: usize = 2;

/// The sentence of the worst incident, in so many cells.
fn worst_lines(shared: &Shared, width: u16) -> Vec<String> {
    let Some(worst) = shared.findings.incidents.first() else { return Vec::new() };
    let text = format!("{} {}", worst.severity.symbol(), incident_line(worst));
    let mut lines = wrap(&text, usize::from(width.max(20)));
    let rest = lines.split_off(lines.len().min(MAX_WORST_ROWS - 1)).join(" ");
    if !rest.is_empty() {
        lines.push(if lines.is_empty() { rest } else { format!("  {rest}") });
    }
    lines
}

/// The rules that could not be evaluated, wrapped to a width.
pub(super) fn skipped_rule_lines(shared: &Shared, width: u16) -> Vec<String> {
    skipped_rule_notes(&shared.findings).iter().flat_map(|gap| wrap(gap, width.max(20).into())).collect()
}
