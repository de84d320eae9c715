//! The reason of a wait, by the functions of the kernel stack.

use serde::{Deserialize, Serialize};

/// Why a task waits. Recordings number the reasons in this order.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::VariantArray,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WaitReason {
    /// Data of a file is read.
    Read,
    /// A page of a mapped file is read, or is made writable.
    FileFault,
    /// A page is read from swap.
    SwapFault,
    /// fsync and the like.
    Sync,
    /// A write of a file that was opened with O_SYNC or O_DSYNC.
    SyncWrite,
    /// Direct I/O, that of io_uring and AIO included.
    DirectIo,
    /// Space in the journal, or the commit of a transaction, for a change of a file system.
    Journal,
    /// A lock that another task holds, such as that of an inode.
    Lock,
    /// Too many dirty pages.
    Throttled,
    /// Memory is freed first.
    Reclaim,
    /// The file system is frozen.
    Frozen,
    /// Metadata is read: directories, inodes.
    Metadata,
    /// Pages are written back.
    Writeback,
    /// A network file system.
    NetworkFs,
    /// None of these.
    #[default]
    Other,
}

impl WaitReason {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// For a table.
    pub fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::FileFault => "file fault",
            Self::SwapFault => "swap fault",
            Self::Sync => "sync",
            Self::SyncWrite => "O_SYNC write",
            Self::DirectIo => "direct I/O",
            Self::Journal => "journal",
            Self::Lock => "lock",
            Self::Throttled => "dirty limit",
            Self::Reclaim => "reclaim",
            Self::Frozen => "frozen fs",
            Self::Metadata => "metadata",
            Self::Writeback => "writeback",
            Self::NetworkFs => "network fs",
            Self::Other => "other",
        }
    }
}

/// Functions, by the beginnings of their names, that make a wait one of a reason wherever they are in the stack. The first
/// reason that matches counts.
const RULES: &[(WaitReason, &str)] = &[
    (WaitReason::Throttled, "balance_dirty_pages"),
    (
        WaitReason::Reclaim,
        "try_to_free_|do_try_to_free_pages|reclaim_throttle|throttle_direct_reclaim|shrink_node|balance_pgdat|\
         mem_cgroup_handle_over_high|shrink_lruvec",
    ),
    (WaitReason::SwapFault, "do_swap_page|swapin_|swap_read|shmem_swapin|swap_cluster_readahead|swap_vma_readahead"),
    (
        WaitReason::FileFault,
        "filemap_fault|__do_fault|do_page_mkwrite|do_shared_fault|do_read_fault|do_cow_fault|fault_dirty_shared_page|\
         filemap_map_pages|dax_iomap_fault",
    ),
    (WaitReason::SyncWrite, "generic_write_sync"),
    (
        WaitReason::Sync,
        "do_fsync|__x64_sys_fsync|__x64_sys_fdatasync|__arm64_sys_fsync|__arm64_sys_fdatasync|vfs_fsync|io_fsync|ksys_sync|\
         __do_sys_sync|__x64_sys_sync|__arm64_sys_sync|sync_filesystem|sync_inodes_sb|sync_inodes_one_sb|iterate_supers|\
         sync_bdevs|ext4_sync_file|xfs_file_fsync|btrfs_sync_file|blkdev_fsync|sync_file_range|ksys_sync_file_range|__do_sys_msync|__x64_sys_msync",
    ),
    (
        WaitReason::DirectIo,
        "__iomap_dio_rw|iomap_dio_rw|__blkdev_direct_IO|blkdev_direct_IO|__blockdev_direct_IO|do_blockdev_direct_IO|\
         btrfs_direct_read|btrfs_direct_write|btrfs_dio_",
    ),
    (
        WaitReason::Journal,
        "jbd2_|start_this_handle|do_get_write_access|wait_transaction_locked|add_transaction_credits|__jbd2_|xlog_|xfs_log_|\
         wait_current_trans|btrfs_commit_transaction|btrfs_wait_for_commit|btrfs_sync_log|wait_log_commit",
    ),
    (
        WaitReason::Metadata,
        "__bread_gfp|__wait_on_buffer|ext4_read_bh|ext4_sb_bread|ext4_bread|__ext4_find_entry|__ext4_get_inode_loc|\
         ext4_get_inode_loc|ext4_find_entry|ext4_read_inode_bitmap|ext4_read_block_bitmap|__read_extent_tree_block|xfs_buf_|read_extent_buffer|\
         wait_on_extent_buffer|btrfs_read_extent_buffer|btrfs_search_slot",
    ),
    (
        WaitReason::Writeback,
        "folio_wait_writeback|wait_on_page_writeback|folio_wait_stable|wait_for_stable_page|wb_workfn|wb_wait_for_completion|\
         filemap_fdatawait|__filemap_fdatawait",
    ),
    (WaitReason::NetworkFs, "rpc_|nfs_|nfs4_|cifs_|ceph_|fuse_|request_wait_answer|v9fs_|p9_"),
    (
        WaitReason::Read,
        "filemap_read|filemap_get_pages|generic_file_read_iter|generic_file_buffered_read|page_cache_ra_|filemap_update_page|\
         filemap_splice_read|vfs_read|folio_wait_bit|__folio_lock|read_pages|blkdev_read_iter",
    ),
];

