//! Finds storage problems, their causes and what to do about them.
//!
//! A rule is a pure function of [`SystemState`](crate::model::system_state::SystemState): history, tasks, kernel log,
//! topology, queue settings, slow facts. It reads no file and no clock, so a replay finds what the live machine found.
//! Each file in [`rules`] holds the rules of one subject; [`RULES`] lists them all. [`RuleEngine`] evaluates them on
//! every tick, keeps findings from flapping, and groups findings with one cause into an [`incident::Incident`].

mod busiest_tasks;
mod device_files;
mod device_sums;
mod device_users;
mod engine;
pub(crate) mod fact_requests;
pub(crate) mod finding;
mod format;
pub(crate) mod incident;
mod kernel_io;
mod kernel_names;
mod known_servers;
mod rows_by_pid;
mod rule_context;
mod rules;
pub(crate) mod storage_class;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod transitions;
mod user_groups;

use crate::model::system_state::SystemState;
pub use engine::RuleEngine;
pub(crate) use engine::SkippedRule;
use rule_context::RuleContext;
pub(crate) use rules::RULES;
pub(crate) use rules::checks::Check;

/// The figures that the main rules judge, with their limits, as of the newest tick.
pub(crate) fn checks(system: &SystemState) -> Vec<Check> {
    rules::checks::checks(&RuleContext::new(system))
}

/// Number of rules.
pub(crate) fn rule_count() -> usize {
    RULES.len()
}
