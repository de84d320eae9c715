//! Which device a path is on, and all devices below it.
//!
//! Resolving a path and asking a file system for its free space can block forever on a dead one: only for child
//! processes.

use super::kernel_file::read_once;
use super::queue::read_queue_attrs;
use super::topology::{BackingDevice, TopologyReader, dev_id_from_raw, devices_of};
use crate::model::disk::DevId;
use crate::model::mount::{MountInfo, MountTable, is_nfs};
use crate::model::path::{DeviceChainEntry, FilesystemSpace, PathError, PathReport, ReadOnlyReason, StorageKind};
use crate::model::raw_bytes::RawBytes;
use crate::model::reading::{Reading, describe_io_error};
use crate::model::topology::{BlockDevice, DeviceKind, DeviceMatch, Topology};
use crate::parse::mountinfo;
use crate::root::Root;
use crate::sanitize::sanitize;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where `path` is stored. The caller makes it absolute, because a child has another working directory. On a captured
/// tree the path is only looked up in the mount table.
///
/// # Errors
///
/// Why the path cannot be resolved, and what to do next.
pub fn inspect_path(root: &Root, path: &Path) -> Result<PathReport, PathError> {
    let canonical = canonicalize(root, path)?;
    let mut buf = Vec::new();
    let table = read_once(&root.mount_table("mountinfo"), &mut buf)
        .map_err(|e| PathError(format!("cannot read the mount table: {}; is /proc mounted?", describe_io_error(&e))))?;
    let mounts = MountTable(mountinfo::parse(table).collect());
    let mount = find_mount(root, &mounts, &canonical).ok_or_else(|| {
        PathError(format!(
            "no mount contains {}: it is not in the mount table of this process; try outside the container or chroot",
            sanitize(canonical.as_os_str().as_bytes())
        ))
    })?;
    let mut reader = TopologyReader::new(root);
    let topo = match reader.refresh(&[]) {
        Some(Reading::Ok(topo)) => topo,
        // The mount is worth reporting even if sysfs is hidden.
        _ => Topology::default(),
    };
    let node = device_node_id(root, &canonical);
    let found = match node {
        Some(id) => vec![(id, DeviceMatch::Number)],
        None => devices_of(root, &topo, &mounts, mount),
    };
    let chain = device_chain(root, &topo, &found);
    let (atime, nodiratime, lazytime) = mount.atime_options();
    let store = match mount.storage_kind() {
        _ if node.is_some() || !found.is_empty() => StorageKind::Block,
        // Its type should have a device.
        StorageKind::Block => StorageKind::Unknown,
        other => other,
    };
    let device_ro = found.iter().any(|(id, _)| topo.get(*id).is_some_and(|d| d.read_only == Some(true)));
    Ok(PathReport {
        requested: RawBytes::from(path.as_os_str().as_bytes()),
        is_bind: mounts.is_bind(mount),
        storage: store,
        note: describe_location(mount, store, &mounts, &chain, node.is_some()),
        chain,
        space: read_space(root, &canonical),
        read_only: mount.read_only_reason().or(device_ro.then_some(ReadOnlyReason::Device)),
        atime,
        nodiratime,
        lazytime,
        mount: mount.clone(),
        canonical: RawBytes::from(canonical.as_os_str().as_bytes()),
    })
}

fn canonicalize(root: &Root, path: &Path) -> Result<PathBuf, PathError> {
    let shown = sanitize(path.as_os_str().as_bytes());
    if path.as_os_str().is_empty() {
        return Err(PathError("the path is empty: give a directory or file, such as /var/lib".into()));
    }
    if !root.is_live() {
        return match path.is_absolute() {
            true => Ok(path.to_path_buf()),
            false => Err(PathError(format!("{shown} is relative: a captured tree needs an absolute path"))),
        };
    }
    let found = if root.is_of_host() { canonicalize_on_host(root, path) } else { path.canonicalize() };
    found.map_err(|err| {
        let hint = match err.kind() {
            std::io::ErrorKind::NotFound => not_found_hint(path),
            std::io::ErrorKind::PermissionDenied => {
                "a directory of the path may not be searched: run as its owner or root".into()
            }
            std::io::ErrorKind::NotADirectory => "a component that should be a directory is a file".into(),
            _ if err.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                "its symbolic links form a loop: see `namei -l` on it".into()
            }
            _ => "its file system does not respond properly: see the kernel log".into(),
        };
        PathError(format!("cannot find {shown}: {}; {hint}", describe_io_error(&err)))
    })
}

