//! Who does the I/O of the devices, counted by the kernel request by request: for each process, control group and
//! device; and for whom page cache is written back. The kernel's side is `assets/trace/charge.bpf.c`.
//!
//! Beside the counters of `/proc/PID/io`, which say how much a process read and dirtied, never where it went, how many
//! requests it took or how long they lasted.

mod coarse_histogram;
mod rates;

use super::disk::DevId;
use super::latency::SparseHistogram;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use coarse_histogram::LATENCY_BUCKETS;
pub use rates::{DeviceIo, IoAttribution, IoRates, OwnerIo, UnattributedIo};

/// What is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// Reads, by who submitted them.
    #[default]
    Read,
    /// Writes, by who submitted them: a flusher or jbd2 for page cache.
    Write,
    /// Flushes of the device's own cache.
    Flush,
    /// Page cache written back, by who dirtied the file last; the process is 0 where that is not known.
    #[serde(rename = "Back")]
    Writeback,
    /// Swapped out; the process is 0.
    #[serde(rename = "Swapped")]
    SwapOut,
    /// Metadata of a file system, written from its device's page cache; the process is 0.
    Metadata,
}

impl AccountKind {
    /// In the order in which recordings number them.
    pub const ALL: [AccountKind; 6] = [
        AccountKind::Read,
        AccountKind::Write,
        AccountKind::Flush,
        AccountKind::Writeback,
        AccountKind::SwapOut,
        AccountKind::Metadata,
    ];
}

/// Whose account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AccountKey {
    /// Process id.
    pub pid: u32,
    /// The whole device.
    #[serde(rename = "dev")]
    pub device: DevId,
    /// Control group, by the number of its directory; 0: not known.
    #[serde(rename = "group")]
    pub cgroup_id: u64,
    /// What.
    pub kind: AccountKind,
}

/// What has been counted since the account was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoAccount {
    /// Whose.
    pub key: AccountKey,
    /// Requests completed; of what is written back: pieces.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time from allocation to completion, ns, summed up.
    #[serde(rename = "ns")]
    pub total_ns: u64,
    /// How those times are spread; see [`TIMES`].
    #[serde(rename = "times")]
    pub histogram: SparseHistogram,
}

/// One reading of all accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoAccountsRaw {
    /// By key. One that was closed after its process had ended may come back at 0.
    pub accounts: Vec<IoAccount>,
    /// Names of the processes in them, as they had them when they did I/O; by process id.
    pub names: Vec<(u32, Arc<str>)>,
    /// Paths of the control groups in them, as far as they are known; by number, cleaned.
    #[serde(rename = "groups")]
    pub cgroups: Vec<(u64, Arc<str>)>,
    /// Requests that could not be followed or had no room for an account.
    #[serde(rename = "lost")]
    pub dropped: u64,
    /// What of it could not be had, and why.
    #[serde(rename = "without")]
    pub unavailable: Vec<String>,
}

impl IoAccountsRaw {
    /// Bytes written back for a process since tracing began, of a device or of all.
    pub fn written_back_bytes(&self, pid: u32, dev: Option<DevId>) -> u64 {
        let from = self.accounts.partition_point(|a| a.key.pid < pid);
        let own = self.accounts[from..].iter().take_while(|a| a.key.pid == pid);
        own.filter(|a| a.key.kind == AccountKind::Writeback && dev.is_none_or(|dev| dev == a.key.device))
            .fold(0, |sum, a| sum.saturating_add(a.bytes))
    }
}
