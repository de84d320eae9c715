//! The tree of block devices, and what is mounted on them.
//!
//! Source: sysfs as in Documentation/ABI/{stable,testing}/sysfs-block; device numbers from
//! Documentation/admin-guide/devices.txt. No device is opened for this.

use super::disk::DevId;
use super::mount::MountInfo;
use super::raw_bytes::RawBytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Kind of a block device. Serialized in lowercase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DeviceKind {
    /// A whole disk as the hardware or hypervisor provides it (SCSI, NVMe, virtio, MMC ...).
    #[default]
    Disk,
    /// A partition of a disk (or of a multipath map, made by kpartx).
    Partition,
    /// Device mapper, other than the three below.
    Dm,
    Lvm,
    Crypt,
    Multipath,
    /// Software RAID.
    Md,
    /// A file as a block device.
    Loop,
    /// Compressed memory.
    Zram,
    Ram,
    /// Network block device, including Ceph's rbd.
    Nbd,
    /// Replicated over the network.
    Drbd,
    /// Cached by a faster device.
    Bcache,
    /// A ZFS volume.
    Zvol,
    /// Persistent memory.
    Pmem,
    Cdrom,
    Floppy,
    /// Raw flash.
    Mtd,
}

impl DeviceKind {
    /// The name used in JSON and on screen.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How the device of a mount was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceMatch {
    /// By the device number in the mount table.
    #[default]
    Number,
    /// By the mount's source: the number is anonymous (btrfs, bcachefs).
    Source,
    /// One of several devices of the file system (btrfs).
    Member,
    /// By the mount that holds its upper directory (overlay).
    Upper,
    /// By the mount that holds its topmost lower directory (overlay without an upper one).
    Lower,
}

/// A mount listed under its device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRef {
    /// Mount id in the mount table.
    pub id: u64,
    /// Number of the file system, as the mount table and the kernel's inodes have it: that of the device, or of no device
    /// (btrfs, overlay); 0:0 in recordings of versions that did not store it.
    #[serde(default)]
    pub file_system: DevId,
    pub mount_point: RawBytes,
    pub fs_type: RawBytes,
    /// Options of the mount.
    pub options: RawBytes,
    /// Options of the file system.
    pub super_options: RawBytes,
    /// A bind mount: shows a file system (or part of it) that is already mounted elsewhere.
    #[serde(rename = "bind")]
    pub is_bind: bool,
    /// A later mount covers it, so no path leads to it.
    #[serde(rename = "hidden")]
    pub is_hidden: bool,
    #[serde(rename = "via")]
    pub matched_by: DeviceMatch,
}

impl MountRef {
    /// The entry for `mount`, whose device was found by `via`.
    pub fn new(mount: &MountInfo, via: DeviceMatch, bind: bool, hidden: bool) -> Self {
        Self {
            id: mount.id,
            file_system: mount.device,
            mount_point: mount.mount_point.clone(),
            fs_type: mount.fs_type.clone(),
            options: mount.options.clone(),
            super_options: mount.super_options.clone(),
            is_bind: bind,
            is_hidden: hidden,
            matched_by: via,
        }
    }

    /// Whether it has an option, of its own or of its file system.
    pub(crate) fn has_option(&self, name: &str) -> bool {
        self.options.options().chain(self.super_options.options()).any(|option| option == name.as_bytes())
    }

    /// Whether it shows a btrfs subvolume instead of the root of the file system.
    pub(crate) fn is_subvolume(&self) -> bool {
        self.super_options.options().filter_map(|option| option.strip_prefix(b"subvol=")).any(|path| path != b"/")
    }

    /// Whether it is stored in a directory of another file system (overlay).
    pub(crate) fn is_overlay(&self) -> bool {
        matches!(self.matched_by, DeviceMatch::Upper | DeviceMatch::Lower)
    }

    /// Whether its free space matters: it is writable and no image.
    pub(crate) fn can_fill_up(&self) -> bool {
        !self.is_hidden && !self.is_bind && !self.has_option("ro")
    }
}

