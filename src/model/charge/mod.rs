//! Who does the I/O of the devices, counted by the kernel request by request: for each process, control group and
//! device; and for whom page cache is written back. The kernel's side is `assets/trace/charge.bpf.c`.
//!
//! Beside the counters of `/proc/PID/io`, which say how much a process read and dirtied, never where it went, how many
//! requests it took or how long they lasted.

mod derive;
mod times;

use super::disk::DevId;
use super::latency::Counts;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use derive::{Apart, Charge, Charged, Figures, OnDevice};
pub use times::TIMES;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Reads, by who submitted them.
    Read,
    /// Writes, by who submitted them: a flusher or jbd2 for page cache.
    Write,
    /// Flushes of the device's own cache.
    Flush,
    /// Page cache written back, by who dirtied the file last; the process is 0 where that is not known.
    Back,
    /// Swapped out; the process is 0.
    Swapped,
    /// Metadata of a file system, written from its device's page cache; the process is 0.
    Metadata,
}

impl Kind {
    /// In the order in which recordings number them.
    pub const ALL: [Kind; 6] =
        [Kind::Read, Kind::Write, Kind::Flush, Kind::Back, Kind::Swapped, Kind::Metadata];
}

/// Whose account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Process id.
    pub pid: u32,
    /// The whole device.
    pub dev: DevId,
    /// Control group, by the number of its directory; 0: not known.
    pub group: u64,
    /// What.
    pub kind: Kind,
}

/// What has been counted since the account was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Whose.
    pub key: Key,
    /// Requests completed; of what is written back: pieces.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time from allocation to completion, ns, summed up.
    pub ns: u64,
    /// How those times are spread; see [`TIMES`].
    pub times: Counts,
}

/// One reading of all accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeRaw {
    /// By key. One that was closed after its process had ended may come back at 0.
    pub accounts: Vec<Account>,
    /// Names of the processes in them, as they had them when they did I/O; by process id.
    pub names: Vec<(u32, Arc<str>)>,
    /// Paths of the control groups in them, as far as they are known; by number, cleaned.
    pub groups: Vec<(u64, Arc<str>)>,
    /// Requests that could not be followed or had no room for an account.
    pub lost: u64,
    /// What of it could not be had, and why.
    pub without: Vec<String>,
}

impl ChargeRaw {
    /// Bytes written back for a process since tracing began, of a device or of all.
    pub fn written_back(&self, pid: u32, dev: Option<DevId>) -> u64 {
        let from = self.accounts.partition_point(|a| a.key.pid < pid);
        let own = self.accounts[from..].iter().take_while(|a| a.key.pid == pid);
        own.filter(|a| a.key.kind == Kind::Back && dev.is_none_or(|dev| dev == a.key.dev))
            .fold(0, |sum, a| sum.saturating_add(a.bytes))
    }
}
