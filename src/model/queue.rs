//! Settings of a device's request queue.
//!
//! Source: Documentation/ABI/stable/sysfs-block. Whoever reads them may be blocked for good while another
//! task changes one on a device that makes no progress, so they come from a child process.

use serde::{Deserialize, Serialize};

/// `/sys/block/NAME/queue/*`; `None` where the device or the kernel does not have the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueAttrs {
    /// The active scheduler; `none` for devices that need none.
    pub scheduler: Option<String>,
    /// All the kernel offers for it now.
    pub schedulers: Vec<String>,
    /// Whether it says of itself that it spins. A hint: virtual disks often say 1.
    pub rotational: Option<bool>,
    /// Requests that may be queued in each direction.
    pub nr_requests: Option<u64>,
    /// Read-ahead, KiB.
    pub read_ahead_kb: Option<u64>,
    /// Writeback throttling's latency target in microseconds; 0 is off.
    pub wbt_lat_usec: Option<i64>,
    /// Largest request the block layer makes, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Largest request the hardware takes, KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// Smallest unit of a transfer, bytes.
    pub logical_block_size: Option<u64>,
    /// Smallest unit without a read-modify-write, bytes.
    pub physical_block_size: Option<u64>,
    /// Smallest request that does not hurt (a RAID chunk, say), bytes; 0 unknown.
    pub minimum_io_size: Option<u64>,
    /// Best request (a whole RAID stripe, say), bytes; 0 unknown.
    pub optimal_io_size: Option<u64>,
    /// `write back` or `write through`: whether flushes are sent.
    pub write_cache: Option<String>,
    /// Whether single writes can go past the cache.
    pub fua: Option<bool>,
    /// Largest discard, bytes; 0: the device discards nothing.
    pub discard_max_bytes: Option<u64>,
    /// `none`, `host-aware` or `host-managed`.
    pub zoned: Option<String>,
    /// Merging: 0 all, 1 only simple, 2 none.
    pub nomerges: Option<u64>,
    /// On which CPU a request completes.
    pub rq_affinity: Option<u64>,
}
