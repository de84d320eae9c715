//! What each action does.

use super::events;
use crate::model::disk::DevId;
use crate::model::process::{ProcessColumn as Col, TaskKey};
use crate::tui::action::{Action, ViewId};
use crate::tui::effect::Effect;
use crate::tui::layout;
use crate::tui::panes::kernel_log_detail::{self, EntryLink};
use crate::tui::panes::{self, PaneId, devices, kernel_log, processes};
use crate::tui::settings::INTERVAL_SECS_RANGE;
use crate::tui::state::{App, DetailPage, Overlay, PendingChange, ProcessDetail, Prompt, PromptPurpose};
use crate::tui::widgets::table::Scroll;
use crate::tui::widgets::theme::ThemeName;
use std::time::Duration;

/// Does it.
pub fn apply_action(app: &mut App, action: Action, effects: &mut Vec<Effect>) {
    if let Some(why) = super::replay::refusal_reason(app, action) {
        return app.screen.error(why);
    }
    let pane = app.focused_pane();
    if app.screen.overlay.is_none()
        && action != Action::Back
        && app.update_view(pane, effects, |view, cx, out| view.on_action(pane, action, cx, out)) == Some(true)
    {
        return;
    }
    match action {
        Action::Quit => super::tune::quit_or_ask(app, effects),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::Redraw => effects.push(Effect::Redraw),
        Action::Help => {
            let open = matches!(app.screen.overlay, Some(Overlay::Help(_)));
            app.screen.overlay = (!open).then_some(Overlay::Help(0));
        }
        Action::ShowView(view) => open_view(app, view, effects),
        Action::NextView => open_view(app, adjacent_view(app, true), effects),
        Action::PreviousView => open_view(app, adjacent_view(app, false), effects),
        Action::NextPane => {
            let panes = layout::compute_layout(app).panes.len().max(1);
            app.screen.focus = if app.screen.zoomed { app.screen.focus } else { (app.screen.focus + 1) % panes };
        }
        Action::Zoom => app.screen.zoomed = !app.screen.zoomed,
        Action::Open => open_selected(app, effects),
        Action::Back => close_topmost(app, effects),
        Action::MoveSelection(by) => move_selection(app, isize::from(by), effects),
        Action::MovePage(by) => {
            let height = match app.screen.overlay {
                Some(Overlay::Help(_)) => crate::tui::draw::visible_help_lines(app.screen.size),
                Some(Overlay::Dialog(_)) => app.screen.size.1.saturating_sub(6),
                _ => {
                    layout::compute_layout(app).pane_area(app.focused_pane()).map_or(0, |a| a.height).saturating_sub(3)
                }
            };
            move_selection(app, isize::from(by) * height.max(1) as isize, effects);
        }
        Action::MoveToFirst => move_selection(app, isize::MIN / 2, effects),
        Action::MoveToLast => match app.shared.frozen_seq {
            Some(_) => unfreeze(app),
            None => move_selection(app, isize::MAX / 2, effects),
        },
        Action::Freeze => toggle_freeze(app),
        Action::StepBack => freeze_tick(app, -1),
        Action::StepForward => freeze_tick(app, 1),
        Action::Confirm => confirm_dialog(app, effects),
        Action::LoadMappings => request_mappings(app, effects),
        Action::Bench(action) => super::bench::apply_action(app, action, effects),
        Action::Experiment(action) => super::experiment::apply_action(app, action, effects),
        Action::Tune(action) => super::tune::apply_action(app, action, effects),
        Action::Replay(action) => super::replay::apply_action(app, action, effects),
        Action::ToggleRecording => super::replay::toggle_recording(app, effects),
        _ => apply_setting(app, action, effects),
    }
}

