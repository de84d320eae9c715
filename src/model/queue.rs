//! Settings of a device's request queue.
//!
//! Source: Documentation/ABI/stable/sysfs-block. A read may block forever while another task changes
//! a setting of a device that makes no progress, so they are read in a child process.

use serde::{Deserialize, Serialize};

/// `/sys/block/NAME/queue/*`; `None` where the device or the kernel does not have the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueAttrs {
    /// The active scheduler; `none` if there is none.
    pub scheduler: Option<String>,
    pub schedulers: Vec<String>,
    /// Whether the device claims to be rotational. Virtual disks often wrongly say 1.
    pub rotational: Option<bool>,
    /// Whether the kernel counts its requests in `/proc/diskstats`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iostats: Option<bool>,
    /// Requests that may be queued in each direction.
    pub nr_requests: Option<u64>,
    pub read_ahead_kb: Option<u64>,
    /// Latency target of writeback throttling in microseconds; 0 is off.
    pub wbt_lat_usec: Option<i64>,
    /// Largest request of the block layer, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Largest request of the hardware, KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// Smallest transfer, bytes.
    pub logical_block_size: Option<u64>,
    /// Smallest write without read-modify-write, bytes.
    pub physical_block_size: Option<u64>,
    /// Smallest efficient request (a RAID chunk, for example), bytes; 0 unknown.
    pub minimum_io_size: Option<u64>,
    /// Best request size (a whole RAID stripe, for example), bytes; 0 unknown.
    pub optimal_io_size: Option<u64>,
    /// `write back` or `write through`: whether flushes are sent.
    pub write_cache: Option<String>,
    /// Whether single writes can bypass the cache.
    pub fua: Option<bool>,
    /// Largest discard, bytes; 0 if the device does not support it.
    pub discard_max_bytes: Option<u64>,
    /// `none`, `host-aware` or `host-managed`.
    pub zoned: Option<String>,
    /// Merging: 0 all, 1 simple merges only, 2 none.
    pub nomerges: Option<u64>,
    /// On which CPU a request completes: 1 in the group of the submitter, 2 on the submitter's CPU.
    pub rq_affinity: Option<u64>,
}