/// A path of the host without symbolic links, which are followed below the host's root directory (openat2(2), Linux 5.6).
fn canonicalize_on_host(root: &Root, path: &Path) -> std::io::Result<PathBuf> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let top = rustix::fs::openat(CWD, root.top_directory(), flags | OFlags::DIRECTORY, Mode::empty())?;
    let found = rustix::fs::openat2(&top, path, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
    let found = std::fs::read_link(Root::live().proc(&format!("self/fd/{}", found.as_raw_fd())))?;
    // A path below the host's mounted directory is named as from here, one of the first process as from there.
    Ok(found.strip_prefix(root.base()).map(|path| Path::new("/").join(path)).unwrap_or(found))
}

/// Suggests the longest part of a path that exists.
fn not_found_hint(path: &Path) -> String {
    match path.ancestors().skip(1).find(|a| !a.as_os_str().is_empty() && a.exists()) {
        Some(dir) => {
            format!("{} exists: use that, or check the spelling", sanitize(dir.as_os_str().as_bytes()))
        }
        None => "check the spelling".into(),
    }
}

/// The mount as the kernel reports it (stx_mnt_id, since 5.8), else by name from the mount table.
fn find_mount<'m>(root: &Root, mounts: &'m MountTable, path: &Path) -> Option<&'m MountInfo> {
    let by_id = || {
        let want = StatxFlags::MNT_ID;
        let got = rustix::fs::statx(CWD, path, AtFlags::STATX_DONT_SYNC, want).ok()?;
        let told = StatxFlags::from_bits_retain(got.stx_mask).contains(want);
        told.then(|| mounts.by_id(got.stx_mnt_id)).flatten()
    };
    (root.is_live() && !root.is_of_host())
        .then(by_id)
        .flatten()
        .or_else(|| mounts.find_by_path(path.as_os_str().as_bytes()))
}

fn device_node_id(root: &Root, path: &Path) -> Option<DevId> {
    let stat = root.is_live().then(|| rustix::fs::stat(root.locate(path)).ok()).flatten()?;
    FileType::from_raw_mode(stat.st_mode).is_block_device().then(|| dev_id_from_raw(stat.st_rdev))
}

pub(super) fn read_space(root: &Root, path: &Path) -> Reading<FilesystemSpace> {
    if !root.is_live() {
        return Reading::Absent("a captured tree has no file systems".into());
    }
    match rustix::fs::statvfs(root.locate(path)) {
        Ok(fs) => Reading::Ok(FilesystemSpace {
            total_bytes: fs.f_blocks.saturating_mul(fs.f_frsize),
            free_bytes: fs.f_bfree.saturating_mul(fs.f_frsize),
            available_bytes: fs.f_bavail.saturating_mul(fs.f_frsize),
            inodes_total: Some(fs.f_files).filter(|n| *n > 0),
            inodes_free: (fs.f_files > 0).then_some(fs.f_ffree),
        }),
        Err(err) => Reading::from_io_error("statfs", &err.into()),
    }
}

/// Whether a mount point of the machine is one for this process: not if the host mounted it after this container started.
pub(super) fn is_mounted_here(root: &Root, point: &Path) -> bool {
    let here: PathBuf = root.locate(point).components().collect();
    if !root.is_of_host() || !here.starts_with(root.base()) || here.starts_with(root.proc("1")) {
        return true;
    }
    let table = std::fs::read(root.proc("self/mountinfo")).unwrap_or_default();
    let here = here.as_os_str().as_bytes();
    mountinfo::find_containing(&table, here).is_some_and(|mount| mount.mount_point.as_bytes() == here)
}