/// Actions that change what is listed and how.
fn apply_setting(app: &mut App, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::SortLeft => move_sort_column(app, -1),
        Action::SortRight => move_sort_column(app, 1),
        Action::ColumnsLeft => scroll_columns(app, -1),
        Action::ColumnsRight => scroll_columns(app, 1),
        Action::ReverseSort => match app.focused_pane() {
            PaneId::Devices | PaneId::DeviceGraphs => app.views.devices.reverse = !app.views.devices.reverse,
            PaneId::Processes => app.views.processes.reverse = !app.views.processes.reverse,
            _ => {}
        },
        Action::SearchNext => super::prompt::search(app, 1, effects),
        Action::SearchPrevious => super::prompt::search(app, -1, effects),
        Action::ToggleActiveOnly => match app.focused_pane() {
            PaneId::Processes => app.views.processes.filter.only_active = !app.views.processes.filter.only_active,
            _ => app.views.devices.only_active = !app.views.devices.only_active,
        },
        Action::ToggleTotals => app.views.processes.show_totals = !app.views.processes.show_totals,
        Action::ToggleThreads => {
            app.views.processes.show_threads = !app.views.processes.show_threads;
            effects.push(Effect::ScanThreads(app.views.processes.show_threads));
        }
        Action::ToggleFold => toggle_fold(app),
        Action::ToggleExtendedColumns => app.views.devices.extended = !app.views.devices.extended,
        Action::NextGraph => app.views.devices.graph_index += 1,
        Action::ShorterInterval => round_and_set_interval(app, app.shared.interval.as_secs_f64() - 0.5, effects),
        Action::LongerInterval => round_and_set_interval(app, app.shared.interval.as_secs_f64() + 0.5, effects),
        Action::ResetCounters => {
            let now = app.shared.system.now();
            app.shared.system.processes.reset_counters(now);
            app.screen.info("sums count from now");
        }
        Action::SaveConfig => effects.push(Effect::SaveSettings(app.settings())),
        Action::Screenshot => super::screenshot::begin_capture(app),
        Action::CopyPane => {
            let sheet = panes::table(app, app.focused_pane());
            effects.push(Effect::CopyToClipboard(sheet.to_markdown()));
            app.screen.info("pane sent to the terminal's clipboard (OSC 52), if it allows that");
        }
        Action::NextTheme => {
            let at = ThemeName::ALL.iter().position(|t| *t == app.shared.theme_name).unwrap_or(0);
            app.shared.theme_name = ThemeName::ALL[(at + 1) % ThemeName::ALL.len()];
            let note = if app.shared.no_color { " (NO_COLOR is set: shown without colour)" } else { "" };
            app.screen.info(format!("theme {}{note}", app.shared.theme_name.name()));
        }
        asking => open_prompt(app, asking),
    }
}

/// Actions that open a line of input.
fn open_prompt(app: &mut App, action: Action) {
    let (what, text) = match action {
        Action::Search => (PromptPurpose::Search, String::new()),
        Action::Filter => (PromptPurpose::Filter, super::prompt::current_filter(app)),
        Action::UserFilter => (PromptPurpose::UserFilter, app.views.processes.filter.user.clone().unwrap_or_default()),
        Action::SetInterval => (PromptPurpose::Interval, String::new()),
        Action::Command => (PromptPurpose::Command, String::new()),
        Action::IncludePattern => (PromptPurpose::Include, app.views.kernel_log.include.clone().unwrap_or_default()),
        Action::ExcludePattern => {
            let default = crate::model::kernel_log::DEFAULT_EXCLUDE.to_owned();
            (PromptPurpose::Exclude, app.views.kernel_log.exclude.clone().unwrap_or(default))
        }
        Action::Ionice => match app.selected_task() {
            Some(row) => (PromptPurpose::Ionice(row.key()), String::new()),
            None => return app.screen.error("no task selected"),
        },
        _ => return,
    };
    let cursor = text.len();
    app.screen.overlay = Some(Overlay::Prompt(Prompt { purpose: what, text, cursor, error: None }));
}

