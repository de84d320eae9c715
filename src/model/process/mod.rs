//! Processes and threads: raw counters, the table that derives rates from them, and the selection of the rows that are
//! shown.
//!
//! A scan sends only what changed ([`ProcessUpdate`]); the table belongs to the thread that draws.

mod child_io;
mod container;
mod copy;
mod detail;
mod folded_sums;
mod io_attribution;
mod row;
mod selection;
mod stall_percentages;
mod stored_row;
mod table;
mod task;
mod tree;
mod tree_position;
mod update;
mod written_files;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_tests;

pub use crate::model::columns::process::ProcessColumn;
pub(crate) use container::hint as container_hint;
pub(crate) use detail::{MappingSummary, MemoryMapping, ResourceLimit, TaskDetail};
pub(crate) use row::{FoundTask, ProcessRow};
pub use selection::ProcessQuery;
pub(crate) use selection::{ProcessFilter, ProcessWindow};
pub use table::ProcessTable;
pub(crate) use task::{IoBytes, TaskDelays, TaskIoRaw, TaskNames, TaskRaw, USER_HZ};
pub use task::{IoPrio, TaskKey};
pub(crate) use tree::ProcessTree;
pub(crate) use update::BlockedTask;
pub use update::{ProcessUpdate, TaskChange, UninterruptibleThread};
pub use written_files::{WrittenFile, WrittenFiles};
