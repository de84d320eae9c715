//! Does a change of the kernel's settings help? A workload run under the old values and the new ones in turn,
//! compared, and everything put back. Headless; a screen may start it and look on.
//!
//! A [`spec::Spec`] says everything an experiment will do.

pub mod stats;
