//! The full-screen program: update decides, effects act, render is pure.

pub mod action;
pub mod bench;
pub mod draw;
pub mod effect;
pub mod event;
pub mod experiment;
mod event_queue;
pub mod keymap;
#[cfg(test)]
mod keymap_tests;
pub mod child_runner;
pub mod layout;
pub mod selectors;
pub mod comparison;
pub mod panes;
mod async_fd;
pub mod replay;
pub mod runtime;
pub mod diff_renderer;
pub mod settings;
pub mod screenshot;
mod signals;
pub mod state;
pub mod syncs;
pub mod recording;
pub mod terminal;
pub mod tune;
pub mod update;
pub mod widgets;
pub mod timezone;
