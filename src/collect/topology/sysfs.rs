//! `/sys/block` (Documentation/ABI/stable/sysfs-block): one pass over the disks and their partitions.
//!
//! Only files that the kernel answers from memory are read: not `queue/` (can block forever), not `serial` (queries
//! the device).

use crate::collect::kernel_file::{read_once, sorted_entry_names};
use crate::model::disk::{DevId, SECTOR_BYTES};
use crate::model::topology::{BlockDevice, DeviceKind, MdInfo};
use crate::parse::bytes::parse_u64;
use crate::root::Root;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// Every device and partition, sorted by number, with slaves and the parents of partitions, dm and md.
pub(super) fn scan_block_devices(root: &Root) -> io::Result<Vec<BlockDevice>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.sys("block"))?.flatten() {
        let _ = scan_disk(&entry.path(), &entry.file_name().to_string_lossy(), &mut found);
    }
    Ok(link_devices(found))
}

/// A device whose slaves are still names.
struct ScannedDevice {
    dev: BlockDevice,
    slaves: Vec<String>,
}

/// Adds a disk and its partitions. `None` if it disappeared, or is hidden (a path of a multipath NVMe has no number).
fn scan_disk(dir: &Path, sys_name: &str, found: &mut Vec<ScannedDevice>) -> Option<()> {
    let mut dev = read_common(dir, sys_name)?;
    let inside = sorted_entry_names(dir);
    let has = |name: &str| inside.iter().any(|n| n == name);
    dev.kind = kind_by_name(dev.id, sys_name);
    dev.removable = read_flag(dir.join("removable"));
    dev.sysfs_path = read_sysfs_path(dir);
    if has("dm") {
        dev.kind = kind_by_dm_uuid(&read_text(dir.join("dm/uuid")).unwrap_or_default());
        dev.label = read_text(dir.join("dm/name")).map(Into::into);
    } else if has("md") {
        dev.kind = DeviceKind::Md;
        dev.md = Some(read_md(&dir.join("md")));
    } else if has("bcache") && sys_name.starts_with("bcache") {
        dev.kind = DeviceKind::Bcache;
    } else if has("loop") {
        dev.label = read_text(dir.join("loop/backing_file")).map(Into::into);
    }
    if has("device") {
        let model = read_text(dir.join("device/model")).or_else(|| read_text(dir.join("device/name")));
        dev.model = model.map(crate::sanitize::sanitize);
    }
    let (disk, slaves) = (dev.id, sorted_entry_names(&dir.join("slaves")));
    found.push(ScannedDevice { dev, slaves });
    let parts = inside.iter().filter(|n| n.len() > sys_name.len() && n.starts_with(sys_name));
    for part in parts.filter(|part| dir.join(part).join("partition").exists()) {
        if let Some(dev) = read_common(&dir.join(part), part) {
            let dev = BlockDevice { kind: DeviceKind::Partition, parent: Some(disk), ..dev };
            found.push(ScannedDevice { dev, slaves: Vec::new() });
        }
    }
    Some(())
}

fn read_common(dir: &Path, sys_name: &str) -> Option<BlockDevice> {
    Some(BlockDevice {
        id: DevId::parse(&read_text(dir.join("dev"))?)?,
        name: sys_name.replace('!', "/"),
        size_bytes: read_text(dir.join("size")).and_then(|t| parse_u64(&t)?.checked_mul(SECTOR_BYTES)),
        read_only: read_flag(dir.join("ro")),
        ..Default::default()
    })
}

/// Where a disk is below `/sys/devices`: `/sys/block` has a link to it. `None` for what is no hardware, and in a captured
/// tree, which has no links.
fn read_sysfs_path(dir: &Path) -> Option<String> {
    let link = std::fs::read_link(dir).ok()?;
    let path = link.to_str()?.split_once("devices/")?.1;
    (!path.starts_with("virtual/")).then(|| path.to_owned())
}

fn read_md(dir: &Path) -> MdInfo {
    let word = |file| read_text(dir.join(file)).map(crate::sanitize::sanitize);
    MdInfo {
        level: word("level"),
        state: word("array_state"),
        sync_action: word("sync_action"),
        degraded: read_text(dir.join("degraded")).and_then(|t| parse_u64(&t)),
    }
}

/// The content without trailing newline and padding; `None` if it is empty.
fn read_text(path: PathBuf) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    read_once(&path, &mut text).ok()?;
    text.truncate(text.trim_ascii_end().len());
    (!text.is_empty()).then_some(text)
}

fn read_flag(path: PathBuf) -> Option<bool> {
    Some(parse_u64(&read_text(path)?)? != 0)
}