/// State of a software RAID.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MdInfo {
    /// `raid0`, `raid1`, `raid5`, `linear` ...; empty for a container.
    pub level: Option<String>,
    /// `clean`, `active`, `inactive` ... (`array_state` in Documentation/admin-guide/md.rst).
    pub state: Option<String>,
    /// Missing members.
    pub degraded: Option<u64>,
    /// `idle`, `resync`, `recover`, `check` ...
    pub sync_action: Option<String>,
}

/// A mount that holds the backing file of a loop device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackingMount {
    pub mount_point: RawBytes,
    pub fs_type: RawBytes,
}

/// One block device or partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    pub id: DevId,
    /// Kernel name, as in diskstats (`cciss/c0d0`, where sysfs writes `!`).
    pub name: String,
    pub kind: DeviceKind,
    /// The device it is part of or lies on: the disk of a partition, the first slave of dm and md, the device
    /// of a loop device's backing file.
    pub parent: Option<DevId>,
    /// Devices below it.
    pub slaves: Vec<DevId>,
    /// Devices on top of it.
    pub holders: Vec<DevId>,
    /// Name given by the administrator: device-mapper name, md name, backing file of a loop device.
    pub label: Option<RawBytes>,
    /// The mount with the backing file of a loop device, if that is not on a block device: FUSE, NFS, memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing_mount: Option<BackingMount>,
    /// Hardware model, sanitized.
    pub model: Option<String>,
    /// Its directory below `/sys/devices`, raw: through which controllers, ports and buses it is reached. `None` for a
    /// partition, for a device that is no hardware, and in recordings of versions that did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sysfs_path: Option<String>,
    /// Size in bytes; 0 for a loop device without a file or an empty drive.
    pub size_bytes: Option<u64>,
    pub removable: Option<bool>,
    pub read_only: Option<bool>,
    pub md: Option<MdInfo>,
    /// Mounts directly on it.
    pub mounts: Vec<MountRef>,
    /// Names of its swap areas, or of swap files on it.
    pub swaps: Vec<RawBytes>,
}

impl BlockDevice {
    /// Whether it is hardware: a disk, not a device made of disks, files or memory.
    pub fn is_hardware(&self) -> bool {
        use DeviceKind::{Cdrom, Disk, Floppy, Mtd, Nbd, Pmem};
        matches!(self.kind, Disk | Nbd | Pmem | Cdrom | Floppy | Mtd) && self.parent.is_none() && self.slaves.is_empty()
    }

    /// Whether it is an unused device node (loop0 without a file, unconnected nbd0).
    pub fn is_vacant(&self) -> bool {
        self.size_bytes == Some(0)
    }

    /// Whether it is reached over Fibre Channel (`.../host2/rport-2:0-3/...`) or iSCSI (`.../host4/session1/...`): an array
    /// serves it, whatever it says of itself.
    pub(crate) fn is_in_storage_network(&self) -> bool {
        let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        let is_link =
            |name: &str| ["rport-", "session"].iter().any(|word| name.strip_prefix(word).is_some_and(is_number));
        self.sysfs_path.as_deref().is_some_and(|path| path.split('/').any(is_link))
    }

    /// The mounts that say how full the file systems on it are. An overlay has the space of the file system that it is stored
    /// in, and each container has one.
    pub(crate) fn space_mounts(&self) -> impl Iterator<Item = &MountRef> {
        let has_own = self.mounts.iter().any(|mount| mount.can_fill_up() && !mount.is_overlay());
        self.mounts.iter().filter(move |mount| mount.can_fill_up() && !(has_own && mount.is_overlay()))
    }

    /// Name for display: the label (`vg-root`) for mapped devices, otherwise the kernel name.
    pub fn display_name(&self) -> Cow<'_, str> {
        let mapped = matches!(self.kind, DeviceKind::Dm | DeviceKind::Lvm | DeviceKind::Crypt | DeviceKind::Multipath);
        match &self.label {
            Some(label) if mapped => crate::sanitize::sanitize_cow(label.as_bytes()),
            _ => crate::sanitize::sanitize_cow(self.name.as_bytes()),
        }
    }
}

