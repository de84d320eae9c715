//! The views, one directory each: state, keys, layout, rendering and tests.

pub mod bench;
mod detail;
pub mod devices;
pub mod experiments;
pub mod findings;
mod io_accounting;
pub mod kernel_log;
pub mod memory;
pub mod path;
pub mod processes;
pub mod replay;
pub mod runs;
pub mod syncs;
pub mod tune;