fn adjacent_view(app: &App, on: bool) -> ViewId {
    let views: Vec<ViewId> = ViewId::ALL
        .into_iter()
        .filter(|v| super::replay::refusal_reason(app, Action::ShowView(*v)).is_none())
        .collect();
    let at = views.iter().position(|v| *v == app.screen.view).unwrap_or(0);
    views[(at + if on { 1 } else { views.len() - 1 }) % views.len()]
}

/// Opens a view.
pub fn open_view(app: &mut App, view: ViewId, effects: &mut Vec<Effect>) {
    // Once more the key of the view they are in: from the experiments to the knobs.
    app.views.experiments.is_open &= app.screen.view != view;
    app.screen.view = view;
    app.screen.focus = 0;
    app.screen.zoomed = false;
    app.screen.detail = None;
    match view {
        ViewId::Bench => super::bench::on_open(app, effects),
        ViewId::Tune => {
            super::tune::on_open(app, effects);
            super::experiment::restore_focus(app);
        }
        _ => {}
    }
}

/// Opens the detail page of a device.
pub fn open_device(app: &mut App, id: DevId) {
    app.screen.detail = Some(DetailPage::Device(id));
    app.screen.detail_scroll = Scroll::default();
}

/// Opens the detail page of a task.
pub fn open_task(app: &mut App, key: TaskKey, effects: &mut Vec<Effect>) {
    app.screen.detail = Some(DetailPage::Process(Box::new(ProcessDetail::new(key))));
    events::request_task_facts(app, effects);
}

fn open_selected(app: &mut App, effects: &mut Vec<Effect>) {
    app.screen.detail_scroll = Scroll::default();
    match app.focused_pane() {
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
        PaneId::KernelLogDetail => match kernel_log_detail::link_target(app) {
            Some(EntryLink::Task(key)) => open_task(app, key, effects),
            Some(EntryLink::Device(id)) => open_device(app, id),
            None => app.screen.error("it names no task that is still there and no device"),
        },
        PaneId::BenchResults | PaneId::BenchPage => super::bench::open_selected(app, effects),
        PaneId::TuneKnobs | PaneId::KnobPage | PaneId::ChangeHistory => super::tune::open_selected(app, effects),
        PaneId::ExperimentList | PaneId::ExperimentPage => super::experiment::open_selected(app, effects),
        PaneId::Findings | PaneId::IncidentPage | PaneId::FindingsSummary => {
            super::findings::open_selected(app, effects)
        }
        PaneId::KernelLog if !app.views.kernel_log.visible_entries.is_empty() => {
            app.screen.detail = Some(DetailPage::KernelLog(app.views.kernel_log.scroll.selected));
        }
        _ => {}
    }
}

/// Undoes the topmost thing: overlay, detail, zoom, frozen picture, filters.
fn close_topmost(app: &mut App, effects: &mut Vec<Effect>) {
    if app.screen.overlay.take().is_some() || super::replay::stop_search(app, effects) {
        return;
    }
    if app.screen.detail.take().is_some() {
        return;
    }
    let pane = app.focused_pane();
    let closed = match pane {
        _ if app.update_view(pane, effects, |view, cx, out| view.on_action(pane, Action::Back, cx, out))
            == Some(true) =>
        {
            true
        }
        PaneId::BenchResults | PaneId::BenchPage => super::bench::close_topmost(app, effects),
        PaneId::TuneKnobs | PaneId::KnobPage | PaneId::ChangeHistory => super::tune::close_topmost(app, effects),
        PaneId::ExperimentList | PaneId::ExperimentPage => super::experiment::close_topmost(app),
        PaneId::Findings | PaneId::IncidentPage => super::findings::close_topmost(app),
        _ => false,
    };
    if closed {
        return;
    }
    if app.screen.zoomed {
        app.screen.zoomed = false;
    } else if app.shared.frozen_seq.is_some() {
        unfreeze(app);
    } else if app.update_view(pane, effects, |view, cx, _| view.clear_filter(pane, cx)).is_none() {
        match app.focused_pane() {
            PaneId::Processes => {
                app.views.processes.filter.text = None;
                app.views.processes.filter.user = None;
            }
            PaneId::KernelLog => {
                app.views.kernel_log.filter.clear();
                kernel_log::refresh_visible_entries(app);
            }
            PaneId::BenchResults | PaneId::BenchPage | PaneId::TuneKnobs | PaneId::KnobPage | PaneId::ChangeHistory => {
            }
            PaneId::ExperimentList | PaneId::ExperimentPage => {}
            PaneId::Findings | PaneId::IncidentPage | PaneId::FindingsSummary => {}
            _ => app.views.devices.filter.clear(),
        }
    }
}