/// A frozen file system is waited for in these functions ...
const FREEZE_WAITS: &str = "percpu_rwsem_wait|__percpu_down_read";
/// ... but not for these, which use the same kind of lock.
const OTHER_PERCPU_LOCKS: &str =
    "cgroup_|copy_process|exit_signals|cpus_read_lock|begin_new_exec|uprobe_|__cgroup|cpu_up|cpu_down";
/// Functions in which a task waits for a lock.
const LOCK_WAITS: &str = "rwsem_down_|__mutex_lock|mutex_lock|__down|percpu_down_write";
/// Functions in which a task waits for requests that it has submitted before.
const ASYNC_WAITS: &str = "io_cqring_wait|read_events|io_uring_cancel|wait_for_completion_io";
/// Functions of the scheduler, and of waiting in general: they say nothing about the reason. wchan leaves them out, too.
const SCHEDULER: &str = "__schedule|schedule|preempt_schedule|io_schedule|bit_wait|__wait_on_bit|out_of_line_wait_on_bit|\
                         wait_for_completion|__wait_for_common|wait_for_common|do_wait_for_common|__io_schedule|\
                         bpf_|__bpf|__traceiter";

/// What is known about a wait beside its stack.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WaitFacts {
    /// Whether the call writes a file that was opened with O_SYNC or O_DSYNC.
    pub(crate) is_sync_write: bool,
    /// Whether the task sleeps interruptibly: it waits only if it does so for its asynchronous I/O.
    pub(crate) is_interruptible: bool,
    /// Whether it waits for the lock of a file system that is frozen.
    pub(crate) is_frozen: bool,
}

fn begins(function: &str, names: &str) -> bool {
    names.split('|').any(|name| function.starts_with(name))
}

/// Whether the task is in a page fault, so that its registers are those of the program.
pub(crate) fn is_fault(stack: &[&str]) -> bool {
    stack.iter().any(|function| begins(function, "handle_mm_fault|exc_page_fault|do_user_addr_fault|do_page_fault"))
}