/// All block devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Devices and partitions, sorted by device number.
    pub devices: Vec<BlockDevice>,
}

/// A row of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopologyRow {
    /// 0 for a device without a parent.
    pub depth: usize,
    /// Index into [`Topology::devices`].
    pub device_index: usize,
    /// Index into the device's mounts if the row is a mount point.
    pub mount_index: Option<usize>,
    /// The device has several parents and is shown in full under another one.
    pub is_repeated: bool,
}

/// A device on the way from a file system down to the hardware.
#[derive(Debug, Clone, Copy)]
pub struct ChainLink<'a> {
    /// 0 for the device at which the search began.
    pub depth: usize,
    pub device: &'a BlockDevice,
}

/// More layers than anyone stacks; stops at cycles in untrusted input.
const MAX_DEPTH: usize = 32;

impl Topology {
    /// The device with this number.
    pub fn get(&self, id: DevId) -> Option<&BlockDevice> {
        self.index(id).map(|i| &self.devices[i])
    }

    fn index(&self, id: DevId) -> Option<usize> {
        self.devices.binary_search_by_key(&id, |d| d.id).ok()
    }

    /// By kernel name, device-mapper name, or either with `/dev/` or `/dev/mapper/` before it.
    pub fn by_name(&self, name: &str) -> Option<&BlockDevice> {
        // A path of two or more components loses its first one, the directory of device nodes.
        let bare = name.strip_prefix('/').and_then(|n| n.split_once('/')).map_or(name, |(_, rest)| rest);
        let mapped = bare.strip_prefix("mapper/").unwrap_or(bare);
        self.devices.iter().find(|d| d.name == bare).or_else(|| {
            self.devices.iter().find(|d| {
                d.kind != DeviceKind::Loop
                    && d.label.as_ref().is_some_and(|l| *l == mapped || is_vg_lv(l.as_bytes(), bare.as_bytes()))
            })
        })
    }

    /// The disks that are reached through the controller, port or bus device with this name in sysfs: `ata4`, `3-3` of USB,
    /// `nvme0`, `2:0:0:0` of SCSI, the PCI address `0000:01:00.0`.
    pub(crate) fn disks_behind<'a>(&'a self, part: &'a str) -> impl Iterator<Item = &'a BlockDevice> {
        let is_behind = move |path: &str| path.split('/').any(|directory| directory == part);
        self.devices.iter().filter(move |device| device.sysfs_path.as_deref().is_some_and(is_behind))
    }

    /// The mounts directly on a device.
    pub fn mounts_of(&self, id: DevId) -> &[MountRef] {
        self.get(id).map_or(&[], |d| &d.mounts)
    }

    /// The mounts of the file system with this number ([`MountRef::file_system`]), each with its device: those of the main
    /// device first.
    pub(crate) fn file_system_mounts(&self, number: DevId) -> Vec<(&BlockDevice, &MountRef)> {
        if number == DevId::default() {
            return Vec::new();
        }
        let devices = self.get(number).map_or(&self.devices[..], std::slice::from_ref);
        let is_of = |device: &BlockDevice, mount: &MountRef| match mount.file_system == DevId::default() {
            true => device.id == number,
            false => mount.file_system == number,
        };
        let all = devices.iter().flat_map(|device| device.mounts.iter().map(move |mount| (device, mount)));
        let mut found: Vec<_> = all.filter(|(device, mount)| is_of(device, mount)).collect();
        found.sort_by_key(|(_, mount)| mount.matched_by == DeviceMatch::Member);
        found
    }

    /// The devices that hold the file system with this number, the main one first; empty if they are not known.
    pub(crate) fn file_system_devices(&self, number: DevId) -> Vec<DevId> {
        let mut out: Vec<DevId> = self.get(number).map(|device| device.id).into_iter().collect();
        if out.is_empty() {
            out.extend(self.file_system_mounts(number).into_iter().map(|(device, _)| device.id));
            let mut seen = BTreeSet::new();
            out.retain(|id| seen.insert(*id));
        }
        out
    }

