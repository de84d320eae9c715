//! What each action does.

use super::data;
use crate::model::disk::DevId;
use crate::model::process::{ProcessColumn as Col, TaskKey};
use crate::tui::action::{Action, View};
use crate::tui::effect::Effect;
use crate::tui::layout;
use crate::tui::panes::kernel_detail::{self, Target};
use crate::tui::panes::{self, PaneId, devices, kernel, processes};
use crate::tui::settings::INTERVAL;
use crate::tui::state::{App, Change, Detail, Overlay, ProcessDetail, Prompt, PromptFor};
use crate::tui::widgets::table::Scroll;
use crate::tui::widgets::theme::ThemeName;
use std::time::Duration;

/// Does it.
pub fn act(app: &mut App, action: Action, effects: &mut Vec<Effect>) {
    if let Some(why) = super::replay::refuses(app, action) {
        return app.ui.complain(why);
    }
    match action {
        Action::Quit => super::tune::quit(app, effects),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::Redraw => effects.push(Effect::Redraw),
        Action::Help => {
            let open = matches!(app.ui.overlay, Some(Overlay::Help(_)));
            app.ui.overlay = (!open).then_some(Overlay::Help(0));
        }
        Action::View(view) => go(app, view, effects),
        Action::NextView => go(app, next(app, true), effects),
        Action::PreviousView => go(app, next(app, false), effects),
        Action::NextPane => {
            let panes = layout::arrange(app).panes.len().max(1);
            app.ui.focus = if app.ui.zoomed { app.ui.focus } else { (app.ui.focus + 1) % panes };
        }
        Action::Zoom => app.ui.zoomed = !app.ui.zoomed,
        Action::Open => open(app, effects),
        Action::Back => back(app, effects),
        Action::Move(by) => step(app, isize::from(by)),
        Action::Page(by) => {
            let height = match app.ui.overlay {
                Some(Overlay::Help(_)) => crate::tui::draw::help_height(app.ui.size),
                Some(Overlay::Dialog(_)) => app.ui.size.1.saturating_sub(6),
                _ => layout::arrange(app).area(app.focused()).map_or(0, |a| a.height).saturating_sub(3),
            };
            step(app, isize::from(by) * height.max(1) as isize);
        }
        Action::First => step(app, isize::MIN / 2),
        Action::End => match app.ui.frozen {
            Some(_) => live(app),
            None => step(app, isize::MAX / 2),
        },
        Action::Freeze => freeze(app),
        Action::StepBack => hold(app, -1),
        Action::StepForward => hold(app, 1),
        Action::Confirm => confirm(app, effects),
        Action::Mappings => mappings(app, effects),
        Action::Bench(action) => super::bench::act(app, action, effects),
        Action::Experiment(action) => super::experiment::act(app, action, effects),
        Action::Tune(action) => super::tune::act(app, action, effects),
        Action::Replay(action) => super::replay::act(app, action, effects),
        Action::Record => super::replay::record(app, effects),
        _ => settings(app, action, effects),
    }
}

/// Actions that change what is listed and how.
fn settings(app: &mut App, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::SortLeft => sort(app, -1),
        Action::SortRight => sort(app, 1),
        Action::ColumnsLeft => shift(app, -1),
        Action::ColumnsRight => shift(app, 1),
        Action::Reverse => match app.focused() {
            PaneId::Devices | PaneId::DeviceGraphs => app.ui.devices.reverse = !app.ui.devices.reverse,
            PaneId::Processes => app.ui.procs.reverse = !app.ui.procs.reverse,
            PaneId::Syncs | PaneId::SlowSyncs => app.ui.syncs.reverse = !app.ui.syncs.reverse,
            _ => {}
        },
        Action::SearchNext => super::prompt::search(app, 1),
        Action::SearchPrevious => super::prompt::search(app, -1),
        Action::OnlyActive => match app.focused() {
            PaneId::Processes => app.ui.procs.filter.only_active = !app.ui.procs.filter.only_active,
            _ => app.ui.devices.only_active = !app.ui.devices.only_active,
        },
        Action::Accumulated => app.ui.procs.accumulated = !app.ui.procs.accumulated,
        Action::Threads => {
            app.ui.procs.threads = !app.ui.procs.threads;
            effects.push(Effect::Threads(app.ui.procs.threads));
        }
        Action::Fold => fold(app),
        Action::Extended => app.ui.devices.extended = !app.ui.devices.extended,
        Action::Graph => app.ui.devices.graph += 1,
        Action::Faster => interval(app, app.ui.interval.as_secs_f64() - 0.5, effects),
        Action::Slower => interval(app, app.ui.interval.as_secs_f64() + 0.5, effects),
        Action::ResetCounters => {
            let now = app.world.now();
            app.world.processes.reset_counters(now);
            app.ui.say("sums count from now");
        }
        Action::SaveConfig => effects.push(Effect::Save(app.ui.settings())),
        Action::Screenshot => super::shot::begin(app),
        Action::Yank => {
            let sheet = (panes::pane(app.focused()).sheet)(app);
            effects.push(Effect::Clipboard(sheet.to_markdown()));
            app.ui.say("pane sent to the terminal's clipboard (OSC 52), if it allows that");
        }
        Action::Theme => {
            let at = ThemeName::ALL.iter().position(|t| *t == app.ui.theme_name).unwrap_or(0);
            app.ui.theme_name = ThemeName::ALL[(at + 1) % ThemeName::ALL.len()];
            let note = if app.ui.no_color { " (NO_COLOR is set: shown without colour)" } else { "" };
            app.ui.say(format!("theme {}{note}", app.ui.theme_name.name()));
        }
        asking => ask(app, asking),
    }
}

