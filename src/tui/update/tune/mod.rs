//! Decisions of the Tune view.

mod ask;
mod edit;
mod news;

pub use ask::{apply_words, as_root, confirmed, is_root, keep_one, on_lease, quit, wanted};
pub use edit::{choose, preview, propose, set_lease};
pub use news::{again, boot_known, persisted, take};

use super::act;
use crate::tui::action::ViewId;
use crate::tui::effect::Effect;
use crate::tui::panes::PaneId;
use crate::tui::state::{App, DetailPage, Overlay};
use crate::tui::tuning::survey::{Standing, Survey};
use crate::tui::tuning::{Line, Lower, TuneAction, TuneEffect};
use crate::tui::widgets::table::Scroll;
use crate::tune::address::Address;
use crate::tune::presets::PRESETS;
use crate::worker::job::Job;
use ratatui::layout::Rect;

/// Ticks between two looks at the knobs while the view is on screen.
const LOOK_EVERY: u32 = 3;
/// Knobs the person may add to the list.
const EXTRA: usize = 32;

/// A key of the view.
pub fn act(app: &mut App, action: TuneAction, effects: &mut Vec<Effect>) {
    app.ui.tune.problem = None;
    match action {
        TuneAction::Apply => ask::apply(app),
        TuneAction::Presets => {
            app.ui.tune.presets = app.ui.tune.presets.is_none().then_some(0);
            app.ui.focus = 0;
        }
        TuneAction::Drop => app.ui.tune.proposed.clear(),
        TuneAction::Keep => ask::keep(app, effects),
        TuneAction::Undo => ask::undo(app),
        TuneAction::Renew => ask::renew(app, effects),
        TuneAction::Lease => edit::ask_lease(app),
        TuneAction::Persist => ask::persist(app),
        TuneAction::Graph => graph(app, effects),
        TuneAction::Changes => focus(app, PaneId::ChangeHistory),
        TuneAction::About => focus(app, PaneId::KnobPage),
        TuneAction::OfTask => of_task(app, effects),
        TuneAction::LeaveUndo | TuneAction::LeaveKeep | TuneAction::LeaveLease => {
            ask::leave(app, action, effects);
        }
    }
}

/// The view comes on screen.
pub fn opened(app: &mut App, effects: &mut Vec<Effect>) {
    look(app, effects);
    // An earlier question may have found no child free to answer it.
    app.ui.tune.boot_asked &= !app.ui.tune.boot.is_empty();
    ask_boot(app, effects);
    ask::offer(app);
}

/// A tick came.
pub fn tick(app: &mut App, effects: &mut Vec<Effect>) {
    app.ui.tune.ticks += 1;
    if app.ui.view == ViewId::Tune && app.ui.tune.ticks >= LOOK_EVERY {
        look(app, effects);
    }
}

/// Asks for a look, unless one is under way.
fn look(app: &mut App, effects: &mut Vec<Effect>) {
    let tune = &mut app.ui.tune;
    if !tune.looking {
        tune.looking = true;
        tune.ticks = 0;
        effects.push(Effect::Tune(TuneEffect::Survey(tune.extra.clone())));
    }
}

/// Asks what the next boot brings; a child reads that, because the files may be on a dead disk.
fn ask_boot(app: &mut App, effects: &mut Vec<Effect>) {
    let tune = &mut app.ui.tune;
    let knobs: Vec<String> = tune.rows().iter().map(|r| r.name.clone()).collect();
    if !tune.boot_asked && knobs.iter().any(|k| !tune.boot.contains_key(k)) {
        tune.boot_asked = true;
        effects.push(Effect::RunJob(Job::AtBoot { knobs }));
    }
}

/// Enter.
pub fn open(app: &mut App, _effects: &mut Vec<Effect>) {
    app.ui.tune.problem = None;
    match app.ui.tune.presets {
        Some(at) => ask::preset(app, at),
        None if app.focused_pane() == PaneId::ChangeHistory => {}
        None => edit::start(app),
    }
}

