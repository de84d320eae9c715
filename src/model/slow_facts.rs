//! Facts that the doctor needs, that change rarely and are read by child processes every minute or so.
//!
//! Plain data, so that recordings can store them and rules can be tested without a kernel.

use super::containers::ContainerName;
use super::disk::DevId;
use super::health::{DeviceHealth, HealthLeftOut};
use super::path::FilesystemSpace;
use super::process::TaskKey;
use super::raw_bytes::RawBytes;
use super::reading::Reading;
use super::timestamp::Timestamp;
pub(crate) use crate::parse::thin_pool::{BlockCount, ThinPoolMode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything except free space, at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemFacts {
    /// When reading began.
    #[serde(rename = "at")]
    pub time: Timestamp,
    /// Kernel settings by name (`vm.swappiness`, `kernel.task_delayacct`), as the kernel prints them.
    pub knobs: BTreeMap<String, String>,
    /// Active setting of transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Option<String>,
    /// Requested processes that have opted out of transparent huge pages, while these are `always`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_thp: Vec<TaskKey>,
    /// Open files of the requested tasks.
    #[serde(rename = "files")]
    pub open_files: Vec<OpenFiles>,
    /// Control groups of those tasks, and their ancestors, if they have a limit.
    #[serde(rename = "groups")]
    pub cgroups: Vec<CgroupFacts>,
    /// Stored benchmark results from this machine that are relevant for a rule, newest first.
    pub results: Vec<BenchResultFacts>,
    /// Files on which those of the tasks in state D work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<TaskWait>,
    /// Devices and file systems that report errors or missing parts.
    #[serde(default)]
    pub health: Vec<DeviceHealth>,
    /// What is missing in that list.
    #[serde(default, skip_serializing_if = "HealthLeftOut::is_none")]
    pub health_left_out: HealthLeftOut,
    /// Thin pools, as far as device mapper may be asked about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thin_pools: Vec<ThinPoolFacts>,
    /// Containers and what they are called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<ContainerName>,
}

/// Number of open files of a process, and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFiles {
    pub key: TaskKey,
    /// Open descriptors.
    pub open: u64,
    /// Soft limit; `None` if unlimited.
    pub soft: Option<u64>,
    /// Hard limit; `None` if unlimited.
    pub hard: Option<u64>,
}

/// The file of the system call that a task in state D is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWait {
    pub key: TaskKey,
    /// Number of the mount, as in the mount table.
    pub mount_id: u64,
    /// Its path as the task sees it.
    pub path: RawBytes,
}

/// A thin pool as device mapper reports it (Documentation/admin-guide/device-mapper/thin-provisioning.rst).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinPoolFacts {
    pub device: DevId,
    pub mode: ThinPoolMode,
    /// Without space writes wait, instead of failing at once.
    pub queues_writes: bool,
    /// It was made read-only on purpose.
    pub is_read_only: bool,
    /// Blocks of the data; `None` while the pool has failed.
    pub data: Option<BlockCount>,
    pub metadata: Option<BlockCount>,
    /// The kernel reports when no more blocks than these are free; `None` where that is not known.
    pub data_low_water_blocks: Option<u64>,
    pub metadata_low_water_blocks: Option<u64>,
}

/// A control group with a limit on I/O, memory or CPU (Documentation/admin-guide/cgroup-v2.rst and
/// cgroup-v1/blkio-controller.rst).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CgroupFacts {
    /// Path below the root of the hierarchy, sanitized.
    pub path: String,
    /// Requested processes in it or below it.
    pub pids: Vec<u32>,
    /// Limits on block devices, and the I/O since the group was created.
    pub io: Vec<CgroupIoLimit>,
    /// Whether its memory limit is of cgroup v1, where files have other names.
    #[serde(default)]
    pub is_v1_memory: bool,
    /// `memory.high` in bytes; `None` without a limit.
    pub memory_high: Option<u64>,
    /// `memory.max`, or `memory.limit_in_bytes` of v1, in bytes; `None` without a limit.
    pub memory_max: Option<u64>,
    /// `memory.current` in bytes.
    pub memory_now: Option<u64>,
    /// How often it was throttled for exceeding `memory.high`, since it was created.
    pub high_events: Option<u64>,
    /// How often an allocation reached `memory.max`, since it was created.
    pub max_events: Option<u64>,
    /// `cpu.max`: microseconds of CPU time per period, and the period.
    pub cpu_max: Option<(u64, u64)>,
    /// Periods in which it ran, and those in which it was throttled.
    pub cpu_periods: Option<(u64, u64)>,
}

