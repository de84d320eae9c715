//! Syncs: which process waits for which file, how long, and on what. Counted in the kernel by process, file and system
//! call while requested.
//!
//! The BPF program is `assets/trace/syncs.bpf.c`. Times are those of the system call, from entry to exit.

mod activity;
pub mod columns;
pub(crate) mod list;
mod wait;

pub use activity::SyncActivity;
pub(crate) use activity::SyncRate;
pub(crate) use columns::{SlowSyncRow, SyncRow};
pub(crate) use wait::{ON_CPU, wait_text};

use super::disk::DevId;
use super::file_path;
use super::latency::SparseHistogram;
use super::raw_bytes::RawBytes;
use super::topology::Topology;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Default threshold of slow syncs, in milliseconds.
pub const SLOW_THRESHOLD_MS: u64 = 10;
/// Reason for missing syncs while nothing requests them, which is not an error; any other reason is one.
pub const NOT_REQUESTED: &str =
    "syncs are traced only in the views Syncs and Findings, with --pane syncs, or with record --syncs";
/// Whether a reason is [`NOT_REQUESTED`], also in the words of earlier recordings.
pub(crate) fn is_not_requested(why: &str) -> bool {
    why.starts_with("syncs are traced only ")
}

/// Maximum number of slow syncs in a reading, the newest.
pub const MAX_SLOW_SYNCS: usize = 128;

/// System calls that wait until data is on the disk, numbered as in the BPF program.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SyncCall {
    /// fsync(2)
    #[default]
    Fsync,
    /// fdatasync(2)
    Fdatasync,
    /// sync_file_range(2)
    SyncFileRange,
    /// msync(2) with MS_SYNC
    Msync,
    /// syncfs(2)
    Syncfs,
    /// sync(2)
    Sync,
}

impl SyncCall {
    /// Name of the system call.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A process, a file, and the system call that syncs it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SyncFile {
    /// The process; its threads are counted together.
    pub pid: u32,
    /// System call.
    pub call: SyncCall,
    /// Number of the file system, of a device or of none ([`MountRef::file_system`]); 0:0 if the file is unknown (sync,
    /// msync).
    ///
    /// [`MountRef::file_system`]: super::topology::MountRef::file_system
    pub device: DevId,
    /// Inode number; 0 for a whole file system.
    pub ino: u64,
    /// The process's name.
    pub comm: RawBytes,
    /// The last components of its path within the file system, at most six; empty for a whole file system.
    pub path_tail: RawBytes,
    /// Whether [`SyncFile::path_tail`] begins at the root of the file system.
    pub is_full_path: bool,
}

impl SyncFile {
    /// Identity.
    pub fn key(&self) -> (u32, SyncCall, DevId, u64) {
        (self.pid, self.call, self.device, self.ino)
    }

    /// Number of the file system it is on, if any.
    pub fn file_system(&self) -> Option<DevId> {
        (self.device != DevId::default()).then_some(self.device)
    }

    /// The devices that hold its file system, the main one first; empty if they are not known.
    pub fn devices(&self, topo: Option<&Topology>) -> Vec<DevId> {
        topo.map(|topo| topo.file_system_devices(self.device)).unwrap_or_default()
    }

    /// Its path for display, sanitized: below the mount point if known, otherwise the known end of it.
    pub fn display_path(&self, topo: Option<&Topology>) -> String {
        match self.call {
            SyncCall::Sync => return "every file system".into(),
            SyncCall::Msync => return "a mapped file".into(),
            _ if self.file_system().is_none() => return "-".into(),
            _ => {}
        }
        let mount = file_path::mount_point(topo, self.device);
        match mount.as_deref() {
            Some("") if self.path_tail.is_empty() => "/".into(),
            Some(mount) if self.path_tail.is_empty() => mount.into(),
            None if self.path_tail.is_empty() => "a file system".into(),
            mount => file_path::join(mount, &self.path_tail, self.is_full_path),
        }
    }
}

/// Counters since tracing began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncCounts {
    /// Process, file and system call.
    pub file: Arc<SyncFile>,
    /// Completed calls.
    pub calls: u64,
    /// Failed calls.
    pub errors: u64,
    /// Total duration, ns.
    pub total_ns: u64,
    /// Longest duration, ns.
    pub max_ns: u64,
    /// CLOCK_BOOTTIME when the last one ended, ns.
    pub last_ended_ns: u64,
    /// Histogram of durations, in the buckets of [`super::latency`].
    pub histogram: SparseHistogram,
}

