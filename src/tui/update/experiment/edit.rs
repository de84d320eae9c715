//! Filling in the form: words go round, everything else is typed where it stands.

use super::{PAGE, Row, check, focus, select};
use crate::tui::effect::Effect;
use crate::tui::experiment::form::{Form, Line};
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crossterm::event::KeyCode;

/// The selected line with its place.
fn chosen(app: &App) -> Option<(usize, Line)> {
    let ui = &app.ui.experiment;
    let at = ui.lines.selected.min(ui.form.count() - 1);
    Some((at, ui.form.line(at).filter(|_| ui.planning())?))
}

/// Changes the selected line. From the list it goes to the form first.
pub fn begin(app: &mut App, effects: &mut Vec<Effect>) {
    if !app.ui.experiment.planning() || app.ui.focus != PAGE {
        select(app, Row::Plan);
        return focus(app, PAGE);
    }
    let Some((at, line)) = chosen(app) else { return };
    let text = match line {
        Line::Directory => app.ui.bench.directory.to_string_lossy().into_owned(),
        Line::Param(p) if p.choices.is_empty() => (p.get)(&app.planned_experiment().plan),
        _ => app.ui.experiment.form.text(line),
    };
    let choices = line.choices();
    if !choices.is_empty() {
        let place = choices.iter().position(|c| *c == text).map_or(0, |i| i + 1);
        if let Err(why) = put(app, line, choices[place % choices.len()], effects) {
            app.ui.error(why);
        }
        return;
    }
    let cursor = text.len();
    let what = PromptPurpose::ExperimentField(at);
    app.ui.overlay = Some(Overlay::Prompt(Prompt { purpose: what, text, cursor, error: None }));
}

/// The selected line as it is by itself.
pub fn reset(app: &mut App, effects: &mut Vec<Effect>) {
    if let Some((_, line)) = chosen(app) {
        app.ui.experiment.form.reset(line);
        check(app, effects);
    }
}

fn put(app: &mut App, line: Line, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    app.ui.experiment.form.put(line, text)?;
    if matches!(line, Line::Set | Line::Base | Line::Control) {
        check(app, effects);
    }
    Ok(())
}

/// What was typed for line `at`. The error is shown and the line stays open.
pub fn entered(app: &mut App, at: usize, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    match app.ui.experiment.form.line(at) {
        Some(Line::Directory) if text.is_empty() => {
            Err("a directory on the storage that is tuned is needed".into())
        }
        Some(Line::Directory) => {
            app.ui.bench.directory = app.ui.bench.absolute(text);
            super::super::bench::look(app, effects);
            Ok(())
        }
        Some(line) => put(app, line, text, effects),
        None => Ok(()),
    }
}

/// The next or previous workload, while one is typed.
pub fn choose(app: &App, at: usize, p: &mut Prompt, key: KeyCode) {
    if matches!(app.ui.experiment.form.line(at), Some(Line::Workload)) {
        p.text = Form::neighbour(&p.text, if key == KeyCode::Up { -1 } else { 1 }).into();
        p.cursor = p.text.len();
        p.error = None;
    }
}
