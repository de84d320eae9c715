//! The file system of a directory: its type, its mount, and the device whose counters include its I/O.

use super::refusal::{BenchRefusal, refusal_from_errno};
use crate::model::disk::DevId;
use crate::parse::mountinfo::{self, MountinfoEntry};
use crate::root::Root;
use rustix::fs::{AtFlags, FileType, StatVfsMountFlags, StatxFlags};
use std::os::fd::AsFd;
use std::path::Path;

/// Types without storage (statfs(2), mount(8)).
const PSEUDO_FILESYSTEMS: [&str; 30] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "bpf",
    "pstore",
    "efivarfs",
    "configfs",
    "fusectl",
    "mqueue",
    "hugetlbfs",
    "autofs",
    "binfmt_misc",
    "rpc_pipefs",
    "nsfs",
    "ramfs",
    "selinuxfs",
    "nfsd",
    "squashfs",
    "iso9660",
    "erofs",
    "cramfs",
    "romfs",
    "binder",
    "resctrl",
];

/// Types served over a network.
const NETWORK_FILESYSTEMS: [&str; 16] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "ceph",
    "glusterfs",
    "fuse.glusterfs",
    "fuse.sshfs",
    "lustre",
    "afs",
    "gfs2",
    "ocfs2",
    "beegfs",
    "virtiofs",
];

/// The file system of a directory. Names may hold any bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFilesystem {
    /// Type, as in mountinfo: `ext4`, `nfs4`.
    pub fs_type: String,
    /// What it was mounted from.
    pub source: Vec<u8>,
    /// Mount point.
    pub mount_point: Vec<u8>,
    /// Mount and superblock options.
    pub options: String,
    /// Mounted read-only, or remounted so after an error.
    pub read_only: bool,
    /// Size, bytes.
    pub size: u64,
    /// Free for this user, bytes.
    pub free: u64,
    /// The block device whose counters include its I/O; `None` on network, memory and stacked file systems.
    pub device: Option<DevId>,
    /// The file system's own device number if it is a block device's; `None` for anonymous ones (btrfs,
    /// overlay, FUSE, network, memory).
    pub own_device: Option<DevId>,
    /// Mount ID.
    pub mount_id: u64,
}

impl TargetFilesystem {
    /// Inspects the open directory `dir`, which the user named `path`.
    pub fn inspect(root: &Root, dir: impl AsFd, path: &Path) -> Result<Self, BenchRefusal> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let stat = rustix::fs::statx(dir.as_fd(), "", flags, wanted).map_err(|e| refusal_from_errno(path, e))?;
        let mountinfo = std::fs::read(root.proc("self/mountinfo")).unwrap_or_default();
        let mount = mountinfo::parse(&mountinfo).find(|mount| mount.id == stat.stx_mnt_id);
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        let fs_type = mount.as_ref().map_or("unknown".into(), |mount| text(&mount.fs_type));
        let options =
            mount.as_ref().map_or(String::new(), |m| format!("{},{}", text(&m.options), text(&m.super_options)));
        let kind = fs_type.as_str();
        // statfs would ask the server of a network mount, which is refused by its type first.
        let vfs = match PSEUDO_FILESYSTEMS.contains(&kind) || NETWORK_FILESYSTEMS.contains(&kind) {
            true => None,
            false => Some(rustix::fs::fstatvfs(dir.as_fd()).map_err(|e| refusal_from_errno(path, e))?),
        };
        let read_only = vfs.as_ref().is_some_and(|v| v.f_flag.contains(StatVfsMountFlags::RDONLY))
            || options.split(',').any(|o| matches!(o, "ro" | "emergency_ro"));
        let numbered = (stat.stx_dev_major, stat.stx_dev_minor);
        Ok(Self {
            device: counted_device(root, numbered, mount.as_ref()),
            own_device: block_device_id(numbered),
            mount_id: stat.stx_mnt_id,
            read_only,
            size: vfs.as_ref().map_or(0, |v| v.f_blocks * v.f_frsize),
            free: vfs.map_or(0, |v| v.f_bavail * v.f_frsize),
            fs_type,
            source: mount.as_ref().map_or(Vec::new(), |mount| mount.source.clone()),
            mount_point: mount.map_or(Vec::new(), |mount| mount.mount_point),
            options,
        })
    }

    /// Whether it has been unmounted since. An open file keeps a file system that was
    /// unmounted lazily usable.
    pub fn is_unmounted(&self, root: &Root) -> bool {
        let known = !self.mount_point.is_empty();
        let now = std::fs::read(root.proc("self/mountinfo"));
        known && now.is_ok_and(|text| !mountinfo::parse(&text).any(|mount| mount.id == self.mount_id))
    }

    /// Whether it has no storage at all.
    pub fn is_pseudo(&self) -> bool {
        PSEUDO_FILESYSTEMS.contains(&self.fs_type.as_str())
    }

    /// Whether it is a network file system.
    pub fn is_network(&self) -> bool {
        NETWORK_FILESYSTEMS.contains(&self.fs_type.as_str())
    }

    /// Whether its files are in memory.
    pub fn is_memory(&self) -> bool {
        self.fs_type == "tmpfs"
    }

    /// Whether it passes I/O on to other file systems.
    pub fn is_stacked(&self) -> bool {
        matches!(self.fs_type.as_str(), "overlay" | "ecryptfs" | "aufs" | "fuse.mergerfs" | "fuse.unionfs")
    }
}

/// A block device's number; major 0 is an anonymous one.
fn block_device_id((major, minor): (u32, u32)) -> Option<DevId> {
    (major != 0).then_some(DevId { major, minor })
}

/// The device whose counters include this file system's I/O. btrfs and others have an anonymous number;
/// their mount source names a device node, which is not opened, only its number is read.
fn counted_device(root: &Root, numbered: (u32, u32), mount: Option<&MountinfoEntry>) -> Option<DevId> {
    use std::os::unix::ffi::OsStrExt;
    block_device_id(numbered).or_else(|| block_device_id(mount?.device)).or_else(|| {
        let source = Path::new(std::ffi::OsStr::from_bytes(&mount?.source));
        let inside = source.strip_prefix(Root::live().dev("")).ok()?;
        let stat = rustix::fs::stat(root.dev("").join(inside)).ok()?;
        let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
        (FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice)
            .then_some((major, minor))
            .and_then(block_device_id)
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
        assert!(!fs.fs_type.is_empty() && fs.size > 0);
        assert!(!fs.is_pseudo() || !fs.is_network());
        let of = |kind: &str| TargetFilesystem { fs_type: kind.into(), ..fs.clone() };
        assert!(of("nfs4").is_network() && of("tmpfs").is_memory() && of("overlay").is_stacked());
        assert!(of("sysfs").is_pseudo() && !of("xfs").is_pseudo());
        let refused = |fs: TargetFilesystem, twice| {
            super::super::checks::check_filesystem_kind(&fs, dir.path(), twice).err().map(|r| r.reason)
        };
        assert!(refused(of("nfs4"), false).is_some_and(|why| why.contains("--network")));
        let sound = |kind: &str| TargetFilesystem { read_only: false, ..of(kind) };
        assert_eq!((refused(sound("nfs4"), true), refused(sound("xfs"), false)), (None, None));
        let ro = TargetFilesystem { read_only: true, ..of("ext4") };
        assert!(refused(ro, true).is_some_and(|why| why.contains("read-only")));
    }
}
