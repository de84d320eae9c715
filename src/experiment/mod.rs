//! Experiments: does a change of kernel settings help? A workload runs under the old values and the new ones in turn,
//! the results are compared, and the old values are restored. Nothing here draws on the screen.
//!
//! An [`spec::ExperimentSpec`] says everything an experiment will do. The child process [`child::main`] runs it and
//! sends [`message::ExperimentMessage`]s, the last of which is a [`report::ExperimentReport`]. Its access
//! to the machine is behind [`run::Environment`]; the tuner ([`crate::tuning`]) sets values, and
//! [`crate::bench`] runs the workload.

pub mod arm_settings;
pub(crate) mod child;
pub(crate) mod command_line;
pub(crate) mod description;
pub(crate) mod dirty_pages;
pub mod message;
pub mod report;
pub(crate) mod run;
pub mod spec;
pub mod stats;
pub(crate) mod system_environment;

#[cfg(test)]
mod run_tests;
