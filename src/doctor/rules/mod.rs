//! The rules, one file a subject. A new rule is one file and one line in [`RULES`].

mod access_time;
mod burst_credits;
mod cache_device;
mod cache_pressure;
mod cgroup_limits;
pub(super) mod checks;
mod delay_accounting;
mod device_health;
mod device_state;
mod directions;
mod disk_space;
mod fd_limits;
mod fork;
mod hung_tasks;
mod journal_wait;
mod kernel_errors;
mod network_mounts;
mod prelude;
mod read_ahead;
mod read_only;
mod reclaim;
mod recorded_errors;
mod replaced_device;
mod saturation;
mod scheduler;
mod server_silent;
mod slow_device;
mod slow_direction;
mod slow_tail;
mod stalled_device;
mod swap;
mod syncs;
mod thin_pool;
mod uncounted_device;
mod writeback;
mod writeback_backlog;

use super::rule_context::Rule;

/// Every rule. Findings of equal rank are shown in this order.
pub(crate) const RULES: &[Rule] = &[
    Rule { name: "device-reset", find: kernel_errors::evaluate_resets },
    Rule { name: "io-error", find: kernel_errors::evaluate_io_errors },
    Rule { name: "filesystem-error", find: kernel_errors::evaluate_filesystem_errors },
    Rule { name: "read-only", find: read_only::evaluate },
    Rule { name: "disk-health", find: device_health::evaluate_disks },
    Rule { name: "array-degraded", find: device_health::evaluate_degraded },
    Rule { name: "paths-down", find: device_health::evaluate_paths },
    Rule { name: "thin-pool-full", find: thin_pool::evaluate },
    Rule { name: "cache-device", find: cache_device::evaluate },
    Rule { name: "recorded-errors", find: recorded_errors::evaluate },
    Rule { name: "device-stalled", find: stalled_device::evaluate },
    Rule { name: "slow-device", find: slow_device::evaluate },
    Rule { name: "slow-direction", find: slow_direction::evaluate_reads_and_writes },
    Rule { name: "slow-flush", find: slow_direction::evaluate_flushes },
    Rule { name: "slow-discards", find: slow_direction::evaluate_discards },
    Rule { name: "slow-tail", find: slow_tail::evaluate },
    Rule { name: "device-saturated", find: saturation::evaluate },
    Rule { name: "writeback-storm", find: writeback::evaluate_storm },
    Rule { name: "writers-throttled", find: writeback::evaluate_throttled },
    Rule { name: "slow-drain", find: writeback_backlog::evaluate },
    Rule { name: "syncs-behind-a-stream", find: |ctx, out| syncs::evaluate(ctx, out, syncs::SyncCause::Stream) },
    Rule { name: "waits-on-syncs", find: |ctx, out| syncs::evaluate(ctx, out, syncs::SyncCause::Device) },
    Rule { name: "journal-full", find: journal_wait::evaluate },
    Rule { name: "hung-task", find: hung_tasks::evaluate },
    Rule { name: "hung-task-silent", find: hung_tasks::evaluate_warnings_exhausted },
    Rule { name: "oom", find: kernel_errors::evaluate_oom },
    Rule { name: "swapping", find: swap::evaluate_swapping },
    Rule { name: "swapped-idle", find: swap::evaluate_idle },
    Rule { name: "server-swapped", find: swap::evaluate_servers },
    Rule { name: "zram", find: device_health::evaluate_zram },
    Rule { name: "cache-pressure", find: cache_pressure::evaluate },
    Rule { name: "reclaim-stalls", find: reclaim::evaluate },
    Rule { name: "thp-always", find: fork::evaluate_thp },
    Rule { name: "fork-cost", find: fork::evaluate_fork_cost },
    Rule { name: "atime-mount", find: access_time::evaluate },
    Rule { name: "scheduler-unsuitable", find: scheduler::evaluate },
    Rule { name: "readahead-small", find: read_ahead::evaluate_small },
    Rule { name: "readahead-large", find: read_ahead::evaluate_large },
    Rule { name: "open-files", find: fd_limits::evaluate },
    Rule { name: "filesystem-full", find: disk_space::evaluate },
    Rule { name: "network-link-full", find: network_mounts::evaluate_link },
    Rule { name: "server-silent", find: server_silent::evaluate },
    Rule { name: "network-slow", find: network_mounts::evaluate_slow },
    Rule { name: "nfs-retransmits", find: network_mounts::evaluate_retransmits },
    Rule { name: "cifs-version-1", find: network_mounts::evaluate_smb1 },
    Rule { name: "array-sync", find: device_health::evaluate_sync },
    Rule { name: "array-mismatch", find: device_health::evaluate_mismatch },
    Rule { name: "burst-credits", find: burst_credits::evaluate },
    Rule { name: "delay-accounting-off", find: delay_accounting::evaluate },
    Rule { name: "uncounted-device", find: uncounted_device::evaluate },
    Rule { name: "cgroup-io", find: cgroup_limits::evaluate_io },
    Rule { name: "cgroup-memory", find: cgroup_limits::evaluate_memory },
    Rule { name: "cgroup-cpu", find: cgroup_limits::evaluate_cpu },
];
