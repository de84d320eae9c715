//! The next experiment: its lines, filled in where they stand, and exactly what would be done, as
//! `experiment --dry-run` says it.

use super::super::bench::grid::{Grid, grid};
use super::super::bench::plan::{NAME, param_text, place_refuses};
use super::super::bench::{Tone, Toned, draw_below, folded};
use crate::bench::workloads;
use crate::experiment::outline::outline;
use crate::export::table::Table;
use crate::text::sanitize;
use crate::tui::experiment::form::Line;
use crate::tui::panes::PaneId;
use crate::tui::state::{App, Overlay, Prompt, PromptFor};
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::{frame, input};
use crate::tui::widgets::put::put;
use crate::tui::widgets::table::select;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// Why it is not started this very moment, when nothing else is in the way.
pub const LOOKING: &str = "the knobs are still being looked at; the question comes when they are known";

/// Why the experiment cannot be started now: what was found, and what to do.
pub fn wont_start(app: &App) -> Option<String> {
    let spec = app.planned_experiment();
    if spec.set.is_empty() {
        return Some("nothing to compare: fill in what B sets, as in vm.dirty_ratio=80".into());
    }
    if let Err(why) = spec.check() {
        return Some(sanitize(why));
    }
    for plan in std::iter::once(spec.plan.clone()).chain(spec.control_plan()) {
        let work = workloads::find(&plan.profile).filter(|w| w.needs_directory());
        if let Some(why) = work.and_then(|w| place_refuses(app, w, &plan, w.footprint(&plan))) {
            return Some(why);
        }
    }
    match app.ui.experiment.found(&spec) {
        None => Some(LOOKING.into()),
        Some(Err(why)) => Some(why.clone()),
        Some(Ok(_)) => None,
    }
}

/// What would be done and met.
fn about(app: &App) -> Vec<Toned> {
    let spec = app.planned_experiment();
    let mut out: Vec<Toned> = Vec::new();
    if let Some(why) = wont_start(app) {
        out.push((format!("NOT TO BE STARTED: {why}"), Tone::Crit));
    }
    if let Some(Ok(checked)) = app.ui.experiment.found(&spec) {
        out.extend(outline(&spec, checked).lines().map(|l| (sanitize(l), Tone::Plain)));
    } else {
        out.push((app.ui.experiment.form.work().about().into(), Tone::Dim));
    }
    let look = app.ui.bench.look().and_then(|l| l.as_ref().ok());
    if let Some(look) = look.filter(|_| app.ui.experiment.form.work().needs_directory()) {
        out.extend(look.warnings(spec.plan.direct).into_iter().map(|w| (format!("! {w}"), Tone::Warn)));
    }
    if app.ui.tune.survey.as_ref().is_some_and(|s| !s.writable) {
        out.push(("! not root: r shows the sudo line that does it".into(), Tone::Warn));
    }
    out
}

/// A line's value as it is shown, with the length rounds will have.
fn value(app: &App, line: Line) -> String {
    let form = &app.ui.experiment.form;
    match line {
        Line::Workload => format!("{}: {}", form.work().name(), form.work().about()),
        Line::Directory => sanitize(app.ui.bench.directory.as_os_str().as_encoded_bytes()),
        Line::Base if form.base.is_empty() => "nothing: as things stand".into(),
        Line::Set | Line::Base => sanitize(form.text(line)),
        Line::Calm | Line::Drain => format!("{} s", form.text(line)),
        Line::Param(p) => param_text(p, &app.planned_experiment().plan),
        _ => form.text(line),
    }
}

/// The plan's text goes before the lines until these have the keys.
fn places(app: &App, inner: Rect) -> (Grid, Vec<Toned>) {
    let ui = &app.ui.experiment;
    let text = folded(about(app), inner.width.into());
    let least = usize::from(inner.height / 3);
    let needed = if app.focused() == PaneId::Experiment { text.len().min(least) } else { text.len() };
    let (wide, others) = ui.form.lines();
    let at = ui.lines.selected.min(ui.form.count() - 1);
    (grid(inner, wide.len() + others.len(), wide.len(), at, needed), text)
}

/// The line under a cell.
pub fn line_at(app: &App, inner: Rect, x: u16, y: u16) -> Option<usize> {
    if !app.ui.experiment.planning() {
        return None;
    }
    let (grid, _) = places(app, inner);
    grid.cells.into_iter().find(|(_, r)| y == r.y && x >= r.x && x < r.right()).map(|(line, _)| line)
}

/// Lines of the plan that have no room.
pub fn hidden(app: &App, inner: Rect) -> usize {
    let (grid, text) = places(app, inner);
    text.len().saturating_sub(grid.rest.height.into())
}

/// The line of input, while one is typed.
fn typed(app: &App) -> Option<(usize, &Prompt)> {
    match &app.ui.overlay {
        Some(Overlay::Prompt(p)) => match p.what {
            PromptFor::Experiment(at) => Some((at, p)),
            _ => None,
        },
        _ => None,
    }
}

/// Draws it.
pub fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let ui = &app.ui.experiment;
    let note = if focused { "Enter: change, r: run" } else { "e: change, r: run" };
    let inner = frame(buf, area, "Next experiment", note, focused, theme);
    let (grid, text) = places(app, inner);
    let typed = typed(app);
    for (i, cell) in &grid.cells {
        let Some(line) = ui.form.line(*i) else { continue };
        let changed = ui.form.changed(line);
        put(buf, cell.x, cell.y, line.name(), NAME.min(cell.width), theme.head);
        let field = Rect { x: cell.x + NAME, width: cell.width.saturating_sub(NAME), ..*cell };
        if let Some((_, prompt)) = typed.filter(|(at, _)| at == i) {
            input(buf, field, "", &prompt.text, prompt.cursor, theme);
            continue;
        }
        let shown = format!("{}{}", value(app, line), if changed { " *" } else { "" });
        let style = if changed { theme.warn } else { theme.text };
        super::super::tune::cut(buf, field.x, field.y, &shown, field.width, style);
        if focused && *i == ui.lines.selected {
            select(buf, *cell, cell.y, theme);
        }
    }
    hint(app, theme, &grid, buf, focused);
    draw_below(theme, area, grid.rest, buf, &text, ui.line, focused);
}

/// What may be typed, or what was wrong with it.
fn hint(app: &App, theme: &Theme, grid: &Grid, buf: &mut Canvas, focused: bool) {
    let area = grid.hint;
    if let Some(why) = typed(app).and_then(|(_, p)| p.error.as_ref()) {
        put(buf, area.x, area.y, why, area.width, theme.crit);
        return;
    }
    let hidden = match grid.hidden {
        (0, 0) => String::new(),
        (before, after) => format!("({} more lines) ", before + after),
    };
    let ui = &app.ui.experiment;
    let about = ui.form.line(ui.lines.selected).filter(|_| focused).map(Line::about).unwrap_or_default();
    put(buf, area.x, area.y, &format!("{hidden}{about}"), area.width, theme.dim);
}

/// The plan as a table to keep.
pub fn sheet(app: &App) -> Table {
    let title = format!("Next experiment on {}, {}", app.world.host.name, app.stamp());
    let mut sheet = Table::new(title, &[("line", false), ("value", false)]);
    let (wide, others) = app.ui.experiment.form.lines();
    for line in wide.into_iter().chain(others) {
        sheet.rows.push(vec![line.name().into(), value(app, line)]);
    }
    sheet.notes.extend(about(app).into_iter().map(|l| l.0));
    sheet
}
