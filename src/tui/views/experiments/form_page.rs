//! The form for the next experiment: its lines, which are edited in place, and what would be done, as
//! `experiment --dry-run` prints it.

use crate::bench::workloads;
use crate::experiment::description::describe_experiment;
use crate::export::table::Table;
use crate::sanitize::sanitize;
use crate::tui::panes::PaneId;
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crate::tui::views::bench::plan::{NAME_WIDTH, directory_refusal, format_param};
use crate::tui::views::bench::render::draw_text_below_form;
use crate::tui::views::experiments::form::ExperimentFormLine;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, draw_input};
use crate::tui::widgets::form_layout::{FormLayout, form_layout};
use crate::tui::widgets::styled_lines::{StyledLine, TextStyle, wrap_lines};
use crate::tui::widgets::table::highlight_row;
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;

/// Shown when a start is requested while the arms are still being checked.
pub const KNOBS_PENDING: &str = "the knobs are still being read; confirmation follows";

/// Why the experiment cannot be started now, and what to do.
pub fn start_refusal(app: &App) -> Option<String> {
    let spec = app.planned_experiment();
    if spec.set_assignments.is_empty() {
        return Some("nothing to compare: fill in what B sets, as in vm.dirty_ratio=80".into());
    }
    if let Err(why) = spec.check() {
        return Some(sanitize(why));
    }
    for plan in std::iter::once(spec.plan.clone()).chain(spec.control_plan()) {
        let work = workloads::find_workload(&plan.profile).filter(|w| w.needs_directory());
        if let Some(why) = work.and_then(|w| directory_refusal(app, w, &plan, w.footprint(&plan))) {
            return Some(why);
        }
    }
    match app.views.experiments.check_result(&spec) {
        None => Some(KNOBS_PENDING.into()),
        Some(Err(why)) => Some(why.clone()),
        Some(Ok(_)) => None,
    }
}

/// What would be done, and the state of the target.
fn plan_lines(app: &App) -> Vec<StyledLine> {
    let spec = app.planned_experiment();
    let mut out: Vec<StyledLine> = Vec::new();
    if let Some(why) = start_refusal(app) {
        out.push((format!("Cannot start: {why}"), TextStyle::Crit));
    }
    if let Some(Ok(checked)) = app.views.experiments.check_result(&spec) {
        out.extend(describe_experiment(&spec, checked).lines().map(|l| (sanitize(l), TextStyle::Plain)));
    } else {
        out.push((app.views.experiments.form.selected_workload().about().into(), TextStyle::Dim));
    }
    let look = app.views.bench.look().and_then(|l| l.as_ref().ok());
    if let Some(look) = look.filter(|_| app.views.experiments.form.selected_workload().needs_directory()) {
        out.extend(look.warnings(spec.plan.direct).into_iter().map(|w| (format!("! {w}"), TextStyle::Warn)));
    }
    if app.views.tune.snapshot.as_ref().is_some_and(|s| !s.can_write) {
        out.push(("! not root: r shows the sudo command".into(), TextStyle::Warn));
    }
    out
}

/// Value of a line as displayed, with the duration the rounds will have.
fn field_value(app: &App, line: ExperimentFormLine) -> String {
    let form = &app.views.experiments.form;
    match line {
        ExperimentFormLine::Workload => {
            format!("{}: {}", form.selected_workload().name(), form.selected_workload().about())
        }
        ExperimentFormLine::Directory => sanitize(app.views.bench.directory.as_os_str().as_encoded_bytes()),
        ExperimentFormLine::ArmA if form.base.is_empty() => "nothing: the current values".into(),
        ExperimentFormLine::ArmB | ExperimentFormLine::ArmA => sanitize(form.line_text(line)),
        ExperimentFormLine::Baseline | ExperimentFormLine::DrainLimit => {
            format!("{} s", form.line_text(line))
        }
        ExperimentFormLine::Param(p) => format_param(p, &app.planned_experiment().plan),
        _ => form.line_text(line),
    }
}

