//! The mount table, and the mount that a path is on.
//!
//! Source: proc_pid_mountinfo(5), Documentation/filesystems/proc.rst section 3.5.

use super::disk::DevId;
use crate::parse::bytes::unescape_octal;
pub(crate) use crate::parse::mountinfo::MountInfo;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

impl MountInfo {
    /// Whether `name` is among the options of the mount or of the file system.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.options().chain(self.super_options.options()).any(|option| option == name.as_bytes())
    }

    /// The value of `name=value` in the options of the file system, unescaped.
    pub fn super_option(&self, name: &str) -> Option<Vec<u8>> {
        self.super_options
            .options()
            .find_map(|w| w.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .map(unescape_octal)
    }

    pub fn is_network(&self) -> bool {
        let is_listed = || NETWORK_TYPES.split('|').any(|name| self.fs_type == name);
        is_nfs(self.fs_type.as_bytes()) || is_cifs(self.fs_type.as_bytes()) || is_listed()
    }
}

/// Network file systems other than NFS and SMB.
const NETWORK_TYPES: &str =
    "ceph|9p|afs|lustre|ocfs2|gfs2|beegfs|glusterfs|fuse.glusterfs|fuse.sshfs|fuse.s3fs|fuse.ceph-fuse|fuse.rclone";

/// NFS of any version (not `nfsd`, the server's control file system).
pub(crate) fn is_nfs(fs_type: &[u8]) -> bool {
    matches!(fs_type, b"nfs" | b"nfs4")
}

/// SMB of any version.
pub(crate) fn is_cifs(fs_type: &[u8]) -> bool {
    matches!(fs_type, b"cifs" | b"smb3")
}

/// The mounts of this process's namespace, in the kernel's order (a mount follows the one it covers).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MountTable(pub Vec<MountInfo>);

impl MountTable {
    pub fn by_id(&self, id: u64) -> Option<&MountInfo> {
        self.0.iter().find(|m| m.id == id)
    }

    /// An index for many look-ups.
    pub fn resolver(&self) -> MountResolver<'_> {
        MountResolver::new(&self.0)
    }

    /// The mount that `path` is on: longest prefix, respecting overmounts. `path` is absolute, without `.`, `..` or
    /// symlinks.
    pub fn find_by_path(&self, path: &[u8]) -> Option<&MountInfo> {
        self.resolver().resolve(path)
    }

    /// For each mount, whether it is a bind mount: it shows a file system that an earlier mount shows, or only a part
    /// of one. A btrfs subvolume mounted by its name is not a bind mount.
    pub fn bind_flags(&self) -> Vec<bool> {
        let mut seen: HashSet<(DevId, &[u8])> = HashSet::with_capacity(self.0.len());
        self.0
            .iter()
            .map(|m| {
                let again = !seen.insert((m.device, m.root.as_bytes()));
                let part = m.root != "/" && m.super_option("subvol").is_none_or(|s| s != m.root.as_bytes());
                again || part
            })
            .collect()
    }

    /// [`MountTable::bind_flags`] of one mount.
    pub fn is_bind(&self, mount: &MountInfo) -> bool {
        let at = self.0.iter().position(|m| m.id == mount.id);
        at.is_some_and(|at| self.bind_flags()[at])
    }
}

/// Resolves paths in the tree of mounts as the kernel does.
pub struct MountResolver<'a> {
    /// (parent mount, mount point) -> the mount on top.
    children: HashMap<(u64, &'a [u8]), &'a MountInfo>,
    root: Option<&'a MountInfo>,
    mounts: &'a [MountInfo],
}

impl<'a> MountResolver<'a> {
    fn new(all: &'a [MountInfo]) -> Self {
        let mut on = HashMap::with_capacity(all.len());
        let ids: HashSet<u64> = all.iter().map(|m| m.id).collect();
        let mut root = None;
        for m in all {
            if m.parent != m.id {
                on.insert((m.parent, m.mount_point.as_bytes()), m);
            }
            if m.mount_point == "/" && (m.parent == m.id || !ids.contains(&m.parent)) {
                root.get_or_insert(m);
            }
        }
        Self { children: on, root, mounts: all }
    }