/// A control group's limit on one device; `None` without such a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupIoLimit {
    pub device: DevId,
    pub read_bytes_per_s: Option<u64>,
    pub write_bytes_per_s: Option<u64>,
    pub reads_per_s: Option<u64>,
    pub writes_per_s: Option<u64>,
    /// I/O since the group was created: bytes read, bytes written, reads, writes. `None` if not reported.
    #[serde(rename = "moved")]
    pub transferred: Option<[u64; 4]>,
}

/// What the rules use of a stored benchmark result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchResultFacts {
    /// Its name.
    pub id: String,
    pub profile: String,
    /// Start time, RFC 3339.
    pub time: String,
    /// Directory, sanitized.
    pub directory: String,
    /// `major:minor` of the device below.
    pub device: Option<String>,
    /// Where that was mounted, sanitized; empty in recordings of versions that did not store it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mount: String,
    /// What its disk calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Mean IOPS of the first and of the last fifth, if they fell to less than half and stayed there.
    pub burst: Option<(f64, f64)>,
    /// Milliseconds to fork a process with 1 GiB.
    pub fork_ms_per_gb: Option<f64>,
}

/// Free space of mounted file systems at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpaceReport {
    /// When reading began.
    #[serde(rename = "at")]
    pub time: Timestamp,
    /// Network file systems, not local ones.
    #[serde(rename = "network")]
    pub is_network: bool,
    pub mounts: Vec<MountSpace>,
}

/// Free space of one mount.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountSpace {
    #[serde(rename = "point")]
    pub mount_point: RawBytes,
    /// statfs(2).
    pub space: Reading<FilesystemSpace>,
}

/// The newest facts and the previous ones, for differences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowFacts {
    #[serde(rename = "now")]
    pub latest: Option<SystemFacts>,
    #[serde(rename = "before")]
    pub previous: Option<SystemFacts>,
    #[serde(rename = "room")]
    pub local_space: Option<SpaceReport>,
    #[serde(rename = "network_room")]
    pub network_space: Option<SpaceReport>,
}

impl SlowFacts {
    /// Stores newer facts.
    pub fn update(&mut self, facts: SystemFacts) {
        self.previous = self.latest.replace(facts);
    }

    pub fn update_space(&mut self, room: SpaceReport) {
        let slot = if room.is_network { &mut self.network_space } else { &mut self.local_space };
        *slot = Some(room);
    }

    /// A kernel setting as a number.
    pub fn knob_number(&self, knob: &str) -> Option<i64> {
        self.latest.as_ref()?.knobs.get(knob)?.parse().ok()
    }

    /// Seconds between the two newest readings; `None` before the second.
    pub fn interval_secs(&self) -> Option<f64> {
        let secs = self.latest.as_ref()?.time.secs_since(self.previous.as_ref()?.time);
        (secs > 0.0).then_some(secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_moves_the_latest_facts_to_previous() {
        let at = |s: u64| SystemFacts {
            time: Timestamp { boot_ns: s * 1_000_000_000, wall_ns: 0 },
            ..SystemFacts::default()
        };
        let mut known = SlowFacts::default();
        known.update(at(10));
        assert_eq!(known.interval_secs(), None);
        known.update(at(25));
        assert_eq!(known.interval_secs(), Some(15.0));
        known.update_space(SpaceReport { is_network: true, ..SpaceReport::default() });
        assert!(known.local_space.is_none() && known.network_space.is_some());
    }

    #[test]
    fn facts_round_trip_through_json() {
        let mut facts = SystemFacts { thp: Some("always".into()), ..SystemFacts::default() };
        facts.knobs.insert("kernel.hung_task_warnings".into(), "-1".into());
        facts.cgroups.push(CgroupFacts {
            io: vec![CgroupIoLimit { transferred: Some([1, 2, 3, 4]), ..CgroupIoLimit::default() }],
            cpu_max: Some((50_000, 100_000)),
            ..CgroupFacts::default()
        });
        let known = SlowFacts { latest: Some(facts), ..SlowFacts::default() };
        let back: SlowFacts = serde_json::from_str(&serde_json::to_string(&known).unwrap()).unwrap();
        assert_eq!(back, known);
        assert_eq!(back.knob_number("kernel.hung_task_warnings"), Some(-1));
    }
}
