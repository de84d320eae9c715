//! Actions of the Tune view.

mod confirm;
mod edit;
mod events;

pub use confirm::{
    ask_apply_assignments, can_write, is_on_lease, keep_change, knobs_to_try, offer_root_command, quit_or_ask,
    run_confirmed,
};
pub use edit::{cycle_choice, propose_typed, set_lease_duration, update_preview};
pub use events::{on_boot_values, on_event, on_persisted, refresh_now};

use crate::jobs::job::WorkerJob;
use crate::tui::action::TuneAction;
use crate::tui::action::ViewId;
use crate::tui::effect::Effect;
use crate::tui::effect::TuneEffect;
use crate::tui::knob_snapshot::{ChangeStatus, KnobSnapshot};
use crate::tui::panes::PaneId;
use crate::tui::state::{App, DetailPage, Overlay};
use crate::tui::update::actions;
use crate::tui::views::tune::{KnobListLine, SidePane};
use crate::tui::widgets::table::Scroll;
use crate::tuning::knob_id::KnobId;
use crate::tuning::presets::PRESETS;
use ratatui::layout::Rect;

/// Ticks between two snapshots while the view is on screen.
const REFRESH_TICKS: u32 = 3;
/// Maximum number of knobs the user can add to the list.
const MAX_EXTRA_KNOBS: usize = 32;

/// Applies an action of the view.
pub fn apply_action(app: &mut App, action: TuneAction, effects: &mut Vec<Effect>) {
    app.views.tune.error = None;
    match action {
        TuneAction::Apply => confirm::ask_apply(app),
        TuneAction::Presets => {
            app.views.tune.selected_preset = app.views.tune.selected_preset.is_none().then_some(0);
            app.screen.focus = 0;
        }
        TuneAction::Discard => app.views.tune.pending.clear(),
        TuneAction::Keep => confirm::keep_selected(app, effects),
        TuneAction::Undo => confirm::ask_undo(app),
        TuneAction::Renew => confirm::renew_selected(app, effects),
        TuneAction::Lease => edit::ask_lease_duration(app),
        TuneAction::Persist => confirm::ask_persist(app),
        TuneAction::Graph => show_graph(app, effects),
        TuneAction::Changes => focus_pane(app, PaneId::ChangeHistory),
        TuneAction::KnobPage => focus_pane(app, PaneId::KnobPage),
        TuneAction::TaskKnobs => show_task_knobs(app, effects),
        TuneAction::QuitUndo | TuneAction::QuitKeep | TuneAction::QuitDetach => {
            confirm::quit_with_leases(app, action, effects);
        }
    }
}

/// Called when the view comes on screen.
pub fn on_open(app: &mut App, effects: &mut Vec<Effect>) {
    request_refresh(app, effects);
    // An earlier request may have failed because no child process was free.
    app.views.tune.is_boot_requested &= !app.views.tune.next_boot.is_empty();
    request_boot_values(app, effects);
    confirm::offer_restore(app);
}

/// Called at each tick.
pub fn on_tick(app: &mut App, effects: &mut Vec<Effect>) {
    app.views.tune.ticks_since_refresh += 1;
    if app.screen.view == ViewId::Tune && app.views.tune.ticks_since_refresh >= REFRESH_TICKS {
        request_refresh(app, effects);
    }
}

/// Requests a snapshot, unless one is under way.
fn request_refresh(app: &mut App, effects: &mut Vec<Effect>) {
    let tune = &mut app.views.tune;
    if !tune.is_refreshing {
        tune.is_refreshing = true;
        tune.ticks_since_refresh = 0;
        effects.push(Effect::Tune(TuneEffect::Refresh(tune.extra_knobs.clone())));
    }
}

/// Requests the values after the next boot. A child process reads them, because the files may be on a hung disk.
fn request_boot_values(app: &mut App, effects: &mut Vec<Effect>) {
    let tune = &mut app.views.tune;
    let knobs: Vec<String> = tune.rows().iter().map(|r| r.name.clone()).collect();
    if !tune.is_boot_requested && knobs.iter().any(|k| !tune.next_boot.contains_key(k)) {
        tune.is_boot_requested = true;
        effects.push(Effect::RunJob(WorkerJob::BootValues { knobs }));
    }
}

