//! Processes and threads: raw counters as they travel, the table that turns them into rates, and the
//! selection of the rows a window shows.
//!
//! Only what changed since the last look travels ([`ProcUpdate`]); the table lives with whoever draws.

mod charge;
mod container;
mod detail;
mod fold;
mod inherit;
mod past;
mod row;
mod select;
mod stalled;
mod survey;
mod table;
mod task;
mod update;

#[cfg(test)]
mod tests;

pub use container::hint as container_hint;
pub use detail::{Detail, Limit, Mapping, Mappings};
pub use past::PastTask;
pub use row::{CommandLine, ProcRow};
pub use select::{Column, Filter, Query, Window};
pub use survey::Moved;
pub use table::{ProcTable, Totals};
pub use task::{DelayRaw, IoBytes, IoPrio, IoRaw, Names, TaskKey, TaskRaw, USER_HZ};
pub use update::{BlockedTask, Change, ProcUpdate};
