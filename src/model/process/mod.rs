//! Processes and threads: raw counters as they travel, the table that turns them into rates, and the
//! selection of the rows a window shows.
//!
//! Only what changed since the last look travels ([`ProcUpdate`]); the table lives with whoever draws.

mod activity;
mod child_io;
mod container;
mod detail;
mod io_attribution;
mod row;
mod selection;
mod stall_percentages;
mod table;
mod task;
mod task_snapshot;
mod thread_folding;
mod update;

#[cfg(test)]
mod tests;

pub use activity::TaskActivity;
pub use container::hint as container_hint;
pub use detail::{MappingSummary, MemoryMapping, ResourceLimit, TaskDetail};
pub use row::{CommandLine, ProcessRow};
pub use selection::{ProcessColumn, ProcessFilter, ProcessQuery, ProcessWindow};
pub use table::{ProcessTable, ProcessTotals};
pub use task::{IoBytes, IoPrio, TaskDelays, TaskIoRaw, TaskKey, TaskNames, TaskRaw, USER_HZ};
pub use task_snapshot::TaskSnapshot;
pub use update::{BlockedTask, ProcessUpdate, TaskChange};
