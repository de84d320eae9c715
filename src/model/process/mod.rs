//! Processes and threads: raw counters as they travel, the table that turns them into rates, and the
//! selection of the rows a window shows.
//!
//! Only what changed since the last look travels ([`ProcUpdate`]); the table lives with whoever draws.

mod io_attribution;
mod container;
mod detail;
mod thread_folding;
mod child_io;
mod task_snapshot;
mod row;
mod selection;
mod stall_percentages;
mod activity;
mod table;
mod task;
mod update;

#[cfg(test)]
mod tests;

pub use container::hint as container_hint;
pub use detail::{TaskDetail, ResourceLimit, MemoryMapping, MappingSummary};
pub use task_snapshot::TaskSnapshot;
pub use row::{CommandLine, ProcessRow};
pub use selection::{ProcessColumn, ProcessFilter, ProcessQuery, ProcessWindow};
pub use activity::TaskActivity;
pub use table::{ProcessTable, ProcessTotals};
pub use task::{TaskDelays, IoBytes, IoPrio, TaskIoRaw, TaskNames, TaskKey, TaskRaw, USER_HZ};
pub use update::{BlockedTask, TaskChange, ProcessUpdate};
