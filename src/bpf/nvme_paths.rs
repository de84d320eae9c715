//! Counts the requests of NVMe paths for the disk above them ([`crate::model::nvme_path`]).
//!
//! The numbers of paths, which are hidden disks, are in no file of sysfs, only in `/proc/diskstats` (since Linux 6.1).

use crate::model::disk::DevId;
use crate::model::nvme_path::paths_with_heads;
use crate::parse::bytes::{lines, parse_u64, words};
use crate::root::Root;
use std::collections::{BTreeMap, BTreeSet};

/// Readings after which the paths are read again, because numbers are given anew.
const MAX_CACHED_READS: u32 = 60;
/// `BLOCK_EXT_MAJOR`: the only major number of NVMe disks.
const NVME_MAJOR: u32 = 259;

/// The heads of paths.
pub(super) struct PathHeads {
    root: Root,
    heads: BTreeMap<DevId, DevId>,
    /// The disks that there were when the paths were read, and what was asked for since.
    known: BTreeSet<DevId>,
    reads: u32,
}

impl PathHeads {
    pub(super) fn new(root: &Root) -> Self {
        Self { root: root.clone(), heads: BTreeMap::new(), known: BTreeSet::new(), reads: 0 }
    }

    /// Call this before each reading.
    pub(super) fn start_reading(&mut self) {
        self.reads += 1;
        if self.reads >= MAX_CACHED_READS {
            self.reads = 0;
            self.known.clear();
        }
    }

    /// The device that the requests of this one are counted for: the head of a path, else itself.
    pub(super) fn head(&mut self, id: DevId) -> DevId {
        if id.major == NVME_MAJOR && self.known.insert(id) {
            self.read_paths();
        }
        self.heads.get(&id).copied().unwrap_or(id)
    }

    /// Whether requests of paths are counted for this device.
    pub(super) fn is_head(&self, id: DevId) -> bool {
        self.heads.values().any(|head| *head == id)
    }

    /// Paths that cannot be read stay as they were.
    fn read_paths(&mut self) {
        let Ok(text) = std::fs::read(self.root.proc("diskstats")) else { return };
        let disks: Vec<(DevId, &str, u64)> = lines(&text).filter_map(parse_disk).collect();
        self.known.extend(disks.iter().map(|(id, ..)| *id).filter(|id| id.major == NVME_MAJOR));
        self.heads = paths_with_heads(disks.iter().copied()).collect();
    }
}

/// Number, name, and reads and writes completed (Documentation/admin-guide/iostats.rst).
fn parse_disk(line: &[u8]) -> Option<(DevId, &str, u64)> {
    let mut words = words(line);
    let mut number = || parse_u64(words.next()?);
    let id = DevId { major: number()? as u32, minor: number()? as u32 };
    let name = std::str::from_utf8(words.next()?).ok()?;
    let (reads, writes) = (words.next()?, words.nth(3)?);
    Some((id, name, parse_u64(reads)?.saturating_add(parse_u64(writes)?)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const PATH: DevId = DevId { major: 259, minor: 1 };
    pub(in super::super) const HEAD: DevId = DevId { major: 259, minor: 2 };

    /// Writes the diskstats of Linux 6.12 with two paths; the head has completed this many reads.
    pub(in super::super) fn write_diskstats(root: &Root, head_reads: u64) {
        let text = format!(
            " 259       0 nvme0c1n1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n \
             259       1 nvme0c0n1 3 0 24 1 0 0 0 0 0 0 1 0 0 0 0 0 0\n \
             259       2 nvme0n1 {head_reads} 0 24 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        std::fs::create_dir_all(root.proc("")).unwrap();
        std::fs::write(root.proc("diskstats"), text).unwrap();
    }

    #[test]
    fn a_path_has_its_head_and_numbers_are_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let mut heads = PathHeads::new(&root);
        assert_eq!(heads.head(PATH), PATH, "no diskstats");
        write_diskstats(&root, 3);
        assert_eq!(heads.head(PATH), PATH, "it is known already");
        (0..MAX_CACHED_READS).for_each(|_| heads.start_reading());
        assert_eq!([PATH, HEAD, DevId { minor: 0, ..PATH }].map(|id| heads.head(id)), [HEAD; 3]);
        assert_eq!([HEAD, PATH].map(|id| heads.is_head(id)), [true, false]);
        let other = DevId { major: 8, minor: 1 };
        assert_eq!(heads.head(other), other);
        write_diskstats(&root, 0);
        assert_eq!(heads.head(PATH), HEAD, "not read again for a disk that is known");
        let unknown = DevId { minor: 7, ..PATH };
        assert_eq!((heads.head(unknown), heads.head(PATH)), (unknown, PATH), "the head counts no requests");
    }
}
