//! Actions on experiments.

mod confirm;
pub mod edit;
mod mouse;

pub use confirm::{start_confirmed, write_report};
pub use mouse::on_click;

use crate::experiment::message::ExperimentMessage;
use crate::experiment::report::ExperimentReport;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::subprocess::runner::ChildEvent;
use crate::tui::action::ViewId;
use crate::tui::comparison;
use crate::tui::effect::Effect;
use crate::tui::panes::PaneId;
use crate::tui::state::App;
use crate::tui::views::bench::OpenedResult;
use crate::tui::views::experiments::run::ExperimentEnding;
use crate::tui::views::experiments::{ArmSettings, ExperimentAction, ExperimentEffect, ExperimentEvent, ExperimentRow};
use crate::tui::views::tune::update as tune;

/// Indices of the panes in focus order.
const LIST_PANE: usize = 0;
const PAGE_PANE: usize = 1;

/// Applies an action.
pub fn apply_action(app: &mut App, action: ExperimentAction, effects: &mut Vec<Effect>) {
    match action {
        ExperimentAction::TryPending => open_with_knobs(app, effects),
        ExperimentAction::Reopen => on_open(app, effects),
        ExperimentAction::Start => confirm::ask_start(app),
        ExperimentAction::Cancel => cancel_run(app, effects),
        ExperimentAction::Edit => edit::edit_line(app, effects),
        ExperimentAction::Reset => edit::reset_line(app, effects),
        ExperimentAction::Mark => toggle_mark(app),
        ExperimentAction::Compare => compare_marked(app, effects),
        ExperimentAction::FocusList => focus_pane(app, LIST_PANE),
        ExperimentAction::FocusPage => focus_pane(app, PAGE_PANE),
        ExperimentAction::Export => confirm::ask_report_file(app),
        ExperimentAction::Apply => confirm::apply_arm_b(app),
        ExperimentAction::Keep => confirm::keep_arm_b(app, effects),
    }
}

fn focus_pane(app: &mut App, pane: usize) {
    if !app.screen.zoomed {
        app.screen.focus = pane;
    }
}

/// Opens the form with arm B set to the pending values, those of the preset, or the selected knob's value to be edited.
fn open_with_knobs(app: &mut App, effects: &mut Vec<Effect>) {
    let (words, ask) = match tune::knobs_to_try(app) {
        Ok(wanted) => wanted,
        Err(why) => return app.screen.error(why),
    };
    app.views.tune.selected_preset = None;
    app.views.experiments.form.set = words;
    on_open(app, effects);
    if app.views.experiments.active_run().is_some() {
        return app.screen.info("an experiment is running; this form is for the next one");
    }
    select_row(app, ExperimentRow::Next);
    focus_pane(app, PAGE_PANE);
    if let Some(at) = app.views.experiments.form.line_index("B sets") {
        app.views.experiments.form_scroll.selected = at;
    }
    if ask {
        edit::edit_line(app, effects);
    }
}

/// Shows the experiments in place of the knobs.
fn on_open(app: &mut App, effects: &mut Vec<Effect>) {
    let ui = &mut app.views.experiments;
    ui.is_open = true;
    if ui.active_run().is_some() {
        (ui.selected, ui.opened) = (ExperimentRow::CurrentRun, None);
    }
    app.screen.zoomed = false;
    restore_focus(app);
    request_list(app, effects);
    crate::tui::views::bench::update::request_target(app, effects);
    request_arm_check(app, effects);
}

/// Focuses the page if it shows an experiment under way or a report, else the list.
pub fn restore_focus(app: &mut App) {
    let ui = &app.views.experiments;
    if ui.is_open {
        app.screen.focus =
            if ui.selected == ExperimentRow::CurrentRun || ui.opened.is_some() { PAGE_PANE } else { LIST_PANE };
    }
}

/// Checks the arms again, if there are any: values may have changed meanwhile.
pub fn request_arm_check(app: &mut App, effects: &mut Vec<Effect>) {
    let ui = &app.views.experiments;
    if ui.is_open && !ui.form.set.is_empty() {
        let spec = ui.form.to_spec(&app.views.bench.directory, app.views.tune.lease_secs);
        effects.push(Effect::Experiment(ExperimentEffect::CheckArms(Box::new(spec))));
    }
}