    /// The devices below a device: its slaves, or its parent.
    pub(crate) fn devices_below<'a>(&self, dev: &'a BlockDevice) -> &'a [DevId] {
        match &dev.slaves[..] {
            [] => dev.parent.as_slice(),
            slaves => slaves,
        }
    }

    /// The device and everything below it down to the physical disks, each once, depth first.
    pub fn chain(&self, id: DevId) -> Vec<ChainLink<'_>> {
        let mut out: Vec<ChainLink> = Vec::new();
        let mut todo = vec![(0, id)];
        while let Some((depth, id)) = todo.pop() {
            let Some(device) = self.get(id) else { continue };
            if depth > MAX_DEPTH || out.iter().any(|l| l.device.id == id) {
                continue;
            }
            out.push(ChainLink { depth, device });
            todo.extend(self.devices_below(device).iter().rev().map(|id| (depth + 1, *id)));
        }
        out
    }

    /// The physical disks of [`Topology::chain`].
    pub fn physical_disks(&self, id: DevId) -> impl Iterator<Item = &BlockDevice> {
        self.chain(id).into_iter().map(|link| link.device).filter(|dev| self.devices_below(dev).is_empty())
    }

    /// Disks, their partitions, what lies on them, and the mount points directly below each device. A device with
    /// several parents is shown in full under the first, and as an `is_repeated` row under the others.
    pub fn tree(&self) -> Vec<TopologyRow> {
        let mut above: Vec<Vec<usize>> = vec![Vec::new(); self.devices.len()];
        let mut roots = Vec::new();
        for (i, dev) in self.devices.iter().enumerate() {
            let below: Vec<usize> = self.devices_below(dev).iter().filter_map(|id| self.index(*id)).collect();
            if below.is_empty() {
                roots.push(i);
            }
            for b in below {
                above[b].push(i);
            }
        }
        let mut walk =
            TreeWalk { topology: self, children: above, rows: Vec::new(), expanded: vec![false; self.devices.len()] };
        for root in roots {
            walk.visit(root, 0, None);
        }
        // A cycle has no root; impossible in a kernel, possible in a damaged recording.
        for i in 0..self.devices.len() {
            if !walk.expanded[i] {
                walk.visit(i, 0, None);
            }
        }
        walk.rows
    }
}

struct TreeWalk<'a> {
    topology: &'a Topology,
    children: Vec<Vec<usize>>,
    rows: Vec<TopologyRow>,
    expanded: Vec<bool>,
}

impl TreeWalk<'_> {
    fn visit(&mut self, i: usize, depth: usize, from: Option<usize>) {
        let dev = &self.topology.devices[i];
        let home = dev.slaves.iter().chain(&dev.parent).find_map(|id| self.topology.index(*id));
        let repeated = self.expanded[i] || depth > MAX_DEPTH || (from.is_some() && home.is_some() && home != from);
        self.rows.push(TopologyRow { depth, device_index: i, mount_index: None, is_repeated: repeated });
        if repeated {
            return;
        }
        self.expanded[i] = true;
        let mounts = dev.mounts.len();
        self.rows.extend((0..mounts).map(|m| TopologyRow {
            depth: depth + 1,
            device_index: i,
            mount_index: Some(m),
            is_repeated: false,
        }));
        for next in std::mem::take(&mut self.children[i]) {
            self.visit(next, depth + 1, Some(i));
        }
    }
}

/// Whether a path below `/dev` is the map `label`: `/dev/VG/LV` is named `VG-LV`, with every dash in a name doubled.
fn is_vg_lv(label: &[u8], path: &[u8]) -> bool {
    let Some(slash) = path.iter().position(|b| *b == b'/') else { return false };
    let double = |name: &[u8]| -> Vec<u8> {
        name.iter().flat_map(|b| std::iter::repeat_n(*b, if *b == b'-' { 2 } else { 1 })).collect()
    };
    [double(&path[..slash]), double(&path[slash + 1..])].join(&b'-') == label
}

