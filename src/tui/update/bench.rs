//! Decisions of the Bench view.

mod ask;
pub mod edit;
mod point;

pub use ask::{confirmed, once_more};
pub use point::click;

use crate::bench::message::Message;
use crate::bench::report::Report;
use crate::tui::action::ViewId;
use crate::tui::bench::run::Ended;
use crate::tui::bench::{BenchAction, BenchEffect, BenchNews, Opened, Row, What};
use crate::tui::effect::Effect;
use crate::tui::comparison;
use crate::tui::panes::{self, PaneId};
use crate::tui::state::App;
use crate::worker::job::{Job, Reply};

/// Places of the panes in focus order.
const LIST: usize = 0;
const PAGE: usize = 1;

/// A key of the view.
pub fn act(app: &mut App, action: BenchAction, effects: &mut Vec<Effect>) {
    match action {
        BenchAction::Run => ask::start(app),
        BenchAction::Cancel => cancel(app, effects),
        BenchAction::Edit => edit::begin(app),
        BenchAction::Reset => edit::reset(app),
        BenchAction::Mark => mark(app),
        BenchAction::Compare => compare(app, effects),
        BenchAction::ToList => focus(app, LIST),
        BenchAction::ToPage => focus(app, PAGE),
    }
}

fn focus(app: &mut App, pane: usize) {
    if !app.ui.zoomed {
        app.ui.focus = pane;
    }
}

/// Ends the run; asked a second time, does not wait for its figures.
fn cancel(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(run) = app.ui.bench.run.as_mut().filter(|r| r.end.is_none()) else {
        return app.ui.error("no run is on");
    };
    if !run.stopping {
        run.stopping = true;
        effects.push(Effect::Bench(BenchEffect::Cancel));
        return app.ui.info("ending the run; its figures up to now follow. x again kills it");
    }
    run.end = Some(Ended::Failed("killed before its figures came; its file went with it".into()));
    effects.push(Effect::Bench(BenchEffect::Kill));
}

/// News for the view.
pub fn take(app: &mut App, news: BenchNews, effects: &mut Vec<Effect>) {
    let now = app.system.now().boot_ns;
    let Some(run) = app.ui.bench.run.as_mut().filter(|r| r.number == news.run && r.end.is_none()) else {
        return;
    };
    match news.what {
        What::Started { pid } => {
            run.pid = Some(pid);
            run.heard_ns = now;
        }
        What::Message(message) => said(app, message, effects),
    }
}

fn said(app: &mut App, message: Message, effects: &mut Vec<Effect>) {
    let now = app.system.now().boot_ns;
    let bench = &mut app.ui.bench;
    let Some(run) = &mut bench.run else { return };
    run.take(message, now);
    let Some(end) = &run.end else { return };
    let (how, bad) = match end {
        Ended::Report(report) => {
            effects.push(Effect::RunJob(Job::Keep(report.clone())));
            (crate::bench::report::text::end(&report.end), false)
        }
        Ended::Refused(refused) => (format!("refused: {}", refused.why), true),
        Ended::Failed(why) => (why.clone(), true),
    };
    let name = run.plan.profile.clone();
    let seen = app.ui.view == ViewId::Bench && bench.selected == Row::Now && bench.opened.is_none();
    if seen {
        bench.line = 0;
    } else if bad {
        app.ui.error(format!("bench {name}: {how}"));
    } else {
        app.ui.info(format!("bench {name}: {how}; b shows the figures"));
    }
}

/// What a child found out.
pub fn answered(app: &mut App, job: Job, reply: Reply, effects: &mut Vec<Effect>) {
    let bench = &mut app.ui.bench;
    match &job {
        Job::Look { directory } if bench.looking.as_ref() == Some(directory) => bench.looking = None,
        Job::Kept => bench.listing = false,
        _ => {}
    }
    match (job, reply) {
        (Job::Look { .. }, Reply::Look(look)) if look.directory == bench.directory => {
            bench.look = Some(Ok(*look));
            select_device(app);
        }
        (Job::Look { directory }, Reply::Failed(why)) if directory == bench.directory => {
            bench.look = Some(Err(why))
        }
        (Job::Kept, Reply::Kept(all)) => bench.kept = Some(Ok(all)),
        (Job::Kept, Reply::Failed(why)) => bench.kept = Some(Err(why)),
        (Job::Keep(report), reply) => kept(app, &report, reply, effects),
        (Job::Results { ids }, reply) => read(app, ids, reply),
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
        Err(why) => app.ui.error(format!("result not kept: {why}")),
    }
    let run = app.ui.bench.run.as_mut();
    let same = |end: &Ended| matches!(end, Ended::Report(r) if r.id == report.id);
    if let Some(run) = run.filter(|r| r.end.as_ref().is_some_and(same)) {
        run.kept = Some(outcome);
    }
}

/// Results that were read; shown if they are still waited for.
fn read(app: &mut App, ids: Vec<String>, reply: Reply) {
    let bench = &mut app.ui.bench;
    if bench.opened != Some(Opened::Waiting(ids)) {
        return;
    }
    bench.line = 0;
    bench.opened = Some(Opened::of(match reply {
        Reply::Failed(why) => Err(why),
        Reply::Results(reports) => Ok(reports),
        _ => return,
    }));
}

