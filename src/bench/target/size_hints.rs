//! Sizes that the kernel reports for a disk: at a block size beyond one of them the results may change abruptly.
//!
//! Source: Documentation/ABI/stable/sysfs-block and Documentation/admin-guide/md.rst. Reading these files
//! neither wakes nor waits for a device.

use crate::model::disk::DevId;
use crate::root::Root;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The name of the bytes that the segments of a request hold, of a page each.
pub(crate) const MAX_SEGMENTS: &str = "max_segments";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSizeHint {
    /// The sysfs attribute, as in `optimal_io_size`.
    pub name: String,
    pub bytes: u64,
}

/// The directory of the disk that device `id` is, or is a partition of, below `/sys/devices`.
pub(super) fn disk_sysfs_dir(root: &Root, id: DevId) -> Option<PathBuf> {
    let device = std::fs::canonicalize(root.sys(&format!("dev/block/{id}"))).ok()?;
    // A partition has no queue of its own; its directory is inside its disk's.
    if device.join("partition").exists() { device.parent().map(Into::into) } else { Some(device) }
}

pub(crate) fn disk_name(root: &Root, id: DevId) -> Option<String> {
    disk_sysfs_dir(root, id)?.file_name()?.to_str().map(Into::into)
}

/// The number of the disk that device `id` is, or is a partition of.
pub(crate) fn disk_id(root: &Root, id: DevId) -> Option<DevId> {
    DevId::parse(&std::fs::read(disk_sysfs_dir(root, id)?.join("dev")).ok()?)
}

/// What that disk calls itself (`device/model`).
pub(crate) fn disk_model(root: &Root, id: DevId) -> Option<String> {
    let text = std::fs::read_to_string(disk_sysfs_dir(root, id)?.join("device/model")).ok()?;
    Some(text.trim().to_owned()).filter(|model| !model.is_empty())
}

/// The sizes of that disk that are not 0.
pub(crate) fn read_size_hints(root: &Root, id: DevId) -> Vec<DeviceSizeHint> {
    let Some(dir) = disk_sysfs_dir(root, id) else { return Vec::new() };
    let all = [
        ("md chunk_size", "md/chunk_size", 1),
        ("optimal_io_size", "queue/optimal_io_size", 1),
        ("chunk_sectors", "queue/chunk_sectors", 512),
        ("read_ahead_kb", "queue/read_ahead_kb", 1024),
        ("max_sectors_kb", "queue/max_sectors_kb", 1024),
        // Buffers on ordinary pages take a segment for each page, unless pages lie side by side in memory.
        (MAX_SEGMENTS, "queue/max_segments", rustix::param::page_size() as u64),
    ];
    let read = |(name, file, unit): (&str, &str, u64)| {
        let n: u64 = std::fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok()?;
        (n > 0).then(|| DeviceSizeHint { name: name.into(), bytes: n.saturating_mul(unit) })
    };
    all.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_use_the_queue_of_their_disk() {
        let dir = tempfile::tempdir().unwrap();
        let disk_dir = dir.path().join("sys/devices/virtual/block/sdz");
        std::fs::create_dir_all(disk_dir.join("queue")).unwrap();
        std::fs::create_dir_all(disk_dir.join("sdz1")).unwrap();
        std::fs::create_dir_all(dir.path().join("sys/dev/block")).unwrap();
        for (file, text) in [
            ("sdz1/partition", "1\n"),
            ("queue/optimal_io_size", "65536\n"),
            ("queue/chunk_sectors", "0\n"),
            ("queue/read_ahead_kb", "128\n"),
            ("queue/max_sectors_kb", "nonsense\n"),
        ] {
            std::fs::write(disk_dir.join(file), text).unwrap();
        }
        for (id, to) in [("8:1", "sdz/sdz1"), ("8:0", "sdz")] {
            let to = format!("../../devices/virtual/block/{to}");
            std::os::unix::fs::symlink(to, dir.path().join("sys/dev/block").join(id)).unwrap();
        }
        let root = Root::at(dir.path());
        for minor in [0, 1] {
            let id = DevId { major: 8, minor };
            assert_eq!(disk_name(&root, id).as_deref(), Some("sdz"));
            let sizes: Vec<_> = read_size_hints(&root, id).into_iter().map(|s| (s.name, s.bytes)).collect();
            assert_eq!(sizes, [("optimal_io_size".into(), 65_536), ("read_ahead_kb".into(), 131_072)], "{minor}");
        }
        assert_eq!(disk_name(&root, DevId { major: 9, minor: 9 }), None);
    }
}
