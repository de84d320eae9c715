//! Does a change of the kernel's settings help? A workload run under the old values and the new ones in turn,
//! compared, and everything put back. Headless; a screen may start it and look on.
//!
//! A [`spec::Spec`] says everything an experiment will do. [`host::Running`] starts it in a child process of the
//! same binary ([`child::main`]), which sends [`message::Message`]s and, last, a [`report::Report`]. What it does
//! to the machine is behind [`lab::Lab`]; values are set by the tuner ([`crate::tune`]), work is done by
//! [`crate::bench`].

pub mod arm_settings;
pub mod child;
pub mod command_line;
pub mod description;
pub mod dirty_pages;
pub mod environment;
pub mod message;
pub mod report;
pub mod run;
pub mod spec;
pub mod stats;
pub mod stored;
pub mod system_environment;

#[cfg(test)]
mod run_tests;