/// Actions that open a line of input.
fn ask(app: &mut App, action: Action) {
    let (what, text) = match action {
        Action::Search => (PromptFor::Search, String::new()),
        Action::Filter => (PromptFor::Filter, super::prompt::filter_of(app)),
        Action::UserFilter => (PromptFor::User, app.ui.procs.filter.user.clone().unwrap_or_default()),
        Action::Delay => (PromptFor::Delay, String::new()),
        Action::Command => (PromptFor::Command, String::new()),
        Action::Include => (PromptFor::Include, app.ui.kernel.include.clone().unwrap_or_default()),
        Action::Exclude => {
            let default = crate::model::kernel_log::DEFAULT_EXCLUDE.to_owned();
            (PromptFor::Exclude, app.ui.kernel.exclude.clone().unwrap_or(default))
        }
        Action::Ionice => match app.selected_task() {
            Some(row) => (PromptFor::Ionice(row.key()), String::new()),
            None => return app.ui.complain("no task selected"),
        },
        _ => return,
    };
    let cursor = text.len();
    app.ui.overlay = Some(Overlay::Prompt(Prompt { what, text, cursor, error: None }));
}

fn next(app: &App, on: bool) -> View {
    let views: Vec<View> =
        View::ALL.into_iter().filter(|v| super::replay::refuses(app, Action::View(*v)).is_none()).collect();
    let at = views.iter().position(|v| *v == app.ui.view).unwrap_or(0);
    views[(at + if on { 1 } else { views.len() - 1 }) % views.len()]
}

/// Opens a view.
pub fn go(app: &mut App, view: View, effects: &mut Vec<Effect>) {
    // Once more the key of the view they are in: from the experiments to the knobs.
    app.ui.experiment.open &= app.ui.view != view;
    app.ui.view = view;
    app.ui.focus = 0;
    app.ui.zoomed = false;
    app.ui.detail = None;
    match view {
        View::Bench => super::bench::opened(app, effects),
        View::Tune => {
            super::tune::opened(app, effects);
            super::experiment::returned(app);
        }
        _ => {}
    }
}

/// Opens the detail page of a device.
pub fn open_device(app: &mut App, id: DevId) {
    app.ui.detail = Some(Detail::Device(id));
    app.ui.detail_scroll = Scroll::default();
}

/// Opens the detail page of a task.
pub fn open_task(app: &mut App, key: TaskKey, effects: &mut Vec<Effect>) {
    app.ui.detail = Some(Detail::Process(Box::new(ProcessDetail::new(key))));
    data::facts(app, effects);
}

fn open(app: &mut App, effects: &mut Vec<Effect>) {
    app.ui.detail_scroll = Scroll::default();
    match app.focused() {
        PaneId::Devices | PaneId::DeviceGraphs => {
            if let Some(id) = app.selected_device() {
                open_device(app, id);
            }
        }
        PaneId::Processes => {
            if let Some(key) = app.selected_task().map(|row| row.key()) {
                open_task(app, key, effects);
            }
        }
        PaneId::KernelDetail => match kernel_detail::target(app) {
            Some(Target::Task(key)) => open_task(app, key, effects),
            Some(Target::Device(id)) => open_device(app, id),
            None => app.ui.complain("it names no task that is still there and no device"),
        },
        PaneId::BenchList | PaneId::Bench => super::bench::open(app, effects),
        PaneId::Tune | PaneId::TuneKnob | PaneId::TuneChanges => super::tune::open(app, effects),
        PaneId::ExperimentList | PaneId::Experiment => super::experiment::open(app, effects),
        PaneId::Findings | PaneId::FindingPage | PaneId::FindingsStrip => super::findings::open(app, effects),
        PaneId::Syncs | PaneId::SlowSyncs => super::syncs::open(app, effects),
        PaneId::Kernel if !app.ui.kernel.shown.is_empty() => {
            app.ui.detail = Some(Detail::Kernel(app.ui.kernel.scroll.selected));
        }
        _ => {}
    }
}

