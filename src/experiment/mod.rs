//! Does a change of the kernel's settings help? A workload run under the old values and the new ones in turn,
//! compared, and everything put back. Headless; a screen may start it and look on.
//!
//! A [`spec::Spec`] says everything an experiment will do. [`host::Running`] starts it in a child process of the
//! same binary ([`child::main`]), which sends [`message::Message`]s and, last, a [`report::Report`]. What it does
//! to the machine is behind [`lab::Lab`]; values are set by the tuner ([`crate::tune`]), work is done by
//! [`crate::bench`].

pub mod arms;
pub mod child;
pub mod command;
pub mod host;
pub mod kept;
pub mod lab;
pub mod live;
pub mod message;
pub mod outline;
pub mod report;
pub mod run;
pub mod spec;
pub mod stats;
pub mod watch;

#[cfg(test)]
mod run_tests;
