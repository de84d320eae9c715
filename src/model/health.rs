//! Health of arrays, paths, disks and file systems, as their drivers report it in sysfs. Nothing is asked of a disk.

use serde::{Deserialize, Serialize};

/// Health of one device or file system. Only what has something to say is stored; see [`Health::is_plain`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceHealth {
    /// Kernel name of the block device; of a btrfs file system one of its devices. Sanitized.
    pub device: String,
    pub health: Health,
}

/// How many of what has something to say was left out, because there was too much of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthLeftOut {
    pub disks: u64,
    /// Of everything else.
    pub others: u64,
}

impl HealthLeftOut {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Of what counts as one of these.
    pub(crate) fn like(self, health: &Health) -> u64 {
        match health {
            Health::Disk(_) => self.disks,
            _ => self.others,
        }
    }
}

/// What a driver reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Nothing.
    #[default]
    Unknown,
    Array(ArrayHealth),
    Disk(DiskHealth),
    Paths(PathHealth),
    Ext4(Ext4Errors),
    Btrfs(BtrfsHealth),
    Zram(ZramHealth),
    Cache(CacheHealth),
}

/// A software RAID (Documentation/admin-guide/md.rst).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayHealth {
    /// `raid1`, `raid5` ...
    pub level: String,
    /// Members that it should have.
    pub members: u64,
    /// Members that are missing.
    pub missing: u64,
    /// Names of members marked faulty.
    pub faulty: Vec<String>,
    /// `idle`, `resync`, `recover`, `check`, `repair`, `reshape`, `frozen`.
    pub sync_action: String,
    /// Sectors done and sectors in all, while a sync runs.
    pub sync_sectors: Option<(u64, u64)>,
    /// Sectors that differed in the last check or repair.
    pub mismatched_sectors: u64,
}

/// A SCSI or NVMe disk (Documentation/ABI: `state`, `ioerr_cnt`, `iotmo_cnt`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskHealth {
    /// `running`, `offline`, `transport-offline`, `blocked`; `live`, `resetting`, `connecting`, `dead` of NVMe.
    pub state: String,
    /// Commands that ended with an error since the disk was found. Harmless ones count, too.
    pub errors: Option<u64>,
    /// Commands that timed out since the disk was found; since Linux 5.19.
    pub timeouts: Option<u64>,
}

/// The paths of a multipath device, each with the state of its SCSI disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathHealth {
    pub paths: Vec<(String, String)>,
}

/// Errors that ext4 keeps in its superblock until the next fsck (Documentation/ABI/testing/sysfs-fs-ext4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ext4Errors {
    pub count: u64,
    /// Unix time of the last one, seconds; 0 if unknown.
    pub last_time: u64,
    /// Kernel function that found the last one.
    pub last_function: String,
}

/// A btrfs file system, from `/sys/fs/btrfs/UUID/devinfo` (fs/btrfs/sysfs.c).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BtrfsHealth {
    /// Label, or UUID.
    pub name: String,
    /// Names of the devices that are present.
    pub devices: Vec<String>,
    /// Members that are missing or have errors, by device id.
    pub members: Vec<BtrfsMember>,
}

/// A member of a btrfs file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BtrfsMember {
    pub id: u64,
    pub is_missing: bool,
    /// Errors of writing, reading, flushing, corruption and generation, until they are reset.
    pub errors: [u64; 5],
}

/// Names of [`BtrfsMember::errors`], as the kernel's file has them.
pub(crate) const BTRFS_ERRORS: [&str; 5] =
    ["write_errs", "read_errs", "flush_errs", "corruption_errs", "generation_errs"];

/// A compressed block device in memory (Documentation/admin-guide/blockdev/zram.rst), bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZramHealth {
    pub stored_bytes: u64,
    pub memory_bytes: u64,
    /// 0 without a limit.
    pub limit_bytes: u64,
    /// Writes that failed, most of them because memory ran out.
    pub failed_writes: u64,
}