/// Undoes the topmost thing: overlay, detail, zoom, frozen picture, filters.
fn back(app: &mut App, effects: &mut Vec<Effect>) {
    if app.ui.overlay.take().is_some() || super::replay::stop_search(app, effects) {
        return;
    }
    if app.ui.detail.take().is_some() {
        return;
    }
    let closed = match app.focused() {
        PaneId::BenchList | PaneId::Bench => super::bench::back(app, effects),
        PaneId::Tune | PaneId::TuneKnob | PaneId::TuneChanges => super::tune::back(app, effects),
        PaneId::ExperimentList | PaneId::Experiment => super::experiment::back(app),
        PaneId::Findings | PaneId::FindingPage => super::findings::back(app),
        _ => false,
    };
    if closed {
        return;
    }
    if app.ui.zoomed {
        app.ui.zoomed = false;
    } else if app.ui.frozen.is_some() {
        live(app);
    } else {
        match app.focused() {
            PaneId::Processes => {
                app.ui.procs.filter.text = None;
                app.ui.procs.filter.user = None;
            }
            PaneId::Kernel => {
                app.ui.kernel.filter.clear();
                kernel::refresh(app);
            }
            PaneId::Syncs | PaneId::SlowSyncs => app.ui.syncs.filter.clear(),
            PaneId::BenchList | PaneId::Bench | PaneId::Tune | PaneId::TuneKnob | PaneId::TuneChanges => {}
            PaneId::ExperimentList | PaneId::Experiment => {}
            PaneId::Findings | PaneId::FindingPage | PaneId::FindingsStrip => {}
            _ => app.ui.devices.filter.clear(),
        }
    }
}

fn step(app: &mut App, by: isize) {
    if let Some(Overlay::Dialog(dialog)) = &mut app.ui.overlay {
        let most = crate::tui::draw::dialog_overhang(dialog, app.ui.size);
        dialog.scroll = (dialog.scroll as isize).saturating_add(by).clamp(0, most as isize) as u16;
        return;
    }
    if let Some(Overlay::Help(scroll)) = &mut app.ui.overlay {
        let lines = crate::tui::draw::help_lines().len();
        let last = lines.saturating_sub(crate::tui::draw::help_height(app.ui.size).into()) as isize;
        *scroll = (*scroll as isize).saturating_add(by).clamp(0, last) as u16;
        return;
    }
    if app.ui.detail.is_some() {
        let rows = (panes::pane(app.focused()).rows)(app);
        app.ui.detail_scroll.step(by, rows);
        return;
    }
    match app.focused() {
        PaneId::Processes => {
            let len = app.task_count();
            app.ui.procs.scroll.step(by, len);
            app.ui.procs.selected = None;
        }
        PaneId::Kernel => {
            let len = app.ui.kernel.shown.len();
            app.ui.kernel.scroll.step(by, len);
            app.ui.kernel.pinned = app.ui.kernel.scroll.selected + 1 >= len;
        }
        PaneId::Devices | PaneId::DeviceGraphs => {
            let len = devices::lines(app).len();
            app.ui.devices.scroll.step(by, len);
        }
        PaneId::BenchList | PaneId::Bench => super::bench::step(app, by),
        PaneId::Tune | PaneId::TuneKnob | PaneId::TuneChanges => super::tune::step(app, by),
        PaneId::ExperimentList | PaneId::Experiment => super::experiment::step(app, by),
        PaneId::Findings | PaneId::FindingPage => super::findings::step(app, by),
        PaneId::Syncs | PaneId::SlowSyncs => super::syncs::step(app, by),
        _ => {}
    }
}

fn freeze(app: &mut App) {
    match app.ui.frozen {
        Some(_) => live(app),
        None => hold(app, 0),
    }
}

/// Holds the tick `by` steps from the one on screen.
fn hold(app: &mut App, by: isize) {
    let now = app.ui.frozen.unwrap_or(app.snap().seq);
    match app.world.history.step_from(now, by) {
        Some(seq) => app.ui.frozen = Some(seq),
        None => app.ui.complain("nothing to hold yet"),
    }
}

