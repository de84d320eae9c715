//! The full-screen program: update decides, effects act, render is pure.

pub mod action;
pub mod bench_target;
pub mod diff_renderer;
pub mod draw;
pub mod effect;
pub mod event;
pub mod keymap;
#[cfg(test)]
mod keymap_tests;
pub mod knob_snapshot;
pub mod layout;
pub mod panes;
pub mod recording;
pub mod runtime;
pub mod screen;
pub mod screenshot;
pub mod settings;
pub mod shared;
pub mod state;
pub mod terminal;
pub mod timezone;
pub mod update;
pub mod view;
pub mod views;
pub mod widgets;
