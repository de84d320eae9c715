//! Control groups: their I/O by device, pressure, memory and limits (Documentation/admin-guide/cgroup-v2.rst, and
//! cgroup-v1/).

mod activity;
pub mod columns;
pub(crate) mod list;

pub use activity::{ControlGroupActivity, ControlGroupRate, GroupDeviceRate};

use super::disk::DevId;
use super::slow_facts::CgroupFacts;
use serde::{Deserialize, Serialize};

/// The groups as they are at one time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlGroupsRaw {
    /// Parents before their children; without the root, which has no limits.
    pub groups: Vec<ControlGroupRaw>,
    /// Groups that were not read, because there are too many.
    pub left_out: u64,
}

/// One group. `None`: its controller is off, or its file is missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlGroupRaw {
    /// Its path, and its limits.
    pub limits: CgroupFacts,
    /// I/O since the group was created, with that of the groups below.
    pub io: Option<Vec<GroupDeviceIo>>,
    /// Microseconds in which a task of it waited for I/O, since it was created.
    pub io_stall_us: Option<u64>,
    /// Microseconds in which a task of it waited for memory, since it was created.
    pub memory_stall_us: Option<u64>,
    /// Memory that it uses, in bytes.
    pub memory: Option<u64>,
    /// Dirty page cache, in bytes.
    pub dirty: Option<u64>,
    /// Page cache under writeback, in bytes.
    pub writeback: Option<u64>,
    /// Swapped out, in bytes.
    pub swap: Option<u64>,
}

impl ControlGroupRaw {
    /// Its path below the root of the hierarchy, sanitized.
    pub fn path(&self) -> &str {
        &self.limits.path
    }
}

/// A group's I/O on one device since the group was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDeviceIo {
    /// The device.
    pub device: DevId,
    /// Bytes read, bytes written, reads, writes.
    pub counts: [u64; 4],
}
