//! Changes kernel settings so that they can always be restored.
//!
//! [`plan`] checks a change completely. [`apply`] captures, journals, writes, reads back and marks each knob, in a
//! [`tuner`] process that holds the lease. [`restore`] brings back the old values, but only while the current values
//! are ours. [`knobs`] lists what can be changed, and [`persist`] makes values survive a reboot.

pub mod apply;
pub(crate) mod boot_value;
pub(crate) mod change_set;
pub(crate) mod child_io;
pub mod context;
pub(crate) mod discover;
pub mod journal;
pub(crate) mod journal_record;
pub mod kill_points;
pub(crate) mod knob;
pub(crate) mod knob_id;
pub mod knob_io;
pub mod knobs;
pub(crate) mod lifecycle;
pub mod machine_limits;
pub(crate) mod persist;
pub(crate) mod persist_plan;
pub mod plan;
pub(crate) mod presets;
pub(crate) mod progress_check;
pub mod protocol;
pub mod restore;
mod restore_linked;
pub(crate) mod sudo;
pub(crate) mod syscalls;
pub(crate) mod sysctl;
pub(crate) mod tuner;
pub mod tuner_client;
pub(crate) mod value;

#[cfg(test)]
pub(crate) mod tests;
