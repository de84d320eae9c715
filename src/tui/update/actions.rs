//! What each action does.

use super::events;
use crate::model::disk::DevId;
use crate::model::process::TaskKey;
use crate::tui::action::{Action, ExperimentAction, ViewId};
use crate::tui::effect::Effect;
use crate::tui::layout;
use crate::tui::panes::{self, PaneId};
use crate::tui::settings::INTERVAL_SECS_RANGE;
use crate::tui::state::{App, DetailPage, Overlay, PendingChange, ProcessDetail, Prompt, PromptPurpose};
use crate::tui::view::{ExperimentArm, Target};
use crate::tui::widgets::table::Scroll;
use crate::tui::widgets::theme::ThemeName;
use std::time::Duration;

/// Does it.
pub fn apply_action(app: &mut App, action: Action, effects: &mut Vec<Effect>) {
    if let Some(why) = crate::tui::views::replay::update::refusal_reason(app, action) {
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
        Action::Quit => crate::tui::views::tune::update::quit_or_ask(app, effects),
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
        Action::Experiment(action) => open_experiments(app, action, effects),
        Action::Tune(action) => crate::tui::views::tune::update::apply_action(app, action, effects),
        Action::Replay(action) => crate::tui::views::replay::update::apply_action(app, action, effects),
        Action::ToggleRecording => crate::tui::views::replay::update::toggle_recording(app, effects),
        _ => apply_setting(app, action, effects),
    }
}

/// Actions that change what is listed and how.
fn apply_setting(app: &mut App, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::SearchNext => super::prompt::search(app, 1, effects),
        Action::SearchPrevious => super::prompt::search(app, -1, effects),
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
        Action::SetInterval => (PromptPurpose::Interval, String::new()),
        Action::Command => (PromptPurpose::Command, String::new()),
        _ => return,
    };
    let cursor = text.len();
    app.screen.overlay = Some(Overlay::Prompt(Prompt { purpose: what, text, cursor, error: None }));
}

fn adjacent_view(app: &App, on: bool) -> ViewId {
    let views: Vec<ViewId> = ViewId::ALL
        .into_iter()
        .filter(|v| crate::tui::views::replay::update::refusal_reason(app, Action::ShowView(*v)).is_none())
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
        ViewId::Bench => _ = app.update_view(PaneId::BenchPage, effects, |view, cx, out| view.on_tab(cx, out)),
        ViewId::Tune => {
            crate::tui::views::tune::update::on_open(app, effects);
            app.update_view(PaneId::ExperimentPage, effects, |view, cx, out| view.on_tab(cx, out));
        }
        _ => {}
    }
}

/// Shows the experiments in place of the knobs, with what is to be tried if that was asked for.
fn open_experiments(app: &mut App, action: ExperimentAction, effects: &mut Vec<Effect>) {
    let arm = match action {
        ExperimentAction::TryPending => match crate::tui::views::tune::update::knobs_to_try(app) {
            Ok((assignments, edit)) => Some(ExperimentArm { assignments, edit }),
            Err(why) => return app.screen.error(why),
        },
        _ => None,
    };
    if arm.is_some() {
        app.views.tune.selected_preset = None;
    }
    super::navigate::navigate(app, Target::Experiments(arm), effects);
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
        PaneId::TuneKnobs | PaneId::KnobPage | PaneId::ChangeHistory => {
            crate::tui::views::tune::update::open_selected(app, effects)
        }
        _ => {}
    }
}

/// Undoes the topmost thing: overlay, detail, zoom, frozen picture, filters.
fn close_topmost(app: &mut App, effects: &mut Vec<Effect>) {
    if app.screen.overlay.take().is_some() || crate::tui::views::replay::update::stop_search(app, effects) {
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
        PaneId::TuneKnobs | PaneId::KnobPage | PaneId::ChangeHistory => {
            crate::tui::views::tune::update::close_topmost(app, effects)
        }
        _ => false,
    };
    if closed {
        return;
    }
    if app.screen.zoomed {
        app.screen.zoomed = false;
    } else if app.shared.frozen_seq.is_some() {
        unfreeze(app);
    } else {
        app.update_view(pane, effects, |view, cx, _| view.clear_filter(pane, cx));
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
        PaneId::TuneKnobs | PaneId::KnobPage | PaneId::ChangeHistory => {
            crate::tui::views::tune::update::move_selection(app, by)
        }
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
        PendingChange::Tune(ask) => crate::tui::views::tune::update::run_confirmed(app, ask, effects),
        PendingChange::Start(page) => {
            let change = PendingChange::Start(page);
            app.update_view(page, effects, |view, cx, out| view.on_confirm(change, cx, out));
        }
    }
}
