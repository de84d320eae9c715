//! The rules, one file a subject. A new rule is one file and one line in [`RULES`].

mod access_time;
mod burst_credits;
mod cache_pressure;
mod cgroup_limits;
mod delay_accounting;
mod disk_space;
mod fd_limits;
mod fork;
mod hung_tasks;
mod kernel_errors;
mod network_mounts;
mod prelude;
mod read_ahead;
mod read_only;
mod reclaim;
mod saturation;
mod scheduler;
mod slow_device;
mod stalled_device;
mod swap;
mod syncs;
mod writeback;
mod writeback_backlog;

use super::rule_context::Rule;

/// Every rule. Findings of equal rank are shown in this order.
pub(super) const RULES: &[Rule] = &[
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
