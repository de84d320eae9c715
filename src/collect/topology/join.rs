//! Assigns mounts, swap areas and loop files to their devices.
//!
//! btrfs, bcachefs and overlay have device numbers of no device: their source, or the directory that overlay writes
//! to, identifies the device. Paths are resolved in the mount table as text. The file systems are not touched, because
//! they may be dead; only device nodes under /dev are looked up.

use crate::model::containers::is_block_volume;
use crate::model::disk::DevId;
use crate::model::memory::SwapArea;
use crate::model::mount::{MountInfo, MountResolver, MountTable};
use crate::model::raw_bytes::RawBytes;
use crate::model::topology::{BackingMount, BlockDevice, DeviceKind, DeviceMatch, MountRef, Topology};
use crate::root::Root;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A device below a mount, and how it was found.
pub type BackingDevice = (DevId, DeviceMatch);

/// Stacked overlay and loop mounts are followed this deep.
const MAX_DEPTH: usize = 8;

/// The topology: `devices` with everything that is on them.
pub(super) fn build_topology(
    root: &Root,
    devices: &[BlockDevice],
    mounts: &MountTable,
    areas: &[SwapArea],
) -> Topology {
    let mut topo = Topology { devices: devices.to_vec() };
    let found = {
        let join = DeviceResolver { root, topology: &topo, mount_resolver: mounts.resolver() };
        join.resolve_all(mounts, areas)
    };
    for (id, link) in found {
        let Some(dev) = device_mut(&mut topo, id) else { continue };
        match link {
            DeviceLink::Mount(mount) => dev.mounts.push(mount),
            DeviceLink::Swap(area) => dev.swaps.push(area),
            DeviceLink::Parent(parent) => dev.parent = Some(parent),
            DeviceLink::Backing(mount) => dev.backing_mount = Some(mount),
        }
    }
    fill_holders(&mut topo);
    topo
}

/// The devices that a mount stores its data on, the main one first; empty if the kernel reports none.
pub fn devices_of(root: &Root, topo: &Topology, mounts: &MountTable, mount: &MountInfo) -> Vec<BackingDevice> {
    DeviceResolver { root, topology: topo, mount_resolver: mounts.resolver() }.mount_devices(mount, 0)
}

fn device_mut(topo: &mut Topology, id: DevId) -> Option<&mut BlockDevice> {
    let at = topo.devices.binary_search_by_key(&id, |d| d.id).ok()?;
    topo.devices.get_mut(at)
}

/// Fills `holders` from slaves and parents; a partition is not a holder of its disk.
fn fill_holders(topo: &mut Topology) {
    let pairs: Vec<(DevId, DevId)> = topo
        .devices
        .iter()
        .filter(|d| d.kind != DeviceKind::Partition || !d.slaves.is_empty())
        .flat_map(|d| topo.devices_below(d).iter().map(|below| (*below, d.id)))
        .collect();
    for (below, above) in pairs {
        if let Some(dev) = device_mut(topo, below) {
            dev.holders.push(above);
        }
    }
}

/// What lies on a device, or the device below it.
enum DeviceLink {
    Mount(MountRef),
    Swap(RawBytes),
    Parent(DevId),
    Backing(BackingMount),
}

struct DeviceResolver<'a> {
    root: &'a Root,
    topology: &'a Topology,
    mount_resolver: MountResolver<'a>,
}