/// A slow sync that has completed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowSync {
    /// Sequence number.
    pub id: u64,
    /// Process, file and system call.
    pub file: Arc<SyncFile>,
    /// The thread.
    pub tid: u32,
    /// The thread's name.
    pub comm: RawBytes,
    /// CLOCK_BOOTTIME when it started, ns.
    pub started_ns: u64,
    /// Duration, ns.
    pub duration_ns: u64,
    /// `errno`, 0 on success.
    pub error: u32,
    /// The kernel function in which it was most often found waiting; `None` if it was never found waiting.
    pub waiting_on: Option<String>,
}

/// A sync in flight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlightSync {
    /// Process, file and system call.
    pub file: Arc<SyncFile>,
    /// The thread.
    pub tid: u32,
    /// CLOCK_BOOTTIME when it started, ns.
    pub started_ns: u64,
    /// The kernel function in which it was most often found waiting.
    pub waiting_on: Option<String>,
}

/// What was dropped since tracing began because a table was full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncDrops {
    /// Files whose syncs are not counted.
    pub files: u64,
    /// Slow syncs that are not listed.
    pub slow: u64,
    /// Syncs that were not traced.
    pub in_flight: u64,
}

/// One reading of all counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncsRaw {
    /// CLOCK_BOOTTIME when tracing of syncs started, ns.
    pub tracing_started_ns: u64,
    /// CLOCK_BOOTTIME of this reading, ns.
    pub read_ns: u64,
    /// Threshold of slow syncs, ns.
    pub threshold_ns: u64,
    /// All counters, sorted by [`SyncFile::key`].
    pub files: Vec<SyncCounts>,
    /// The newest slow syncs, oldest first.
    pub slow: Vec<Arc<SlowSync>>,
    /// Syncs in flight, longest first.
    pub in_flight: Vec<InFlightSync>,
    /// What was dropped.
    pub drops: SyncDrops,
    /// Syncs by io_uring, which are not timed; `None` if unknown.
    pub io_uring: Option<u64>,
    /// What could not be traced, and why.
    pub unavailable: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::super::topology::{BlockDevice, MountRef};
    use super::*;

    #[test]
    fn paths_show_all_that_is_known() {
        let id = DevId { major: 8, minor: 1 };
        let mount =
            |at: &str, bind| MountRef { mount_point: at.as_bytes().into(), is_bind: bind, ..Default::default() };
        let mounts = vec![mount("/other", true), mount("/var/lib", false)];
        let topo = Topology { devices: vec![BlockDevice { id, mounts, ..Default::default() }] };
        let file = |call, names: &str, whole| SyncFile {
            call,
            device: id,
            ino: 7,
            path_tail: names.as_bytes().into(),
            is_full_path: whole,
            ..Default::default()
        };
        for (file, known, unknown) in [
            (file(SyncCall::Fsync, "pg/wal\u{1b}", true), "/var/lib/pg/wal", "…/pg/wal"),
            (file(SyncCall::Fsync, "pg/wal", false), "/var/lib/…/pg/wal", "…/pg/wal"),
            (file(SyncCall::Syncfs, "", true), "/var/lib", "a file system"),
        ] {
            assert!(file.display_path(Some(&topo)).starts_with(known), "{}", file.display_path(Some(&topo)));
            assert!(file.display_path(None).starts_with(unknown), "{}", file.display_path(None));
            assert!(file.display_path(None).chars().all(crate::sanitize::is_safe));
        }
        let (file_system, subvolume) = (DevId { major: 0, minor: 44 }, "rw,subvol=/@".into());
        let btrfs = |super_options| MountRef { file_system, super_options, ..mount("/data", false) };
        for (super_options, path) in [("rw,subvol=/".into(), "/data/pg/wal"), (subvolume, "…/pg/wal")] {
            let device = BlockDevice { id, mounts: vec![btrfs(super_options)], ..Default::default() };
            let file = SyncFile { device: file_system, ..file(SyncCall::Fsync, "pg/wal", true) };
            assert_eq!(file.display_path(Some(&Topology { devices: vec![device] })), path);
        }
        assert_eq!(SyncFile { call: SyncCall::Sync, ..Default::default() }.display_path(None), "every file system");
        assert_eq!(SyncFile::default().display_path(None), "-");
    }
}
