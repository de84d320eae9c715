//! What a directory lies on: the answer to "which device is this path on".

use super::disk::DevId;
use super::mount::Mount;
use super::queue::QueueAttrs;
use super::raw::Raw;
use super::section::Section;
use super::topology::{DeviceKind, Via};
use serde::{Deserialize, Serialize};

/// Where a file system keeps its data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Store {
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
pub enum ReadOnly {
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
pub enum Atime {
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
pub struct Space {
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
pub struct ChainDev {
    /// 0 directly under the file system.
    pub depth: usize,
    /// Device number.
    pub id: DevId,
    /// Kernel name.
    pub name: String,
    /// Kind.
    pub kind: DeviceKind,
    /// Device-mapper name or backing file.
    pub label: Option<Raw>,
    /// Hardware model, cleaned.
    pub model: Option<String>,
    /// Bytes.
    pub size_bytes: Option<u64>,
    /// Nothing lies below it.
    pub bottom: bool,
    /// Its queue's settings (a partition's: its disk's); `None` if it has none or could not be read.
    pub queue: Option<QueueAttrs>,
}

/// Everything about the place of a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// As asked.
    pub asked: Raw,
    /// Symlinks resolved.
    pub canonical: Raw,
    /// The mount it is on.
    pub mount: Mount,
    /// That mount shows what is mounted elsewhere too, or only a part of it.
    pub bind: bool,
    /// Where the data lies.
    pub store: Store,
    /// The same in a sentence, cleaned.
    pub note: String,
    /// How the device was found; `None` without one.
    pub via: Option<Via>,
    /// The path is itself a block device, and the chain is that device's.
    pub device_node: bool,
    /// From the file system down to the physical disks.
    pub chain: Vec<ChainDev>,
    /// Free and total.
    pub space: Section<Space>,
    /// Why it cannot be written, if so.
    pub read_only: Option<ReadOnly>,
    /// Access times.
    pub atime: Atime,
    /// No access times of directories.
    pub nodiratime: bool,
    /// Times are written lazily.
    pub lazytime: bool,
}

impl PathReport {
    /// The device directly under the file system.
    pub fn device(&self) -> Option<&ChainDev> {
        self.chain.first()
    }

    /// The physical disks.
    pub fn disks(&self) -> impl Iterator<Item = &ChainDev> {
        self.chain.iter().filter(|d| d.bottom)
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

impl Mount {
    /// How access times are kept: (rule, nodiratime, lazytime).
    pub fn atime(&self) -> (Atime, bool, bool) {
        let rule = match () {
            () if self.has_option("noatime") => Atime::Noatime,
            () if self.has_option("relatime") => Atime::Relatime,
            () => Atime::Strict,
        };
        (rule, self.has_option("nodiratime"), self.has_option("lazytime"))
    }

    /// Why it cannot be written, as far as the mount table tells. ext4 after an error still says `rw`, and
    /// `emergency_ro` beside it (Linux 6.15; before that, nothing).
    pub fn read_only(&self) -> Option<ReadOnly> {
        let first = |options: &Raw| options.bytes().split(|b| *b == b',').next() == Some(b"ro");
        let emergency = [&b"emergency_ro"[..], b"shutdown"];
        if self.super_options.bytes().split(|b| *b == b',').any(|w| emergency.contains(&w)) {
            Some(ReadOnly::Emergency)
        } else if first(&self.super_options) {
            Some(ReadOnly::Filesystem)
        } else {
            first(&self.options).then_some(ReadOnly::Mount)
        }
    }

    /// Where this kind of file system keeps its data.
    pub fn store(&self) -> Store {
        if self.is_network() {
            return Store::Network;
        }
        match self.fs_type.bytes() {
            b"tmpfs" | b"ramfs" | b"devtmpfs" | b"rootfs" => Store::Memory,
            b"hugetlbfs" => Store::Memory,
            b"proc" | b"sysfs" | b"cgroup" | b"cgroup2" | b"debugfs" | b"tracefs" | b"securityfs"
            | b"bpf" | b"devpts" | b"mqueue" | b"configfs" | b"fusectl" | b"pstore" | b"efivarfs"
            | b"binfmt_misc" | b"autofs" | b"nsfs" | b"selinuxfs" | b"rpc_pipefs" | b"nfsd" => Store::Kernel,
            b"fuseblk" => Store::Block,
            b"virtiofs" | b"zfs" => Store::Unknown,
            t if t == b"fuse" || t.starts_with(b"fuse.") => Store::Fuse,
            _ => Store::Block,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(options: &str, super_options: &str) -> Mount {
        Mount { options: options.into(), super_options: super_options.into(), ..Default::default() }
    }

    #[test]
    fn read_only_in_its_kinds() {
        assert_eq!(mount("rw,relatime", "rw,discard").read_only(), None);
        assert_eq!(mount("ro,relatime", "rw").read_only(), Some(ReadOnly::Mount));
        assert_eq!(mount("ro", "ro,errors=remount-ro").read_only(), Some(ReadOnly::Filesystem));
        assert_eq!(mount("rw", "rw,emergency_ro").read_only(), Some(ReadOnly::Emergency));
        assert_eq!(mount("rw", "rw,name=ro").read_only(), None);
    }

    #[test]
    fn access_times() {
        assert_eq!(mount("rw,noatime,nodiratime", "rw").atime(), (Atime::Noatime, true, false));
        assert_eq!(mount("rw,relatime", "rw,lazytime").atime(), (Atime::Relatime, false, true));
        assert_eq!(mount("rw", "rw").atime().0, Atime::Strict);
    }
}
