//! What a path lies on: mount, devices, free space, options.

use super::disk::DevId;
use super::mount::MountInfo;
use super::queue::QueueAttrs;
use super::raw_bytes::RawBytes;
use super::reading::Reading;
use super::topology::DeviceKind;
use serde::{Deserialize, Serialize};

/// Where a file system stores its data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StorageKind {
    /// On block devices of this machine.
    #[default]
    Block,
    /// In memory and swap.
    Memory,
    /// On a server.
    Network,
    /// In a user-space program; where that stores it is unknown.
    Fuse,
    /// Nowhere: the kernel generates the content.
    Kernel,
    /// On block devices that the kernel does not report (ZFS), or that were not found.
    Unknown,
}

/// Why a path cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadOnlyReason {
    /// The file system stopped writing after an error, although its options say `rw`.
    Emergency,
    /// The whole file system is read-only.
    Filesystem,
    /// This mount is read-only.
    Mount,
    /// A device below is read-only.
    Device,
}

/// When reading a file updates its access time, which is a write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AtimePolicy {
    /// At every read.
    Strict,
    /// Once a day, or when older than the last modification.
    #[default]
    Relatime,
    /// Never.
    Noatime,
}

/// Free space as in statfs(2), in bytes and inodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesystemSpace {
    /// Total.
    pub total_bytes: u64,
    /// Free.
    pub free_bytes: u64,
    /// Free for unprivileged users (df's "Available").
    pub available_bytes: u64,
    /// Inodes; `None` where they are allocated as needed (btrfs, ZFS).
    pub inodes_total: Option<u64>,
    /// Free inodes.
    pub inodes_free: Option<u64>,
}

impl FilesystemSpace {
    /// Share in use, in per cent, as df has it: blocks reserved for root are neither used nor available.
    pub fn used_pct(&self) -> f64 {
        let used_bytes = self.total_bytes - self.free_bytes.min(self.total_bytes);
        used_bytes as f64 * 100.0 / (used_bytes + self.available_bytes).max(1) as f64
    }
}

/// A device below a file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceChainEntry {
    /// 0 for the device directly below the file system.
    pub depth: usize,
    /// Device number.
    pub id: DevId,
    /// Kernel name.
    pub name: String,
    /// Kind.
    pub kind: DeviceKind,
    /// Device-mapper name or backing file.
    pub label: Option<RawBytes>,
    /// Hardware model, sanitized.
    pub model: Option<String>,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// No device is below it.
    pub is_physical: bool,
    /// Settings of its request queue (a partition's: its disk's); `None` if it has none or they could not be read.
    pub queue: Option<QueueAttrs>,
}

/// Result of [`inspect_path`](crate::collect::path::inspect_path).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// The path as given.
    pub requested: RawBytes,
    /// The path with symlinks resolved.
    pub canonical: RawBytes,
    /// The mount it is on.
    pub mount: MountInfo,
    /// The mount is a bind mount: it shows a file system that is mounted elsewhere, or only a part of one.
    pub is_bind: bool,
    /// Where the data is stored.
    pub storage: StorageKind,
    /// The same as a sentence, sanitized.
    pub note: String,
    /// From the file system down to the physical disks.
    pub chain: Vec<DeviceChainEntry>,
    /// Free space.
    pub space: Reading<FilesystemSpace>,
    /// Why it cannot be written; `None` if it can.
    pub read_only: Option<ReadOnlyReason>,
    /// Access time updates.
    pub atime: AtimePolicy,
    /// No access times for directories.
    pub nodiratime: bool,
    /// Timestamps are written lazily.
    pub lazytime: bool,
}

/// Why a path could not be inspected: what failed, why, what to do next. Sanitized.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct PathError(pub String);

impl MountInfo {
    /// Access time options: (policy, nodiratime, lazytime).
    pub fn atime_options(&self) -> (AtimePolicy, bool, bool) {
        let rule = match () {
            () if self.has_option("noatime") => AtimePolicy::Noatime,
            () if self.has_option("relatime") => AtimePolicy::Relatime,
            () => AtimePolicy::Strict,
        };
        (rule, self.has_option("nodiratime"), self.has_option("lazytime"))
    }

    /// Why the mount cannot be written, as far as the mount table shows it. After an error ext4 still says `rw`, and
    /// also `emergency_ro` since Linux 6.15.
    pub fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        let first = |options: &RawBytes| options.options().next() == Some(b"ro");
        let emergency = [&b"emergency_ro"[..], b"shutdown"];
        if self.super_options.options().any(|w| emergency.contains(&w)) {
            Some(ReadOnlyReason::Emergency)
        } else if first(&self.super_options) {
            Some(ReadOnlyReason::Filesystem)
        } else {
            first(&self.options).then_some(ReadOnlyReason::Mount)
        }
    }

    /// Where this type of file system stores its data.
    pub fn storage_kind(&self) -> StorageKind {
        if self.is_network() {
            return StorageKind::Network;
        }
        match self.fs_type.as_bytes() {
            b"tmpfs" | b"ramfs" | b"devtmpfs" | b"rootfs" => StorageKind::Memory,
            b"hugetlbfs" => StorageKind::Memory,
            b"proc" | b"sysfs" | b"cgroup" | b"cgroup2" | b"debugfs" | b"tracefs" | b"securityfs" | b"bpf"
            | b"devpts" | b"mqueue" | b"configfs" | b"fusectl" | b"pstore" | b"efivarfs" | b"binfmt_misc"
            | b"autofs" | b"nsfs" | b"selinuxfs" | b"rpc_pipefs" | b"nfsd" => StorageKind::Kernel,
            b"fuseblk" => StorageKind::Block,
            b"virtiofs" | b"zfs" => StorageKind::Unknown,
            t if t == b"fuse" || t.starts_with(b"fuse.") => StorageKind::Fuse,
            _ => StorageKind::Block,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(options: &str, super_options: &str) -> MountInfo {
        MountInfo { options: options.into(), super_options: super_options.into(), ..Default::default() }
    }

    #[test]
    fn every_read_only_reason_is_detected() {
        assert_eq!(mount("rw,relatime", "rw,discard").read_only_reason(), None);
        assert_eq!(mount("ro,relatime", "rw").read_only_reason(), Some(ReadOnlyReason::Mount));
        assert_eq!(mount("ro", "ro,errors=remount-ro").read_only_reason(), Some(ReadOnlyReason::Filesystem));
        assert_eq!(mount("rw", "rw,emergency_ro").read_only_reason(), Some(ReadOnlyReason::Emergency));
        assert_eq!(mount("rw", "rw,name=ro").read_only_reason(), None);
    }

    #[test]
    fn access_time_options_are_parsed() {
        assert_eq!(mount("rw,noatime,nodiratime", "rw").atime_options(), (AtimePolicy::Noatime, true, false));
        assert_eq!(mount("rw,relatime", "rw,lazytime").atime_options(), (AtimePolicy::Relatime, false, true));
        assert_eq!(mount("rw", "rw").atime_options().0, AtimePolicy::Strict);
    }
}
