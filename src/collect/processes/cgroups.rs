//! Control group paths of tasks: selects which line of `/proc/PID/cgroup` to show, and shares paths between tasks.

use crate::model::process::container_hint;
use crate::parse::bytes::lines;
use crate::sanitize;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub(super) struct TaskCgroup {
    /// Path, sanitized.
    pub path: Arc<str>,
    /// See [`container_hint`].
    pub container: Option<Arc<str>>,
}

#[derive(Debug, Default)]
pub(super) struct CgroupCache {
    by_raw_path: HashMap<Box<[u8]>, TaskCgroup>,
    /// There are hierarchies of cgroup v1: then the v2 cgroup ID does not reveal every move.
    pub has_v1_hierarchies: bool,
}

/// The cache is cleared above this size, so that short-lived groups do not fill memory.
const MAX_CACHED: usize = 20_000;

impl CgroupCache {
    /// Returns the group for the text of `/proc/PID/cgroup`.
    pub(super) fn lookup(&mut self, text: &[u8]) -> TaskCgroup {
        let raw = select_path(text);
        self.has_v1_hierarchies |= lines(text).any(|line| !line.starts_with(b"0::"));
        if let Some(group) = self.by_raw_path.get(raw) {
            return group.clone();
        }
        if self.by_raw_path.len() >= MAX_CACHED {
            self.by_raw_path.clear();
        }
        let path = sanitize::sanitize(raw);
        let container = container_hint(&path).map(Into::into);
        let group = TaskCgroup { path: path.into(), container };
        self.by_raw_path.insert(raw.into(), group.clone());
        group
    }
}

/// Selects among lines `ID:CONTROLLERS:PATH`: the v2 line (ID 0), unless its path is `/` (as on hybrid machines) and a
/// v1 hierarchy has a longer path; among those the one with the blkio controller first, then memory.
fn select_path(text: &[u8]) -> &[u8] {
    let rank = |controllers: &[u8], path: &[u8]| -> u8 {
        let governs = |name: &[u8]| controllers.split(|b| *b == b',').any(|c| c == name);
        match (path, controllers) {
            (b"/", b"") => 2,
            (b"/" | b"", _) => 1,
            (_, b"") => 6,
            _ if governs(b"blkio") => 5,
            _ if governs(b"memory") => 4,
            _ => 3,
        }
    };
    let mut best: (u8, &[u8]) = (0, b"");
    for line in lines(text) {
        let mut fields = line.splitn(3, |b| *b == b':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let rank = rank(controllers, path);
        if rank > best.0 {
            best = (rank, path);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_that_controls_io_is_selected() {
        assert_eq!(select_path(b"0::/system.slice/a.service\n"), b"/system.slice/a.service");
        assert_eq!(select_path(b"12:memory:/m\n5:blkio,x:/io\n1:name=systemd:/s\n0::/\n"), b"/io");
        assert_eq!(select_path(b"1:name=systemd:/s\n0::/\n"), b"/s");
        assert_eq!(select_path(b"0::/\n"), b"/");
        assert_eq!(select_path(b"3:cpu:/a:b\n"), b"/a:b");
        assert_eq!(select_path(b""), b"");
    }

    #[test]
    fn control_characters_in_cgroup_names_are_escaped() {
        let group = CgroupCache::default().lookup(b"0::/a\x1b[2Jb\n");
        assert_eq!(&*group.path, "/a\\x1b[2Jb");
    }
}