/// Ends the experiment; the second time, kills it without waiting for the report.
fn cancel_run(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(run) = app.views.experiments.run.as_mut().filter(|r| r.ending.is_none()) else {
        return app.screen.error("no experiment is running");
    };
    if !run.is_stopping {
        run.is_stopping = true;
        effects.push(Effect::Experiment(ExperimentEffect::Cancel));
        return app.screen.info("stopping; the old values are restored and the report follows. x again kills it");
    }
    let why = "killed before it could report; the tuner restores the values";
    run.ending = Some(ExperimentEnding::Failed(why.into()));
    effects.push(Effect::Experiment(ExperimentEffect::Kill));
}

/// Handles an event of an experiment.
pub fn on_event(app: &mut App, news: ExperimentEvent, effects: &mut Vec<Effect>) {
    let now = app.shared.system.now().boot_ns;
    let (number, what) = match news {
        ExperimentEvent::ArmsChecked(judged) => {
            let spec = app.views.experiments.form.to_spec(&app.views.bench.directory, 0);
            if judged.arms == ArmSettings::from_spec(&spec) {
                app.views.experiments.arm_check = Some(judged);
                confirm::on_arms_checked(app);
            }
            return;
        }
        ExperimentEvent::Child(number, what) => (number, what),
    };
    let Some(run) = app.views.experiments.run.as_mut().filter(|r| r.number == number && r.ending.is_none()) else {
        return;
    };
    match what {
        ChildEvent::Started { pid } => (run.pid, run.last_message_ns) = (Some(pid), now),
        ChildEvent::Message(message) => on_child_message(app, message, effects),
    }
}

fn on_child_message(app: &mut App, message: ExperimentMessage, effects: &mut Vec<Effect>) {
    let now = app.shared.system.now().boot_ns;
    let ui = &mut app.views.experiments;
    let Some(run) = &mut ui.run else { return };
    run.apply_message(message, now);
    let Some(end) = &run.ending else { return };
    let (how, bad) = match end {
        ExperimentEnding::Report(report) => {
            effects.push(Effect::RunJob(WorkerJob::SaveExperiment(report.clone())));
            let verdict = report.trials.first().map_or("", |t| t.verdict.text.as_str());
            (format!("{}. {verdict}", crate::bench::report::text::describe_end(&report.end)), false)
        }
        ExperimentEnding::Refused(why) => (format!("refused: {why}"), true),
        ExperimentEnding::Failed(why) => (why.clone(), true),
    };
    let seen = app.screen.view == ViewId::Tune
        && ui.is_open
        && ui.selected == ExperimentRow::CurrentRun
        && ui.opened.is_none();
    if seen {
        ui.text_offset = 0;
    } else if bad {
        app.screen.error(format!("experiment: {how}"));
    } else {
        app.screen.info(format!("experiment: {how} E in Tune shows it"));
    }
    // The experiment has added changes, and perhaps left one on a lease.
    tune::refresh_now(app, effects);
    request_arm_check(app, effects);
}

/// Handles the reply of a child process.
pub fn on_reply(app: &mut App, job: WorkerJob, reply: WorkerReply, effects: &mut Vec<Effect>) {
    let ui = &mut app.views.experiments;
    match (job, reply) {
        (WorkerJob::ListExperiments, reply) => {
            ui.is_listing = false;
            match reply {
                WorkerReply::Experiments(all) => ui.stored = Some(Ok(all)),
                WorkerReply::Failed(why) => ui.stored = Some(Err(why)),
                _ => {}
            }
        }
        (WorkerJob::SaveExperiment(report), reply) => on_stored(app, &report, reply, effects),
        (WorkerJob::LoadExperiments { ids }, reply) if ui.opened == Some(OpenedResult::Loading(ids.clone())) => {
            ui.text_offset = 0;
            ui.opened = Some(OpenedResult::from_loaded(match reply {
                WorkerReply::Failed(why) => Err(why),
                WorkerReply::LoadedExperiments(reports) => Ok(reports),
                _ => return,
            }));
        }
        _ => {}
    }
}

