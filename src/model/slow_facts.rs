//! Slow facts: what matters for a diagnosis and changes rarely, read every so often in child processes.
//!
//! Plain data, so that a recording can hold it and a rule can be tested without a kernel.

use super::path::FilesystemSpace;
use super::process::TaskKey;
use super::raw_bytes::RawBytes;
use super::reading::Reading;
use super::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything but file systems, as of one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemFacts {
    /// When the reading began.
    #[serde(rename = "at")]
    pub time: Timestamp,
    /// Kernel settings by name (`vm.swappiness`, `kernel.task_delayacct`), as the kernel prints them.
    pub knobs: BTreeMap<String, String>,
    /// The active word of transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Option<String>,
    /// Open files of the tasks asked about.
    #[serde(rename = "files")]
    pub open_files: Vec<OpenFiles>,
    /// Control groups of those tasks, and the groups above them, that have a limit.
    #[serde(rename = "groups")]
    pub cgroups: Vec<CgroupFacts>,
    /// Kept benchmark results that say something about this machine, newest first.
    pub results: Vec<BenchResultFacts>,
}

/// A process' open files against its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenFiles {
    /// Who.
    pub key: TaskKey,
    /// Descriptors open.
    pub open: u64,
    /// Soft limit; `None`: unlimited.
    pub soft: Option<u64>,
    /// Hard limit; `None`: unlimited.
    pub hard: Option<u64>,
}

/// A control group with a limit on I/O, memory or CPU (Documentation/admin-guide/cgroup-v2.rst and
/// cgroup-v1/blkio-controller.rst).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CgroupFacts {
    /// Path below the hierarchy's root, cleaned.
    pub path: String,
    /// Processes asked about that are in it or below it.
    pub pids: Vec<u32>,
    /// Limits on block devices with what went through since the group was made.
    pub io: Vec<CgroupIoLimit>,
    /// `memory.high` in bytes; `None`: no limit.
    pub memory_high: Option<u64>,
    /// `memory.max` in bytes; `None`: no limit.
    pub memory_max: Option<u64>,
    /// `memory.current` in bytes.
    pub memory_now: Option<u64>,
    /// Times it was throttled for being above `memory.high`, since it was made.
    pub high_events: Option<u64>,
    /// Times an allocation met `memory.max`, since it was made.
    pub max_events: Option<u64>,
    /// `cpu.max`: microseconds of CPU in a period, and the period.
    pub cpu_max: Option<(u64, u64)>,
    /// Periods in which it ran, and those in which it was stopped.
    pub cpu_periods: Option<(u64, u64)>,
}

/// A group's limit on one device; `None`: none of that kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupIoLimit {
    /// The device's number.
    pub device: super::disk::DevId,
    /// Bytes read per second at most.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes written per second at most.
    pub write_bytes_per_s: Option<u64>,
    /// Reads per second at most.
    pub reads_per_s: Option<u64>,
    /// Writes per second at most.
    pub writes_per_s: Option<u64>,
    /// Moved since the group was made: bytes read, bytes written, reads, writes. `None`: not told.
    #[serde(rename = "moved")]
    pub transferred: Option<[u64; 4]>,
}

/// What a kept benchmark result says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchResultFacts {
    /// Its name.
    pub id: String,
    /// Its profile.
    pub profile: String,
    /// When it began, RFC 3339.
    pub time: String,
    /// Where, cleaned.
    pub directory: String,
    /// `major:minor` of the device beneath.
    pub device: Option<String>,
    /// Mean IOPS of the first fifth and of the last, where it fell to less than half and stayed there.
    pub burst: Option<(f64, f64)>,
    /// What a fork of 1 GiB costs, ms.
    pub fork_ms_per_gb: Option<f64>,
}

/// How full the mounted file systems are, as of one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpaceReport {
    /// When the reading began.
    #[serde(rename = "at")]
    pub time: Timestamp,
    /// Local ones, or those of the network.
    #[serde(rename = "network")]
    pub is_network: bool,
    /// By mount point.
    pub mounts: Vec<MountSpace>,
}

/// A mount and its room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountSpace {
    /// Where.
    #[serde(rename = "point")]
    pub mount_point: RawBytes,
    /// statfs(2).
    pub space: Reading<FilesystemSpace>,
}

/// What is known of the slow facts: the newest and the ones before, for what grows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowFacts {
    /// The newest.
    #[serde(rename = "now")]
    pub latest: Option<SystemFacts>,
    /// Those before.
    #[serde(rename = "before")]
    pub previous: Option<SystemFacts>,
    /// Local file systems.
    #[serde(rename = "room")]
    pub local_space: Option<SpaceReport>,
    /// Network file systems.
    #[serde(rename = "network_room")]
    pub network_space: Option<SpaceReport>,
}

impl SlowFacts {
    /// Takes in newer facts.
    pub fn update(&mut self, facts: SystemFacts) {
        self.previous = self.latest.replace(facts);
    }

    /// Takes in the room of mounts.
    pub fn update_space(&mut self, room: SpaceReport) {
        let slot = if room.is_network { &mut self.network_space } else { &mut self.local_space };
        *slot = Some(room);
    }

    /// A kernel setting as a number.
    pub fn knob_number(&self, knob: &str) -> Option<i64> {
        self.latest.as_ref()?.knobs.get(knob)?.parse().ok()
    }

    /// Seconds between the two newest facts; `None` before the second.
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
