//! Editing parameters: choices are cycled in place, other values are typed.

use crate::tui::effect::Effect;
use crate::tui::state::{App, Overlay, Prompt, PromptPurpose};
use crate::tui::views::bench::{BenchParamLine, BenchRow};

/// The selected profile, and index and line of the selected parameter.
fn selected_param(app: &App) -> Option<(usize, usize, BenchParamLine)> {
    let bench = &app.views.bench;
    let profile = bench.selected_profile().filter(|_| bench.is_planning())?;
    let lines = bench.param_lines(profile);
    let at = bench.params_scroll.selected.min(lines.len().checked_sub(1)?);
    Some((profile, at, lines[at]))
}

/// Edits the selected parameter. From the list it first focuses the parameters.
pub fn edit_param(app: &mut App) {
    if !matches!(app.views.bench.selected, BenchRow::Profile(_)) {
        return app.screen.error("select a profile to change its parameters");
    }
    app.views.bench.opened = None;
    if app.screen.focus != crate::tui::views::bench::update::PAGE_PANE {
        return crate::tui::views::bench::update::focus_pane(app, crate::tui::views::bench::update::PAGE_PANE);
    }
    let Some((profile, at, line)) = selected_param(app) else { return };
    let text = match line {
        BenchParamLine::Directory => app.views.bench.directory.to_string_lossy().into_owned(),
        BenchParamLine::Param(p) if p.choices.is_empty() => (p.get)(&app.views.bench.plan(profile).1),
        BenchParamLine::Param(p) => {
            let now = (p.get)(&app.views.bench.plan(profile).1);
            let place = p.choices.iter().position(|c| *c == now).map_or(0, |i| i + 1);
            let next = p.choices[place % p.choices.len()];
            if let Err(why) = app.views.bench.set_param(profile, p, next) {
                app.screen.error(why);
            }
            return;
        }
    };
    let cursor = text.len();
    app.screen.overlay =
        Some(Overlay::Prompt(Prompt { purpose: PromptPurpose::BenchField(at), text, cursor, error: None }));
}

/// Resets the selected parameter to the profile's default.
pub fn reset_param(app: &mut App) {
    let Some((profile, _, line)) = selected_param(app) else { return };
    if let BenchParamLine::Param(p) = line {
        let text = (p.get)(&crate::bench::workloads::WORKLOADS[profile].defaults());
        if let Err(why) = app.views.bench.set_param(profile, p, &text) {
            app.screen.error(why);
        }
    }
}

/// Sets the parameter at index `at` from the prompt. On an error the prompt stays open.
pub fn set_from_prompt(app: &mut App, at: usize, text: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let Some(profile) = app.views.bench.selected_profile() else { return Ok(()) };
    match app.views.bench.param_lines(profile).get(at) {
        Some(BenchParamLine::Param(p)) => app.views.bench.set_param(profile, p, text),
        Some(BenchParamLine::Directory) if text.is_empty() => Err("enter a directory on the storage to measure".into()),
        Some(BenchParamLine::Directory) => {
            app.views.bench.directory = app.views.bench.absolute_path(text);
            crate::tui::views::bench::update::request_target(app, effects);
            Ok(())
        }
        None => Ok(()),
    }
}
