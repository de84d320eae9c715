//! Changes kernel settings so that they can always be restored.
//!
//! [`plan`] checks a change completely. [`apply`] captures, journals, writes, reads back and marks each knob, in a
//! [`tuner`] process that holds the lease. [`restore`] brings back the old values, but only while the current values
//! are ours. [`knobs`] lists what can be changed, and [`persist`] makes values survive a reboot.

pub mod apply;
pub mod boot_value;
pub mod change_set;
pub mod child_io;
pub mod context;
pub mod discover;
pub mod journal;
pub mod journal_record;
pub mod kill_points;
pub mod knob;
pub mod knob_id;
pub mod knob_io;
pub mod knobs;
pub mod lifecycle;
pub mod machine_limits;
pub mod persist;
pub mod persist_plan;
pub mod plan;
pub mod presets;
pub mod progress_check;
pub mod protocol;
pub mod restore;
pub mod sudo;
pub mod syscalls;
pub mod sysctl;
pub mod tuner;
pub mod tuner_client;
pub mod value;

#[cfg(test)]
pub(crate) mod tests;