    /// See [`MountTable::find_by_path`].
    pub fn resolve(&self, path: &[u8]) -> Option<&'a MountInfo> {
        let Some(root) = self.root else { return self.longest_prefix(path) };
        let mut at = self.topmost(root, b"/");
        for end in (1..=path.len()).filter(|end| *end == path.len() || path[*end] == b'/') {
            if end > 1 && path[end - 1] != b'/' {
                at = self.topmost(at, &path[..end]);
            }
        }
        Some(at)
    }

    /// Whether a path leads to the mount, or a later mount covers it.
    pub fn is_visible(&self, mount: &MountInfo) -> bool {
        self.resolve(mount.mount_point.as_bytes()).is_some_and(|m| m.id == mount.id)
    }

    /// Follows the stack of mounts at one point. Bounded, because the table of a recording is untrusted.
    fn topmost(&self, mut at: &'a MountInfo, point: &[u8]) -> &'a MountInfo {
        for _ in 0..self.mounts.len() {
            match self.children.get(&(at.id, point)) {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    /// The table of a process whose root is below a mount point has no root mount.
    fn longest_prefix(&self, path: &[u8]) -> Option<&'a MountInfo> {
        self.mounts
            .iter()
            .filter(|m| is_within(path, m.mount_point.as_bytes()))
            .max_by_key(|m| m.mount_point.as_bytes().len())
    }
}

/// Whether `path` is `dir` or is inside it.
pub(crate) fn is_within(path: &[u8], dir: &[u8]) -> bool {
    match path.strip_prefix(dir) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || dir.ends_with(b"/"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mount(id: u64, parent: u64, minor: u32, root: &str, point: &str) -> MountInfo {
        MountInfo {
            id,
            parent,
            device: DevId { major: 8, minor },
            root: root.into(),
            mount_point: point.into(),
            ..Default::default()
        }
    }

    #[test]
    fn the_longest_prefix_of_whole_components_wins() {
        let t =
            MountTable(vec![mount(1, 0, 1, "/", "/"), mount(2, 1, 2, "/", "/var"), mount(3, 2, 3, "/", "/var/lib/x")]);
        let id = |p: &str| t.find_by_path(p.as_bytes()).unwrap().id;
        assert_eq!((id("/"), id("/variable"), id("/var"), id("/var/lib"), id("/var/lib/x/y")), (1, 1, 2, 2, 3));
    }

    #[test]
    fn a_later_mount_hides_the_mounts_below_it() {
        // /a/b first, then a mount over /a, then two on /a/c.
        let t = MountTable(vec![
            mount(1, 0, 1, "/", "/"),
            mount(2, 1, 2, "/", "/a/b"),
            mount(3, 1, 3, "/", "/a"),
            mount(4, 3, 4, "/", "/a/c"),
            mount(5, 4, 5, "/", "/a/c"),
        ]);
        let id = |p: &str| t.find_by_path(p.as_bytes()).unwrap().id;
        assert_eq!((id("/a/b/f"), id("/a/c/f")), (3, 5));
        let f = t.resolver();
        let visible: Vec<u64> = t.0.iter().filter(|m| f.is_visible(m)).map(|m| m.id).collect();
        assert_eq!(visible, [1, 3, 5]);
    }

    #[test]
    fn covered_roots_and_chroots_resolve() {
        let boot = MountTable(vec![mount(1, 1, 1, "/", "/"), mount(20, 1, 2, "/", "/")]);
        assert_eq!(boot.find_by_path(b"/etc").unwrap().id, 20);
        let chroot = MountTable(vec![mount(30, 7, 3, "/", "/srv"), mount(31, 30, 3, "/", "/srv/a")]);
        assert_eq!(chroot.find_by_path(b"/srv/a/f").unwrap().id, 31);
        assert_eq!(chroot.find_by_path(b"/etc"), None);
    }

    #[test]
    fn bind_mounts_are_told_from_subvolumes() {
        let mut sub = mount(4, 1, 9, "/@home", "/home");
        sub.super_options = "rw,subvolid=257,subvol=/@home".into();
        let t = MountTable(vec![
            mount(1, 0, 1, "/", "/"),
            mount(2, 1, 1, "/data", "/srv"),
            mount(3, 1, 1, "/", "/all"),
            sub,
        ]);
        let bind: Vec<bool> = t.0.iter().map(|m| t.is_bind(m)).collect();
        assert_eq!(bind, [false, true, true, false]);
    }

    #[test]
    fn escaped_commas_in_options_are_kept() {
        let mount = MountInfo {
            super_options: r"rw,upperdir=/a\054b\134,workdir=/w".into(),
            options: "ro,noatime".into(),
            ..mount(1, 0, 1, "/", "/")
        };
        assert_eq!(mount.super_option("upperdir").unwrap(), br"/a,b\");
        assert!(mount.has_option("noatime") && !mount.has_option("workdir"));
    }

    proptest! {
        #[test]
        fn any_table_is_resolved_without_panic(rows in proptest::collection::vec((0u64..6, 0u64..6, "/[ab/]{0,4}"), 0..8), path in "/[ab/]{0,6}") {
            let t = MountTable(rows.iter().map(|(id, parent, point)| mount(*id, *parent, 0, "/", point)).collect());
            let f = t.resolver();
            let _ = f.resolve(path.as_bytes());
            for mount in &t.0 {
                let _ = (f.is_visible(mount), t.is_bind(mount));
            }
        }
    }
}