/// Handles Enter.
pub fn open_selected(app: &mut App, _effects: &mut Vec<Effect>) {
    app.views.tune.error = None;
    match app.views.tune.selected_preset {
        Some(at) => confirm::ask_apply_preset(app, at),
        None if app.focused_pane() == PaneId::ChangeHistory => {}
        None => edit::edit_selected(app),
    }
}

/// Handles Esc. Returns whether there was something to close.
pub fn close_topmost(app: &mut App, _effects: &mut Vec<Effect>) -> bool {
    let tune = &mut app.views.tune;
    if tune.error.take().is_some() || tune.selected_preset.take().is_some() {
        return true;
    }
    let selected = tune.selected_knob().map(|r| r.name.clone());
    if selected.is_some_and(|name| tune.pending.remove(&name).is_some()) {
        return true;
    }
    if app.screen.focus != 0 {
        app.screen.focus = 0;
        return true;
    }
    let was_filtered = !app.views.tune.filter.is_empty();
    set_filter(app, "");
    was_filtered
}

/// Moves the selection.
pub fn move_selection(app: &mut App, by: isize) {
    let focused = app.focused_pane();
    let tune = &mut app.views.tune;
    tune.error = None;
    if let Some(at) = tune.selected_preset {
        tune.selected_preset = Some(at.saturating_add_signed(by).min(PRESETS.len() - 1));
        return;
    }
    match focused {
        PaneId::ChangeHistory => {
            let len = tune.changes().len();
            tune.changes_scroll.move_selection(by, len);
        }
        PaneId::KnobPage => {
            let most = crate::tui::panes::row_count(app, PaneId::KnobPage);
            app.views.tune.page_scroll.move_selection(by, most);
        }
        _ => {
            let lines = tune.list_lines();
            tune.scroll.move_selection(by, lines.len());
            skip_heading(app, by);
        }
    }
}

/// Moves the selection off a heading in the direction of the step; at the top, downward.
fn skip_heading(app: &mut App, by: isize) {
    let tune = &mut app.views.tune;
    let lines = tune.list_lines();
    if let Some(KnobListLine::Heading(_)) = lines.get(tune.scroll.selected) {
        let up = by < 0 && tune.scroll.selected > 0;
        tune.scroll.move_selection(if up { -1 } else { 1 }, lines.len());
    }
    tune.page_scroll = Scroll::default();
}

/// Filters the list.
pub fn set_filter(app: &mut App, text: &str) {
    app.views.tune.filter = text.to_owned();
    app.views.tune.scroll = Scroll::default();
    skip_heading(app, 1);
}

/// Returns which lines contain a text (lower case).
pub fn matching_lines(app: &App, needle: &str) -> Vec<bool> {
    let tune = &app.views.tune;
    let hit = |line: &KnobListLine| match line {
        KnobListLine::Heading(_) => false,
        KnobListLine::Knob(i) => tune.rows().get(*i).is_some_and(|r| r.display_name.to_lowercase().contains(needle)),
    };
    tune.list_lines().iter().map(hit).collect()
}

/// Handles a click into the list of knobs or changes; `inner` is the pane without its frame.
pub fn on_click(app: &mut App, pane: PaneId, inner: Rect, y: u16) {
    let at = usize::from(y - inner.y);
    let tune = &mut app.views.tune;
    if tune.selected_preset.is_some() {
        tune.selected_preset = Some(at.min(PRESETS.len() - 1));
    } else if pane == PaneId::ChangeHistory {
        let len = tune.changes().len();
        tune.changes_scroll.selected = (tune.changes_scroll.offset + at).min(len.saturating_sub(1));
    } else if at > 0 {
        let lines = tune.list_lines();
        let mut scroll = tune.scroll;
        scroll.scroll_into_view(lines.len(), usize::from(inner.height.saturating_sub(1)));
        tune.scroll.selected = (scroll.offset + at - 1).min(lines.len().saturating_sub(1));
        skip_heading(app, 1);
    }
}

/// Shows a pane of the view and focuses it.
fn focus_pane(app: &mut App, pane: PaneId) {
    app.views.tune.selected_preset = None;
    app.screen.zoomed = false;
    app.views.experiments.is_open = false;
    app.views.tune.side_pane = if pane == PaneId::ChangeHistory { SidePane::Changes } else { SidePane::Knob };
    let panes = crate::tui::layout::visible_panes(app);
    app.screen.focus = panes.iter().position(|p| *p == pane).unwrap_or(0);
}

