//! One file for each subject, and the list [`RULES`].

pub mod access_time;
pub mod burst_credits;
pub mod cache_pressure;
pub mod cgroup_limits;
pub mod delay_accounting;
pub mod disk_space;
pub mod fd_limits;
pub mod fork;
pub mod hung_tasks;
pub mod kernel_errors;
pub mod network_mounts;
pub mod read_ahead;
pub mod read_only;
pub mod reclaim;
pub mod saturation;
pub mod scheduler;
pub mod slow_device;
pub mod stalled_device;
pub mod swap;
pub mod syncs;
pub mod writeback;
pub mod writeback_backlog;

use super::finding::Rule;

/// Every rule.
pub const RULES: &[Rule] = &[
    kernel_errors::DEVICE_RESET,
    kernel_errors::IO_ERROR,
    kernel_errors::FILESYSTEM_ERROR,
    read_only::RULE,
    stalled_device::RULE,
    slow_device::RULE,
    saturation::RULE,
    writeback::WRITEBACK_STORM,
    writeback::WRITERS_THROTTLED,
    writeback_backlog::RULE,
    syncs::BEHIND_STREAM,
    syncs::WAITS_ON_SYNCS,
    hung_tasks::HUNG_TASK,
    hung_tasks::WARNINGS_EXHAUSTED,
    kernel_errors::OOM,
    swap::SWAPPING,
    swap::SWAPPED_IDLE,
    swap::SERVER_SWAPPED,
    cache_pressure::RULE,
    reclaim::RULE,
    fork::THP_ALWAYS,
    fork::FORK_COST,
    access_time::RULE,
    scheduler::RULE,
    read_ahead::TOO_SMALL,
    read_ahead::TOO_LARGE,
    fd_limits::RULE,
    disk_space::RULE,
    network_mounts::LINK_FULL,
    network_mounts::NFS_RETRANSMITS,
    network_mounts::SMB1,
    burst_credits::RULE,
    delay_accounting::RULE,
    cgroup_limits::IO_LIMIT,
    cgroup_limits::MEMORY_LIMIT,
    cgroup_limits::CPU_LIMIT,
];
