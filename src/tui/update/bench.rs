//! Decisions of the Bench view.

use crate::tui::bench::{BenchAction, BenchNews};
use crate::tui::effect::Effect;
use crate::tui::state::App;

/// A key of the view.
pub fn act(_app: &mut App, action: BenchAction, _effects: &mut Vec<Effect>) {
    match action {}
}

/// News for the view.
pub fn take(_app: &mut App, news: BenchNews, _effects: &mut Vec<Effect>) {
    match news {}
}

/// The view comes on screen.
pub fn opened(_app: &mut App, _effects: &mut Vec<Effect>) {}

/// Enter.
pub fn open(_app: &mut App, _effects: &mut Vec<Effect>) {}

/// Esc; whether there was something to close.
pub fn back(_app: &mut App, _effects: &mut Vec<Effect>) -> bool {
    false
}

/// Moves the selection.
pub fn step(_app: &mut App, _by: isize) {}
