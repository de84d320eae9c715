//! The file system of a directory: its type, its mount, and the device whose counters include its I/O.

use super::refusal::refusal_from_errno;
use crate::bench::report::ReportTarget;
use crate::model::disk::DevId;
use crate::parse::mountinfo::{self, MountInfo};
use crate::root::Root;
use crate::sanitize::sanitize;
use crate::tuning::plan::TuneError;
use rustix::fs::{AtFlags, FileType, StatVfsMountFlags, StatxFlags};
use std::os::fd::AsFd;
use std::path::Path;

/// What kind of storage is behind a file system, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesystemKind {
    /// None at all (statfs(2), mount(8)), or read-only images.
    Pseudo,
    Network,
    Memory,
    Stacked,
    /// Anything else: devices.
    Device,
}

fn kind_of(fs_type: &str) -> FilesystemKind {
    match fs_type {
        "proc" | "sysfs" | "devtmpfs" | "devpts" | "cgroup" | "cgroup2" | "debugfs" | "tracefs" | "securityfs"
        | "bpf" | "pstore" | "efivarfs" | "configfs" | "fusectl" | "mqueue" | "hugetlbfs" | "autofs"
        | "binfmt_misc" | "rpc_pipefs" | "nsfs" | "ramfs" | "selinuxfs" | "nfsd" | "squashfs" | "iso9660" | "erofs"
        | "cramfs" | "romfs" | "binder" | "resctrl" => FilesystemKind::Pseudo,
        "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "9p" | "ceph" | "glusterfs" | "fuse.glusterfs" | "fuse.sshfs"
        | "lustre" | "afs" | "gfs2" | "ocfs2" | "beegfs" | "virtiofs" => FilesystemKind::Network,
        "tmpfs" => FilesystemKind::Memory,
        "overlay" | "ecryptfs" | "aufs" | "fuse.mergerfs" | "fuse.unionfs" => FilesystemKind::Stacked,
        _ => FilesystemKind::Device,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFilesystem {
    /// What reports say of it; directory and sizes are missing.
    pub report: ReportTarget,
    pub kind: FilesystemKind,
    /// Mounted read-only, or remounted so after an error.
    pub read_only: bool,
    /// The block device whose counters include its I/O; `None` on network, memory and stacked file systems.
    pub device: Option<DevId>,
    /// The file system's own device number; `None` for anonymous ones (btrfs, overlay, FUSE, network, memory).
    pub own_device: Option<DevId>,
    mount_id: u64,
}

impl TargetFilesystem {
    /// Inspects the open directory `dir`, which the user named `path`.
    pub fn inspect(root: &Root, dir: impl AsFd, path: &Path) -> Result<Self, TuneError> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let stat = rustix::fs::statx(dir.as_fd(), "", flags, wanted).map_err(|e| refusal_from_errno(path, e))?;
        let mountinfo = std::fs::read(root.proc("self/mountinfo")).unwrap_or_default();
        let mount = mountinfo::parse(&mountinfo).find(|mount| mount.id == stat.stx_mnt_id);
        let numbered = DevId { major: stat.stx_dev_major, minor: stat.stx_dev_minor };
        let device = counted_device(root, numbered, mount.as_ref());
        let mut report = ReportTarget { filesystem: "unknown".into(), ..ReportTarget::default() };
        if let Some(mount) = mount {
            report.filesystem = mount.fs_type.sanitized();
            report.source = mount.source.sanitized();
            report.mount = mount.mount_point.sanitized();
            report.options = sanitize([mount.options.as_bytes(), mount.super_options.as_bytes()].join(&b','));
        }
        let kind = kind_of(&report.filesystem);
        report.device = device.map(|d| d.to_string());
        report.is_memory = kind == FilesystemKind::Memory;
        report.is_network = kind == FilesystemKind::Network;
        report.is_stacked = kind == FilesystemKind::Stacked;
        // statfs would ask the server of a network mount, which is refused by its type first.
        let flags = match kind {
            FilesystemKind::Pseudo | FilesystemKind::Network => StatVfsMountFlags::empty(),
            _ => rustix::fs::fstatvfs(dir.as_fd()).map_err(|e| refusal_from_errno(path, e))?.f_flag,
        };
        let read_only = flags.contains(StatVfsMountFlags::RDONLY)
            || report.options.split(',').any(|o| matches!(o, "ro" | "emergency_ro"));
        let own_device = block_device_id(numbered);
        Ok(Self { report, kind, read_only, device, own_device, mount_id: stat.stx_mnt_id })
    }

    /// Whether it has been unmounted since: an open file keeps a lazily unmounted file system usable.
    pub fn is_unmounted(&self, root: &Root) -> bool {
        let known = !self.report.mount.is_empty();
        let now = std::fs::read(root.proc("self/mountinfo"));
        known && now.is_ok_and(|text| !mountinfo::parse(&text).any(|mount| mount.id == self.mount_id))
    }
}

/// A block device's number; major 0 is an anonymous one.
fn block_device_id(id: DevId) -> Option<DevId> {
    Some(id).filter(|id| id.major != 0)
}

/// The device whose counters include this file system's I/O. btrfs and others have an anonymous number;
/// their mount source names a device node, which is not opened, only its number is read.
fn counted_device(root: &Root, numbered: DevId, mount: Option<&MountInfo>) -> Option<DevId> {
    use std::os::unix::ffi::OsStrExt;
    block_device_id(numbered).or_else(|| block_device_id(mount?.device)).or_else(|| {
        let source = Path::new(std::ffi::OsStr::from_bytes(mount?.source.as_bytes()));
        let inside = source.strip_prefix(Root::live().dev("")).ok()?;
        let stat = rustix::fs::stat(root.dev("").join(inside)).ok()?;
        let id = DevId { major: rustix::fs::major(stat.st_rdev), minor: rustix::fs::minor(stat.st_rdev) };
        block_device_id(id).filter(|_| FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filesystem_types_are_classified() {
        let dir = tempfile::tempdir().unwrap();
        let fd = super::super::checks::open_directory(dir.path()).unwrap();
        let fs = TargetFilesystem::inspect(&Root::live(), &fd, dir.path()).unwrap();
        assert!(!fs.report.filesystem.is_empty());
        assert_eq!(kind_of("nfs4"), FilesystemKind::Network);
        assert_eq!((kind_of("tmpfs"), kind_of("overlay")), (FilesystemKind::Memory, FilesystemKind::Stacked));
        assert_eq!((kind_of("sysfs"), kind_of("xfs")), (FilesystemKind::Pseudo, FilesystemKind::Device));
        let of = |fs_type: &str| TargetFilesystem { kind: kind_of(fs_type), ..fs.clone() };
        let refused = |fs: TargetFilesystem, twice| {
            super::super::checks::check_filesystem_kind(&fs, dir.path(), twice).err().map(|r| r.to_string())
        };
        assert!(refused(of("nfs4"), false).is_some_and(|why| why.contains("--network")));
        let sound = |kind: &str| TargetFilesystem { read_only: false, ..of(kind) };
        assert_eq!((refused(sound("nfs4"), true), refused(sound("xfs"), false)), (None, None));
        let ro = TargetFilesystem { read_only: true, ..of("ext4") };
        assert!(refused(ro, true).is_some_and(|why| why.contains("read-only")));
    }
}
