//! The full-screen program: update decides, effects act, render is pure.

pub mod action;
pub mod action_name;
pub mod app;
pub(crate) mod bench_target;
mod cell_encoder;
pub(crate) mod column_priority;
pub mod diff_renderer;
pub mod effect;
pub mod event;
pub mod fleet;
pub mod key_config;
pub mod keymap;
#[cfg(test)]
mod keymap_tests;
pub mod knob_snapshot;
pub mod replay_timeline;
pub mod runtime;
pub(crate) mod screen;
pub mod settings;
pub mod shared;
pub mod terminal;
pub mod themes;
pub(crate) mod timezone;
pub(crate) mod view;
pub(crate) mod views;
pub mod widgets;

pub use self::view::Target;
pub use self::views::{bench::BenchForm, experiments::ExperimentForm, runs::RunForms};
