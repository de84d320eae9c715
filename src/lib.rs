//! iotop-plus: from "this box feels slow" to proof, in one place.
//!
//! Imports run strictly downwards, see the README's architecture section; `tests/architecture` guards it.

// So that the stage in tests/stage serves unit tests as it is.
#[cfg(test)]
extern crate self as iotop_plus;

pub mod allocator;
pub mod bench;
pub mod bpf;
pub mod cli;
pub mod collect;
pub mod doctor;
pub mod experiment;
pub mod export;
pub mod jobs;
pub mod model;
pub mod parse;
pub mod recording;
pub mod root;
pub mod sanitize;
pub mod subprocess;
pub mod tui;
pub mod tuning;
pub mod units;
