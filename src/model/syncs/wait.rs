//! What a sync waits on, from the kernel's function in which its thread sleeps.
//!
//! The names are those of `/proc/PID/wchan`: the innermost function that is not the scheduler's (fs/proc/base.c).
//! What is not known here is told by the function's own name.

/// What it waits on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wait {
    /// The commit of the file system's journal, others' changes included.
    Journal,
    /// Pages on their way to the disk.
    Writeback,
    /// A flush of the device's cache, or a single request.
    Device,
    /// A block of the file system's own.
    Metadata,
    /// Nothing: it runs, or waits for a CPU.
    Cpu,
    /// Room in the device's queue.
    Queue,
    /// Dirty pages are over the limit.
    Throttle,
    /// A lock of the file or the file system.
    Lock,
}

/// Stands for no function: the thread runs, or could run.
pub const ON_CPU: &str = "on_cpu";

/// Beginnings of functions' names, and what waiting there means.
const KNOWN: &[(&str, Wait)] = &[
    ("jbd2_", Wait::Journal),
    ("do_get_write_access", Wait::Journal),
    ("wait_transaction_locked", Wait::Journal),
    ("add_transaction_credits", Wait::Journal),
    ("xlog_", Wait::Journal),
    ("xfs_log_force", Wait::Journal),
    ("btrfs_wait_for_commit", Wait::Journal),
    ("btrfs_commit_transaction", Wait::Journal),
    ("btrfs_sync_log", Wait::Journal),
    ("wait_log_commit", Wait::Journal),
    ("balance_dirty_pages", Wait::Throttle),
    ("folio_wait_", Wait::Writeback),
    ("__folio_lock", Wait::Writeback),
    ("wait_on_page_", Wait::Writeback),
    ("wait_for_stable_page", Wait::Writeback),
    ("__filemap_fdatawait_range", Wait::Writeback),
    ("wb_wait_for_completion", Wait::Writeback),
    ("blk_mq_get_tag", Wait::Queue),
    ("rq_qos_wait", Wait::Queue),
    ("wbt_wait", Wait::Queue),
    ("blkdev_issue_flush", Wait::Device),
    ("submit_bio_wait", Wait::Device),
    ("bio_await", Wait::Device),
    ("blk_execute_rq", Wait::Device),
    ("__wait_on_buffer", Wait::Metadata),
    ("__sync_dirty_buffer", Wait::Metadata),
    ("sync_dirty_buffer", Wait::Metadata),
    (ON_CPU, Wait::Cpu),
    ("md_flush_request", Wait::Device),
    ("rwsem_", Wait::Lock),
    ("__mutex_lock", Wait::Lock),
    ("mutex_lock", Wait::Lock),
    ("percpu_rwsem", Wait::Lock),
    ("percpu_down", Wait::Lock),
];

impl Wait {
    /// By the function's name.
    pub fn of(function: &str) -> Option<Self> {
        KNOWN.iter().find(|(begin, _)| function.starts_with(begin)).map(|k| k.1)
    }
}

/// It in words, cleaned, with the name of the device; `-` where there is none.
pub fn on_text(function: &str, device: &str) -> String {
    let to =
        |text: &str, word: &str| if device == "-" { text.into() } else { format!("{text} {word} {device}") };
    match Wait::of(function) {
        Some(Wait::Journal) => to("journal commit", "of"),
        Some(Wait::Writeback) => to("writeback", "to"),
        Some(Wait::Metadata) => to("metadata", "to"),
        Some(Wait::Cpu) => "runs, or waits for CPU".into(),
        Some(Wait::Device) => to("flush", "of"),
        Some(Wait::Queue) => to("a full queue", "of"),
        Some(Wait::Throttle) => "dirty throttling".into(),
        Some(Wait::Lock) => format!("a lock ({})", crate::text::sanitize(function)),
        None => crate::text::sanitize(function),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_in_words_and_unknown_ones_by_name() {
        assert_eq!(on_text("jbd2_log_wait_commit", "sda1"), "journal commit of sda1");
        assert_eq!(on_text("folio_wait_bit_common", "sda1"), "writeback to sda1");
        assert_eq!(on_text("wb_wait_for_completion", "-"), "writeback");
        assert_eq!(on_text("rwsem_down_write_slowpath", "sda1"), "a lock (rwsem_down_write_slowpath)");
        assert_eq!(on_text("nfs_wait\u{1b}", "sda1").chars().filter(|c| *c == '\u{1b}').count(), 0);
        assert_eq!(Wait::of("xfs_ilock"), None);
    }
}
