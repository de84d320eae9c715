//! The program above the views: it owns them, routes events to them and does what they ask for.
//!
//! [`update`] takes an event, changes the state and returns effects. It reads no file, clock or kernel.

mod capture;
mod cell_cursor;
mod choices;
mod column_choice;
mod diagnosis;
mod dispatch;
pub mod draw;
mod events;
mod footer;
mod header;
pub mod help;
pub mod layout;
mod mouse;
pub(in crate::tui) mod prompt;
mod replay;
mod route;
mod screenshot;
mod state;
#[cfg(test)]
pub mod tests;
mod timeline;

pub use state::{App, Views};

use super::effect::Effect;
use super::event::Event;
use super::screen::Overlay;
use crate::model::observation::Observation;
use crossterm::event::{KeyEvent, KeyEventKind};

/// Handles an event.
pub fn update(app: &mut App, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    // Counters and a run's progress alter no list of tasks.
    let refreshes =
        !matches!(event, Event::Observed(Observation::Sample(_)) | Event::Bench(..) | Event::Experiment(..));
    match event {
        Event::Key(key) => on_key(app, key, &mut effects),
        Event::Mouse(mouse) => app.on_mouse(mouse, &mut effects),
        Event::Resize(w, h) => {
            app.screen.size = (w, h);
            effects.push(Effect::Redraw);
        }
        other => app.on_event(other, &mut effects),
    }
    if refreshes {
        app.refresh_views(&mut effects);
    }
    if app.shared.replay.is_some() {
        effects.retain(replay::is_allowed_in_replay);
    }
    effects
}

fn on_key(app: &mut App, key: KeyEvent, effects: &mut Vec<Effect>) {
    if key.kind == KeyEventKind::Release {
        return;
    }
    if matches!(app.screen.overlay, Some(Overlay::Prompt(_))) {
        app.on_prompt_key(key, effects);
    } else if let Some(Overlay::Help(help)) = &mut app.screen.overlay
        && help.is_typing
    {
        help::on_search_key(help, &app.shared.keymap, key, app.screen.size);
    } else if let Some(action) = app.shared.keymap.lookup_action(&app.key_contexts(), &key) {
        app.screen.message = None;
        app.apply_action(action, effects);
    }
}