#[cfg(test)]
mod tests {
    use super::*;

    const BTRFS: DevId = DevId { major: 0, minor: 44 };
    const OVERLAY: DevId = DevId { major: 0, minor: 50 };

    fn device(minor: u32, mounts: &[(&str, DevId, DeviceMatch)]) -> BlockDevice {
        let mount = |(point, file_system, matched_by): &(&str, DevId, DeviceMatch)| MountRef {
            mount_point: (*point).into(),
            file_system: *file_system,
            matched_by: *matched_by,
            ..MountRef::default()
        };
        let id = DevId { major: 8, minor };
        BlockDevice { id, mounts: mounts.iter().map(mount).collect(), ..BlockDevice::default() }
    }

    #[test]
    fn disks_of_storage_networks_are_told_by_their_path() {
        let is = |path: &str| {
            BlockDevice { sysfs_path: Some(path.into()), ..BlockDevice::default() }.is_in_storage_network()
        };
        let adapter = "pci0000:00/0000:00:03.0/0000:05:00.0";
        assert!(is(&format!("{adapter}/host2/rport-2:0-3/target2:0:3/2:0:3:1/block/sdc")));
        assert!(is("platform/host4/session1/target4:0:0/4:0:0:1/block/sdd"));
        assert!(!is(&format!("{adapter}/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block/sda")));
        assert!(!is(&format!("{adapter}/ata1/host0/target0:0:0/0:0:0:0/block/sda")));
    }

    #[test]
    fn disks_are_found_by_what_they_are_behind() {
        let disk = |minor, path: &str| BlockDevice { sysfs_path: Some(path.into()), ..device(minor, &[]) };
        let topology = Topology {
            devices: vec![
                disk(0, "pci0000:00/0000:00:1f.2/ata4/host3/target3:0:0/3:0:0:0/block/sda"),
                disk(16, "pci0000:00/0000:00:14.0/usb3/3-3/3-3.1/3-3.1:1.0/host6/target6:0:0/6:0:0:0/block/sdb"),
                device(17, &[]),
            ],
        };
        let behind = |part| topology.disks_behind(part).map(|disk| disk.id.minor).collect::<Vec<_>>();
        assert_eq!([behind("ata4"), behind("3:0:0:0"), behind("0000:00:1f.2")], [[0], [0], [0]]);
        assert_eq!([behind("3-3"), behind("3-3.1")], [[16], [16]], "behind a hub, and at its port");
        assert!(["ata", "ata40", "3-", "3-3.2", "3-1", ""].into_iter().all(|part| behind(part).is_empty()));
    }

    #[test]
    fn file_systems_with_numbers_of_their_own_are_found_by_their_mounts() {
        let id = |minor| DevId { major: 8, minor };
        let topology = Topology {
            devices: vec![
                device(1, &[("/data", BTRFS, DeviceMatch::Member)]),
                device(2, &[("/", id(2), DeviceMatch::Number), ("/run/c", OVERLAY, DeviceMatch::Upper)]),
                device(3, &[("/data", BTRFS, DeviceMatch::Source), ("/home", BTRFS, DeviceMatch::Source)]),
                device(4, &[("/old", DevId::default(), DeviceMatch::Source)]),
            ],
        };
        let devices = |number| topology.file_system_devices(number);
        assert_eq!(devices(BTRFS), [id(3), id(1)], "the main one first, each once");
        assert_eq!((devices(OVERLAY), devices(id(2))), (vec![id(2)], vec![id(2)]));
        assert!(devices(DevId::default()).is_empty() && devices(DevId { major: 0, minor: 45 }).is_empty());
        let points = |number| -> Vec<String> {
            topology.file_system_mounts(number).iter().map(|(_, mount)| mount.mount_point.sanitized()).collect()
        };
        assert_eq!(points(id(2)), ["/"], "without those of file systems that are stored on it");
        assert_eq!(points(id(4)), ["/old"], "of a recording without numbers");
        assert_eq!(points(BTRFS), ["/data", "/home", "/data"]);
    }
}
