//! I/O of files at the device: requests, bytes and times by device, file, process and direction. Counted in the kernel
//! while requested.
//!
//! The BPF program is `assets/trace/files.bpf.c`. Page cache is counted for its file when it is read or written back, so
//! these are the bytes of the device, not those of read(2) and write(2).

mod activity;
pub mod columns;
pub(crate) mod list;

pub use activity::FileActivity;
pub(crate) use activity::{FileIoRates, FileRate};
pub(crate) use columns::FileRow;

use super::disk::DevId;
use super::latency::SparseHistogram;
use super::raw_bytes::RawBytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Reason for missing files while nothing requests them, which is not an error; any other reason is one.
pub const NOT_REQUESTED: &str =
    "I/O of files is traced only in the view Files, with --pane files, or with record --files";

/// What I/O is for, numbered as in the BPF program. Recordings number the classes in this order.
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
pub enum FileClass {
    /// Data of a file.
    File,
    /// Metadata of a file system: inodes, directories, allocation.
    Metadata,
    /// The journal of a file system.
    Journal,
    /// Swapped in or out.
    Swap,
    /// A device that no file system has claimed, read or written directly.
    Device,
    /// Flushes of the device's cache, which have no data.
    Flush,
    /// Unknown.
    #[default]
    Unknown,
}

impl FileClass {
    /// Name of the class.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Identity of a file. A number is used again when its file was deleted; the generation tells the two apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId {
    /// Device number of its file system; 0:0 for I/O that belongs to no file.
    pub file_system: DevId,
    /// Inode number; 0 for I/O that belongs to no file.
    pub ino: u64,
    /// Generation of the inode.
    pub generation: u32,
}

/// Identity of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileIoKey {
    /// The whole device, not a partition.
    pub device: DevId,
    /// What it is for.
    pub class: FileClass,
    /// The file, if it is one's data.
    pub file: FileId,
    /// Process that submitted the requests, or for page cache the one that last dirtied the file; 0 if unknown.
    pub pid: u32,
    /// Writes, not reads.
    pub is_write: bool,
}

/// Counters since tracing of files began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIoAccount {
    /// Identity.
    pub key: FileIoKey,
    /// Requests completed. One with data of several files counts for the first of them.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Total time of those requests from allocation to completion, in ns.
    pub total_ns: u64,
    /// Histogram of those times, in [`super::io_accounting::LATENCY_BUCKETS`] buckets.
    pub histogram: SparseHistogram,
}

/// A file with its path.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileName {
    /// Identity.
    pub id: FileId,
    /// The last components of its path within the file system, at most ten; empty if it is unknown, as that of a
    /// deleted file. The name is that at the first I/O.
    pub path_tail: RawBytes,
    /// Whether [`FileName::path_tail`] begins at the root of the file system.
    pub is_full_path: bool,
}

/// One reading of all accounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIoRaw {
    /// CLOCK_BOOTTIME when tracing of files started, ns.
    pub tracing_started_ns: u64,
    /// CLOCK_BOOTTIME of this reading, ns.
    pub read_ns: u64,
    /// By key. An account that was idle for long may start again at 0.
    pub accounts: Vec<FileIoAccount>,
    /// By identity.
    pub files: Vec<Arc<FileName>>,
    /// Names of the processes at the time of their I/O, by process id; sanitized.
    pub processes: Vec<(u32, Arc<str>)>,
    /// Requests that could not be traced, or found no free account.
    pub dropped: u64,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}