/// While the list is focused, the plan's text comes before the lines.
fn page_layout(app: &App, inner: Rect) -> (FormLayout, Vec<StyledLine>) {
    let ui = &app.views.experiments;
    let text = wrap_lines(plan_lines(app), inner.width.into());
    let least = usize::from(inner.height / 3);
    let needed = if app.focused_pane() == PaneId::ExperimentPage { text.len().min(least) } else { text.len() };
    let (wide, others) = ui.form.lines();
    let at = ui.form_scroll.selected.min(ui.form.line_count() - 1);
    (form_layout(inner, wide.len() + others.len(), wide.len(), at, needed), text)
}

/// The line at a position of the screen.
pub fn field_at(app: &App, inner: Rect, x: u16, y: u16) -> Option<usize> {
    if !app.views.experiments.is_planning() {
        return None;
    }
    let (grid, _) = page_layout(app, inner);
    grid.cells.into_iter().find(|(_, r)| y == r.y && x >= r.x && x < r.right()).map(|(line, _)| line)
}

/// Number of lines of the plan that do not fit.
pub fn hidden_plan_lines(app: &App, inner: Rect) -> usize {
    let (grid, text) = page_layout(app, inner);
    text.len().saturating_sub(grid.rest.height.into())
}

/// The prompt, while a line is typed.
fn field_prompt(app: &App) -> Option<(usize, &Prompt)> {
    match &app.screen.overlay {
        Some(Overlay::Prompt(p)) => match p.purpose {
            PromptPurpose::ExperimentField(at) => Some((at, p)),
            _ => None,
        },
        _ => None,
    }
}

/// Draws the form.
pub fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let ui = &app.views.experiments;
    let note = if focused { "Enter: change, r: run" } else { "e: change, r: run" };
    let inner = draw_frame(buf, area, "Next experiment", note, focused, theme);
    let (grid, text) = page_layout(app, inner);
    let typed = field_prompt(app);
    for (i, cell) in &grid.cells {
        let Some(line) = ui.form.line_at(*i) else { continue };
        let changed = ui.form.is_line_changed(line);
        draw_text(buf, cell.x, cell.y, line.name(), NAME_WIDTH.min(cell.width), theme.header);
        let field = Rect { x: cell.x + NAME_WIDTH, width: cell.width.saturating_sub(NAME_WIDTH), ..*cell };
        if let Some((_, prompt)) = typed.filter(|(at, _)| at == i) {
            draw_input(buf, field, "", &prompt.text, prompt.cursor, theme);
            continue;
        }
        let shown = format!("{}{}", field_value(app, line), if changed { " *" } else { "" });
        let style = if changed { theme.warn } else { theme.text };
        crate::tui::views::tune::render::draw_truncated(buf, field.x, field.y, &shown, field.width, style);
        if focused && *i == ui.form_scroll.selected {
            highlight_row(buf, *cell, cell.y, theme);
        }
    }
    draw_field_hint(app, theme, &grid, buf, focused);
    draw_text_below_form(theme, area, grid.rest, buf, &text, ui.text_offset, focused);
}

/// Valid values, or what was wrong with the text.
fn draw_field_hint(app: &App, theme: &Theme, grid: &FormLayout, buf: &mut CellBuffer, focused: bool) {
    let area = grid.hint;
    if let Some(why) = field_prompt(app).and_then(|(_, p)| p.error.as_ref()) {
        draw_text(buf, area.x, area.y, why, area.width, theme.crit);
        return;
    }
    let hidden = match grid.hidden {
        (0, 0) => String::new(),
        (before, after) => format!("({} more lines) ", before + after),
    };
    let ui = &app.views.experiments;
    let about = ui
        .form
        .line_at(ui.form_scroll.selected)
        .filter(|_| focused)
        .map(ExperimentFormLine::help_text)
        .unwrap_or_default();
    draw_text(buf, area.x, area.y, &format!("{hidden}{about}"), area.width, theme.dim);
}

/// The plan as a table for export.
pub fn build_table(app: &App) -> Table {
    let title = format!("Next experiment on {}, {}", app.shared.system.host.name, app.shared.timestamp());
    let mut sheet = Table::new(title, &[("line", false), ("value", false)]);
    let (wide, others) = app.views.experiments.form.lines();
    for line in wide.into_iter().chain(others) {
        sheet.rows.push(vec![line.name().into(), field_value(app, line)]);
    }
    sheet.notes.extend(plan_lines(app).into_iter().map(|l| l.0));
    sheet
}