/// A cache in front of a slow device: dm-cache (Documentation/admin-guide/device-mapper/cache.rst) or bcache
/// (Documentation/admin-guide/bcache.rst).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheHealth {
    /// `dm-cache`, `bcache`; `bcache cache` of the device that holds the cache.
    pub kind: String,
    /// `rw`, `ro`, `Fail` or `Error` of dm-cache; `no cache`, `clean`, `dirty` or `inconsistent` of bcache; empty if unknown.
    pub state: String,
    /// Its metadata has to be checked offline.
    pub needs_check: bool,
    /// Data that is in the cache only, bytes; `None` where the driver does not say it, as while dm-cache has failed.
    pub dirty_bytes: Option<u64>,
    /// Size of the cache, bytes; `None` where the driver does not say it.
    pub size_bytes: Option<u64>,
    /// I/O errors since the device was attached; `None` where they are not counted, as of dm-cache.
    pub io_errors: Option<u64>,
}

impl CacheHealth {
    /// Whether it does what it is for.
    pub fn works(&self) -> bool {
        !self.needs_check && !matches!(self.state.as_str(), "ro" | "Fail" | "Error" | "no cache" | "inconsistent")
    }
}

impl ArrayHealth {
    /// Whether a member is missing or faulty.
    pub fn is_degraded(&self) -> bool {
        self.missing > 0 || !self.faulty.is_empty()
    }

    /// Whether it copies or compares its members.
    pub fn is_syncing(&self) -> bool {
        matches!(self.sync_action.as_str(), "resync" | "recover" | "check" | "repair" | "reshape")
    }
}

/// States in which a SCSI disk (drivers/scsi/scsi_sysfs.c) or an NVMe controller (drivers/nvme/host/sysfs.c) accepts no
/// requests.
const NOT_WORKING: [&str; 12] = [
    "offline",
    "transport-offline",
    "blocked",
    "created-blocked",
    "quiesce",
    "cancel",
    "deleted",
    "resetting",
    "connecting",
    "deleting",
    // Since Linux 6.1.
    "deleting (no IO)",
    "dead",
];

/// Whether a disk or path accepts requests in this state. Only words known to say that it does not are believed: the file
/// `state` belongs to the bus, and others than these two have words of their own for a healthy disk (`Connected` of Xen).
pub(crate) fn is_working(state: &str) -> bool {
    !NOT_WORKING.contains(&state)
}

impl Health {
    /// Whether there is nothing to say.
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Array(array) => !array.is_degraded() && !array.is_syncing() && array.mismatched_sectors == 0,
            Self::Disk(disk) => {
                is_working(&disk.state) && disk.errors.is_none_or(|n| n == 0) && disk.timeouts.is_none_or(|n| n == 0)
            }
            Self::Paths(paths) => paths.paths.iter().all(|(_, state)| is_working(state)),
            Self::Ext4(errors) => errors.count == 0,
            Self::Btrfs(btrfs) => btrfs.members.is_empty(),
            Self::Zram(zram) => zram.stored_bytes == 0,
            Self::Cache(cache) => {
                cache.works() && cache.dirty_bytes.is_none_or(|n| n == 0) && cache.io_errors.is_none_or(|n| n == 0)
            }
        }
    }

    /// Every text in it, to be sanitized.
    pub(crate) fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Unknown | Self::Zram(_) => Vec::new(),
            Self::Array(array) => {
                [&mut array.level, &mut array.sync_action].into_iter().chain(&mut array.faulty).collect()
            }
            Self::Disk(disk) => vec![&mut disk.state],
            Self::Cache(cache) => vec![&mut cache.kind, &mut cache.state],
            Self::Paths(paths) => paths.paths.iter_mut().flat_map(|(name, state)| [name, state]).collect(),
            Self::Ext4(errors) => vec![&mut errors.last_function],
            Self::Btrfs(btrfs) => std::iter::once(&mut btrfs.name).chain(&mut btrfs.devices).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_states_of_scsi_and_nvme_mean_that_a_disk_does_not_work() {
        for state in ["running", "live", "created", "new", "Connected", "Initialised", ""] {
            assert!(is_working(state), "{state}");
        }
        for state in ["offline", "transport-offline", "dead", "resetting", "deleting (no IO)", "blocked"] {
            assert!(!is_working(state), "{state}");
        }
    }
}
