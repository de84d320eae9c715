//! One file for each subject, and the list [`RULES`].

pub mod access_time;
pub mod burst;
pub mod cache;
pub mod delay_accounting;
pub mod drain;
pub mod errors;
pub mod files;
pub mod fork;
pub mod groups;
pub mod hung;
pub mod network;
pub mod read_ahead;
pub mod read_only;
pub mod reclaim;
pub mod room;
pub mod saturated;
pub mod scheduler;
pub mod slow;
pub mod stalled;
pub mod swap;
pub mod syncs;
pub mod writeback;

use super::finding::Rule;

/// Every rule.
pub const RULES: &[Rule] = &[
    errors::RESETS,
    errors::IO,
    errors::FILESYSTEM,
    read_only::RULE,
    stalled::RULE,
    slow::RULE,
    saturated::RULE,
    writeback::STORM,
    writeback::THROTTLED,
    drain::RULE,
    syncs::VICTIM,
    syncs::BOUND,
    hung::RULE,
    hung::SILENT,
    errors::OOM,
    swap::NOW,
    swap::IDLE,
    swap::SERVER,
    cache::RULE,
    reclaim::RULE,
    fork::PAGES,
    fork::COST,
    access_time::RULE,
    scheduler::RULE,
    read_ahead::SMALL,
    read_ahead::LARGE,
    files::RULE,
    room::RULE,
    network::LINK,
    network::RETRANSMITS,
    network::CIFS1,
    burst::RULE,
    delay_accounting::RULE,
    groups::IO,
    groups::MEMORY,
    groups::CPU,
];
