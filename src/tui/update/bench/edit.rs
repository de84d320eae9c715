//! Changing a parameter where it stands: words go round, figures are typed.

use crate::tui::bench::{Line, Row};
use crate::tui::effect::Effect;
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};

/// The profile and the selected line of its parameters.
fn chosen(app: &App) -> Option<(usize, usize, Line)> {
    let bench = &app.ui.bench;
    let profile = bench.profile().filter(|_| bench.planning())?;
    let lines = bench.lines(profile);
    let at = bench.params.selected.min(lines.len().checked_sub(1)?);
    Some((profile, at, lines[at]))
}

/// Changes the selected parameter. From the list it goes to the parameters first.
pub fn begin(app: &mut App) {
    if !matches!(app.ui.bench.selected, Row::Profile(_)) {
        return app.ui.error("select a profile to change its parameters");
    }
    app.ui.bench.opened = None;
    if app.ui.focus != super::PAGE {
        return super::focus(app, super::PAGE);
    }
    let Some((profile, at, line)) = chosen(app) else { return };
    let text = match line {
        Line::Directory => app.ui.bench.directory.to_string_lossy().into_owned(),
        Line::Param(p) if p.choices.is_empty() => (p.get)(&app.ui.bench.plan(profile).1),
        Line::Param(p) => {
            let now = (p.get)(&app.ui.bench.plan(profile).1);
            let place = p.choices.iter().position(|c| *c == now).map_or(0, |i| i + 1);
            let next = p.choices[place % p.choices.len()];
            if let Err(why) = app.ui.bench.set(profile, p, next) {
                app.ui.error(why);
            }
            return;
        }
    };
    let cursor = text.len();
    app.ui.overlay = Some(Overlay::Prompt(Prompt { purpose: PromptPurpose::BenchField(at), text, cursor, error: None }));
}

/// The selected parameter as the profile has it.
pub fn reset(app: &mut App) {
    let Some((profile, _, line)) = chosen(app) else { return };
    if let Line::Param(p) = line {
        let text = (p.get)(&crate::bench::workloads::WORKLOADS[profile].defaults());
        if let Err(why) = app.ui.bench.set(profile, p, &text) {
            app.ui.error(why);
        }
    }
}

/// What was typed for line `at`. The error is shown and the line stays open.
pub fn entered(app: &mut App, at: usize, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let Some(profile) = app.ui.bench.profile() else { return Ok(()) };
    match app.ui.bench.lines(profile).get(at) {
        Some(Line::Param(p)) => app.ui.bench.set(profile, p, text),
        Some(Line::Directory) if text.is_empty() => {
            Err("a directory on the storage to measure is needed".into())
        }
        Some(Line::Directory) => {
            app.ui.bench.directory = app.ui.bench.absolute(text);
            super::look(app, effects);
            Ok(())
        }
        None => Ok(()),
    }
}
