//! Actions of the Bench view.

mod confirm;
pub mod edit;
mod mouse;

pub use confirm::{network_confirmation, start_confirmed};
pub use mouse::on_click;

use crate::bench::message::BenchMessage;
use crate::bench::report::BenchReport;
use crate::jobs::job::{WorkerJob, WorkerReply};
use crate::tui::action::ViewId;
use crate::tui::comparison;
use crate::tui::effect::Effect;
use crate::tui::panes::PaneId;
use crate::tui::state::App;
use crate::tui::views::bench::run::BenchEnding;
use crate::tui::views::bench::{BenchAction, BenchChildEvent, BenchEffect, BenchEvent, BenchRow, OpenedResult};

/// Indices of the panes in focus order.
const LIST_PANE: usize = 0;
const PAGE_PANE: usize = 1;

/// Applies an action of the view.
pub fn apply_action(app: &mut App, action: BenchAction, effects: &mut Vec<Effect>) {
    match action {
        BenchAction::Run => confirm::ask_start(app),
        BenchAction::Cancel => cancel_run(app, effects),
        BenchAction::Edit => edit::edit_param(app),
        BenchAction::Reset => edit::reset_param(app),
        BenchAction::Mark => toggle_mark(app),
        BenchAction::Compare => compare_marked(app, effects),
        BenchAction::FocusList => focus_pane(app, LIST_PANE),
        BenchAction::FocusPage => focus_pane(app, PAGE_PANE),
    }
}

fn focus_pane(app: &mut App, pane: usize) {
    if !app.screen.zoomed {
        app.screen.focus = pane;
    }
}

/// Ends the run; the second time, kills it without waiting for the report.
fn cancel_run(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(run) = app.views.bench.run.as_mut().filter(|r| r.ending.is_none()) else {
        return app.screen.error("no benchmark is running");
    };
    if !run.is_stopping {
        run.is_stopping = true;
        effects.push(Effect::Bench(BenchEffect::Cancel));
        return app.screen.info("stopping; the results so far follow. x again kills the run");
    }
    run.ending = Some(BenchEnding::Failed("killed before it could report; its file is deleted".into()));
    effects.push(Effect::Bench(BenchEffect::Kill));
}

/// Handles an event of a run.
pub fn on_event(app: &mut App, news: BenchEvent, effects: &mut Vec<Effect>) {
    let now = app.shared.system.now().boot_ns;
    let Some(run) = app.views.bench.run.as_mut().filter(|r| r.number == news.run && r.ending.is_none()) else {
        return;
    };
    match news.event {
        BenchChildEvent::Started { pid } => {
            run.pid = Some(pid);
            run.last_message_ns = now;
        }
        BenchChildEvent::Message(message) => on_child_message(app, message, effects),
    }
}

fn on_child_message(app: &mut App, message: BenchMessage, effects: &mut Vec<Effect>) {
    let now = app.shared.system.now().boot_ns;
    let bench = &mut app.views.bench;
    let Some(run) = &mut bench.run else { return };
    run.apply_message(message, now);
    let Some(end) = &run.ending else { return };
    let (how, bad) = match end {
        BenchEnding::Report(report) => {
            effects.push(Effect::RunJob(WorkerJob::SaveResult(report.clone())));
            (crate::bench::report::text::describe_end(&report.end), false)
        }
        BenchEnding::Refused(refused) => (format!("refused: {}", refused.reason), true),
        BenchEnding::Failed(why) => (why.clone(), true),
    };
    let name = run.plan.profile.clone();
    let seen = app.screen.view == ViewId::Bench && bench.selected == BenchRow::CurrentRun && bench.opened.is_none();
    if seen {
        bench.text_offset = 0;
    } else if bad {
        app.screen.error(format!("bench {name}: {how}"));
    } else {
        app.screen.info(format!("bench {name}: {how}; b shows the result"));
    }
}

