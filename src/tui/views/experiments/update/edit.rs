//! Filling in the form: choices are cycled in place, other values are typed.

use crate::tui::effect::Effect;
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crate::tui::views::experiments::form::{ExperimentForm, ExperimentFormLine};
use crate::tui::views::experiments::update::{ExperimentRow, PAGE_PANE, focus_pane, request_arm_check, select_row};
use crossterm::event::KeyCode;

/// The selected line and its index.
fn selected_line(app: &App) -> Option<(usize, ExperimentFormLine)> {
    let ui = &app.views.experiments;
    let at = ui.form_scroll.selected.min(ui.form.line_count() - 1);
    Some((at, ui.form.line_at(at).filter(|_| ui.is_planning())?))
}

/// Edits the selected line. From the list it first focuses the form.
pub fn edit_line(app: &mut App, effects: &mut Vec<Effect>) {
    if !app.views.experiments.is_planning() || app.screen.focus != PAGE_PANE {
        select_row(app, ExperimentRow::Next);
        return focus_pane(app, PAGE_PANE);
    }
    let Some((at, line)) = selected_line(app) else { return };
    let text = match line {
        ExperimentFormLine::Directory => app.views.bench.directory.to_string_lossy().into_owned(),
        ExperimentFormLine::Param(p) if p.choices.is_empty() => (p.get)(&app.planned_experiment().plan),
        _ => app.views.experiments.form.line_text(line),
    };
    let choices = line.choices();
    if !choices.is_empty() {
        let place = choices.iter().position(|c| *c == text).map_or(0, |i| i + 1);
        if let Err(why) = set_line(app, line, choices[place % choices.len()], effects) {
            app.screen.error(why);
        }
        return;
    }
    let cursor = text.len();
    let what = PromptPurpose::ExperimentField(at);
    app.screen.overlay = Some(Overlay::Prompt(Prompt { purpose: what, text, cursor, error: None }));
}

/// Resets the selected line to its default.
pub fn reset_line(app: &mut App, effects: &mut Vec<Effect>) {
    if let Some((_, line)) = selected_line(app) {
        app.views.experiments.form.reset_line(line);
        request_arm_check(app, effects);
    }
}

fn set_line(app: &mut App, line: ExperimentFormLine, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    app.views.experiments.form.set_line(line, text)?;
    if matches!(line, ExperimentFormLine::ArmB | ExperimentFormLine::ArmA | ExperimentFormLine::Control) {
        request_arm_check(app, effects);
    }
    Ok(())
}

/// Sets the line at index `at` from the prompt. On an error the prompt stays open.
pub fn set_from_prompt(app: &mut App, at: usize, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    match app.views.experiments.form.line_at(at) {
        Some(ExperimentFormLine::Directory) if text.is_empty() => {
            Err("enter a directory on the storage to tune".into())
        }
        Some(ExperimentFormLine::Directory) => {
            app.views.bench.directory = app.views.bench.absolute_path(text);
            crate::tui::views::bench::update::request_target(app, effects);
            Ok(())
        }
        Some(line) => set_line(app, line, text, effects),
        None => Ok(()),
    }
}

/// Goes to the next or previous workload while one is typed.
pub fn cycle_workload(app: &App, at: usize, p: &mut Prompt, key: KeyCode) {
    if matches!(app.views.experiments.form.line_at(at), Some(ExperimentFormLine::Workload)) {
        p.text = ExperimentForm::neighbour_workload(&p.text, if key == KeyCode::Up { -1 } else { 1 }).into();
        p.cursor = p.text.len();
        p.error = None;
    }
}