/// The device under the directory is the selected one in the list below.
fn select_device(app: &mut App) {
    let device = app.ui.bench.device();
    let at = panes::devices::device_lines(app).iter().position(|l| Some(l.id) == device);
    if let Some(at) = at.filter(|_| app.ui.view == ViewId::Bench) {
        app.ui.devices.scroll.selected = at;
    }
}

/// The view comes on screen.
pub fn opened(app: &mut App, effects: &mut Vec<Effect>) {
    if app.ui.bench.running().is_some() {
        app.ui.bench.selected = Row::Now;
        app.ui.bench.opened = None;
    }
    list(app, effects);
    look(app, effects);
    select_device(app);
}

/// Asks for the kept results, unless that is under way.
fn list(app: &mut App, effects: &mut Vec<Effect>) {
    if !std::mem::replace(&mut app.ui.bench.listing, true) {
        effects.push(Effect::RunJob(Job::Kept));
    }
}

/// Asks about the directory anew; what was found before stays until the answer, if it was about this one.
pub fn look(app: &mut App, effects: &mut Vec<Effect>) {
    let bench = &mut app.ui.bench;
    if bench.directory.is_absolute() {
        if bench.look().is_none() {
            bench.look = None;
        }
        if bench.looking.as_ref() != Some(&bench.directory) {
            bench.looking = Some(bench.directory.clone());
            effects.push(Effect::RunJob(Job::Look { directory: bench.directory.clone() }));
        }
    }
}

/// Enter.
pub fn open(app: &mut App, effects: &mut Vec<Effect>) {
    if app.focused_pane() == PaneId::BenchPage {
        if app.ui.bench.planning() {
            edit::begin(app);
        }
        return;
    }
    match app.ui.bench.selected.clone() {
        Row::Now => {
            app.ui.bench.opened = None;
            focus(app, PAGE);
        }
        Row::Profile(_) => ask::start(app),
        Row::Kept(id) => {
            show(app, vec![id], effects);
            focus(app, PAGE);
        }
    }
}

fn show(app: &mut App, ids: Vec<String>, effects: &mut Vec<Effect>) {
    app.ui.bench.line = 0;
    app.ui.bench.opened = Some(Opened::Waiting(ids.clone()));
    effects.push(Effect::RunJob(Job::Results { ids }));
}

fn mark(app: &mut App) {
    let selected = app.ui.bench.selected_result().map(|k| k.id.clone());
    if let Err(why) = comparison::toggle_mark(&mut app.ui.bench.marked, selected) {
        app.ui.error(why);
    }
}

fn compare(app: &mut App, effects: &mut Vec<Effect>) {
    let ui = &app.ui.bench;
    match comparison::marked_pair(ui.marked.as_ref(), ui.selected_result().map(|k| k.id.clone())) {
        Ok(ids) => {
            show(app, ids, effects);
            focus(app, PAGE);
        }
        Err(why) => app.ui.error(why),
    }
}

/// Esc; whether there was something to close.
pub fn back(app: &mut App, _effects: &mut Vec<Effect>) -> bool {
    let zoomed = app.ui.zoomed;
    let bench = &mut app.ui.bench;
    if bench.opened.take().is_some() {
        bench.line = 0;
        if !zoomed {
            app.ui.focus = LIST;
        }
        return true;
    }
    let there = !zoomed && app.ui.focus == PAGE;
    if there {
        app.ui.focus = LIST;
    }
    there
}

/// Moves the selection, or the text.
pub fn step(app: &mut App, by: isize) {
    if app.focused_pane() == PaneId::BenchPage {
        if let (true, Some(at)) = (app.ui.bench.planning(), app.ui.bench.profile()) {
            // Below the last parameter the text goes on.
            let (last, hidden) =
                (app.ui.bench.lines(at).len().saturating_sub(1), panes::bench::plan::hidden_plan_lines(app));
            let bench = &mut app.ui.bench;
            let to =
                (bench.params.selected + bench.line.min(hidden)).saturating_add_signed(by).min(last + hidden);
            bench.params.selected = to.min(last);
            bench.line = to - bench.params.selected;
        } else {
            let last = panes::bench::max_scroll(app);
            app.ui.bench.line = app.ui.bench.line.min(last).saturating_add_signed(by).min(last);
        }
        return;
    }
    let rows = app.ui.bench.rows();
    let at = rows.iter().position(|r| *r == app.ui.bench.selected).unwrap_or(0);
    let to = at.saturating_add_signed(by).min(rows.len() - 1);
    select(app, rows[to].clone());
}

/// Selects a row: the page is its own then.
fn select(app: &mut App, row: Row) {
    let bench = &mut app.ui.bench;
    if bench.selected != row {
        bench.params.selected = 0;
    }
    bench.selected = row;
    bench.opened = None;
    bench.line = 0;
    app.ui.bench.list_offset = panes::bench::list::current_scroll_offset(app);
}