/// Esc; whether there was something to close.
pub fn back(app: &mut App, _effects: &mut Vec<Effect>) -> bool {
    let tune = &mut app.ui.tune;
    if tune.problem.take().is_some() || tune.presets.take().is_some() {
        return true;
    }
    let selected = tune.selected().map(|r| r.name.clone());
    if selected.is_some_and(|name| tune.proposed.remove(&name).is_some()) {
        return true;
    }
    if app.ui.focus != 0 {
        app.ui.focus = 0;
        return true;
    }
    let filtered = !app.ui.tune.filter.is_empty();
    set_filter(app, "");
    filtered
}

/// Moves the selection.
pub fn step(app: &mut App, by: isize) {
    let focused = app.focused_pane();
    let tune = &mut app.ui.tune;
    tune.problem = None;
    if let Some(at) = tune.presets {
        tune.presets = Some(at.saturating_add_signed(by).min(PRESETS.len() - 1));
        return;
    }
    match focused {
        PaneId::ChangeHistory => {
            let len = tune.changes().len();
            tune.changes.move_selection(by, len);
        }
        PaneId::KnobPage => {
            let most = (crate::tui::panes::pane_by_id(PaneId::KnobPage).row_count)(app);
            app.ui.tune.page.move_selection(by, most);
        }
        _ => {
            let lines = tune.lines();
            tune.scroll.move_selection(by, lines.len());
            settle(app, by);
        }
    }
}

/// Passes over a heading in the direction of the step; at the top there is only one way.
fn settle(app: &mut App, by: isize) {
    let tune = &mut app.ui.tune;
    let lines = tune.lines();
    if let Some(Line::Head(_)) = lines.get(tune.scroll.selected) {
        let up = by < 0 && tune.scroll.selected > 0;
        tune.scroll.move_selection(if up { -1 } else { 1 }, lines.len());
    }
    tune.page = Scroll::default();
}

/// Shows only knobs that contain a text.
pub fn set_filter(app: &mut App, text: &str) {
    app.ui.tune.filter = text.to_owned();
    app.ui.tune.scroll = Scroll::default();
    settle(app, 1);
}

/// Which lines contain a text (lower case).
pub fn hits(app: &App, needle: &str) -> Vec<bool> {
    let tune = &app.ui.tune;
    let hit = |line: &Line| match line {
        Line::Head(_) => false,
        Line::Knob(i) => tune.rows().get(*i).is_some_and(|r| r.shown.to_lowercase().contains(needle)),
    };
    tune.lines().iter().map(hit).collect()
}

/// A click into the list or the changes; `inner` is the pane without its frame.
pub fn click(app: &mut App, pane: PaneId, inner: Rect, y: u16) {
    let at = usize::from(y - inner.y);
    let tune = &mut app.ui.tune;
    if tune.presets.is_some() {
        tune.presets = Some(at.min(PRESETS.len() - 1));
    } else if pane == PaneId::ChangeHistory {
        let len = tune.changes().len();
        tune.changes.selected = (tune.changes.offset + at).min(len.saturating_sub(1));
    } else if at > 0 {
        let lines = tune.lines();
        let mut scroll = tune.scroll;
        scroll.scroll_into_view(lines.len(), usize::from(inner.height.saturating_sub(1)));
        tune.scroll.selected = (scroll.offset + at - 1).min(lines.len().saturating_sub(1));
        settle(app, 1);
    }
}

/// Brings a pane of the view on screen and gives it the keys.
fn focus(app: &mut App, pane: PaneId) {
    app.ui.tune.presets = None;
    app.ui.zoomed = false;
    app.ui.experiment.open = false;
    app.ui.tune.lower = if pane == PaneId::ChangeHistory { Lower::Changes } else { Lower::Knob };
    let panes = crate::tui::layout::visible_panes(app);
    app.ui.focus = panes.iter().position(|p| *p == pane).unwrap_or(0);
}

