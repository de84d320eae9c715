//! iotop-plus: an interactive monitor, doctor, benchmark and tuner for storage I/O on Linux.
//!
//! Imports run strictly downwards; `tests/architecture` checks it.

// Tests are part of no interface and may panic.
#![cfg_attr(not(test), warn(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used))]

// Lets unit tests use the fixture in tests/fixture unchanged.
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
pub mod fleet;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod jobs;
pub mod model;
pub(crate) mod parse;
pub mod recording;
pub mod root;
pub mod sanitize;
pub mod subprocess;
pub(crate) mod toml_file;
pub mod tui;
pub mod tuning;
pub mod units;
