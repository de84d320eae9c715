//! What a sync waits on, by the kernel function in which its thread sleeps.
//!
//! Function names are those of `/proc/PID/wchan`: the innermost function outside the scheduler (fs/proc/base.c).
//! An unknown function is shown by its name.

use crate::sanitize::sanitize;

/// Stands for no function: the thread runs or is runnable.
pub(crate) const ON_CPU: &str = "on_cpu";

/// What a sync waits on; the word before the name of the device, if that follows; and the prefixes of the functions in which
/// it waits, separated by `|`.
const WAITS: &[(&str, &str, &str)] = &[
    // The commit includes changes of others.
    (
        "journal commit",
        "of",
        "jbd2_|do_get_write_access|wait_transaction_locked|add_transaction_credits|xlog_|\
         xfs_log_force|btrfs_wait_for_commit|btrfs_commit_transaction|btrfs_sync_log|\
         wait_log_commit",
    ),
    ("dirty throttling", "", "balance_dirty_pages"),
    (
        "writeback",
        "to",
        "folio_wait_|__folio_lock|wait_on_page_|wait_for_stable_page|__filemap_fdatawait_range|\
         wb_wait_for_completion",
    ),
    ("a full queue", "of", "blk_mq_get_tag|rq_qos_wait|wbt_wait"),
    ("flush", "of", "blkdev_issue_flush|submit_bio_wait|bio_await|blk_execute_rq|md_flush_request"),
    ("metadata", "to", "__wait_on_buffer|__sync_dirty_buffer|sync_dirty_buffer"),
    ("runs, or waits for CPU", "", ON_CPU),
];

/// The functions that wait for a lock of the file or the file system.
const LOCK_FUNCTIONS: &str = "rwsem_|__mutex_lock|mutex_lock|percpu_rwsem|percpu_down";

/// A description, sanitized, with the name of the device; `-` without one.
pub(crate) fn wait_text(function: &str, device: &str) -> String {
    let is_of = |prefixes: &str| prefixes.split('|').any(|prefix| function.starts_with(prefix));
    match WAITS.iter().find(|(.., prefixes)| is_of(prefixes)) {
        Some((text, word, _)) if word.is_empty() || device == "-" => (*text).to_owned(),
        Some((text, word, _)) => format!("{text} {word} {device}"),
        None if is_of(LOCK_FUNCTIONS) => format!("a lock ({})", sanitize(function)),
        None => sanitize(function),
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
        assert_eq!(wait_text("xfs_ilock", "sda1"), "xfs_ilock");
    }
}
