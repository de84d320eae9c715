//! What tasks wait for: time asleep by process, reason, file, device and holder. Counted in the kernel while requested.
//!
//! The BPF program is `assets/trace/waits.bpf.c`. Time on a CPU, or waiting for one, is no wait.

mod activity;
pub(crate) mod list;
pub(crate) mod reason;

pub use activity::{TaskWaits, WaitRate};
pub use reason::WaitReason;

use super::disk::DevId;
use super::file_io::{FileId, FileName};
use super::memory_stalls::StallCounter;
use super::process::TaskKey;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Reason for missing waits while nothing requests them, which is not an error; any other reason is one.
pub const NOT_REQUESTED: &str =
    "what tasks wait for is traced only on the page of a task, with --waits, or with record --waits";

/// What a process waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WaitKey {
    /// Process id.
    pub pid: u32,
    /// Its start time in 1/100 s since boot, as [`TaskKey::starttime`].
    pub starttime: u64,
    /// What it waits for.
    pub reason: WaitReason,
    /// The file that is read, written or synced; the default one if it is unknown or there is none. Without an inode number
    /// only the file system is known.
    pub file: FileId,
    /// The device that the last request before the wait went to; 0:0 without one.
    pub device: DevId,
    /// Process that holds the lock; 0 if unknown.
    pub holder: u32,
    /// The kernel function in which it sleeps, as in `/proc/PID/wchan`; empty if unknown.
    pub function: Arc<str>,
}

impl WaitKey {
    /// Identity of the process.
    pub fn task(&self) -> TaskKey {
        TaskKey { pid: self.pid, tid: self.pid, starttime: self.starttime }
    }
}

/// Waits since tracing began; those that have not ended count until the reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitAccount {
    /// What is waited for.
    pub key: WaitKey,
    /// Number, time, and the longest since the previous reading. Threads are added up.
    pub waits: StallCounter,
}

/// One reading of all accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWaitsRaw {
    /// CLOCK_BOOTTIME when tracing began, ns.
    pub tracing_started_ns: u64,
    /// CLOCK_BOOTTIME of this reading, ns.
    pub read_ns: u64,
    /// By key. An account that was idle for long may start again at 0.
    pub accounts: Vec<WaitAccount>,
    /// By identity.
    pub files: Vec<Arc<FileName>>,
    /// Names of the processes, and of threads that hold a lock, by process id; sanitized.
    pub processes: Vec<(u32, Arc<str>)>,
    /// Waits that could not be followed.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}
