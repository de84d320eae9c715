//! The full screen of `iotop-plus fleet`: hosts, devices by model, a heat map, and the page of a host.
//!
//! It shares the terminal, the table of keys, the themes and the widgets with the other screen. As there, update decides
//! ([`update`]), the event loop acts, and drawing reads the state only.

mod draw;
mod event_loop;
mod heatmap;
mod host_page;
mod lists;
mod screen;
#[cfg(test)]
mod tests;
mod update;

pub use event_loop::{FleetExit, FleetOptions, end_input_reader, run};
pub use screen::FleetScreen;
