//! `update` takes an event, changes the state and returns effects. It reads no file, clock or kernel.

pub(super) mod actions;
mod command;
pub(super) mod events;
mod findings;
mod mouse;
mod navigate;
mod prompt;
mod screenshot;
#[cfg(test)]
pub mod tests;

pub use crate::tui::views::replay::update::refusal_reason;
pub use command::open_path as ask_path;
pub use navigate::ask_view;
pub use screenshot::prompt_label as shot_label;

use super::action::ViewId;
use super::draw::active_key_contexts;
use super::effect::Effect;
use super::event::Event;
use super::keymap;
use super::state::{App, Overlay};
use super::view::{Outbox, Request};
use crate::model::observation::Observation;
use crossterm::event::{KeyEvent, KeyEventKind};
use std::sync::Arc;

/// Handles an event.
pub fn update(app: &mut App, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    publish_knobs(app);
    // Counters and a run's progress alter no list of tasks.
    let refreshes =
        !matches!(event, Event::Observed(Observation::Sample(_)) | Event::Bench(..) | Event::Experiment(..));
    match event {
        Event::Key(key) => on_key(app, key, &mut effects),
        Event::Mouse(mouse) => mouse::on_mouse(app, mouse, &mut effects),
        Event::Resize(w, h) => {
            app.screen.size = (w, h);
            effects.push(Effect::Redraw);
        }
        other => events::on_event(app, other, &mut effects),
    }
    app.shared.knob_change_times = app.change_times().collect();
    publish_knobs(app);
    app.views.publish(&mut app.shared);
    if refreshes {
        app.refresh_views(&mut effects);
    }
    if app.shared.replay.is_some() {
        effects.retain(crate::tui::views::replay::update::is_allowed_in_replay);
    }
    effects
}

fn on_key(app: &mut App, key: KeyEvent, effects: &mut Vec<Effect>) {
    if key.kind == KeyEventKind::Release {
        return;
    }
    if matches!(app.screen.overlay, Some(Overlay::Prompt(_))) {
        prompt::on_key(app, key, effects);
    } else if let Some(action) = keymap::lookup_action(&active_key_contexts(app), &key) {
        app.screen.message = None;
        actions::apply_action(app, action, effects);
    }
}

/// Carries out the requests of a view and passes its effects on.
pub fn handle_outbox(app: &mut App, out: Outbox, effects: &mut Vec<Effect>) {
    effects.extend(out.effects);
    for request in out.requests {
        match request {
            Request::Navigate(target) => navigate::navigate(app, target, effects),
            Request::Info(text) => app.screen.info(text),
            Request::Error(text) => app.screen.error(text),
            Request::OpenPrompt(prompt) => app.screen.overlay = Some(Overlay::Prompt(prompt)),
            Request::OpenDialog(dialog) => {
                app.screen.message = None;
                app.screen.overlay = Some(Overlay::Dialog(dialog));
            }
            Request::FocusPane(index) if !app.screen.zoomed => app.screen.focus = index,
            Request::FocusPane(_) => {}
            Request::ShowPane(_) => {}
            Request::Ask(request) => navigate::ask_view(app, request, effects),
            Request::SetDirectory(directory) => {
                app.shared.target.directory = directory;
                inspect_target(app, effects);
            }
            Request::InspectTarget => inspect_target(app, effects),
        }
    }
}

/// Inspects the directory to measure in, and selects its device.
fn inspect_target(app: &mut App, effects: &mut Vec<Effect>) {
    effects.extend(app.shared.target.request_inspection().map(Effect::RunJob));
    select_target_device(app);
}

/// Selects the device that is measured in the list of devices, while the Bench tab shows it.
fn select_target_device(app: &mut App) {
    if let Some(device) = app.shared.target.device().filter(|_| app.screen.view == ViewId::Bench) {
        app.views.devices.select(device, &app.shared);
    }
}

/// Copies what other views read of the Tune view.
fn publish_knobs(app: &mut App) {
    let tune = &app.views.tune;
    app.shared.knobs.lease_secs = tune.lease_secs;
    if app.screen.view == ViewId::Tune {
        app.shared.knobs.leases.clone_from(&tune.leases);
        app.shared.knobs.snapshot = tune.snapshot.clone().map(Arc::new);
    }
}
