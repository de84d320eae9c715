//! What is wrong, and why: rules over what is known of the machine.
//!
//! A rule is a pure function of the [`crate::model::world::World`]: history, tasks, kernel log, topology,
//! queues, slow facts. It touches no file and no clock, so a replay finds what the live machine found. One
//! file holds a rule or a few of one subject, and [`RULES`] lists them all. [`engine::Engine`] looks at
//! every tick, keeps findings from flapping, and puts those with one cause into one [`story::Story`].

pub mod engine;
pub mod fact_requests;
pub mod finding;
pub mod format;
pub mod incident;
pub mod known_servers;
pub mod rule_context;
pub mod rules;
pub mod storage_class;
#[cfg(test)]
mod tests;
pub mod transitions;

pub use engine::RuleEngine;
pub use rules::RULES;