/// Handles the reply of a child process.
pub fn on_reply(app: &mut App, job: WorkerJob, reply: WorkerReply, effects: &mut Vec<Effect>) {
    let bench = &mut app.views.bench;
    match &job {
        WorkerJob::InspectTarget { directory } if bench.probing_directory.as_ref() == Some(directory) => {
            bench.probing_directory = None
        }
        WorkerJob::ListResults => bench.is_listing = false,
        _ => {}
    }
    match (job, reply) {
        (WorkerJob::InspectTarget { .. }, WorkerReply::TargetInspection(look)) if look.directory == bench.directory => {
            bench.current_target = Some(Ok(*look));
            select_target_device(app);
        }
        (WorkerJob::InspectTarget { directory }, WorkerReply::Failed(why)) if directory == bench.directory => {
            bench.current_target = Some(Err(why))
        }
        (WorkerJob::ListResults, WorkerReply::Results(all)) => bench.stored = Some(Ok(all)),
        (WorkerJob::ListResults, WorkerReply::Failed(why)) => bench.stored = Some(Err(why)),
        (WorkerJob::SaveResult(report), reply) => on_stored(app, &report, reply, effects),
        (WorkerJob::LoadResults { ids }, reply) => on_results_loaded(app, ids, reply),
        _ => {}
    }
}

fn on_stored(app: &mut App, report: &BenchReport, reply: WorkerReply, effects: &mut Vec<Effect>) {
    let outcome = match reply {
        WorkerReply::Saved(id) => Ok(id),
        WorkerReply::Failed(why) => Err(why),
        _ => return,
    };
    match &outcome {
        Ok(_) => request_list(app, effects),
        Err(why) => app.screen.error(format!("result not saved: {why}")),
    }
    let run = app.views.bench.run.as_mut();
    let same = |end: &BenchEnding| matches!(end, BenchEnding::Report(r) if r.id == report.id);
    if let Some(run) = run.filter(|r| r.ending.as_ref().is_some_and(same)) {
        run.stored = Some(outcome);
    }
}

/// Shows loaded results, if they are still waited for.
fn on_results_loaded(app: &mut App, ids: Vec<String>, reply: WorkerReply) {
    let bench = &mut app.views.bench;
    if bench.opened != Some(OpenedResult::Loading(ids)) {
        return;
    }
    bench.text_offset = 0;
    bench.opened = Some(OpenedResult::from_loaded(match reply {
        WorkerReply::Failed(why) => Err(why),
        WorkerReply::LoadedResults(reports) => Ok(reports),
        _ => return,
    }));
}

/// Selects the device below the directory in the list of devices.
fn select_target_device(app: &mut App) {
    let device = app.views.bench.target_device();
    if let Some(device) = device.filter(|_| app.screen.view == ViewId::Bench) {
        app.views.devices.select(device, &app.shared);
    }
}

/// Called when the view comes on screen.
pub fn on_open(app: &mut App, effects: &mut Vec<Effect>) {
    if app.views.bench.active_run().is_some() {
        app.views.bench.selected = BenchRow::CurrentRun;
        app.views.bench.opened = None;
    }
    request_list(app, effects);
    request_target(app, effects);
    select_target_device(app);
}

/// Requests the stored results, unless that is under way.
fn request_list(app: &mut App, effects: &mut Vec<Effect>) {
    if !std::mem::replace(&mut app.views.bench.is_listing, true) {
        effects.push(Effect::RunJob(WorkerJob::ListResults));
    }
}

/// Probes the directory again. The previous result stays until the reply, if it is of this directory.
pub fn request_target(app: &mut App, effects: &mut Vec<Effect>) {
    let bench = &mut app.views.bench;
    if bench.directory.is_absolute() {
        if bench.look().is_none() {
            bench.current_target = None;
        }
        if bench.probing_directory.as_ref() != Some(&bench.directory) {
            bench.probing_directory = Some(bench.directory.clone());
            effects.push(Effect::RunJob(WorkerJob::InspectTarget { directory: bench.directory.clone() }));
        }
    }
}

