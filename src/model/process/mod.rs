//! Processes and threads: raw counters, the table that derives rates from them, and the selection of the rows that are
//! shown.
//!
//! A scan sends only what changed ([`ProcessUpdate`]); the table belongs to the thread that draws.

mod child_io;
mod container;
mod copy;
mod detail;
mod io_attribution;
mod row;
mod selection;
mod stall_percentages;
mod stored_row;
mod table;
mod task;
mod thread_folding;
mod update;

#[cfg(test)]
mod tests;

pub use crate::model::columns::process::ProcessColumn;
pub use container::hint as container_hint;
pub use detail::{MappingSummary, MemoryMapping, ResourceLimit, TaskDetail};
pub use row::ProcessRow;
pub use selection::{ProcessFilter, ProcessQuery, ProcessWindow};
pub use table::{ProcessTable, ProcessTotals};
pub use task::{IoBytes, IoPrio, TaskDelays, TaskIoRaw, TaskKey, TaskNames, TaskRaw, USER_HZ};
pub use thread_folding::ThreadSums;
pub use update::{BlockedTask, ProcessUpdate, TaskChange};