/// Resolves the names of slaves, and sorts.
fn link_devices(found: Vec<ScannedDevice>) -> Vec<BlockDevice> {
    let ids: HashMap<String, DevId> = found.iter().map(|f| (f.dev.name.clone(), f.dev.id)).collect();
    let mut out: Vec<BlockDevice> = found
        .into_iter()
        .map(|mut f| {
            f.dev.slaves = f.slaves.iter().filter_map(|s| ids.get(&s.replace('!', "/")).copied()).collect();
            f.dev.parent = f.dev.parent.or(f.dev.slaves.first().copied());
            f.dev
        })
        .collect();
    out.sort_by_key(|d| d.id);
    out.dedup_by_key(|d| d.id);
    out
}

/// Fixed majors, from Documentation/admin-guide/devices.txt.
const KINDS_BY_MAJOR: [(u32, DeviceKind); 8] = [
    (1, DeviceKind::Ram),
    (2, DeviceKind::Floppy),
    (7, DeviceKind::Loop),
    (9, DeviceKind::Md),
    (11, DeviceKind::Cdrom),
    (31, DeviceKind::Mtd),
    (43, DeviceKind::Nbd),
    (147, DeviceKind::Drbd),
];
/// Drivers without a fixed major, by how they name their numbered devices.
const KINDS_BY_PREFIX: [(&str, DeviceKind); 6] = [
    ("zram", DeviceKind::Zram),
    ("pmem", DeviceKind::Pmem),
    ("rbd", DeviceKind::Nbd),
    ("zd", DeviceKind::Zvol),
    ("bcache", DeviceKind::Bcache),
    ("dm-", DeviceKind::Dm),
];

fn kind_by_name(id: DevId, name: &str) -> DeviceKind {
    let numbered =
        |prefix| name.strip_prefix(prefix).is_some_and(|rest: &str| rest.starts_with(|c: char| c.is_ascii_digit()));
    let by_major = KINDS_BY_MAJOR.iter().find(|(major, _)| *major == id.major).map(|(_, kind)| *kind);
    let by_prefix = || KINDS_BY_PREFIX.iter().find(|(prefix, _)| numbered(*prefix)).map(|(_, kind)| *kind);
    by_major.or_else(by_prefix).unwrap_or(DeviceKind::Disk)
}

/// The owner is the part before the dash (libdevmapper's convention, which lsblk uses as well).
fn kind_by_dm_uuid(uuid: &[u8]) -> DeviceKind {
    let owner = uuid.split(|b| *b == b'-').next().unwrap_or_default();
    match owner {
        b"LVM" => DeviceKind::Lvm,
        b"CRYPT" => DeviceKind::Crypt,
        b"mpath" => DeviceKind::Multipath,
        _ if owner.strip_prefix(b"part").is_some_and(|n| parse_u64(n).is_some()) => DeviceKind::Partition,
        _ => DeviceKind::Dm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_knows_its_port_and_a_loop_device_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let disk = "pci0000:00/0000:00:1f.2/ata4/host3/target3:0:0/3:0:0:0/block/sda";
        std::fs::create_dir_all(dir.path().join("sys/block")).unwrap();
        for (at, name, number) in [(disk, "sda", "8:0\n"), ("virtual/block/loop0", "loop0", "7:0\n")] {
            let real = dir.path().join("sys/devices").join(at);
            std::fs::create_dir_all(&real).unwrap();
            std::fs::write(real.join("dev"), number).unwrap();
            let link = dir.path().join("sys/block").join(name);
            std::os::unix::fs::symlink(format!("../devices/{at}"), link).unwrap();
        }
        let found = scan_block_devices(&Root::at(dir.path())).unwrap();
        let paths: Vec<_> = found.iter().map(|dev| (dev.name.as_str(), dev.sysfs_path.as_deref())).collect();
        assert_eq!(paths, [("loop0", None), ("sda", Some(disk))]);
    }

    #[test]
    fn device_kinds_follow_majors_names_and_dm_uuids() {
        let kind = |major, name| kind_by_name(DevId { major, minor: 0 }, name);
        assert_eq!(kind(8, "sda"), DeviceKind::Disk);
        assert_eq!(kind(259, "nvme0n1"), DeviceKind::Disk);
        assert_eq!(kind(253, "zram0"), DeviceKind::Zram);
        assert_eq!(kind(230, "zd16"), DeviceKind::Zvol);
        assert_eq!(kind(7, "loop3"), DeviceKind::Loop);
        assert_eq!(kind_by_dm_uuid(b"LVM-abc"), DeviceKind::Lvm);
        assert_eq!(kind_by_dm_uuid(b"CRYPT-LUKS2-abc-name"), DeviceKind::Crypt);
        assert_eq!(kind_by_dm_uuid(b"mpath-3600"), DeviceKind::Multipath);
        assert_eq!(kind_by_dm_uuid(b"part1-mpath-3600"), DeviceKind::Partition);
        assert_eq!(kind_by_dm_uuid(b""), DeviceKind::Dm);
    }
}
