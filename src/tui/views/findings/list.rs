//! The list of incidents, the worst first.

use super::FindingsView;
use crate::doctor::finding::Severity;
use crate::export::findings::{build_table as paper, incident_line, skipped_rule_notes, summarize};
use crate::export::table::Table;
use crate::tui::view::{PaneId, Shared};
use crate::tui::widgets::{CellBuffer, Rect, Style, Theme, draw_frame, draw_text, table, wrap};

/// From this width on the page is beside the list instead of below it.
const SIDE_BY_SIDE_WIDTH: u16 = 170;

pub(super) fn severity_style(theme: &Theme, severity: Severity) -> Style {
    match severity {
        Severity::Note => theme.text,
        Severity::Warn => theme.warn,
        Severity::Critical => theme.crit,
    }
}

/// Draws the incidents from the `first` on, one a row, and highlights the selected one.
pub(super) fn draw_incidents(
    shared: &Shared,
    theme: &Theme,
    area: Rect,
    buf: &mut CellBuffer,
    first: usize,
    selected: Option<usize>,
) {
    for (i, story) in shared.findings.incidents().iter().enumerate().skip(first).take(area.height.into()) {
        let y = area.y + (i - first) as u16;
        let text = format!("{} {}", story.severity.symbol(), incident_line(story));
        let (shown, cells) = crate::sanitize::fit_width(&text, area.width.into());
        let used = draw_text(buf, area.x, y, shown, area.width, severity_style(theme, story.severity));
        if shown.len() < text.len() && used > 0 {
            draw_text(buf, area.x + (cells as u16).min(area.width) - 1, y, "…", 1, theme.dim);
        }
        if selected == Some(i) {
            table::highlight_row(buf, area, y, theme);
        }
    }
}

impl FindingsView {
    pub(super) fn list_layout(body: Rect, stories: usize) -> Vec<(PaneId, Rect)> {
        if body.width >= SIDE_BY_SIDE_WIDTH {
            let left = body.width * 2 / 5;
            let page = Rect { x: body.x + left, width: body.width - left, ..body };
            return vec![(PaneId::Findings, Rect { width: left, ..body }), (PaneId::IncidentPage, page)];
        }
        let wanted = stories.min(100) as u16 + 2;
        let list = wanted.clamp(4, (body.height / 3).max(4)).min(body.height);
        let page = Rect { y: body.y + list, height: body.height - list, ..body };
        vec![(PaneId::Findings, Rect { height: list, ..body }), (PaneId::IncidentPage, page)]
    }

    pub(super) fn list_table(shared: &Shared) -> Table {
        let title = format!(
            "Findings on {}, {}",
            shared.system.host.name,
            crate::units::format_rfc3339(shared.system.now().wall_ns)
        );
        let mut sheet = paper(title, &shared.findings, shared.system.now());
        sheet.notes.extend(skipped_rule_notes(&shared.findings).into_iter().map(|gap| format!("not judged: {gap}")));
        sheet
    }

    pub(super) fn render_list(&self, shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
        let inner = draw_frame(buf, area, "Findings", &summarize(&shared.findings), focused, theme);
        if shared.findings.incidents().is_empty() {
            let text = if shared.findings.seq() == 0 { "nothing was looked at yet" } else { "nothing wrong found" };
            draw_text(buf, inner.x, inner.y, text, inner.width, theme.dim);
            return;
        }
        let mut scroll = self.scroll;
        scroll.scroll_into_view(shared.findings.incidents().len(), inner.height.into());
        draw_incidents(shared, theme, inner, buf, scroll.offset, Some(scroll.selected));
    }

    /// The incident at row `y` of a pane of this height.
    pub fn row_at(&self, shared: &Shared, height: u16, y: u16) -> Option<usize> {
        let mut scroll = self.scroll;
        scroll.scroll_into_view(shared.findings.incidents().len(), height.into());
        let at = scroll.offset + usize::from(y);
        (at < shared.findings.incidents().len()).then_some(at)
    }
}

/// The rules that could not be evaluated, wrapped to a width.
pub(super) fn skipped_rule_lines(shared: &Shared, width: u16) -> Vec<String> {
    skipped_rule_notes(&shared.findings).iter().flat_map(|gap| wrap(gap, width.max(20).into())).collect()
}
