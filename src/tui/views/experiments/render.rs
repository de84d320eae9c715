//! The panes of experiments, shown in place of the knobs: the list, and the page of the selected row.

use super::{form_page, page, running};
use crate::export::table::Table;
use crate::tui::keymap::KeyContext;
use crate::tui::panes::focused_pane_inner;
use crate::tui::panes::{Pane, PaneId};
use crate::tui::state::App;
use crate::tui::views::bench::render::draw_page;
use crate::tui::views::experiments::ExperimentRow;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::draw_frame;
use crate::tui::widgets::styled_lines::StyledLine;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The page.
pub const PANE: Pane = Pane {
    id: PaneId::ExperimentPage,
    contexts: &[KeyContext::Experiment, KeyContext::Scroll],
    render,
    content_hash: |_| None,
    table: build_table,
    row_count: max_scroll,
};

/// Whether the page shows an experiment under way.
fn is_showing_run(app: &App) -> bool {
    let ui = &app.views.experiments;
    ui.opened.is_none() && ui.selected == ExperimentRow::CurrentRun && ui.active_run().is_some()
}

/// Maximum scroll position of the page; for the form, the number of lines of its plan that do not fit.
pub fn max_scroll(app: &App) -> usize {
    if app.focused_pane() != PaneId::ExperimentPage {
        return 0;
    }
    let inner = focused_pane_inner(app);
    if app.views.experiments.is_planning() {
        return form_page::hidden_plan_lines(app, inner);
    }
    if is_showing_run(app) {
        return 0;
    }
    page::page_lines(app, inner.width).len().saturating_sub(usize::from(inner.height))
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let ui = &app.views.experiments;
    if ui.is_planning() {
        return form_page::render(app, theme, area, buf, focused);
    }
    if let Some(run) = ui.active_run().filter(|_| is_showing_run(app)) {
        return running::render(app, theme, area, buf, focused, run);
    }
    let (title, note) = page::page_title(app);
    let inner = draw_frame(buf, area, &title, note, focused, theme);
    draw_page(theme, area, buf, &page::page_lines(app, inner.width), ui.text_offset);
}

fn build_table(app: &App) -> Table {
    if let Some(report) = app.views.experiments.shown_report() {
        return page::build_table(report);
    }
    let ui = &app.views.experiments;
    let (title, lines): (String, Vec<StyledLine>) = match ui.active_run().filter(|_| is_showing_run(app)) {
        _ if ui.is_planning() => return form_page::build_table(app),
        Some(run) => ("Experiment".into(), running::summary_lines(run)),
        None => (page::page_title(app).0, page::page_lines(app, u16::MAX)),
    };
    let mut sheet =
        Table::new(format!("{title} on {}, {}", app.shared.system.host.name, app.shared.timestamp()), &[("", false)]);
    sheet.rows.extend(lines.into_iter().map(|l| vec![l.0]));
    sheet
}