/// Opens the view at a knob, adding it to the list if it is not one of those always there.
pub fn show_knob(app: &mut App, knob: &str, effects: &mut Vec<Effect>) -> Result<(), String> {
    let at = Address::parse(knob)?.to_string();
    show(app, &[at], effects);
    Ok(())
}

fn show(app: &mut App, knobs: &[String], effects: &mut Vec<Effect>) {
    let tune = &mut app.ui.tune;
    for knob in knobs {
        if tune.row(knob).is_none() && !tune.extra.contains(knob) {
            tune.extra.push(knob.clone());
            let over = tune.extra.len().saturating_sub(EXTRA);
            tune.extra.drain(..over);
        }
    }
    tune.wanted = knobs.first().cloned();
    tune.filter.clear();
    tune.presets = None;
    // A look that is under way does not know of them.
    tune.looking = false;
    app.ui.experiment.open = false;
    act::go(app, ViewId::Tune, effects);
    select_wanted(app);
}

/// Selects the knob that was asked for, once it is there.
fn select_wanted(app: &mut App) {
    let tune = &mut app.ui.tune;
    let Some(name) = &tune.wanted else { return };
    let lines = tune.lines();
    let is = |line: &Line| matches!(line, Line::Knob(i) if tune.rows()[*i].name == *name);
    if let Some(at) = lines.iter().position(is) {
        tune.scroll.selected = at;
        tune.wanted = None;
    }
}

fn of_task(app: &mut App, effects: &mut Vec<Effect>) {
    if let Some(DetailPage::Process(p)) = &app.ui.detail {
        let pid = p.key.pid;
        show(app, &[format!("nofile@{pid}"), format!("ioprio@{pid}")], effects);
    }
}

/// To the graphs of what the selected knob or change steers.
fn graph(app: &mut App, effects: &mut Vec<Effect>) {
    let tune = &app.ui.tune;
    let (name, device) = match app.focused_pane() {
        PaneId::ChangeHistory => match tune.selected_change().and_then(|c| c.members.first()) {
            Some(m) => (m.name.clone(), m.device.clone()),
            None => return,
        },
        _ => match tune.selected() {
            Some(row) => (row.name.clone(), row.of_device.then(|| row.place.clone())),
            None => return,
        },
    };
    let id = device.and_then(|d| Some(app.system.topology.ok()?.by_name(&d)?.id));
    let process = ["nofile@", "ioprio@"].iter().find_map(|p| name.strip_prefix(p));
    match (id, process) {
        (Some(id), _) => {
            // Latency for what orders requests, bandwidth for what sizes them.
            let waits = ["scheduler", "nr_requests", "wbt_lat"].iter().any(|k| name.starts_with(k));
            app.ui.devices.graph_index = if waits { 2 } else { 0 };
            act::open_device(app, id);
        }
        (None, Some(_)) => app.ui.tune.problem = Some("a process' limits have no graph".into()),
        (None, None) => {
            let view = if name.starts_with("atime@") { ViewId::Devices } else { ViewId::Memory };
            act::go(app, view, effects);
        }
    }
}

/// Changes that nobody will undo.
fn left_behind(survey: &Survey) -> Vec<u64> {
    survey.changes.iter().filter(|c| c.standing == Standing::LeftBehind).map(|c| c.id).collect()
}

/// Whether nothing lies over the view.
fn is_free(app: &App) -> bool {
    app.ui.overlay.is_none() && app.ui.detail.is_none() && app.ui.view == ViewId::Tune
}

/// Puts a question on screen.
fn question(app: &mut App, title: &str, text: String, ask: crate::tui::tuning::Ask) {
    app.ui.overlay = Some(Overlay::Dialog(crate::tui::state::Dialog {
        title: title.into(),
        text: text.lines().map(crate::text::sanitize).collect::<Vec<_>>().join("\n"),
        scroll: 0,
        on_confirm: crate::tui::state::PendingChange::Tune(ask),
    }));
}