fn move_selection(app: &mut App, by: isize, effects: &mut Vec<Effect>) {
    if let Some(Overlay::Dialog(dialog)) = &mut app.screen.overlay {
        let most = crate::tui::draw::hidden_dialog_lines(dialog, app.screen.size);
        dialog.scroll = (dialog.scroll as isize).saturating_add(by).clamp(0, most as isize) as u16;
        return;
    }
    if let Some(Overlay::Help(scroll)) = &mut app.screen.overlay {
        let lines = crate::tui::draw::help_lines().len();
        let last = lines.saturating_sub(crate::tui::draw::visible_help_lines(app.screen.size).into()) as isize;
        *scroll = (*scroll as isize).saturating_add(by).clamp(0, last) as u16;
        return;
    }
    if app.screen.detail.is_some() {
        let rows = panes::row_count(app, app.focused_pane());
        app.screen.detail_scroll.move_selection(by, rows);
        return;
    }
    let pane = app.focused_pane();
    if app.update_view(pane, effects, |view, cx, _| view.move_selection(pane, by, cx)).is_some() {
        return;
    }
    match pane {
        PaneId::Processes => {
            let len = app.matching_task_count();
            app.views.processes.scroll.move_selection(by, len);
            app.views.processes.selected = None;
        }
        PaneId::KernelLog => {
            let len = app.views.kernel_log.visible_entries.len();
            app.views.kernel_log.scroll.move_selection(by, len);
            app.views.kernel_log.follows_newest = app.views.kernel_log.scroll.selected + 1 >= len;
        }
        PaneId::Devices | PaneId::DeviceGraphs => {
            let len = devices::device_lines(app).len();
            app.views.devices.scroll.move_selection(by, len);
        }
        PaneId::BenchResults | PaneId::BenchPage => super::bench::move_selection(app, by),
        PaneId::TuneKnobs | PaneId::KnobPage | PaneId::ChangeHistory => super::tune::move_selection(app, by),
        PaneId::ExperimentList | PaneId::ExperimentPage => super::experiment::move_selection(app, by),
        PaneId::Findings | PaneId::IncidentPage => super::findings::move_selection(app, by),
        _ => {}
    }
}

fn toggle_freeze(app: &mut App) {
    match app.shared.frozen_seq {
        Some(_) => unfreeze(app),
        None => freeze_tick(app, 0),
    }
}

/// Holds the tick `by` steps from the one on screen.
fn freeze_tick(app: &mut App, by: isize) {
    let now = app.shared.frozen_seq.unwrap_or(app.shared.snapshot().seq);
    match app.shared.system.history.step_from(now, by) {
        Some(seq) => app.shared.frozen_seq = Some(seq),
        None => app.screen.error("nothing to hold yet"),
    }
}

fn unfreeze(app: &mut App) {
    app.shared.frozen_seq = None;
}

fn round_and_set_interval(app: &mut App, secs: f64, effects: &mut Vec<Effect>) {
    // Steps of half a second land on whole halves; below one second, on tenths.
    let secs = if secs < 0.5 { 0.1f64.max(secs) } else { (secs * 2.0).round() / 2.0 };
    set_interval(app, secs.clamp(*INTERVAL_SECS_RANGE.start(), *INTERVAL_SECS_RANGE.end()), effects);
}

