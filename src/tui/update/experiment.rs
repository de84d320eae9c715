//! Decisions about experiments.

mod ask;
pub mod edit;
mod point;

pub use ask::{confirmed, entered_file};
pub use point::click;

use super::tune;
use crate::experiment::message::Message;
use crate::experiment::report::Report;
use crate::tui::action::ViewId;
use crate::tui::bench::Opened;
use crate::tui::effect::Effect;
use crate::tui::experiment::run::Ended;
use crate::tui::experiment::{Arms, ExperimentAction, ExperimentEffect, ExperimentNews, Row};
use crate::tui::child_runner::ChildEvent;
use crate::tui::comparison;
use crate::tui::panes::{self, PaneId};
use crate::tui::state::App;
use crate::worker::job::{Job, Reply};

/// Places of the panes in focus order.
const LIST: usize = 0;
const PAGE: usize = 1;

/// A key.
pub fn act(app: &mut App, action: ExperimentAction, effects: &mut Vec<Effect>) {
    match action {
        ExperimentAction::Try => begin(app, effects),
        ExperimentAction::Return => opened(app, effects),
        ExperimentAction::Start => ask::start(app),
        ExperimentAction::Cancel => cancel(app, effects),
        ExperimentAction::Edit => edit::begin(app, effects),
        ExperimentAction::Reset => edit::reset(app, effects),
        ExperimentAction::Mark => mark(app),
        ExperimentAction::Compare => compare(app, effects),
        ExperimentAction::ToList => focus(app, LIST),
        ExperimentAction::ToPage => focus(app, PAGE),
        ExperimentAction::Export => ask::file(app),
        ExperimentAction::Apply => ask::apply(app),
        ExperimentAction::Keep => ask::keep(app, effects),
    }
}

fn focus(app: &mut App, pane: usize) {
    if !app.ui.zoomed {
        app.ui.focus = pane;
    }
}

/// From the knobs: B is what is proposed, else what the preset sets, else the selected knob, whose value is asked for.
fn begin(app: &mut App, effects: &mut Vec<Effect>) {
    let (words, ask) = match tune::wanted(app) {
        Ok(wanted) => wanted,
        Err(why) => return app.ui.error(why),
    };
    app.ui.tune.presets = None;
    app.ui.experiment.form.set = words;
    opened(app, effects);
    if app.ui.experiment.running().is_some() {
        return app.ui.info("an experiment is on; the next one is filled in below it");
    }
    select(app, Row::Plan);
    focus(app, PAGE);
    if let Some(at) = app.ui.experiment.form.place_of("B sets") {
        app.ui.experiment.lines.selected = at;
    }
    if ask {
        edit::begin(app, effects);
    }
}

/// The experiments come on screen in the place of the knobs.
fn opened(app: &mut App, effects: &mut Vec<Effect>) {
    let ui = &mut app.ui.experiment;
    ui.open = true;
    if ui.running().is_some() {
        (ui.selected, ui.opened) = (Row::Now, None);
    }
    app.ui.zoomed = false;
    returned(app);
    list(app, effects);
    super::bench::look(app, effects);
    check(app, effects);
}

/// Gives the keys to what a person comes back for: an experiment under way, a report; else to the list.
pub fn returned(app: &mut App) {
    let ui = &app.ui.experiment;
    if ui.open {
        app.ui.focus = if ui.selected == Row::Now || ui.opened.is_some() { PAGE } else { LIST };
    }
}

/// Looks at the arms anew, if there are any: values may have changed meanwhile.
pub fn check(app: &mut App, effects: &mut Vec<Effect>) {
    let ui = &app.ui.experiment;
    if ui.open && !ui.form.set.is_empty() {
        let spec = ui.form.spec(&app.ui.bench.directory, app.ui.tune.lease_secs);
        effects.push(Effect::Experiment(ExperimentEffect::Check(Box::new(spec))));
    }
}

