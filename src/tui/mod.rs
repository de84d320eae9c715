//! The full-screen program: update decides, effects act, render is pure.

pub mod action;
pub mod app;
pub mod bench_target;
pub mod diff_renderer;
pub mod effect;
pub mod event;
pub mod keymap;
#[cfg(test)]
mod keymap_tests;
pub mod knob_snapshot;
mod pane;
pub mod runtime;
pub mod screen;
pub mod settings;
pub mod shared;
pub mod terminal;
pub mod timezone;
pub mod view;
pub mod views;
pub mod widgets;
