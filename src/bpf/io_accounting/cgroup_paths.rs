//! Resolves control group IDs, which are inode numbers of their directories, to paths.

use crate::root::Root;
use crate::sanitize::sanitize;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// ID of the top directory of a hierarchy (the first that `kernfs_create_root` gives).
const TOP_ID: u64 = 1;
const MAX_DIRECTORIES: usize = 20_000;
/// Readings after which an unresolved ID is searched again: usually its group is gone.
const RETRY_READS: u32 = 60;

#[derive(Default)]
pub(super) struct CgroupPaths {
    paths: BTreeMap<u64, Option<Arc<str>>>,
    reads_since_search: u32,
}

impl CgroupPaths {
    /// Returns the paths of the `wanted` IDs, where they can be found.
    pub(super) fn resolve(&mut self, root: &Root, wanted: impl Iterator<Item = u64>) -> Vec<(u64, Arc<str>)> {
        let wanted: BTreeSet<u64> = wanted.collect();
        self.paths.retain(|id, _| wanted.contains(id));
        self.reads_since_search += 1;
        let unasked = wanted.iter().any(|id| !self.paths.contains_key(id));
        if unasked || (self.reads_since_search >= RETRY_READS && self.paths.values().any(Option::is_none)) {
            self.reads_since_search = 0;
            let found = find_paths(&hierarchy_root(root), &wanted);
            for id in wanted {
                let path = found.get(&id).cloned();
                let path_entry = self.paths.entry(id).or_default();
                *path_entry = path.or(path_entry.take());
            }
        }
        self.paths.iter().filter_map(|(id, path)| Some((*id, path.clone()?))).collect()
    }
}

/// Returns the root of the hierarchy that controls I/O: cgroup v1 where it is mounted.
fn hierarchy_root(root: &Root) -> PathBuf {
    let dir = |name: &str| root.sys(&format!("fs/cgroup/{name}"));
    let v1 = dir("blkio");
    if v1.is_dir() { v1 } else { root.sys("fs/cgroup") }
}

fn find_paths(top: &Path, wanted: &BTreeSet<u64>) -> BTreeMap<u64, Arc<str>> {
    let mut found = BTreeMap::new();
    // The top of every hierarchy has this number, also of one that is mounted elsewhere.
    let own = std::fs::metadata(top).map(|top| top.ino());
    for id in [TOP_ID, own.unwrap_or(TOP_ID)].into_iter().filter(|id| wanted.contains(id)) {
        found.insert(id, "/".into());
    }
    let mut dirs = vec![top.to_path_buf()];
    let mut visited = 0;
    while let Some(dir) = dirs.pop() {
        visited += 1;
        if visited > MAX_DIRECTORIES || found.len() == wanted.len() {
            break;
        }
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            let path = entry.path();
            if wanted.contains(&entry.ino())
                && let Ok(below) = path.strip_prefix(top)
            {
                let text = [b"/".as_slice(), below.as_os_str().as_bytes()].concat();
                found.insert(entry.ino(), sanitize(text).into());
            }
            dirs.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_paths_are_found_by_inode_and_cached() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let top = root.sys("fs/cgroup");
        let deep = top.join("a.slice/b\x1b.service");
        std::fs::create_dir_all(&deep).unwrap();
        let id = |path: &Path| std::fs::metadata(path).unwrap().ino();
        let (of_top, of_deep) = (id(&top), id(&deep));
        let mut groups = CgroupPaths::default();
        let mut resolve = || {
            let mut found = groups.resolve(&root, [of_deep, of_top, 1].into_iter());
            found.sort_by_key(|g| g.1.len());
            found
        };
        let want = vec![(1, Arc::from("/")), (of_top, Arc::from("/")), (of_deep, Arc::from("/a.slice/b\\x1b.service"))];
        assert_eq!(resolve(), want);
        std::fs::remove_dir(&deep).unwrap();
        assert_eq!(resolve(), want, "the name outlives the group");
    }
}