/// Handles Enter.
pub fn open_selected(app: &mut App, effects: &mut Vec<Effect>) {
    if app.focused_pane() == PaneId::BenchPage {
        if app.views.bench.is_planning() {
            edit::edit_param(app);
        }
        return;
    }
    match app.views.bench.selected.clone() {
        BenchRow::CurrentRun => {
            app.views.bench.opened = None;
            focus_pane(app, PAGE_PANE);
        }
        BenchRow::Profile(_) => confirm::ask_start(app),
        BenchRow::Stored(id) => {
            show_results(app, vec![id], effects);
            focus_pane(app, PAGE_PANE);
        }
    }
}

fn show_results(app: &mut App, ids: Vec<String>, effects: &mut Vec<Effect>) {
    app.views.bench.text_offset = 0;
    app.views.bench.opened = Some(OpenedResult::Loading(ids.clone()));
    effects.push(Effect::RunJob(WorkerJob::LoadResults { ids }));
}

fn toggle_mark(app: &mut App) {
    let selected = app.views.bench.selected_result().map(|k| k.id.clone());
    if let Err(why) = comparison::toggle_mark(&mut app.views.bench.marked, selected) {
        app.screen.error(why);
    }
}

fn compare_marked(app: &mut App, effects: &mut Vec<Effect>) {
    let ui = &app.views.bench;
    match comparison::marked_pair(ui.marked.as_ref(), ui.selected_result().map(|k| k.id.clone())) {
        Ok(ids) => {
            show_results(app, ids, effects);
            focus_pane(app, PAGE_PANE);
        }
        Err(why) => app.screen.error(why),
    }
}

/// Handles Esc. Returns whether there was something to close.
pub fn close_topmost(app: &mut App, _effects: &mut Vec<Effect>) -> bool {
    let zoomed = app.screen.zoomed;
    let bench = &mut app.views.bench;
    if bench.opened.take().is_some() {
        bench.text_offset = 0;
        if !zoomed {
            app.screen.focus = LIST_PANE;
        }
        return true;
    }
    let there = !zoomed && app.screen.focus == PAGE_PANE;
    if there {
        app.screen.focus = LIST_PANE;
    }
    there
}

/// Moves the selection, or scrolls the text.
pub fn move_selection(app: &mut App, by: isize) {
    if app.focused_pane() == PaneId::BenchPage {
        if let (true, Some(at)) = (app.views.bench.is_planning(), app.views.bench.selected_profile()) {
            // Below the last parameter the text scrolls.
            let (last, hidden) = (
                app.views.bench.param_lines(at).len().saturating_sub(1),
                crate::tui::views::bench::plan::hidden_plan_lines(app),
            );
            let bench = &mut app.views.bench;
            let to = (bench.params_scroll.selected + bench.text_offset.min(hidden))
                .saturating_add_signed(by)
                .min(last + hidden);
            bench.params_scroll.selected = to.min(last);
            bench.text_offset = to - bench.params_scroll.selected;
        } else {
            let last = crate::tui::views::bench::render::max_scroll(app);
            app.views.bench.text_offset = app.views.bench.text_offset.min(last).saturating_add_signed(by).min(last);
        }
        return;
    }
    let rows = app.views.bench.rows();
    let at = rows.iter().position(|r| *r == app.views.bench.selected).unwrap_or(0);
    let to = at.saturating_add_signed(by).min(rows.len() - 1);
    select_row(app, rows[to].clone());
}

/// Selects a row and shows its page.
fn select_row(app: &mut App, row: BenchRow) {
    let bench = &mut app.views.bench;
    if bench.selected != row {
        bench.params_scroll.selected = 0;
    }
    bench.selected = row;
    bench.opened = None;
    bench.text_offset = 0;
    app.views.bench.list_offset = crate::tui::views::bench::list::current_scroll_offset(app);
}
