//! The full-screen program: update decides, effects act, render is pure.

pub mod action;
pub mod bench;
pub mod draw;
pub mod effect;
pub mod event;
pub mod experiment;
mod inbox;
pub mod keys;
#[cfg(test)]
mod keys_tests;
pub mod launch;
pub mod layout;
pub mod look;
pub mod marked;
pub mod panes;
mod ready;
pub mod replay;
pub mod run;
pub mod screen;
pub mod settings;
pub mod shot;
mod signals;
pub mod state;
pub mod syncs;
pub mod tape;
pub mod terminal;
pub mod tuning;
pub mod update;
pub mod widgets;
pub mod zone;
