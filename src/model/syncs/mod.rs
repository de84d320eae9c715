//! Who waits for syncs, on which file, how long, and on what: counted in the kernel, a process, file and call at a
//! time, while somebody wants to know.
//!
//! The kernel's side is `assets/trace/syncs.bpf.c`. Times are those of the system call, from its begin to its end.

pub mod list;
mod rate;
mod wait;

pub use list::{SlowLine, SyncLine};
pub use rate::{SyncRate, Syncs};
pub use wait::{ON_CPU, Wait, on_text};

use super::disk::DevId;
use super::latency::Counts;
use super::raw::Raw;
use super::topology::Topology;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What is called long where nothing else is said, in milliseconds.
pub const THRESHOLD_MS: u64 = 10;
/// Why there are none while nobody asks for them, which is no trouble; any other reason is one.
pub const UNWANTED: &str = "syncs are traced only while somebody wants to know: in their view (key F) and that of the findings, with --pane syncs, or record --syncs";
/// Slow syncs that a reading holds at most, the newest.
pub const SLOW_KEPT: usize = 128;

/// System calls that wait until something is on the disk. The numbers are the kernel's side's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
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

impl Call {
    /// All of them, by the numbers of the kernel's side.
    pub const ALL: [Call; 6] =
        [Call::Fsync, Call::Fdatasync, Call::SyncFileRange, Call::Msync, Call::Syncfs, Call::Sync];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Call::Fsync => "fsync",
            Call::Fdatasync => "fdatasync",
            Call::SyncFileRange => "sync_file_range",
            Call::Msync => "msync",
            Call::Syncfs => "syncfs",
            Call::Sync => "sync",
        }
    }
}

/// Who syncs what by which call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SyncFile {
    /// The process; its threads are counted together.
    pub pid: u32,
    /// How.
    pub call: Call,
    /// The file system's device; 0:0 where no file is known (sync, msync).
    pub dev: DevId,
    /// The file; 0 for a whole file system.
    pub ino: u64,
    /// The process's name.
    pub comm: Raw,
    /// The end of its path within the file system, at most six parts; empty for a whole file system.
    pub names: Raw,
    /// [`SyncFile::names`] begins at the file system's root.
    pub whole: bool,
}

impl SyncFile {
    /// What tells it from others.
    pub fn key(&self) -> (u32, Call, DevId, u64) {
        (self.pid, self.call, self.dev, self.ino)
    }

    /// The device it lies on, if there is one.
    pub fn device(&self) -> Option<DevId> {
        (self.dev != DevId::default()).then_some(self.dev)
    }

    /// Its path for people, cleaned: with the mount point where that is known, else what is known of its end.
    pub fn path(&self, topo: Option<&Topology>) -> String {
        let names = self.names.clean();
        match self.call {
            Call::Sync => return "every file system".into(),
            Call::Msync => return "a mapped file".into(),
            _ if self.device().is_none() => return "-".into(),
            _ => {}
        }
        let mounts = topo.map_or(&[][..], |t| t.mounts_of(self.dev));
        let mount = mounts.iter().find(|m| !m.bind && !m.hidden).map(|m| m.mount_point.clean());
        let mount = mount.as_deref().map(|m| m.trim_end_matches('/'));
        match (mount, self.whole) {
            (Some(""), _) if self.names.is_empty() => "/".into(),
            (Some(mount), _) if self.names.is_empty() => mount.into(),
            (None, _) if self.names.is_empty() => "a file system".into(),
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
    pub worst_ns: u64,
    /// CLOCK_BOOTTIME when the last one was over, ns.
    pub last_ns: u64,
    /// How long they took, in the buckets of [`super::latency`].
    pub counts: Counts,
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
    pub comm: Raw,
    /// CLOCK_BOOTTIME when it began, ns.
    pub began_ns: u64,
    /// How long it took, ns.
    pub took_ns: u64,
    /// `errno`, 0 if it went well.
    pub error: u32,
    /// The kernel's function in which it was found waiting most often; `None`: it was not caught waiting.
    pub on: Option<String>,
}

/// A sync under way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flying {
    /// What.
    pub file: Arc<SyncFile>,
    /// The thread.
    pub tid: u32,
    /// CLOCK_BOOTTIME when it began, ns.
    pub began_ns: u64,
    /// The kernel's function in which it waits most.
    pub on: Option<String>,
}

/// What there was no room for, since tracing began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// A further process and file: its syncs are not in the counts.
    pub files: u64,
    /// Slow syncs that are not listed.
    pub slow: u64,
    /// Syncs that were not followed at all.
    pub flying: u64,
}

/// One reading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncsRaw {
    /// CLOCK_BOOTTIME when tracing of syncs began, ns.
    pub began_ns: u64,
    /// CLOCK_BOOTTIME of this reading, ns.
    pub at_ns: u64,
    /// What is called long, ns.
    pub threshold_ns: u64,
    /// All counts, by [`SyncFile::key`].
    pub files: Vec<SyncCounts>,
    /// The newest slow ones, oldest first.
    pub slow: Vec<Arc<SlowSync>>,
    /// Under way, longest first.
    pub flying: Vec<Flying>,
    /// What there was no room for.
    pub lost: Lost,
    /// Syncs handed to io_uring, which are not timed; `None` where that is not known.
    pub uring: Option<u64>,
    /// What of it could not be had, and why.
    pub without: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::super::topology::{BlockDev, MountRef};
    use super::*;

    #[test]
    fn paths_say_as_much_as_is_known() {
        let id = DevId { major: 8, minor: 1 };
        let mount =
            |at: &str, bind| MountRef { mount_point: at.as_bytes().into(), bind, ..Default::default() };
        let mounts = vec![mount("/other", true), mount("/var/lib", false)];
        let topo = Topology { devices: vec![BlockDev { id, mounts, ..Default::default() }] };
        let file = |call, names: &str, whole| SyncFile {
            call,
            dev: id,
            ino: 7,
            names: names.as_bytes().into(),
            whole,
            ..Default::default()
        };
        for (file, known, unknown) in [
            (file(Call::Fsync, "pg/wal\u{1b}", true), "/var/lib/pg/wal", "…/pg/wal"),
            (file(Call::Fsync, "pg/wal", false), "/var/lib/…/pg/wal", "…/pg/wal"),
            (file(Call::Syncfs, "", true), "/var/lib", "a file system"),
        ] {
            assert!(file.path(Some(&topo)).starts_with(known), "{}", file.path(Some(&topo)));
            assert!(file.path(None).starts_with(unknown), "{}", file.path(None));
            assert!(file.path(None).chars().all(crate::text::is_safe));
        }
        assert_eq!(SyncFile { call: Call::Sync, ..Default::default() }.path(None), "every file system");
        assert_eq!(SyncFile::default().path(None), "-");
    }

    #[test]
    fn the_numbers_of_calls_are_their_places() {
        for (at, call) in Call::ALL.into_iter().enumerate() {
            assert_eq!(call as usize, at);
        }
    }
}