fn on_stored(app: &mut App, report: &ExperimentReport, reply: WorkerReply, effects: &mut Vec<Effect>) {
    let outcome = match reply {
        WorkerReply::Saved(id) => Ok(id),
        WorkerReply::Failed(why) => Err(why),
        _ => return,
    };
    match &outcome {
        Ok(_) => request_list(app, effects),
        Err(why) => app.screen.error(format!("experiment not saved: {why}")),
    }
    let same = |end: &ExperimentEnding| matches!(end, ExperimentEnding::Report(r) if r.id == report.id);
    let run = app.views.experiments.run.as_mut();
    if let Some(run) = run.filter(|r| r.ending.as_ref().is_some_and(same)) {
        run.stored = Some(outcome);
    }
}

/// Requests the stored experiments, unless that is under way.
fn request_list(app: &mut App, effects: &mut Vec<Effect>) {
    if !std::mem::replace(&mut app.views.experiments.is_listing, true) {
        effects.push(Effect::RunJob(WorkerJob::ListExperiments));
    }
}

/// Handles Enter.
pub fn open_selected(app: &mut App, effects: &mut Vec<Effect>) {
    if app.focused_pane() == PaneId::ExperimentPage {
        if app.views.experiments.is_planning() {
            edit::edit_line(app, effects);
        }
        return;
    }
    match app.views.experiments.selected.clone() {
        ExperimentRow::CurrentRun | ExperimentRow::Next => {
            app.views.experiments.opened = None;
            focus_pane(app, PAGE_PANE);
        }
        ExperimentRow::Stored(id) => {
            show_results(app, vec![id], effects);
            focus_pane(app, PAGE_PANE);
        }
    }
}

fn show_results(app: &mut App, ids: Vec<String>, effects: &mut Vec<Effect>) {
    app.views.experiments.text_offset = 0;
    app.views.experiments.opened = Some(OpenedResult::Loading(ids.clone()));
    effects.push(Effect::RunJob(WorkerJob::LoadExperiments { ids }));
}

fn toggle_mark(app: &mut App) {
    let selected = app.views.experiments.selected_stored().map(|k| k.id.clone());
    if let Err(why) = comparison::toggle_mark(&mut app.views.experiments.marked, selected) {
        app.screen.error(why);
    }
}

fn compare_marked(app: &mut App, effects: &mut Vec<Effect>) {
    let ui = &app.views.experiments;
    match comparison::marked_pair(ui.marked.as_ref(), ui.selected_stored().map(|k| k.id.clone())) {
        Ok(ids) => {
            show_results(app, ids, effects);
            focus_pane(app, PAGE_PANE);
        }
        Err(why) => app.screen.error(why),
    }
}

/// Handles Esc: closes the topmost thing, at last the experiments. Returns whether there was something to close.
pub fn close_topmost(app: &mut App) -> bool {
    let zoomed = app.screen.zoomed;
    let ui = &mut app.views.experiments;
    if ui.opened.take().is_some() {
        ui.text_offset = 0;
        focus_pane(app, LIST_PANE);
        return true;
    }
    if zoomed {
        return false;
    }
    match app.screen.focus {
        PAGE_PANE => app.screen.focus = LIST_PANE,
        _ => ui.is_open = false,
    }
    true
}

/// Moves the selection, or scrolls the text.
pub fn move_selection(app: &mut App, by: isize) {
    if app.focused_pane() == PaneId::ExperimentPage {
        let last = crate::tui::views::experiments::render::max_scroll(app);
        let ui = &mut app.views.experiments;
        if ui.is_planning() {
            // Below the last line of the form the text scrolls.
            let lines = ui.form.line_count() - 1;
            let to = (ui.form_scroll.selected + ui.text_offset.min(last)).saturating_add_signed(by).min(lines + last);
            ui.form_scroll.selected = to.min(lines);
            ui.text_offset = to - ui.form_scroll.selected;
        } else {
            ui.text_offset = ui.text_offset.min(last).saturating_add_signed(by).min(last);
        }
        return;
    }
    let rows = app.views.experiments.rows();
    let at = rows.iter().position(|r| *r == app.views.experiments.selected).unwrap_or(0);
    let to = at.saturating_add_signed(by).min(rows.len() - 1);
    select_row(app, rows[to].clone());
}

/// Selects a row and shows its page.
fn select_row(app: &mut App, row: ExperimentRow) {
    let ui = &mut app.views.experiments;
    (ui.selected, ui.opened, ui.text_offset) = (row, None, 0);
    app.views.experiments.list_offset = crate::tui::views::experiments::list::current_scroll_offset(app);
}