/// The devices below a path, each once, with the queue settings of those that have a queue.
fn device_chain(root: &Root, topo: &Topology, found: &[BackingDevice]) -> Vec<DeviceChainEntry> {
    let mut links: Vec<(usize, &BlockDevice)> = Vec::new();
    for (id, _) in found {
        for link in topo.chain(*id) {
            if !links.iter().any(|(_, d)| d.id == link.device.id) {
                links.push((link.depth, link.device));
            }
        }
    }
    // A partition uses its disk's queue; a kpartx partition is a mapping with a queue of its own.
    let queue_of = |dev: &BlockDevice| -> String {
        let disk = (dev.kind == DeviceKind::Partition && dev.slaves.is_empty())
            .then(|| dev.parent.and_then(|p| topo.get(p)))
            .flatten();
        disk.unwrap_or(dev).name.replace('/', "!")
    };
    let names: Vec<String> = links.iter().map(|(_, dev)| queue_of(dev)).collect();
    let queues = read_queue_attrs(root, &names);
    let bottom: Vec<DevId> = found.iter().flat_map(|(id, _)| topo.physical_disks(*id)).map(|dev| dev.id).collect();
    links
        .into_iter()
        .zip(names)
        .map(|((depth, dev), queue)| DeviceChainEntry {
            depth,
            id: dev.id,
            name: dev.name.clone(),
            kind: dev.kind,
            label: dev.label.clone(),
            model: dev.model.clone(),
            size_bytes: dev.size_bytes,
            is_physical: bottom.contains(&dev.id),
            queue: queues.get(&queue).cloned(),
        })
        .collect()
}

fn describe_location(
    mount: &MountInfo,
    store: StorageKind,
    mounts: &MountTable,
    chain: &[DeviceChainEntry],
    node: bool,
) -> String {
    let kind = mount.fs_type.sanitized();
    let source = mount.source.sanitized();
    let device = chain.first().map_or("a device that is not in /sys/block".into(), |d| sanitize(&d.name));
    if node {
        return format!("the path is the block device {device} itself");
    }
    let disks = chain.iter().filter(|d| d.is_physical).count();
    match (store, mount.fs_type.as_bytes()) {
        (_, b"overlay") => describe_overlay(mount, mounts, (!chain.is_empty()).then_some(&device)),
        (StorageKind::Block, b"btrfs") => {
            let members = chain.iter().filter(|d| d.depth == 0).count();
            let others = if members > 1 { format!(" and {} more", members - 1) } else { String::new() };
            format!("btrfs on {device}{others}, by the mount's source (the file system's own number is anonymous)")
        }
        (StorageKind::Block, _) if disks > 1 => format!("{kind} on {device}, spread over {disks} disks"),
        (StorageKind::Block, _) => format!("{kind} on {device}"),
        (StorageKind::Memory, _) => format!("{kind}: in memory and swap, no block device"),
        (StorageKind::Network, fs) => {
            let addr = mount.super_option("addr").map(|a| format!(" ({})", sanitize(a))).unwrap_or_default();
            let name = if is_nfs(fs) { "NFS" } else { &kind };
            format!("{name} from {source}{addr}: over the network, no block device of this machine")
        }
        (StorageKind::Fuse, _) => {
            format!(
                "{kind} ({source}): served by a program in user space; only that program knows where it stores data"
            )
        }
        (StorageKind::Kernel, _) => format!("{kind}: generated by the kernel, nothing is stored"),
        (StorageKind::Unknown, b"zfs") => {
            let pool = source.split('/').next().unwrap_or_default().to_owned();
            format!("ZFS dataset {source}: the kernel does not name the pool's devices; `zpool status {pool}` does")
        }
        (StorageKind::Unknown, b"virtiofs") => {
            format!("virtiofs ({source}): a directory of the host, its disks are not visible here")
        }
        (StorageKind::Unknown, _) => {
            format!("{kind} ({source}): its device was not found in the mount table or sysfs")
        }
    }
}

fn describe_overlay(mount: &MountInfo, mounts: &MountTable, device: Option<&String>) -> String {
    let Some(upper) = mount.super_option("upperdir") else {
        let on = device.map(|d| format!(", topmost on {d}")).unwrap_or_default();
        return format!("overlay without an upper directory: read-only layers{on}");
    };
    let under = mounts.find_by_path(&upper).map(|m| m.fs_type.sanitized());
    let shown = sanitize(&upper);
    match (device, under) {
        (Some(device), Some(fs)) => format!(
            "overlay: what is written goes to {shown} ({fs} on {device}); unchanged files are read from lower layers"
        ),
        (None, Some(fs)) => format!("overlay: what is written goes to {shown} ({fs}, no block device)"),
        _ => format!("overlay: its upper directory {shown} is not in this mount table (another namespace?)"),
    }
}