/// The reason of a wait and the function in which the task sleeps; `None` for a task that sleeps and waits for no I/O.
/// `stack`: names of functions, the innermost first.
pub(crate) fn classify<'a>(stack: &[&'a str], facts: WaitFacts) -> Option<(WaitReason, &'a str)> {
    let inner = stack.iter().position(|function| *function == "__schedule").map_or(stack, |at| &stack[at + 1..]);
    let inner = &inner[inner.iter().take_while(|function| begins(function, SCHEDULER)).count()..];
    let function = inner.first().copied().unwrap_or_default();
    let any = |names: &str| inner.iter().any(|function| begins(function, names));
    if facts.is_interruptible {
        return any(ASYNC_WAITS).then_some((WaitReason::DirectIo, function));
    }
    let is_freeze = begins(function, FREEZE_WAITS) && !any(OTHER_PERCPU_LOCKS);
    if facts.is_frozen || is_freeze {
        return Some((WaitReason::Frozen, function));
    }
    let reason = RULES.iter().find(|(_, names)| any(names)).map(|(reason, _)| *reason);
    let is_of_write = matches!(
        reason,
        None | Some(WaitReason::Sync | WaitReason::DirectIo | WaitReason::Journal | WaitReason::Writeback)
    );
    let reason = match reason {
        // A fault that waits for the lock of the mappings waits for its holder, not for the file.
        _ if begins(function, LOCK_WAITS) && !matches!(reason, Some(WaitReason::Sync | WaitReason::SyncWrite)) => {
            WaitReason::Lock
        }
        _ if facts.is_sync_write && is_of_write => WaitReason::SyncWrite,
        Some(reason) => reason,
        None if any(ASYNC_WAITS) => WaitReason::DirectIo,
        None => WaitReason::Other,
    };
    Some((reason, function))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The innermost function first, separated by spaces; the scheduler's are added.
    fn reason_of(stack: &str, facts: WaitFacts) -> Option<(WaitReason, &str)> {
        let stack: Vec<&str> = ["__schedule", "schedule"].into_iter().chain(stack.split(' ')).collect();
        classify(&stack, facts)
    }

    #[test]
    fn stacks_of_this_kernel_are_classified() {
        use WaitReason as W;
        let cases = [
            (
                W::Read,
                "io_schedule folio_wait_bit_common filemap_get_pages filemap_read vfs_read ksys_read do_syscall_64",
            ),
            (W::FileFault, "io_schedule folio_wait_bit_common filemap_fault __do_fault do_fault handle_mm_fault"),
            (W::SwapFault, "io_schedule folio_wait_bit_common __folio_lock_or_retry do_swap_page handle_mm_fault"),
            (W::Sync, "jbd2_log_wait_commit ext4_sync_file do_fsync __x64_sys_fsync do_syscall_64"),
            (W::SyncWrite, "jbd2_log_wait_commit ext4_sync_file generic_write_sync vfs_write ksys_write"),
            (W::DirectIo, "blk_io_schedule __iomap_dio_rw iomap_dio_rw ext4_file_read_iter vfs_read"),
            (
                W::Journal,
                "wait_transaction_locked add_transaction_credits start_this_handle ext4_dirty_inode vfs_write",
            ),
            (W::Lock, "rwsem_down_write_slowpath down_write ext4_buffered_write_iter vfs_write ksys_write"),
            (W::Throttled, "io_schedule_timeout balance_dirty_pages generic_perform_write vfs_write"),
            (W::Reclaim, "schedule_timeout reclaim_throttle shrink_node try_to_free_pages __alloc_pages filemap_fault"),
            (W::Frozen, "percpu_rwsem_wait __percpu_down_read mnt_want_write open_last_lookups path_openat"),
            (W::Metadata, "bit_wait_io __wait_on_bit out_of_line_wait_on_bit __wait_on_buffer ext4_find_entry"),
            (W::NetworkFs, "rpc_wait_bit_killable __wait_on_bit rpc_execute nfs4_proc_getattr"),
            (W::Other, "percpu_rwsem_wait __percpu_down_read cgroup_attach_task_all do_syscall_64"),
            (W::Other, "wait_for_vfork_done kernel_clone do_syscall_64"),
        ];
        for (reason, stack) in cases {
            assert_eq!(reason_of(stack, WaitFacts::default()).map(|found| found.0), Some(reason), "{stack}");
        }
    }

    #[test]
    fn the_function_is_the_innermost_outside_the_scheduler() {
        let stack = "io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit __wait_on_buffer ext4_find_entry";
        assert_eq!(reason_of(stack, WaitFacts::default()).map(|found| found.1), Some("__wait_on_buffer"));
        assert_eq!(classify(&[], WaitFacts::default()), Some((WaitReason::Other, "")), "an unknown stack");
    }

    #[test]
    fn a_write_to_a_file_with_o_dsync_is_no_plain_direct_io() {
        let facts = WaitFacts { is_sync_write: true, ..WaitFacts::default() };
        let direct = "blk_io_schedule __iomap_dio_rw ext4_dio_write_iter vfs_write";
        assert_eq!(reason_of(direct, facts).map(|found| found.0), Some(WaitReason::SyncWrite));
        let lock = "rwsem_down_write_slowpath down_write ext4_dio_write_iter vfs_write";
        assert_eq!(reason_of(lock, facts).map(|found| found.0), Some(WaitReason::Lock));
    }

    #[test]
    fn a_sleep_is_a_wait_only_for_asynchronous_io() {
        let facts = WaitFacts { is_interruptible: true, ..WaitFacts::default() };
        let uring = "io_cqring_wait __do_sys_io_uring_enter do_syscall_64";
        assert_eq!(reason_of(uring, facts).map(|found| found.0), Some(WaitReason::DirectIo));
        assert_eq!(reason_of("do_nanosleep hrtimer_nanosleep", facts), None);
    }
}
