//! `/sys/block` (Documentation/ABI/stable/sysfs-block): one pass over the disks and their partitions.
//!
//! Only files that the kernel answers from memory are read: not `queue/` (can block forever), not `serial` (queries
//! the device).

use crate::collect::kernel_file::read_once;
use crate::model::disk::{DevId, SECTOR_BYTES};
use crate::model::topology::{BlockDevice, DeviceKind, MdInfo};
use crate::parse::bytes::{device_number, parse_u64};
use crate::root::Root;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// Every device and partition, sorted by number, with slaves and the parents of partitions, dm and md.
pub(super) fn scan_block_devices(root: &Root) -> io::Result<Vec<BlockDevice>> {
    let mut scan = SysfsScan { buf: Vec::new(), found: Vec::new() };
    for entry in std::fs::read_dir(root.sys("block"))?.flatten() {
        scan.scan_disk(&entry.path(), &entry.file_name().to_string_lossy());
    }
    Ok(link_devices(scan.found))
}

/// A device whose slaves are still names.
struct ScannedDevice {
    dev: BlockDevice,
    slaves: Vec<String>,
}

struct SysfsScan {
    buf: Vec<u8>,
    found: Vec<ScannedDevice>,
}

impl SysfsScan {
    /// Skips a device that disappeared, or is hidden (a path of a multipath NVMe has no number).
    fn scan_disk(&mut self, dir: &Path, sys_name: &str) {
        let Some(mut dev) = self.read_common(dir, sys_name) else { return };
        let inside = sorted_entry_names(dir);
        let has = |name: &str| inside.iter().any(|n| n == name);
        dev.kind = kind_by_name(dev.id, sys_name);
        dev.removable = self.read_flag(dir.join("removable"));
        if has("dm") {
            let uuid = self.read_text(dir.join("dm/uuid")).unwrap_or_default();
            dev.kind = kind_by_dm_uuid(&uuid);
            dev.label = self.read_text(dir.join("dm/name")).map(Into::into);
        } else if has("md") {
            dev.kind = DeviceKind::Md;
            dev.md = Some(self.read_md(&dir.join("md")));
        } else if has("bcache") && sys_name.starts_with("bcache") {
            dev.kind = DeviceKind::Bcache;
        } else if has("loop") {
            dev.label = self.read_text(dir.join("loop/backing_file")).map(Into::into);
        }
        if has("device") {
            let model = self.read_text(dir.join("device/model")).or_else(|| self.read_text(dir.join("device/name")));
            dev.model = model.map(crate::sanitize::sanitize);
        }
        let (disk, slaves) = (dev.id, sorted_entry_names(&dir.join("slaves")));
        self.found.push(ScannedDevice { dev, slaves });
        for part in inside.iter().filter(|n| n.len() > sys_name.len() && n.starts_with(sys_name)) {
            self.scan_partition(&dir.join(part), part, disk);
        }
    }

    fn scan_partition(&mut self, dir: &Path, sys_name: &str, disk: DevId) {
        if !dir.join("partition").exists() {
            return;
        }
        let Some(mut dev) = self.read_common(dir, sys_name) else { return };
        dev.kind = DeviceKind::Partition;
        dev.parent = Some(disk);
        self.found.push(ScannedDevice { dev, slaves: Vec::new() });
    }

    fn read_common(&mut self, dir: &Path, sys_name: &str) -> Option<BlockDevice> {
        Some(BlockDevice {
            id: device_number(&self.read_text(dir.join("dev"))?)?.into(),
            name: sys_name.replace('!', "/"),
            size_bytes: self.read_text(dir.join("size")).and_then(|t| parse_u64(&t)?.checked_mul(SECTOR_BYTES)),
            read_only: self.read_flag(dir.join("ro")),
            ..Default::default()
        })
    }

    fn read_md(&mut self, dir: &Path) -> MdInfo {
        let mut word = |file| self.read_text(dir.join(file)).map(crate::sanitize::sanitize);
        MdInfo {
            level: word("level"),
            state: word("array_state"),
            sync_action: word("sync_action"),
            degraded: self.read_text(dir.join("degraded")).and_then(|t| parse_u64(&t)),
        }
    }

    /// The content without trailing newline and padding; `None` if it is empty.
    fn read_text(&mut self, path: PathBuf) -> Option<Vec<u8>> {
        let text = read_once(&path, &mut self.buf).ok()?.trim_ascii_end();
        (!text.is_empty()).then(|| text.to_vec())
    }

    fn read_flag(&mut self, path: PathBuf) -> Option<bool> {
        Some(parse_u64(&self.read_text(path)?)? != 0)
    }
}

fn sorted_entry_names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
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

/// Fixed majors from Documentation/admin-guide/devices.txt, the others by the driver's naming scheme.
fn kind_by_name(id: DevId, name: &str) -> DeviceKind {
    match id.major {
        1 => return DeviceKind::Ram,
        2 => return DeviceKind::Floppy,
        7 => return DeviceKind::Loop,
        9 => return DeviceKind::Md,
        11 => return DeviceKind::Cdrom,
        31 => return DeviceKind::Mtd,
        43 => return DeviceKind::Nbd,
        147 => return DeviceKind::Drbd,
        _ => {}
    }
    let numbered =
        |prefix: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    match () {
        () if numbered("zram") => DeviceKind::Zram,
        () if numbered("pmem") => DeviceKind::Pmem,
        () if numbered("rbd") => DeviceKind::Nbd,
        () if numbered("zd") => DeviceKind::Zvol,
        () if numbered("bcache") => DeviceKind::Bcache,
        () if numbered("dm-") => DeviceKind::Dm,
        () => DeviceKind::Disk,
    }
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
