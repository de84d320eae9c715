//! Who waits for syncs, on which file, how long, and on what: counted in the kernel, a process, file and call at a
//! time, while somebody wants to know.
//!
//! The kernel's side is `assets/trace/syncs.bpf.c`. Times are those of the system call, from its begin to its end.

mod activity;
pub mod list;
mod wait;

pub use activity::{SyncActivity, SyncRate};
pub use list::{SlowSyncRow, SyncRow};
pub use wait::{ON_CPU, SyncWait, wait_text};

use super::disk::DevId;
use super::latency::SparseHistogram;
use super::raw_bytes::RawBytes;
use super::topology::Topology;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is called long where nothing else is said, in milliseconds.
pub const SLOW_THRESHOLD_MS: u64 = 10;
/// Why there are none while nobody asks for them, which is no trouble; any other reason is one.
pub const NOT_REQUESTED: &str = "syncs are traced only while somebody wants to know: in their view (key F) and that of the findings, with --pane syncs, or record --syncs";
/// Slow syncs that a reading holds at most, the newest.
pub const MAX_SLOW_SYNCS: usize = 128;

/// System calls that wait until something is on the disk. The numbers are the kernel's side's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// All of them, by the numbers of the kernel's side.
    pub const ALL: [SyncCall; 6] = [
        SyncCall::Fsync,
        SyncCall::Fdatasync,
        SyncCall::SyncFileRange,
        SyncCall::Msync,
        SyncCall::Syncfs,
        SyncCall::Sync,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            SyncCall::Fsync => "fsync",
            SyncCall::Fdatasync => "fdatasync",
            SyncCall::SyncFileRange => "sync_file_range",
            SyncCall::Msync => "msync",
            SyncCall::Syncfs => "syncfs",
            SyncCall::Sync => "sync",
        }
    }
}

/// Who syncs what by which call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SyncFile {
    /// The process; its threads are counted together.
    pub pid: u32,
    /// How.
    pub call: SyncCall,
    /// The file system's device; 0:0 where no file is known (sync, msync).
    #[serde(rename = "dev")]
    pub device: DevId,
    /// The file; 0 for a whole file system.
    pub ino: u64,
    /// The process's name.
    pub comm: RawBytes,
    /// The end of its path within the file system, at most six parts; empty for a whole file system.
    #[serde(rename = "names")]
    pub path_tail: RawBytes,
    /// [`SyncFile::names`] begins at the file system's root.
    #[serde(rename = "whole")]
    pub is_full_path: bool,
}

impl SyncFile {
    /// What tells it from others.
    pub fn key(&self) -> (u32, SyncCall, DevId, u64) {
        (self.pid, self.call, self.device, self.ino)
    }

    /// The device it lies on, if there is one.
    pub fn device_id(&self) -> Option<DevId> {
        (self.device != DevId::default()).then_some(self.device)
    }

    /// Its path for people, cleaned: with the mount point where that is known, else what is known of its end.
    pub fn display_path(&self, topo: Option<&Topology>) -> String {
        let names = self.path_tail.sanitized();
        match self.call {
            SyncCall::Sync => return "every file system".into(),
            SyncCall::Msync => return "a mapped file".into(),
            _ if self.device_id().is_none() => return "-".into(),
            _ => {}
        }
        let mounts = topo.map_or(&[][..], |t| t.mounts_of(self.device));
        let mount = mounts.iter().find(|m| !m.is_bind && !m.is_hidden).map(|m| m.mount_point.sanitized());
        let mount = mount.as_deref().map(|m| m.trim_end_matches('/'));
        match (mount, self.is_full_path) {
            (Some(""), _) if self.path_tail.is_empty() => "/".into(),
            (Some(mount), _) if self.path_tail.is_empty() => mount.into(),
            (None, _) if self.path_tail.is_empty() => "a file system".into(),
            (Some(mount), true) => format!("{mount}/{names}"),
            (Some(mount), false) => format!("{mount}/…/{names}"),
            (None, _) => format!("…/{names}"),
        }
    }
}

/// What has been counted of one of them since tracing began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncCounts {
    /// Whose.
    pub file: Arc<SyncFile>,
    /// Calls that are over.
    pub calls: u64,
    /// Those that failed.
    pub errors: u64,
    /// All their time, ns.
    pub total_ns: u64,
    /// The longest, ns.
    #[serde(rename = "worst_ns")]
    pub max_ns: u64,
    /// CLOCK_BOOTTIME when the last one was over, ns.
    #[serde(rename = "last_ns")]
    pub last_ended_ns: u64,
    /// How long they took, in the buckets of [`super::latency`].
    #[serde(rename = "counts")]
    pub histogram: SparseHistogram,
}

/// A sync that took long and is over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowSync {
    /// Counts up; tells it from others.
    pub id: u64,
    /// What.
    pub file: Arc<SyncFile>,
    /// The thread.
    pub tid: u32,
    /// The thread's name.
    pub comm: RawBytes,
    /// CLOCK_BOOTTIME when it began, ns.
    #[serde(rename = "began_ns")]
    pub started_ns: u64,
    /// How long it took, ns.
    #[serde(rename = "took_ns")]
    pub duration_ns: u64,
    /// `errno`, 0 if it went well.
    pub error: u32,
    /// The kernel's function in which it was found waiting most often; `None`: it was not caught waiting.
    #[serde(rename = "on")]
    pub waiting_on: Option<String>,
}

/// A sync under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlightSync {
    /// What.
    pub file: Arc<SyncFile>,
    /// The thread.
    pub tid: u32,
    /// CLOCK_BOOTTIME when it began, ns.
    #[serde(rename = "began_ns")]
    pub started_ns: u64,
    /// The kernel's function in which it waits most.
    #[serde(rename = "on")]
    pub waiting_on: Option<String>,
}

/// What there was no room for, since tracing began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncDrops {
    /// A further process and file: its syncs are not in the counts.
    pub files: u64,
    /// Slow syncs that are not listed.
    pub slow: u64,
    /// Syncs that were not followed at all.
    #[serde(rename = "flying")]
    pub in_flight: u64,
}

/// One reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncsRaw {
    /// CLOCK_BOOTTIME when tracing of syncs began, ns.
    #[serde(rename = "began_ns")]
    pub tracing_started_ns: u64,
    /// CLOCK_BOOTTIME of this reading, ns.
    #[serde(rename = "at_ns")]
    pub read_ns: u64,
    /// What is called long, ns.
    pub threshold_ns: u64,
    /// All counts, by [`SyncFile::key`].
    pub files: Vec<SyncCounts>,
    /// The newest slow ones, oldest first.
    pub slow: Vec<Arc<SlowSync>>,
    /// Under way, longest first.
    #[serde(rename = "flying")]
    pub in_flight: Vec<InFlightSync>,
    /// What there was no room for.
    #[serde(rename = "lost")]
    pub drops: SyncDrops,
    /// Syncs handed to io_uring, which are not timed; `None` where that is not known.
    #[serde(rename = "uring")]
    pub io_uring: Option<u64>,
    /// What of it could not be had, and why.
    #[serde(rename = "without")]
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
        assert_eq!(SyncFile { call: SyncCall::Sync, ..Default::default() }.display_path(None), "every file system");
        assert_eq!(SyncFile::default().display_path(None), "-");
    }

    #[test]
    fn call_numbers_match_their_positions() {
        for (at, call) in SyncCall::ALL.into_iter().enumerate() {
            assert_eq!(call as usize, at);
        }
    }
}