fn live(app: &mut App) {
    app.ui.frozen = None;
}

fn interval(app: &mut App, secs: f64, effects: &mut Vec<Effect>) {
    // Steps of half a second land on whole halves; below one second, on tenths.
    let secs = if secs < 0.5 { 0.1f64.max(secs) } else { (secs * 2.0).round() / 2.0 };
    set_interval(app, secs.clamp(*INTERVAL.start(), *INTERVAL.end()), effects);
}

/// Sets the interval; the caller has checked the range.
pub fn set_interval(app: &mut App, secs: f64, effects: &mut Vec<Effect>) {
    app.ui.interval = Duration::from_secs_f64(secs);
    app.ui.say(format!("interval {secs} s"));
    effects.push(Effect::Interval(app.ui.interval));
}

/// Moves the sort column among those on screen; for devices there is a place before the first: the tree.
fn sort(app: &mut App, by: isize) {
    let width = layout::arrange(app).area(app.focused()).map_or(0, |a| a.width.saturating_sub(2));
    match app.focused() {
        PaneId::Processes => {
            let set = processes::columns(app, width);
            let at = set.iter().position(|c| c.id == processes::query(app, 0, 0).sort_by);
            // The start order, reads and writes together, stands before the first column.
            let at = at.map_or(0, |i| i as isize + 1) + by;
            let at = at.rem_euclid(set.len() as isize + 1);
            sort_tasks(app, if at == 0 { Col::Io } else { set[at as usize - 1].id });
        }
        PaneId::Devices | PaneId::DeviceGraphs => {
            let len = devices::columns(app, u16::MAX).len() as isize;
            let at = app.ui.devices.sort.map_or(0, |i| i as isize + 1) + by;
            let at = at.rem_euclid(len + 1);
            app.ui.devices.sort = (at > 0).then(|| at as usize - 1);
        }
        PaneId::Syncs | PaneId::SlowSyncs => super::syncs::sort(app, by),
        _ => {}
    }
}

/// Passes over one column more or less, as long as one is left to pass over.
fn shift(app: &mut App, by: isize) {
    if matches!(app.focused(), PaneId::Syncs | PaneId::SlowSyncs) {
        return super::syncs::shift(app, by);
    }
    let (shift, columns) = match app.focused() {
        PaneId::Processes => (app.ui.procs.shift, processes::columns(app, app.ui.size.0).len()),
        _ => (app.ui.devices.shift, devices::columns(app, app.ui.size.0).len()),
    };
    let shift = shift.saturating_add_signed(by).min(columns.saturating_sub(3));
    match app.focused() {
        PaneId::Processes => app.ui.procs.shift = shift,
        _ => app.ui.devices.shift = shift,
    }
}

/// Sorts tasks by a column; the sums' columns are the rates' with `a`.
pub fn sort_tasks(app: &mut App, by: Col) {
    app.ui.procs.by = match by {
        Col::AccIo => Col::Io,
        Col::AccRead => Col::Read,
        Col::AccWrite => Col::Write,
        other => other,
    };
}

fn fold(app: &mut App) {
    if app.focused() == PaneId::Kernel {
        app.ui.kernel.unfolded = !app.ui.kernel.unfolded;
        return;
    }
    if !app.ui.procs.threads {
        return app.ui.say("threads are folded; p shows them");
    }
    let Some(pid) = app.selected_task().map(|row| row.pid) else { return };
    let folded = &mut app.ui.procs.filter.folded_pids;
    match folded.iter().position(|p| *p == pid) {
        Some(at) => drop(folded.remove(at)),
        None => folded.push(pid),
    }
}

fn mappings(app: &mut App, effects: &mut Vec<Effect>) {
    if let Some(Detail::Process(p)) = &mut app.ui.detail {
        p.loading = true;
        effects.push(Effect::Run(crate::worker::job::Job::Mappings {
            pid: p.key.pid,
            starttime: p.key.starttime,
        }));
    }
}

fn confirm(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(Overlay::Dialog(dialog)) = app.ui.overlay.take() else { return };
    match dialog.change {
        Change::IoPrio(key, prio) => effects.push(Effect::SetIoPrio { key, prio }),
        Change::Tune(ask) => super::tune::confirmed(app, ask, effects),
        Change::Experiment(spec) => super::experiment::confirmed(app, *spec, effects),
        Change::Bench(plan) => super::bench::confirmed(app, *plan, effects),
    }
}
