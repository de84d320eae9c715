//! Paths of files that the kernel names by file system and directory entries.

use super::disk::DevId;
use super::raw_bytes::RawBytes;
use super::topology::{MountRef, Topology};

/// Where a file system is mounted, sanitized, without a slash at the end: `` for `/`. `None` if it is not known.
pub(crate) fn mount_point(topo: Option<&Topology>, file_system: DevId) -> Option<String> {
    let mounts = topo?.file_system_mounts(file_system);
    let shows_root = |mount: &&MountRef| !mount.is_bind && !mount.is_hidden && !mount.is_subvolume();
    let mount = mounts.into_iter().map(|(_, mount)| mount).find(shows_root)?;
    Some(mount.mount_point.sanitized().trim_end_matches('/').to_owned())
}

/// The path of a file for display, sanitized: below the mount point if that is known, otherwise the known end of it.
pub(crate) fn join(mount: Option<&str>, path_tail: &RawBytes, is_full_path: bool) -> String {
    let names = path_tail.sanitized();
    match (mount, is_full_path) {
        (Some(mount), true) => format!("{mount}/{names}"),
        (Some(mount), false) => format!("{mount}/…/{names}"),
        (None, _) => format!("…/{names}"),
    }
}
