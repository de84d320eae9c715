//! I/O by process, control group and device, counted by the kernel request by request, and writeback by the process
//! that dirtied the pages. The BPF program is `assets/trace/charge.h`.
//!
//! `/proc/PID/io` says how many bytes a process read and dirtied, but not on which device, in how many requests, or how
//! long they took.

pub mod delay;
pub(crate) mod rates;

use super::disk::DevId;
use super::latency::SparseHistogram;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(crate) use rates::{IoAttribution, IoRates, OwnerIo};

/// Buckets of a latency histogram: two per power of two, from 2^11 ns (2 us) to 2^33 ns (8.6 s). Each process has one on
/// each device, so they are small. A percentile is a bucket's midpoint, at most 25 % off; means are exact. `TIMES` in
/// `assets/trace/account.h`.
pub const LATENCY_BUCKETS: usize = 44;

/// Kind of I/O that is counted. Recordings number the kinds in this order.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// Reads, by the process that submitted them.
    #[default]
    Read,
    /// Writes, by the process that submitted them: a flusher or jbd2 for page cache.
    Write,
    /// Flushes of the device's cache.
    Flush,
    /// Page cache that another process wrote back, by the process that last dirtied the file; pid 0 if unknown. The times
    /// are those of the requests; recordings of earlier versions have none.
    Writeback,
    /// Swapped out; pid 0.
    SwapOut,
    /// Metadata of a file system, written from the page cache of its device; pid 0.
    Metadata,
    /// Discards, by the process that submitted them: a worker of the kernel for a mount with `discard`.
    Discard,
    /// Page cache that its dirtier wrote back itself, as by a sync; its requests are among its writes. Recordings of earlier
    /// versions count it as [`AccountKind::Writeback`].
    OwnWriteback,
}

/// Identity of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AccountKey {
    /// Process id.
    pub pid: u32,
    /// The whole device, not a partition.
    pub device: DevId,
    /// Control group, as the inode number of its directory; 0 if unknown.
    pub cgroup_id: u64,
    /// Kind of I/O.
    pub kind: AccountKind,
    /// The device takes bios (dm, md, zram). Of dm and md the disks below get the same I/O once more.
    pub is_stacked: bool,
}

/// Counters since the account was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoAccount {
    /// Identity.
    pub key: AccountKey,
    /// Requests completed; for writeback, extents written.
    pub requests: u64,
    /// Bytes of those requests.
    pub bytes: u64,
    /// Total time from allocation to completion, in ns.
    pub total_ns: u64,
    /// Histogram of those times, in [`LATENCY_BUCKETS`] buckets.
    pub histogram: SparseHistogram,
}

/// One reading of all accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoAccountsRaw {
    /// CLOCK_BOOTTIME when tracing began, ns; 0 in recordings of earlier versions.
    pub tracing_started_ns: u64,
    /// By key. An account that was closed when its process ended may start again at 0.
    pub accounts: Vec<IoAccount>,
    /// Names of the processes at the time of their I/O, by process id.
    pub names: Vec<(u32, Arc<str>)>,
    /// Known paths of the control groups by inode number; sanitized.
    pub cgroups: Vec<(u64, Arc<str>)>,
    /// Requests that could not be traced, or found no free account.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

impl IoAccountsRaw {
    /// Bytes written back of a process since tracing began, for one device or for all.
    pub fn written_back_bytes(&self, pid: u32, dev: Option<DevId>) -> u64 {
        let from = self.accounts.partition_point(|a| a.key.pid < pid);
        let own = self.accounts[from..].iter().take_while(|a| a.key.pid == pid);
        let is_writeback = |kind| matches!(kind, AccountKind::Writeback | AccountKind::OwnWriteback);
        own.filter(|a| is_writeback(a.key.kind) && dev.map_or(!a.key.is_stacked, |dev| dev == a.key.device))
            .fold(0, |sum, a| sum.saturating_add(a.bytes))
    }
}