impl DeviceResolver<'_> {
    fn resolve_all(&self, mounts: &MountTable, areas: &[SwapArea]) -> Vec<(DevId, DeviceLink)> {
        let mut all = Vec::new();
        for (mount, bind) in mounts.0.iter().zip(mounts.bind_flags()) {
            let found = self.mount_devices(mount, 0);
            if found.is_empty() {
                continue;
            }
            let hidden = !self.mount_resolver.is_visible(mount);
            let link = |via| DeviceLink::Mount(MountRef::new(mount, via, bind, hidden));
            all.extend(found.into_iter().map(|(id, via)| (id, link(via))));
        }
        for area in areas {
            let id = match area.kind.as_str() {
                "partition" => self.node_device(area.name.as_bytes()),
                _ => self.file_device(area.name.as_bytes(), 0),
            };
            all.extend(id.map(|id| (id, DeviceLink::Swap(area.name.as_str().into()))));
        }
        for dev in self.topology.devices.iter().filter(|d| d.kind == DeviceKind::Loop) {
            let Some(file) = &dev.label else { continue };
            let parent = self.node_device(file.as_bytes()).or_else(|| self.file_device(file.as_bytes(), 0));
            let link = match parent {
                Some(parent) => Some(parent).filter(|p| *p != dev.id).map(DeviceLink::Parent),
                None => self.mount_of_file(file.as_bytes()).map(|mount| {
                    let (mount_point, fs_type) = (mount.mount_point.clone(), mount.fs_type.clone());
                    DeviceLink::Backing(BackingMount { mount_point, fs_type })
                }),
            };
            all.extend(link.map(|link| (dev.id, link)));
        }
        all
    }

    fn mount_devices(&self, mount: &MountInfo, depth: usize) -> Vec<BackingDevice> {
        if mount.device.major != 0 {
            return vec![(mount.device, DeviceMatch::Number)];
        }
        if depth > MAX_DEPTH {
            return Vec::new();
        }
        match mount.fs_type.as_bytes() {
            b"overlay" | b"aufs" => self.overlay_devices(mount, depth),
            b"btrfs" => match self.node_device(mount.source.as_bytes()) {
                Some(main) => self.btrfs_devices(main),
                None => Vec::new(),
            },
            // A volume of a pod that is a block device: kubelet mounts the node, /dev/sdb, as a file.
            b"devtmpfs" if is_block_volume(mount.mount_point.as_bytes()) => {
                let node = [Root::DEV_PREFIX, mount.root.as_bytes().strip_prefix(b"/").unwrap_or_default()].concat();
                self.node_device(&node).map(|id| (id, DeviceMatch::Source)).into_iter().collect()
            }
            // bcachefs separates its devices by colons.
            _ if mount.source.as_bytes().starts_with(Root::DEV_PREFIX) => {
                let ids = mount.source.as_bytes().split(|b| *b == b':').filter_map(|s| self.node_device(s));
                ids.enumerate()
                    .map(|(i, id)| (id, if i == 0 { DeviceMatch::Source } else { DeviceMatch::Member }))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn overlay_devices(&self, mount: &MountInfo, depth: usize) -> Vec<BackingDevice> {
        let first_lower = |all: Vec<u8>| all.split(|b| *b == b':').next().map(<[u8]>::to_vec);
        let lower = || {
            let lower = mount.super_option("lowerdir").or_else(|| mount.super_option("lowerdir+"));
            lower.and_then(first_lower).map(|dir| (dir, DeviceMatch::Lower))
        };
        let upper = mount.super_option("upperdir").map(|dir| (dir, DeviceMatch::Upper));
        let Some((dir, via)) = upper.or_else(lower).filter(|(dir, _)| dir.starts_with(b"/")) else {
            return Vec::new();
        };
        match self.mount_resolver.resolve(&dir).filter(|m| m.id != mount.id) {
            Some(under) => self.mount_devices(under, depth + 1).into_iter().map(|(id, _)| (id, via)).collect(),
            None => Vec::new(),
        }
    }

    /// All devices of the btrfs file system that `main` belongs to: `/sys/fs/btrfs/UUID/devices/`.
    fn btrfs_devices(&self, main: DevId) -> Vec<BackingDevice> {
        let mut out = vec![(main, DeviceMatch::Source)];
        let Some(name) = self.topology.get(main).map(|d| d.name.replace('/', "!")) else { return out };
        let Ok(file_systems) = std::fs::read_dir(self.root.sys("fs/btrfs")) else { return out };
        for fs in file_systems.flatten() {
            let dir = fs.path().join("devices");
            if dir.join(&name).exists() {
                let Ok(members) = std::fs::read_dir(dir) else { break };
                let mut ids: Vec<DevId> = members
                    .flatten()
                    .filter_map(|m| {
                        self.topology.by_name(&m.file_name().to_string_lossy().replace('!', "/")).map(|d| d.id)
                    })
                    .filter(|id| *id != main)
                    .collect();
                ids.sort();
                out.extend(ids.into_iter().map(|id| (id, DeviceMatch::Member)));
                break;
            }
        }
        out
    }

    fn mount_of_file(&self, path: &[u8]) -> Option<&MountInfo> {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        path.starts_with(b"/").then(|| self.mount_resolver.resolve(path)).flatten()
    }

    /// The main device of the mount that contains a file.
    fn file_device(&self, path: &[u8], depth: usize) -> Option<DevId> {
        let mount = self.mount_of_file(path)?;
        self.mount_devices(mount, depth + 1).first().map(|(id, _)| *id)
    }

    /// The number of a device node, which is looked up only if /dev is in memory.
    fn node_device(&self, path: &[u8]) -> Option<DevId> {
        let rel = path.strip_prefix(Root::DEV_PREFIX)?;
        if self.root.is_live() {
            let memory = |m: &MountInfo| matches!(m.fs_type.as_bytes(), b"devtmpfs" | b"tmpfs");
            if self.mount_resolver.resolve(path).is_some_and(memory)
                && let Some(id) = node_number(&self.root.dev(""), Path::new(std::ffi::OsStr::from_bytes(rel)))
            {
                return Some(id);
            }
        }
        self.topology.by_name(std::str::from_utf8(path).ok()?).map(|d| d.id)
    }
}

/// The number of the block device node `rel` in the directory `dev`. It is not opened. Whoever mounts a FUSE file system
/// may name any path as its source, so neither `..` nor a link may lead out of the directory, to a file system that may
/// be dead (openat2(2), Linux 5.6; older kernels find the device by its name only).
fn node_number(dev: &Path, rel: &Path) -> Option<DevId> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(CWD, dev, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
    let node = rustix::fs::openat2(&dir, rel, flags, Mode::empty(), within).ok()?;
    let stat = rustix::fs::fstat(&node).ok()?;
    FileType::from_raw_mode(stat.st_mode).is_block_device().then(|| dev_id_from_raw(stat.st_rdev))
}

/// Splits a `dev_t`.
pub(crate) fn dev_id_from_raw(dev: rustix::fs::Dev) -> DevId {
    DevId { major: rustix::fs::major(dev), minor: rustix::fs::minor(dev) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_device_node_is_found_within_its_directory_only() {
        let dir = tempfile::tempdir().unwrap();
        let dev = dir.path().join("dev");
        std::fs::create_dir_all(dev.join("disk")).unwrap();
        let make = |path: &Path| {
            let id = rustix::fs::makedev(7, 200);
            rustix::fs::mknodat(CWD, path, FileType::BlockDevice, Mode::RUSR, id).is_ok()
        };
        if !make(&dev.join("sda")) || !make(&dir.path().join("outside")) {
            eprintln!("skipped: a_device_node_is_found_within_its_directory_only needs root");
            return;
        }
        symlink("../sda", dev.join("disk/by-name")).unwrap();
        symlink("../../outside", dev.join("disk/by-link")).unwrap();
        symlink(dir.path().join("outside"), dev.join("disk/by-path")).unwrap();
        let found = Some(DevId { major: 7, minor: 200 });
        for (path, expected) in [
            ("sda", found),
            ("disk/by-name", found),
            ("disk/../sda", found),
            ("../outside", None),
            ("disk/../../outside", None),
            ("disk/by-link", None),
            ("disk/by-path", None),
            ("disk", None),
            ("absent", None),
        ] {
            assert_eq!(node_number(&dev, Path::new(path)), expected, "{path}");
        }
    }
}
