//! Changing the kernel's settings so that there is always a way back.
//!
//! A change goes: [`plan`] (everything checked) -> [`apply`] (capture, journal, write, read back, mark) in a
//! tuner process that holds the [`lease`] -> [`restore`], only while the value is still ours. [`knobs`] is the
//! list of what can be changed, [`persist`] what lasts over a boot.

pub mod address;
pub mod apply;
pub mod at_boot;
pub mod change;
pub mod child;
pub mod client;
pub mod guard;
pub mod journal;
pub mod kernel;
pub mod knob;
pub mod knobs;
pub mod lasting;
pub mod lease;
pub mod machine;
pub mod manage;
pub mod persist;
pub mod places;
pub mod plan;
pub mod presets;
pub mod protocol;
pub mod record;
pub mod restore;
pub mod steps;
pub mod sudo;
mod sys;
pub mod sysctl;
pub mod value;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
