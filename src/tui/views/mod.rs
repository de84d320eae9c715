//! The views, one directory each: state, keys, layout, rendering and tests.

pub(crate) mod bench;
mod detail;
pub(crate) mod devices;
pub(crate) mod experiments;
mod file_lists;
pub(crate) mod files;
pub(crate) mod findings;
pub(crate) mod groups;
mod io_accounting;
pub(crate) mod kernel_log;
pub(crate) mod memory;
pub(crate) mod path;
pub(crate) mod processes;
pub(crate) mod replay;
pub(crate) mod runs;
pub(crate) mod syncs;
mod task_waits;
pub(crate) mod tune;
