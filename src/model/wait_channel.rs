//! What a task waits for, by the kernel function that it sleeps in (/proc/PID/wchan).

/// A kernel function that tasks sleep in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WaitChannel {
    /// How its name begins: compilers add suffixes.
    pub(crate) function: &'static str,
    /// In one or two words, for a column.
    pub(crate) short: &'static str,
    /// In a sentence: "waits for ...".
    pub(crate) meaning: &'static str,
    /// Whether what it waits for needs a block device.
    pub(crate) is_of_device: bool,
}

const fn of_device(function: &'static str, short: &'static str, meaning: &'static str) -> WaitChannel {
    WaitChannel { function, short, meaning, is_of_device: true }
}

const fn of_other(function: &'static str, short: &'static str, meaning: &'static str) -> WaitChannel {
    WaitChannel { function, short, meaning, is_of_device: false }
}

/// Where a writer waits for a frozen file system.
pub(crate) const FREEZE_WAIT: &str = "percpu_rwsem_wait";

/// Where a task is kept while its control group is frozen: cgroup v1, as of `docker pause`, shows it in state D.
const FROZEN: &str = "__refrigerator";

/// Where sync waits for the flushers.
pub(crate) const FLUSH_WAIT: &str = "wb_wait_for_completion";

const FUSE_SERVER: &str = "the program that serves a FUSE file system";
const EXT4: &str = "ext4";
const EXT4_META: &str = "ext4, usually a block of its directories or maps being read";
const DIRECT_IO: &str = "a direct I/O request of the device";

/// The first that matches counts.
const WAIT_CHANNELS: &[WaitChannel] = &[
    of_other(FREEZE_WAIT, "frozen fs", "a file system that is frozen (fsfreeze, a snapshot)"),
    of_device(
        "balance_dirty_pages",
        "dirty limit",
        "too many dirty pages: the device writes slower than programs dirty them",
    ),
    of_device(FLUSH_WAIT, "writeback", "dirty pages to be written, as in sync"),
    of_device("submit_bio_wait", "device", "a request of the device"),
    of_device("blk_io_schedule", "direct I/O", DIRECT_IO),
    of_device("blkdev_direct_IO", "direct I/O", DIRECT_IO),
    of_device("iomap_dio_rw", "direct I/O", DIRECT_IO),
    of_device("__iomap_dio_rw", "direct I/O", DIRECT_IO),
    of_other("request_wait_answer", "FUSE server", FUSE_SERVER),
    of_other("fuse_", "FUSE server", FUSE_SERVER),
    of_other("rpc_wait_bit", "NFS server", "an NFS server"),
    of_other("nfs_", "NFS server", "an NFS server"),
    of_device("jbd2_log_wait_commit", "ext4 journal", "an ext4 journal commit"),
    of_device("wait_transaction_locked", "ext4 journal", "an ext4 journal commit"),
    of_device("do_get_write_access", "ext4 journal", "an ext4 journal commit that holds the block"),
    of_device("jbd2_", "ext4 journal", "the ext4 journal"),
    of_device("start_this_handle", "ext4 journal", "the ext4 journal"),
    of_device("ext4_", EXT4, EXT4_META),
    of_device("__ext4_", EXT4, EXT4_META),
    of_device("btrfs_", "btrfs", "btrfs, usually a transaction or a block of its trees"),
    of_device("xlog_", "XFS log", "the XFS log"),
    of_device("xfs_", "XFS", "XFS, usually its log or a page being written"),
    of_device("folio_wait", "page I/O", "a page being read or written"),
    of_device("__folio_lock", "page I/O", "a page being read or written"),
    of_device("wait_on_page", "page I/O", "a page being read or written"),
    of_device("__wait_on_buffer", "block I/O", "a block being read or written"),
    of_device("bit_wait_io", "block I/O", "a block being read or written"),
    of_device("rq_qos_wait", "device queue", "room in a device's queue: writes are held back for reads"),
    of_device("blk_mq_get_tag", "device queue", "room in a device's queue, which is full"),
    of_device("io_schedule", "device", "a request of a device"),
    of_device(
        "blk_mq_freeze_queue_wait",
        "device queue",
        "a device's queue that does not drain: its settings are changed, or it is removed",
    ),
    of_other(FROZEN, "frozen", "being thawed: it was frozen on purpose, as by docker pause"),
    of_other("kernel_clone", "child", "its child to run another program (vfork)"),
    of_other("synchronize_rcu", "kernel", "all CPUs to pass a point (RCU)"),
    of_other("rcu_barrier", "kernel", "all CPUs to pass a point (RCU)"),
    of_other("__flush_work", "kernel", "a worker of the kernel"),
    of_device("rwsem_down", "lock", "a lock held by another task: look for the one that waits for a device"),
];

/// Whether a task in this function was frozen on purpose: it does not hang.
pub(crate) fn is_frozen(function: &str) -> bool {
    function.starts_with(FROZEN)
}

/// What a task in this function waits for, if that is known.
pub(crate) fn find(function: &str) -> Option<&'static WaitChannel> {
    WAIT_CHANNELS.iter().find(|channel| function.starts_with(channel.function))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_with_suffixes_of_the_compiler() {
        assert_eq!(find("jbd2_log_wait_commit.constprop.0").map(|channel| channel.short), Some("ext4 journal"));
        assert_eq!(find("do_nanosleep"), None);
    }

    #[test]
    fn no_function_hides_a_later_one() {
        for (at, channel) in WAIT_CHANNELS.iter().enumerate() {
            assert_eq!(find(channel.function), Some(&WAIT_CHANNELS[at]), "{}", channel.function);
        }
    }
}