/// Sets the interval; the caller has checked the range.
pub fn set_interval(app: &mut App, secs: f64, effects: &mut Vec<Effect>) {
    app.shared.interval = Duration::from_secs_f64(secs);
    app.screen.info(format!("interval {secs} s"));
    effects.push(Effect::SetInterval(app.shared.interval));
}

/// Moves the sort column among those on screen; for devices there is a place before the first: the tree.
fn move_sort_column(app: &mut App, by: isize) {
    let width = layout::compute_layout(app).pane_area(app.focused_pane()).map_or(0, |a| a.width.saturating_sub(2));
    match app.focused_pane() {
        PaneId::Processes => {
            let set = processes::column_set(app, width);
            let at = set.iter().position(|c| c.id == processes::task_query(app, 0, 0).sort_by);
            // The start order, reads and writes together, stands before the first column.
            let at = at.map_or(0, |i| i as isize + 1) + by;
            let at = at.rem_euclid(set.len() as isize + 1);
            set_task_sort(app, if at == 0 { Col::Io } else { set[at as usize - 1].id });
        }
        PaneId::Devices | PaneId::DeviceGraphs => {
            let len = devices::column_set(app, u16::MAX).len() as isize;
            let at = app.views.devices.sort_column.map_or(0, |i| i as isize + 1) + by;
            let at = at.rem_euclid(len + 1);
            app.views.devices.sort_column = (at > 0).then(|| at as usize - 1);
        }
        _ => {}
    }
}

/// Passes over one column more or less, as long as one is left to pass over.
fn scroll_columns(app: &mut App, by: isize) {
    let (shift, columns) = match app.focused_pane() {
        PaneId::Processes => (app.views.processes.column_offset, processes::column_set(app, app.screen.size.0).len()),
        _ => (app.views.devices.column_offset, devices::column_set(app, app.screen.size.0).len()),
    };
    let shift = shift.saturating_add_signed(by).min(columns.saturating_sub(3));
    match app.focused_pane() {
        PaneId::Processes => app.views.processes.column_offset = shift,
        _ => app.views.devices.column_offset = shift,
    }
}

/// Sorts tasks by a column; the sums' columns are the rates' with `a`.
pub fn set_task_sort(app: &mut App, by: Col) {
    app.views.processes.sort_column = match by {
        Col::AccIo => Col::Io,
        Col::AccRead => Col::Read,
        Col::AccWrite => Col::Write,
        other => other,
    };
}

fn toggle_fold(app: &mut App) {
    if app.focused_pane() == PaneId::KernelLog {
        app.views.kernel_log.is_unfolded = !app.views.kernel_log.is_unfolded;
        return;
    }
    if !app.views.processes.show_threads {
        return app.screen.info("threads are folded; p shows them");
    }
    let Some(pid) = app.selected_task().map(|row| row.pid) else { return };
    let folded = &mut app.views.processes.filter.folded_pids;
    match folded.iter().position(|p| *p == pid) {
        Some(at) => drop(folded.remove(at)),
        None => folded.push(pid),
    }
}

fn request_mappings(app: &mut App, effects: &mut Vec<Effect>) {
    if let Some(DetailPage::Process(p)) = &mut app.screen.detail {
        p.mappings_requested = true;
        effects
            .push(Effect::RunJob(crate::jobs::job::WorkerJob::Mappings { pid: p.key.pid, starttime: p.key.starttime }));
    }
}

fn confirm_dialog(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(Overlay::Dialog(dialog)) = app.screen.overlay.take() else { return };
    match dialog.on_confirm {
        PendingChange::IoPrio(key, prio) => effects.push(Effect::SetIoPrio { key, prio }),
        PendingChange::Tune(ask) => super::tune::run_confirmed(app, ask, effects),
        PendingChange::Experiment(spec) => super::experiment::start_confirmed(app, *spec, effects),
        PendingChange::Bench(plan) => super::bench::start_confirmed(app, *plan, effects),
    }
}
