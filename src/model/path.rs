//! What a directory lies on: the answer to "which device is this path on".

use super::disk::DevId;
use super::mount::MountInfo;
use super::queue::QueueAttrs;
use super::raw_bytes::RawBytes;
use super::reading::Reading;
use super::topology::{DeviceKind, DeviceMatch};
use serde::{Deserialize, Serialize};

/// Where a file system keeps its data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StorageKind {
    /// Block devices of this machine.
    #[default]
    Block,
    /// Memory, and swap.
    Memory,
    /// A server.
    Network,
    /// A program in user space; what that uses is not known here.
    Fuse,
    /// The kernel makes the content up: nothing is stored.
    Kernel,
    /// Block devices, but not told which (ZFS), or not findable.
    Unknown,
}

/// Why nothing can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadOnlyReason {
    /// The file system stopped writing after an error, though its options say `rw`.
    Emergency,
    /// The whole file system is read-only.
    Filesystem,
    /// This mount of it is.
    Mount,
    /// A device below refuses writes.
    Device,
}

/// When reading a file updates its access time (a write).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AtimePolicy {
    /// At every read.
    Strict,
    /// Once a day, or when older than the last change.
    #[default]
    Relatime,
    /// Never.
    Noatime,
}

/// statfs(2), in bytes and inodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesystemSpace {
    /// Size.
    pub total_bytes: u64,
    /// Unused.
    pub free_bytes: u64,
    /// Unused and for everybody (df's "Available").
    pub available_bytes: u64,
    /// Inodes; `None` where they are made as needed (btrfs, ZFS).
    pub inodes_total: Option<u64>,
    /// Unused inodes.
    pub inodes_free: Option<u64>,
}

/// A device on the way down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceChainEntry {
    /// 0 directly under the file system.
    pub depth: usize,
    /// Device number.
    pub id: DevId,
    /// Kernel name.
    pub name: String,
    /// Kind.
    pub kind: DeviceKind,
    /// Device-mapper name or backing file.
    pub label: Option<RawBytes>,
    /// Hardware model, cleaned.
    pub model: Option<String>,
    /// Bytes.
    pub size_bytes: Option<u64>,
    /// Nothing lies below it.
    #[serde(rename = "bottom")]
    pub is_physical: bool,
    /// Its queue's settings (a partition's: its disk's); `None` if it has none or could not be read.
    pub queue: Option<QueueAttrs>,
}

/// Everything about the place of a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// As asked.
    #[serde(rename = "asked")]
    pub requested: RawBytes,
    /// Symlinks resolved.
    pub canonical: RawBytes,
    /// The mount it is on.
    pub mount: MountInfo,
    /// That mount shows what is mounted elsewhere too, or only a part of it.
    #[serde(rename = "bind")]
    pub is_bind: bool,
    /// Where the data lies.
    #[serde(rename = "store")]
    pub storage: StorageKind,
    /// The same in a sentence, cleaned.
    pub note: String,
    /// How the device was found; `None` without one.
    #[serde(rename = "via")]
    pub matched_by: Option<DeviceMatch>,
    /// The path is itself a block device, and the chain is that device's.
    #[serde(rename = "device_node")]
    pub is_device_node: bool,
    /// From the file system down to the physical disks.
    pub chain: Vec<DeviceChainEntry>,
    /// Free and total.
    pub space: Reading<FilesystemSpace>,
    /// Why it cannot be written, if so.
    pub read_only: Option<ReadOnlyReason>,
    /// Access times.
    pub atime: AtimePolicy,
    /// No access times of directories.
    pub nodiratime: bool,
    /// Times are written lazily.
    pub lazytime: bool,
}

impl PathReport {
    /// The device directly under the file system.
    pub fn device(&self) -> Option<&DeviceChainEntry> {
        self.chain.first()
    }

    /// The physical disks.
    pub fn disks(&self) -> impl Iterator<Item = &DeviceChainEntry> {
        self.chain.iter().filter(|d| d.is_physical)
    }
}

/// Why there is no report: what failed, why, what to do. Cleaned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathError(pub String);

impl std::fmt::Display for PathError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PathError {}

impl MountInfo {
    /// How access times are kept: (rule, nodiratime, lazytime).
    pub fn atime_options(&self) -> (AtimePolicy, bool, bool) {
        let rule = match () {
            () if self.has_option("noatime") => AtimePolicy::Noatime,
            () if self.has_option("relatime") => AtimePolicy::Relatime,
            () => AtimePolicy::Strict,
        };
        (rule, self.has_option("nodiratime"), self.has_option("lazytime"))
    }

    /// Why it cannot be written, as far as the mount table tells. ext4 after an error still says `rw`, and
    /// `emergency_ro` beside it (Linux 6.15; before that, nothing).
    pub fn read_only_reason(&self) -> Option<ReadOnlyReason> {
        let first = |options: &RawBytes| options.as_bytes().split(|b| *b == b',').next() == Some(b"ro");
        let emergency = [&b"emergency_ro"[..], b"shutdown"];
        if self.super_options.as_bytes().split(|b| *b == b',').any(|w| emergency.contains(&w)) {
            Some(ReadOnlyReason::Emergency)
        } else if first(&self.super_options) {
            Some(ReadOnlyReason::Filesystem)
        } else {
            first(&self.options).then_some(ReadOnlyReason::Mount)
        }
    }

    /// Where this kind of file system keeps its data.
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
