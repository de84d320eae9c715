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

/// Prefixes of function names, and what waiting there means.
const WAIT_FUNCTIONS: &[(&str, SyncWait)] = &[
    ("jbd2_", SyncWait::Journal),
    ("do_get_write_access", SyncWait::Journal),
    ("wait_transaction_locked", SyncWait::Journal),
    ("add_transaction_credits", SyncWait::Journal),
    ("xlog_", SyncWait::Journal),
    ("xfs_log_force", SyncWait::Journal),
    ("btrfs_wait_for_commit", SyncWait::Journal),
    ("btrfs_commit_transaction", SyncWait::Journal),
    ("btrfs_sync_log", SyncWait::Journal),
    ("wait_log_commit", SyncWait::Journal),
    ("balance_dirty_pages", SyncWait::Throttle),
    ("folio_wait_", SyncWait::Writeback),
    ("__folio_lock", SyncWait::Writeback),
    ("wait_on_page_", SyncWait::Writeback),
    ("wait_for_stable_page", SyncWait::Writeback),
    ("__filemap_fdatawait_range", SyncWait::Writeback),
    ("wb_wait_for_completion", SyncWait::Writeback),
    ("blk_mq_get_tag", SyncWait::Queue),
    ("rq_qos_wait", SyncWait::Queue),
    ("wbt_wait", SyncWait::Queue),
    ("blkdev_issue_flush", SyncWait::Device),
    ("submit_bio_wait", SyncWait::Device),
    ("bio_await", SyncWait::Device),
    ("blk_execute_rq", SyncWait::Device),
    ("__wait_on_buffer", SyncWait::Metadata),
    ("__sync_dirty_buffer", SyncWait::Metadata),
    ("sync_dirty_buffer", SyncWait::Metadata),
    (ON_CPU, SyncWait::Cpu),
    ("md_flush_request", SyncWait::Device),
    ("rwsem_", SyncWait::Lock),
    ("__mutex_lock", SyncWait::Lock),
    ("mutex_lock", SyncWait::Lock),
    ("percpu_rwsem", SyncWait::Lock),
    ("percpu_down", SyncWait::Lock),
];

impl SyncWait {
    /// From the name of a function.
    pub fn from_function(function: &str) -> Option<Self> {
        WAIT_FUNCTIONS.iter().find(|(begin, _)| function.starts_with(begin)).map(|k| k.1)
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
