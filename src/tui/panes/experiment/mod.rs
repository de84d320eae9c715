//! Experiments on the screen, in the place of the knobs: the list, and the page of what is selected in it.

pub mod form;
pub mod list;
pub mod live;
pub mod page;

use super::bench::{Toned, draw_page};
use super::kernel_detail::inside;
use super::{Pane, PaneId};
use crate::export::table::Table;
use crate::tui::experiment::Row;
use crate::tui::keys::Context;
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::frame;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// The page.
pub const PANE: Pane = Pane {
    id: PaneId::Experiment,
    contexts: &[Context::Experiment, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: last_line,
};

/// Whether the page is an experiment under way.
fn is_live(app: &App) -> bool {
    let ui = &app.ui.experiment;
    ui.opened.is_none() && ui.selected == Row::Now && ui.running().is_some()
}

/// The furthest the page can be scrolled: of the form, the lines of its plan that have no room.
pub fn last_line(app: &App) -> usize {
    if app.focused() != PaneId::Experiment {
        return 0;
    }
    let inner = inside(app);
    if app.ui.experiment.planning() {
        return form::hidden(app, inner);
    }
    if is_live(app) {
        return 0;
    }
    page::lines(app, inner.width).len().saturating_sub(usize::from(inner.height))
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let ui = &app.ui.experiment;
    if ui.planning() {
        return form::render(app, theme, area, buf, focused);
    }
    if let Some(run) = ui.running().filter(|_| is_live(app)) {
        return live::render(app, theme, area, buf, focused, run);
    }
    let (title, note) = page::title(app);
    let inner = frame(buf, area, &title, note, focused, theme);
    draw_page(theme, area, buf, &page::lines(app, inner.width), ui.line);
}

fn sheet(app: &App) -> Table {
    if let Some(report) = app.ui.experiment.shown() {
        return page::sheet(report);
    }
    let ui = &app.ui.experiment;
    let (title, lines): (String, Vec<Toned>) = match ui.running().filter(|_| is_live(app)) {
        _ if ui.planning() => return form::sheet(app),
        Some(run) => ("Experiment".into(), live::summary(run)),
        None => (page::title(app).0, page::lines(app, u16::MAX)),
    };
    let mut sheet =
        Table::new(format!("{title} on {}, {}", app.world.host.name, app.stamp()), &[("", false)]);
    sheet.rows.extend(lines.into_iter().map(|l| vec![l.0]));
    sheet
}
