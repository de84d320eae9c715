//! The page of an incident: its cause, figures, consequences, and what to try. Lines that lead to another page are marked;
//! one of them is selected, and Enter goes there.

use super::FindingsView;
use super::checks::{check_lines, judged_text};
use super::list::{severity_style, skipped_rule_lines};
use super::{history, involved};
use crate::doctor::finding::NavTarget;
use crate::doctor::incident::Incident;
use crate::export::findings::{IncidentParagraph, ParagraphKind, incident_paragraphs};
use crate::export::table::Table;
use crate::tui::view::{Action, Context, PaneId, Shared};
use crate::tui::widgets::{CellBuffer, Rect, area_below, draw_text, patch_style, wrap};

const LABEL_WIDTH: u16 = 9;
/// Rows that must be free for the figures that rules judge: fewer never hold them.
const MIN_CHECK_ROWS: usize = 10;

struct PageLine {
    label: &'static str,
    text: String,
    kind: ParagraphKind,
    /// Its index among the navigation targets.
    target_index: Option<usize>,
}

impl FindingsView {
    pub fn selected_incident<'a>(&self, shared: &'a Shared) -> Option<&'a Incident> {
        let stories = &shared.findings.incidents;
        stories.get(self.scroll.selected.min(stories.len().checked_sub(1)?))
    }

    /// The navigation targets of the selected incident, in the order of the page.
    pub fn nav_targets(&self, shared: &Shared) -> Vec<NavTarget> {
        self.paragraphs(shared, u16::MAX).into_iter().filter_map(|p| p.nav_target).collect()
    }

    /// The lines of the page in so many cells and rows. Below an incident what else was judged follows only where it fits,
    /// with the graphs.
    fn page_lines(&self, shared: &Shared, (width, height): (u16, u16)) -> Vec<PageLine> {
        let plain = |label, text, kind| PageLine { label, text, kind, target_index: None };
        let secondary = |text| plain("", text, ParagraphKind::Secondary);
        let Some(incident) = self.selected_incident(shared) else { return no_incident_lines(shared, width) };
        let mut out = Vec::new();
        let mut targets = 0..;
        for part in self.paragraphs(shared, width.saturating_sub(LABEL_WIDTH)) {
            let target_index = part.nav_target.as_ref().and_then(|_| targets.next());
            push_paragraph(&part, target_index, width, &mut out);
        }
        let gaps = skipped_rule_lines(shared, width.saturating_sub(LABEL_WIDTH));
        if !gaps.is_empty() {
            out.push(secondary(String::new()));
        }
        for (text, label) in gaps.iter().zip(std::iter::once("skipped").chain(std::iter::repeat(""))) {
            out.push(plain(label, indent(text), ParagraphKind::Secondary));
        }
        let graphs = usize::from(history::wanted_rows(shared, incident));
        let free = usize::from(height).saturating_sub(out.len() + 1 + graphs);
        let judged =
            if free < MIN_CHECK_ROWS { Vec::new() } else { check_lines(shared, width - LABEL_WIDTH.min(width)) };
        if !judged.is_empty() && judged.len() <= free {
            out.push(secondary(String::new()));
            for (text, label) in judged.iter().zip(std::iter::once("judged").chain(std::iter::repeat(""))) {
                out.push(plain(label, indent(text), ParagraphKind::Secondary));
            }
        }
        out
    }

    /// The paragraphs of the selected incident; below the title, in so many cells if that can be, who is involved.
    fn paragraphs(&self, shared: &Shared, width: u16) -> Vec<IncidentParagraph> {
        let Some(incident) = self.selected_incident(shared) else { return Vec::new() };
        let mut out = incident_paragraphs(incident, shared.system.now(), shared.utc_offset_secs);
        let who = involved::line(shared, incident, width);
        let who =
            who.map(|text| IncidentParagraph { label: "who", text, kind: ParagraphKind::Detail, nav_target: None });
        out.splice(1..1, who);
        out
    }

    pub(super) fn render_page(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme, cx.is_focused(PaneId::IncidentPage));
        let title = self.selected_incident(cx.shared).map_or("Finding", |s| s.cause().rule);
        let note = format!("{} goes there", cx.shared.key(Action::Open));
        let inner = cx.draw_frame(buf, PaneId::IncidentPage, area, title, &note);
        let all = self.page_lines(cx.shared, (inner.width, inner.height));
        let height = usize::from(inner.height);
        let selected = self.selected_target;
        let skip = scroll_offset(&all, selected, height, focused);
        for (line, y) in all.iter().skip(skip).zip(inner.y..inner.bottom()) {
            let look = match line.kind {
                ParagraphKind::Title(severity) => severity_style(theme, severity),
                ParagraphKind::Detail | ParagraphKind::Remedy => theme.text,
                ParagraphKind::Secondary => theme.dim,
            };
            draw_text(buf, inner.x, y, &line.text, inner.width, look);
            draw_text(buf, inner.x, y, line.label, LABEL_WIDTH, theme.header);
            if focused && line.target_index.is_some_and(|at| at == selected) {
                patch_style(buf, inner.x, y, inner.width, theme.selected);
            }
        }
        let used = all.len().saturating_sub(skip).min(height) as u16 + 1;
        if let Some(incident) = self.selected_incident(cx.shared) {
            history::draw_incident_history(cx, incident, area_below(inner, used.min(inner.height)), buf);
        }
        if skip + height < all.len() && inner.width > 2 && inner.height > 0 {
            draw_text(buf, inner.right() - 1, inner.bottom() - 1, "↓", 1, theme.dim);
        }
    }

    /// The navigation target at row `y` of the page.
    pub fn target_at(&self, cx: &Context, y: u16) -> Option<usize> {
        let inner = cx.inner_area(PaneId::IncidentPage);
        let all = self.page_lines(cx.shared, (inner.width, inner.height));
        let skip = scroll_offset(&all, self.selected_target, inner.height.into(), cx.focused == PaneId::IncidentPage);
        all.get(skip + usize::from(y))?.target_index
    }

    pub(super) fn page_table(&self, shared: &Shared) -> Table {
        let title = self.selected_incident(shared).map_or("Nothing wrong found".into(), |s| s.cause().title.clone());
        let now = crate::units::format_rfc3339(shared.system.now().wall_ns);
        let title = format!("{title}, {}, {now}", shared.system.host.name);
        let mut sheet = Table::new(title, &[("", false), ("", false)]);
        sheet.rows.extend(self.paragraphs(shared, u16::MAX).into_iter().map(|p| vec![p.label.to_owned(), p.text]));
        sheet
    }
}