/// Ends it; asked a second time, does not wait for its report.
fn cancel(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(run) = app.ui.experiment.run.as_mut().filter(|r| r.end.is_none()) else {
        return app.ui.error("no experiment is on");
    };
    if !run.stopping {
        run.stopping = true;
        effects.push(Effect::Experiment(ExperimentEffect::Cancel));
        return app.ui.info("ending it; the old values come back, its report follows. x again kills it");
    }
    let why = "killed before its report came; the tuner takes the values back";
    run.end = Some(Ended::Failed(why.into()));
    effects.push(Effect::Experiment(ExperimentEffect::Kill));
}

/// News.
pub fn take(app: &mut App, news: ExperimentNews, effects: &mut Vec<Effect>) {
    let now = app.system.now().boot_ns;
    let (number, what) = match news {
        ExperimentNews::Checked(judged) => {
            let spec = app.ui.experiment.form.spec(&app.ui.bench.directory, 0);
            if judged.arms == Arms::of(&spec) {
                app.ui.experiment.checked = Some(judged);
                ask::looked(app);
            }
            return;
        }
        ExperimentNews::Run(number, what) => (number, what),
    };
    let Some(run) = app.ui.experiment.run.as_mut().filter(|r| r.number == number && r.end.is_none()) else {
        return;
    };
    match what {
        ChildEvent::Started { pid } => (run.pid, run.heard_ns) = (Some(pid), now),
        ChildEvent::Message(message) => said(app, message, effects),
    }
}

fn said(app: &mut App, message: Message, effects: &mut Vec<Effect>) {
    let now = app.system.now().boot_ns;
    let ui = &mut app.ui.experiment;
    let Some(run) = &mut ui.run else { return };
    run.take(message, now);
    let Some(end) = &run.end else { return };
    let (how, bad) = match end {
        Ended::Report(report) => {
            effects.push(Effect::RunJob(Job::KeepExperiment(report.clone())));
            let verdict = report.trials.first().map_or("", |t| t.verdict.text.as_str());
            (format!("{}. {verdict}", crate::bench::report::text::end(&report.end)), false)
        }
        Ended::Refused(why) => (format!("refused: {why}"), true),
        Ended::Failed(why) => (why.clone(), true),
    };
    let seen = app.ui.view == ViewId::Tune && ui.open && ui.selected == Row::Now && ui.opened.is_none();
    if seen {
        ui.line = 0;
    } else if bad {
        app.ui.error(format!("experiment: {how}"));
    } else {
        app.ui.info(format!("experiment: {how} E in Tune shows it"));
    }
    // What it made and unmade stands among the changes; what it may have left is on lease there.
    tune::again(app, effects);
    check(app, effects);
}

/// What a child found out.
pub fn answered(app: &mut App, job: Job, reply: Reply, effects: &mut Vec<Effect>) {
    let ui = &mut app.ui.experiment;
    match (job, reply) {
        (Job::Experiments, reply) => {
            ui.listing = false;
            match reply {
                Reply::Experiments(all) => ui.kept = Some(Ok(all)),
                Reply::Failed(why) => ui.kept = Some(Err(why)),
                _ => {}
            }
        }
        (Job::KeepExperiment(report), reply) => kept(app, &report, reply, effects),
        (Job::ExperimentResults { ids }, reply) if ui.opened == Some(Opened::Waiting(ids.clone())) => {
            ui.line = 0;
            ui.opened = Some(Opened::of(match reply {
                Reply::Failed(why) => Err(why),
                Reply::ExperimentResults(reports) => Ok(reports),
                _ => return,
            }));
        }
        _ => {}
    }
}

