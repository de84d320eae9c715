//! Slow facts: what matters for a diagnosis and changes rarely, read every so often in child processes.
//!
//! Plain data, so that a recording can hold it and a rule can be tested without a kernel.

use super::clock::Clock;
use super::path::Space;
use super::process::TaskKey;
use super::raw::Raw;
use super::section::Section;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything but file systems, as of one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// When the reading began.
    pub at: Clock,
    /// Kernel settings by name (`vm.swappiness`, `kernel.task_delayacct`), as the kernel prints them.
    pub knobs: BTreeMap<String, String>,
    /// The active word of transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Option<String>,
    /// Open files of the tasks asked about.
    pub files: Vec<OpenFiles>,
    /// Control groups of those tasks, and the groups above them, that have a limit.
    pub groups: Vec<GroupFacts>,
    /// Kept benchmark results that say something about this machine, newest first.
    pub results: Vec<ResultFacts>,
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
pub struct GroupFacts {
    /// Path below the hierarchy's root, cleaned.
    pub path: String,
    /// Processes asked about that are in it or below it.
    pub pids: Vec<u32>,
    /// Limits on block devices with what went through since the group was made.
    pub io: Vec<IoLimit>,
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
pub struct IoLimit {
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
    pub moved: Option<[u64; 4]>,
}

/// What a kept benchmark result says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ResultFacts {
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
pub struct Room {
    /// When the reading began.
    pub at: Clock,
    /// Local ones, or those of the network.
    pub network: bool,
    /// By mount point.
    pub mounts: Vec<MountRoom>,
}

/// A mount and its room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MountRoom {
    /// Where.
    pub point: Raw,
    /// statfs(2).
    pub space: Section<Space>,
}

/// What is known of the slow facts: the newest and the ones before, for what grows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// The newest.
    pub now: Option<Facts>,
    /// Those before.
    pub before: Option<Facts>,
    /// Local file systems.
    pub room: Option<Room>,
    /// Network file systems.
    pub network_room: Option<Room>,
}

impl Known {
    /// Takes in newer facts.
    pub fn take(&mut self, facts: Facts) {
        self.before = self.now.replace(facts);
    }

    /// Takes in the room of mounts.
    pub fn take_room(&mut self, room: Room) {
        let slot = if room.network { &mut self.network_room } else { &mut self.room };
        *slot = Some(room);
    }

    /// A kernel setting as a number.
    pub fn number(&self, knob: &str) -> Option<i64> {
        self.now.as_ref()?.knobs.get(knob)?.parse().ok()
    }

    /// Seconds between the two newest facts; `None` before the second.
    pub fn apart_s(&self) -> Option<f64> {
        let secs = self.now.as_ref()?.at.secs_since(self.before.as_ref()?.at);
        (secs > 0.0).then_some(secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_pushes_the_one_before_back() {
        let at = |s: u64| Facts { at: Clock { boot_ns: s * 1_000_000_000, wall_ns: 0 }, ..Facts::default() };
        let mut known = Known::default();
        known.take(at(10));
        assert_eq!(known.apart_s(), None);
        known.take(at(25));
        assert_eq!(known.apart_s(), Some(15.0));
        known.take_room(Room { network: true, ..Room::default() });
        assert!(known.room.is_none() && known.network_room.is_some());
    }

    #[test]
    fn facts_survive_recording() {
        let mut facts = Facts { thp: Some("always".into()), ..Facts::default() };
        facts.knobs.insert("kernel.hung_task_warnings".into(), "-1".into());
        facts.groups.push(GroupFacts {
            io: vec![IoLimit { moved: Some([1, 2, 3, 4]), ..IoLimit::default() }],
            cpu_max: Some((50_000, 100_000)),
            ..GroupFacts::default()
        });
        let known = Known { now: Some(facts), ..Known::default() };
        let back: Known = serde_json::from_str(&serde_json::to_string(&known).unwrap()).unwrap();
        assert_eq!(back, known);
        assert_eq!(back.number("kernel.hung_task_warnings"), Some(-1));
    }
}