/// Opens the view at a knob, and adds it to the list if it is not always listed.
pub fn show_knob(app: &mut App, knob: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let at = KnobId::parse(knob).map_err(|error| error.to_string())?.to_string();
    show_knobs(app, &[at], effects);
    Ok(())
}

fn show_knobs(app: &mut App, knobs: &[String], effects: &mut Vec<Effect>) {
    let tune = &mut app.views.tune;
    for knob in knobs {
        if tune.knob(knob).is_none() && !tune.extra_knobs.contains(knob) {
            tune.extra_knobs.push(knob.clone());
            let over = tune.extra_knobs.len().saturating_sub(MAX_EXTRA_KNOBS);
            tune.extra_knobs.drain(..over);
        }
    }
    tune.knob_to_select = knobs.first().cloned();
    tune.filter.clear();
    tune.selected_preset = None;
    // A snapshot under way does not contain them.
    tune.is_refreshing = false;
    app.views.experiments.is_open = false;
    actions::open_view(app, ViewId::Tune, effects);
    select_requested_knob(app);
}

/// Selects the requested knob once it is listed.
fn select_requested_knob(app: &mut App) {
    let tune = &mut app.views.tune;
    let Some(name) = &tune.knob_to_select else { return };
    let lines = tune.list_lines();
    let is_requested = |line: &KnobListLine| matches!(line, KnobListLine::Knob(i) if tune.rows()[*i].name == *name);
    if let Some(at) = lines.iter().position(is_requested) {
        tune.scroll.selected = at;
        tune.knob_to_select = None;
    }
}

fn show_task_knobs(app: &mut App, effects: &mut Vec<Effect>) {
    if let Some(DetailPage::Process(p)) = &app.screen.detail {
        let pid = p.key.pid;
        show_knobs(app, &[format!("nofile@{pid}"), format!("ioprio@{pid}")], effects);
    }
}

/// Goes to the graphs of what the selected knob or change affects.
fn show_graph(app: &mut App, effects: &mut Vec<Effect>) {
    let tune = &app.views.tune;
    let (name, device) = match app.focused_pane() {
        PaneId::ChangeHistory => match tune.selected_change().and_then(|c| c.members.first()) {
            Some(m) => (m.name.clone(), m.device.clone()),
            None => return,
        },
        _ => match tune.selected_knob() {
            Some(row) => (row.name.clone(), row.is_device_knob.then(|| row.instance.clone())),
            None => return,
        },
    };
    let id = device.and_then(|d| Some(app.shared.system.topology.ok()?.by_name(&d)?.id));
    let process = ["nofile@", "ioprio@"].iter().find_map(|p| name.strip_prefix(p));
    match (id, process) {
        (Some(id), _) => {
            // Latency for knobs that order requests, bandwidth for knobs that size them.
            let orders_requests = ["scheduler", "nr_requests", "wbt_lat"].iter().any(|k| name.starts_with(k));
            app.views.devices.graph_index = if orders_requests { 2 } else { 0 };
            actions::open_device(app, id);
        }
        (None, Some(_)) => app.views.tune.error = Some("process limits have no graph".into()),
        (None, None) => {
            let view = if name.starts_with("atime@") { ViewId::Devices } else { ViewId::Memory };
            actions::open_view(app, view, effects);
        }
    }
}

/// Changes whose tuner was killed.
fn orphaned_changes(snapshot: &KnobSnapshot) -> Vec<u64> {
    snapshot.changes.iter().filter(|c| c.status == ChangeStatus::Orphaned).map(|c| c.id).collect()
}

/// Whether nothing covers the view.
fn is_unobstructed(app: &App) -> bool {
    app.screen.overlay.is_none() && app.screen.detail.is_none() && app.screen.view == ViewId::Tune
}

/// Opens a confirmation dialog.
fn open_confirmation(app: &mut App, title: &str, text: String, ask: crate::tui::screen::Confirmation) {
    app.screen.overlay = Some(Overlay::Dialog(crate::tui::state::Dialog {
        title: title.into(),
        text: text.lines().map(crate::sanitize::sanitize).collect::<Vec<_>>().join("\n"),
        scroll: 0,
        on_confirm: crate::tui::state::PendingChange::Tune(ask),
    }));
}
