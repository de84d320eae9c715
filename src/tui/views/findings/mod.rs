//! The Findings view: incidents, the worst first, and the page of the selected one.

mod checks;
mod history;
mod involved;
mod list;
pub(in crate::tui) mod page;
mod task;
mod victims;

use crate::export::table::Table;
use crate::tui::view::{Action, Context, KeyContext, Outbox, PaneClick, PaneId, PaneSpec, Target, View, ViewId};
use crate::tui::widgets::{CellBuffer, Rect, Scroll};

const KEYS: &[KeyContext] = &[KeyContext::Findings, KeyContext::Scroll];
/// Index of the page among the panes of the tab.
const PAGE: usize = 1;

#[derive(Debug, Default)]
pub struct FindingsView {
    pub scroll: Scroll,
    /// Selection among the targets of the incident's page.
    pub selected_target: usize,
}

impl FindingsView {
    pub fn select(&mut self, row: usize) {
        (self.scroll.selected, self.selected_target) = (row, 0);
    }

    /// Goes to the selected target of the page, or to the first one.
    fn open_target(&self, pane: PaneId, cx: &Context, out: &mut Outbox) {
        let index = if pane == PaneId::IncidentPage { self.selected_target } else { 0 };
        match self.nav_targets(cx.shared).into_iter().nth(index) {
            Some(target) => out.navigate(target.into()),
            None => out.info("nothing to go to"),
        }
    }
}

impl View for FindingsView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[
            (PaneId::Findings, "findings", KEYS),
            (PaneId::IncidentPage, "finding", KEYS),
            (PaneId::FindingsSummary, "findings", &[KeyContext::Findings]),
        ]
    }

    fn layout(&self, cx: &Context, body: Rect) -> Vec<(PaneId, Rect)> {
        Self::list_layout(body, cx.shared.findings.incidents.len())
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        match pane {
            PaneId::Findings => self.render_list(cx, area, buf),
            PaneId::IncidentPage => self.render_page(cx, area, buf),
            _ => Self::render_summary(cx, area, buf),
        }
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        match pane {
            PaneId::IncidentPage => self.page_table(cx.shared),
            _ => Self::list_table(cx.shared),
        }
    }

    fn move_selection(&mut self, pane: PaneId, by: isize, cx: &Context) -> bool {
        match pane {
            PaneId::IncidentPage => {
                let last = self.nav_targets(cx.shared).len().saturating_sub(1);
                self.selected_target = self.selected_target.saturating_add_signed(by).min(last);
            }
            PaneId::Findings => {
                self.scroll.move_selection(by, cx.shared.findings.incidents.len());
                self.selected_target = 0;
            }
            _ => {}
        }
        true
    }

    fn on_action(&mut self, pane: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        match action {
            Action::Open if pane == PaneId::FindingsSummary => out.navigate(Target::Tab(ViewId::Findings)),
            Action::Open => self.open_target(pane, cx, out),
            Action::Back if pane == PaneId::IncidentPage && !cx.screen.zoomed => out.focus_pane(0),
            _ => return false,
        }
        true
    }

    fn on_click(&mut self, click: PaneClick, cx: &Context, out: &mut Outbox) {
        let row = click.y - click.inner.y;
        match click.pane {
            PaneId::FindingsSummary => out.navigate(Target::Tab(ViewId::Findings)),
            PaneId::IncidentPage => {
                if let Some(target) = self.target_at(cx, row) {
                    self.selected_target = target;
                    out.focus_pane(PAGE);
                }
            }
            _ => {
                if let Some(row) = self.row_at(cx.shared, click.inner.height, row) {
                    self.select(row);
                }
            }
        }
    }
}