fn kept(app: &mut App, report: &Report, reply: Reply, effects: &mut Vec<Effect>) {
    let outcome = match reply {
        Reply::Keeping(id) => Ok(id),
        Reply::Failed(why) => Err(why),
        _ => return,
    };
    match &outcome {
        Ok(_) => list(app, effects),
        Err(why) => app.ui.error(format!("experiment not kept: {why}")),
    }
    let same = |end: &Ended| matches!(end, Ended::Report(r) if r.id == report.id);
    let run = app.ui.experiment.run.as_mut();
    if let Some(run) = run.filter(|r| r.end.as_ref().is_some_and(same)) {
        run.kept = Some(outcome);
    }
}

/// Asks for those kept, unless that is under way.
fn list(app: &mut App, effects: &mut Vec<Effect>) {
    if !std::mem::replace(&mut app.ui.experiment.listing, true) {
        effects.push(Effect::RunJob(Job::Experiments));
    }
}

/// Enter.
pub fn open(app: &mut App, effects: &mut Vec<Effect>) {
    if app.focused_pane() == PaneId::ExperimentPage {
        if app.ui.experiment.planning() {
            edit::begin(app, effects);
        }
        return;
    }
    match app.ui.experiment.selected.clone() {
        Row::Now | Row::Plan => {
            app.ui.experiment.opened = None;
            focus(app, PAGE);
        }
        Row::Kept(id) => {
            show(app, vec![id], effects);
            focus(app, PAGE);
        }
    }
}

fn show(app: &mut App, ids: Vec<String>, effects: &mut Vec<Effect>) {
    app.ui.experiment.line = 0;
    app.ui.experiment.opened = Some(Opened::Waiting(ids.clone()));
    effects.push(Effect::RunJob(Job::ExperimentResults { ids }));
}

fn mark(app: &mut App) {
    let selected = app.ui.experiment.selected_kept().map(|k| k.id.clone());
    if let Err(why) = comparison::toggle_mark(&mut app.ui.experiment.marked, selected) {
        app.ui.error(why);
    }
}

fn compare(app: &mut App, effects: &mut Vec<Effect>) {
    let ui = &app.ui.experiment;
    match comparison::marked_pair(ui.marked.as_ref(), ui.selected_kept().map(|k| k.id.clone())) {
        Ok(ids) => {
            show(app, ids, effects);
            focus(app, PAGE);
        }
        Err(why) => app.ui.error(why),
    }
}

/// Esc; whether there was something to close. The last thing to close are the experiments: back to the knobs.
pub fn back(app: &mut App) -> bool {
    let zoomed = app.ui.zoomed;
    let ui = &mut app.ui.experiment;
    if ui.opened.take().is_some() {
        ui.line = 0;
        focus(app, LIST);
        return true;
    }
    if zoomed {
        return false;
    }
    match app.ui.focus {
        PAGE => app.ui.focus = LIST,
        _ => ui.open = false,
    }
    true
}

/// Moves the selection, or the text.
pub fn step(app: &mut App, by: isize) {
    if app.focused_pane() == PaneId::ExperimentPage {
        let last = panes::experiment::max_scroll(app);
        let ui = &mut app.ui.experiment;
        if ui.planning() {
            // Below the last line of the form the text goes on.
            let lines = ui.form.count() - 1;
            let to = (ui.lines.selected + ui.line.min(last)).saturating_add_signed(by).min(lines + last);
            ui.lines.selected = to.min(lines);
            ui.line = to - ui.lines.selected;
        } else {
            ui.line = ui.line.min(last).saturating_add_signed(by).min(last);
        }
        return;
    }
    let rows = app.ui.experiment.rows();
    let at = rows.iter().position(|r| *r == app.ui.experiment.selected).unwrap_or(0);
    let to = at.saturating_add_signed(by).min(rows.len() - 1);
    select(app, rows[to].clone());
}

/// Selects a row: the page is its own then.
fn select(app: &mut App, row: Row) {
    let ui = &mut app.ui.experiment;
    (ui.selected, ui.opened, ui.line) = (row, None, 0);
    app.ui.experiment.list_offset = panes::experiment::list::current_scroll_offset(app);
}
