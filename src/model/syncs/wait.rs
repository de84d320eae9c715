//! What a sync waits on, by the kernel function in which its thread sleeps.
//!
//! Function names are those of `/proc/PID/wchan`: the innermost function outside the scheduler (fs/proc/base.c).
//! An unknown function is shown by its name.

/// What a sync waits on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SyncWait {
    /// A commit of the file system's journal, which includes changes of others.
    Journal,
    /// Pages under writeback.
    Writeback,
    /// A flush of the device's cache, or a single request.
    Device,
    /// A metadata block of the file system.
    Metadata,
    /// Nothing: the thread runs, or waits for a CPU.
    Cpu,
    /// A full request queue of the device.
    Queue,
    /// Dirty throttling.
    Throttle,
    /// A lock of the file or the file system.
    Lock,
}

/// Stands for no function: the thread runs or is runnable.
pub const ON_CPU: &str = "on_cpu";

/// Prefixes of function names, separated by `|`, and what waiting there means.
const WAIT_FUNCTIONS: &[(SyncWait, &str)] = &[
    (
        SyncWait::Journal,
        "jbd2_|do_get_write_access|wait_transaction_locked|add_transaction_credits|xlog_|\
         xfs_log_force|btrfs_wait_for_commit|btrfs_commit_transaction|btrfs_sync_log|\
         wait_log_commit",
    ),
    (SyncWait::Throttle, "balance_dirty_pages"),
    (
        SyncWait::Writeback,
        "folio_wait_|__folio_lock|wait_on_page_|wait_for_stable_page|__filemap_fdatawait_range|\
         wb_wait_for_completion",
    ),
    (SyncWait::Queue, "blk_mq_get_tag|rq_qos_wait|wbt_wait"),
    (SyncWait::Device, "blkdev_issue_flush|submit_bio_wait|bio_await|blk_execute_rq|md_flush_request"),
    (SyncWait::Metadata, "__wait_on_buffer|__sync_dirty_buffer|sync_dirty_buffer"),
    (SyncWait::Cpu, "on_cpu"),
    (SyncWait::Lock, "rwsem_|__mutex_lock|mutex_lock|percpu_rwsem|percpu_down"),
];

impl SyncWait {
    /// From the name of a function.
    pub fn from_function(function: &str) -> Option<Self> {
        let is_of = |prefixes: &str| prefixes.split('|').any(|prefix| function.starts_with(prefix));
        WAIT_FUNCTIONS.iter().find(|(_, prefixes)| is_of(prefixes)).map(|k| k.0)
    }
}

/// A description, sanitized, with the name of the device; `-` without one.
pub fn wait_text(function: &str, device: &str) -> String {
    let to = |text: &str, word: &str| if device == "-" { text.into() } else { format!("{text} {word} {device}") };
    match SyncWait::from_function(function) {
        Some(SyncWait::Journal) => to("journal commit", "of"),
        Some(SyncWait::Writeback) => to("writeback", "to"),
        Some(SyncWait::Metadata) => to("metadata", "to"),
        Some(SyncWait::Cpu) => "runs, or waits for CPU".into(),
        Some(SyncWait::Device) => to("flush", "of"),
        Some(SyncWait::Queue) => to("a full queue", "of"),
        Some(SyncWait::Throttle) => "dirty throttling".into(),
        Some(SyncWait::Lock) => format!("a lock ({})", crate::sanitize::sanitize(function)),
        None => crate::sanitize::sanitize(function),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_functions_are_described_and_unknown_ones_named() {
        assert_eq!(wait_text("jbd2_log_wait_commit", "sda1"), "journal commit of sda1");
        assert_eq!(wait_text("folio_wait_bit_common", "sda1"), "writeback to sda1");
        assert_eq!(wait_text("wb_wait_for_completion", "-"), "writeback");
        assert_eq!(wait_text("rwsem_down_write_slowpath", "sda1"), "a lock (rwsem_down_write_slowpath)");
        assert_eq!(wait_text("nfs_wait\u{1b}", "sda1").chars().filter(|c| *c == '\u{1b}').count(), 0);
        assert_eq!(SyncWait::from_function("xfs_ilock"), None);
    }
}
