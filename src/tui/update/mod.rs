//! `update` decides: event in, state changed, effects out. It touches no file, no clock, no kernel.

mod act;
mod bench;
mod command;
mod data;
mod experiment;
mod findings;
mod mouse;
mod prompt;
mod replay;
mod shot;
mod syncs;
#[cfg(test)]
mod tests;
mod tune;

pub use command::path as ask_path;
pub use prompt::parse_prio;
pub use replay::refuses;
pub use shot::label as shot_label;

use super::draw::active_key_contexts;
use super::effect::Effect;
use super::event::Event;
use super::keymap;
use super::state::{App, Overlay};
use crossterm::event::{KeyEvent, KeyEventKind};

/// Takes in one event.
pub fn update(app: &mut App, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Key(key) => pressed(app, key, &mut effects),
        Event::Mouse(mouse) => mouse::mouse(app, mouse, &mut effects),
        Event::Resize(w, h) => {
            app.ui.size = (w, h);
            app.refresh_visible_tasks();
            effects.push(Effect::Redraw);
        }
        other => data::take(app, other, &mut effects),
    }
    syncs::ask(app, &mut effects);
    if app.ui.replay.is_some() {
        effects.retain(replay::is_possible);
    }
    effects
}

fn pressed(app: &mut App, key: KeyEvent, effects: &mut Vec<Effect>) {
    if key.kind == KeyEventKind::Release {
        return;
    }
    if matches!(app.ui.overlay, Some(Overlay::Prompt(_))) {
        prompt::typed(app, key, effects);
    } else if let Some(action) = keymap::lookup_action(&active_key_contexts(app), &key) {
        app.ui.message = None;
        act::act(app, action, effects);
    }
    app.refresh_visible_tasks();
    data::focus(app, effects);
}
