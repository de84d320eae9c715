//! Control group paths: which of a task's lines to show, shared between the tasks of a group.

use crate::collect::byte_parse::lines;
use crate::model::process::container_hint;
use crate::text;
use std::collections::HashMap;
use std::sync::Arc;

/// A group's path, cleaned, and the container it belongs to.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Cleaned path.
    pub path: Arc<str>,
    /// See [`container_hint`].
    pub container: Option<Arc<str>>,
}

/// Groups seen, by raw path.
#[derive(Debug, Default)]
pub struct Groups {
    seen: HashMap<Box<[u8]>, Group>,
    old: bool,
}

/// More than this many groups at once are not kept: the churn of short-lived ones must not grow us.
const LIMIT: usize = 20_000;

impl Groups {
    /// The group of a `/proc/PID/cgroup` text.
    pub fn of(&mut self, text: &[u8]) -> Group {
        let raw = choose(text);
        self.old |= lines(text).any(|line| !line.starts_with(b"0::"));
        if let Some(group) = self.seen.get(raw) {
            return group.clone();
        }
        if self.seen.len() >= LIMIT {
            self.seen.clear();
        }
        let path = text::sanitize(raw);
        let container = container_hint(&path).map(Into::into);
        let group = Group { path: path.into(), container };
        self.seen.insert(raw.into(), group.clone());
        group
    }

    /// There are hierarchies of version 1: a task's number in that of version 2 does not tell all its moves.
    pub fn has_old(&self) -> bool {
        self.old
    }
}

/// Of `id:controllers:path` lines the version 2 one (id 0), unless it says nothing (`/`, as on hybrid
/// machines) and a version 1 hierarchy, the one that governs I/O first, says more.
fn choose(text: &[u8]) -> &[u8] {
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
    fn the_line_that_governs_io_is_shown() {
        assert_eq!(choose(b"0::/system.slice/a.service\n"), b"/system.slice/a.service");
        assert_eq!(choose(b"12:memory:/m\n5:blkio,x:/io\n1:name=systemd:/s\n0::/\n"), b"/io");
        assert_eq!(choose(b"1:name=systemd:/s\n0::/\n"), b"/s");
        assert_eq!(choose(b"0::/\n"), b"/");
        assert_eq!(choose(b"3:cpu:/a:b\n"), b"/a:b");
        assert_eq!(choose(b""), b"");
    }

    #[test]
    fn hostile_group_names_are_cleaned() {
        let group = Groups::default().of(b"0::/a\x1b[2Jb\n");
        assert_eq!(&*group.path, "/a\\x1b[2Jb");
    }
}
