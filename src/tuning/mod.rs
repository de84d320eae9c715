//! Changing the kernel's settings so that there is always a way back.
//!
//! A change goes: [`plan`] (everything checked) -> [`apply`] (capture, journal, write, read back, mark) in a
//! tuner process that holds the [`lease`] -> [`restore`], only while the value is still ours. [`knobs`] is the
//! list of what can be changed, [`persist`] what lasts over a boot.

pub mod apply;
pub mod boot_value;
pub mod change_set;
pub mod child_io;
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
mod syscalls;
pub mod sysctl;
pub mod tuner;
pub mod tuner_client;
pub mod value;

#[cfg(test)]
pub(crate) mod fake_knob_io;
#[cfg(test)]
mod tests;