/// What the rules look at, and which of them could not look.
fn no_incident_lines(shared: &Shared, width: u16) -> Vec<PageLine> {
    let plain = |text, kind| PageLine { label: "", text, kind, target_index: None };
    if shared.findings.seq == 0 {
        return Vec::new();
    }
    let mut out = vec![plain(judged_text(shared) + ", among others by these figures:", ParagraphKind::Detail)];
    out.extend(check_lines(shared, width).into_iter().map(|text| plain(text, ParagraphKind::Secondary)));
    let gaps = skipped_rule_lines(shared, width);
    if !gaps.is_empty() {
        out.extend([String::new(), "Not judged:".into()].map(|text| plain(text, ParagraphKind::Detail)));
    }
    out.extend(gaps.into_iter().map(|text| plain(text, ParagraphKind::Secondary)));
    out
}

fn indent(text: &str) -> String {
    format!("{}{text}", " ".repeat(LABEL_WIDTH.into()))
}

fn push_paragraph(part: &IncidentParagraph, place: Option<usize>, width: u16, out: &mut Vec<PageLine>) {
    let title = matches!(part.kind, ParagraphKind::Title(_));
    let room = if title { width } else { width.saturating_sub(LABEL_WIDTH) };
    let mut text = part.text.clone();
    if let (Some(jump), false) = (&part.nav_target, part.label == "see") {
        text.push_str(&format!("  → {}", jump.label()));
    }
    for (i, line) in wrap(&text, usize::from(room.max(20))).into_iter().enumerate() {
        out.push(PageLine {
            label: if i == 0 { part.label } else { "" },
            text: if title { line } else { indent(&line) },
            kind: part.kind,
            target_index: place,
        });
    }
}

/// The first line on screen, such that the selected target and the lines after it are visible while the page is focused.
fn scroll_offset(lines: &[PageLine], selected: usize, height: usize, focused: bool) -> usize {
    let most = lines.len().saturating_sub(height);
    if !focused || selected == 0 {
        return 0;
    }
    let last = lines.iter().rposition(|l| l.target_index == Some(selected)).unwrap_or(0);
    let is_end = lines.iter().filter_map(|l| l.target_index).max() == Some(selected);
    if is_end { most } else { (last + 3).saturating_sub(height).min(most) }
}
