//! Health of arrays, paths, disks and file systems from sysfs. Only files that the kernel answers from memory are read:
//! no disk is asked, and none is woken. The states of dm-cache and of LVM's RAID are in no file: they are asked of device mapper,
//! without a commit of metadata (DM_NOFLUSH_FLAG).

use crate::bench::syscalls::device_mapper_targets;
use crate::collect::kernel_file::{read_number, read_once, sorted_entry_names};
use crate::model::disk::DevId;
use crate::model::health::{
    ArrayHealth, BTRFS_ERRORS, BtrfsHealth, BtrfsMember, CacheHealth, DeviceHealth, DiskHealth, Ext4Errors, Health,
    HealthLeftOut, PathHealth, ZramHealth, is_working,
};
use crate::parse::bytes::{parse_u64, words};
use crate::parse::cache::{DmCacheStatus, parse_bcache_size, parse_dm_cache_status};
use crate::parse::dm_raid::{DmRaidStatus, parse_dm_raid_status};
use crate::parse::named_value;
use crate::root::Root;
use crate::sanitize::sanitize;
use std::path::Path;

/// Disks reported at most. Nearly every SCSI disk has counted some error, and a shelf of 84 disks with two paths to each
/// has 168 of them.
const MAX_DISKS: usize = 512;
/// Other devices and file systems reported at most.
const MAX_OTHERS: usize = 256;
/// Members of an array, paths of a device and members of a file system read at most.
const MAX_MEMBERS: usize = 64;

/// Health of every device and file system that has something to say, and how much of that was left out.
pub(super) fn read_health(root: &Root, buf: &mut Vec<u8>) -> (Vec<DeviceHealth>, HealthLeftOut) {
    let mut out = Vec::new();
    for name in sorted_entry_names(&root.sys("block")) {
        let dir = root.sys("block").join(&name);
        let device = sanitize(name.replace('!', "/"));
        let found = [read_array(&dir.join("md"), buf), read_paths(root, &dir, buf), read_zram(&dir, buf)];
        let found = found.into_iter().flatten().chain(read_disk(&dir.join("device"), buf));
        let found = found.chain(read_bcache(&name, &dir.join("bcache"), buf)).chain(read_dm_cache(root, &dir, buf));
        let found = found.chain(read_dm_raid(root, &dir, buf));
        out.extend(found.map(|health| DeviceHealth { device: device.clone(), health }));
    }
    for name in sorted_entry_names(&root.sys("fs/ext4")) {
        let errors = read_ext4(&root.sys("fs/ext4").join(&name), buf);
        out.extend(errors.map(|health| DeviceHealth { device: sanitize(&name), health }));
    }
    out.extend(sorted_entry_names(&root.sys("fs/btrfs")).iter().filter_map(|uuid| read_btrfs(root, uuid, buf)));
    out.retain(|found| !found.health.is_plain());
    limit(out, MAX_DISKS, MAX_OTHERS)
}

/// Cuts the list, disks apart from the rest, so that many disks do not push out the file systems. Disks come last.
fn limit(found: Vec<DeviceHealth>, max_disks: usize, max_others: usize) -> (Vec<DeviceHealth>, HealthLeftOut) {
    let is_disk = |found: &DeviceHealth| matches!(found.health, Health::Disk(_));
    let (mut disks, mut others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_disk);
    // Those that do not work are kept: the others have only counted errors.
    disks.sort_by_key(|found| matches!(&found.health, Health::Disk(disk) if is_working(&disk.state)));
    let over = |all: &[DeviceHealth], max: usize| all.len().saturating_sub(max) as u64;
    let left_out = HealthLeftOut { disks: over(&disks, max_disks), others: over(&others, max_others) };
    disks.truncate(max_disks);
    others.truncate(max_others);
    others.append(&mut disks);
    (others, left_out)
}

fn read_word(path: &Path, buf: &mut Vec<u8>) -> Option<String> {
    Some(sanitize(read_once(path, buf).ok()?.trim_ascii()))
}

/// The numbers of a file with one line of numbers.
fn read_numbers(path: &Path, buf: &mut Vec<u8>) -> Vec<u64> {
    let Ok(text) = read_once(path, buf) else { return Vec::new() };
    words(text).map_while(parse_u64).collect()
}

fn read_array(dir: &Path, buf: &mut Vec<u8>) -> Option<Health> {
    let missing = read_number(&dir.join("degraded"), buf)?;
    let members = sorted_entry_names(dir).into_iter().filter(|name| name.starts_with("dev-")).take(MAX_MEMBERS);
    let is_faulty = |buf: &mut Vec<u8>, member: &str| {
        let state = read_word(&dir.join(member).join("state"), buf).unwrap_or_default();
        state.split(',').any(|word| word == "faulty")
    };
    let faulty = members.filter(|member| is_faulty(buf, member));
    let faulty = faulty.map(|member| sanitize(&member["dev-".len()..])).collect();
    // `1234 / 5678`, or `none`.
    let sync = read_word(&dir.join("sync_completed"), buf).unwrap_or_default();
    let sync = sync.split_once(" / ").and_then(|(done, all)| Some((done.parse().ok()?, all.parse().ok()?)));
    Some(Health::Array(ArrayHealth {
        level: read_word(&dir.join("level"), buf).unwrap_or_default(),
        members: read_number(&dir.join("raid_disks"), buf).unwrap_or_default(),
        missing,
        faulty,
        sync_action: read_word(&dir.join("sync_action"), buf).unwrap_or_default(),
        sync_sectors: sync,
        mismatched_sectors: read_number(&dir.join("mismatch_cnt"), buf).unwrap_or_default(),
    }))
}

/// The paths of a multipath device: its UUID begins with the name of the owner, as libdevmapper writes it.
fn read_paths(root: &Root, dir: &Path, buf: &mut Vec<u8>) -> Option<Health> {
    read_once(&dir.join("dm/uuid"), buf).ok().filter(|uuid| uuid.starts_with(b"mpath-"))?;
    let path = |name: String| {
        let state = read_word(&root.sys("block").join(&name).join("device/state"), buf)?;
        Some((sanitize(name), state))
    };
    let paths = sorted_entry_names(&dir.join("slaves")).into_iter().take(MAX_MEMBERS).filter_map(path).collect();
    Some(Health::Paths(PathHealth { paths }))
}

fn read_disk(dir: &Path, buf: &mut Vec<u8>) -> Option<Health> {
    let state = read_word(&dir.join("state"), buf)?;
    // `0x1a`
    let mut count = |name: &str| {
        let text = read_word(&dir.join(name), buf)?;
        u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
    };
    Some(Health::Disk(DiskHealth { state, errors: count("ioerr_cnt"), timeouts: count("iotmo_cnt") }))
}

fn read_zram(dir: &Path, buf: &mut Vec<u8>) -> Option<Health> {
    let [stored_bytes, _compressed, memory_bytes, limit_bytes, ..] = read_numbers(&dir.join("mm_stat"), buf)[..] else {
        return None;
    };
    let failed_writes = read_numbers(&dir.join("io_stat"), buf).get(1).copied().unwrap_or_default();
    Some(Health::Zram(ZramHealth { stored_bytes, memory_bytes, limit_bytes, failed_writes }))
}

/// Of a bcache device, and of a device that holds a cache. A backing device has the same files as its bcache device.
fn read_bcache(name: &str, dir: &Path, buf: &mut Vec<u8>) -> Option<Health> {
    let is_cached = name.starts_with("bcache");
    let state = read_word(&dir.join("state"), buf);
    let (kind, state) = match (is_cached, state) {
        (true, state) => ("bcache", state?),
        (false, None) => ("bcache cache", String::new()),
        (false, Some(_)) => return None,
    };
    let io_errors = read_number(&dir.join("io_errors"), buf);
    let dirty = read_once(&dir.join("dirty_data"), buf).ok().and_then(parse_bcache_size);
    let dirty_bytes = dirty.filter(|_| is_cached);
    // Only a device that holds a cache counts them.
    if !is_cached && io_errors.is_none() {
        return None;
    }
    let size_bytes = None;
    Some(Health::Cache(CacheHealth {
        kind: kind.into(),
        state,
        needs_check: false,
        dirty_bytes,
        size_bytes,
        io_errors,
    }))
}

/// Of a device with three below it: metadata, cache and origin.
fn read_dm_cache(root: &Root, dir: &Path, buf: &mut Vec<u8>) -> Option<Health> {
    if !root.is_live() || !dir.join("dm").exists() || sorted_entry_names(&dir.join("slaves")).len() != 3 {
        return None;
    }
    let status = read_target_status(root, dir, "cache", buf)?;
    parse_dm_cache_status(status.as_bytes()).map(dm_cache_health)
}

/// The status line of a device's target of this kind; `None` without the permission to ask (CAP_SYS_ADMIN).
fn read_target_status(root: &Root, dir: &Path, kind: &str, buf: &mut Vec<u8>) -> Option<String> {
    let id = DevId::parse(read_once(&dir.join("dev"), buf).ok()?.trim_ascii())?;
    let control = std::fs::File::open(root.dev("mapper/control")).ok()?;
    let targets = device_mapper_targets(&control, id, false).ok()?;
    targets.into_iter().find(|target| target.kind == kind).map(|target| target.params)
}

/// Of LVM's RAID, which has no files of md.
fn read_dm_raid(root: &Root, dir: &Path, buf: &mut Vec<u8>) -> Option<Health> {
    if !root.is_live() || !may_be_dm_raid(root, dir, buf) {
        return None;
    }
    let status = read_target_status(root, dir, "raid", buf)?;
    parse_dm_raid_status(status.as_bytes()).map(dm_raid_health)
}

/// LVM calls the members of such a volume `vg-home_rimage_0`.
fn may_be_dm_raid(root: &Root, dir: &Path, buf: &mut Vec<u8>) -> bool {
    if !dir.join("dm").exists() {
        return false;
    }
    let mut below = sorted_entry_names(&dir.join("slaves")).into_iter().take(2 * MAX_MEMBERS);
    below.any(|name| {
        let name = read_word(&root.sys("block").join(name).join("dm/name"), buf);
        name.is_some_and(|name| name.contains("_rimage_"))
    })
}

fn dm_raid_health(status: DmRaidStatus) -> Health {
    Health::Array(ArrayHealth {
        level: sanitize(status.level),
        members: status.members,
        missing: status.missing,
        faulty: Vec::new(),
        sync_action: sanitize(status.sync_action),
        sync_sectors: status.sync_sectors,
        mismatched_sectors: status.mismatched_sectors,
    })
}

fn dm_cache_health(status: DmCacheStatus) -> Health {
    Health::Cache(CacheHealth {
        kind: "dm-cache".into(),
        state: status.mode.into(),
        needs_check: status.needs_check,
        dirty_bytes: status.dirty_bytes,
        size_bytes: status.size_bytes,
        io_errors: None,
    })
}

fn read_ext4(dir: &Path, buf: &mut Vec<u8>) -> Option<Health> {
    Some(Health::Ext4(Ext4Errors {
        count: read_number(&dir.join("errors_count"), buf)?,
        last_time: read_number(&dir.join("last_error_time"), buf).unwrap_or_default(),
        last_function: read_word(&dir.join("last_error_func"), buf).unwrap_or_default(),
    }))
}

fn read_btrfs(root: &Root, uuid: &str, buf: &mut Vec<u8>) -> Option<DeviceHealth> {
    let dir = root.sys("fs/btrfs").join(uuid);
    let label = read_word(&dir.join("label"), buf)?;
    let member = |id: String| {
        let info = dir.join("devinfo").join(&id);
        let is_missing = read_number(&info.join("missing"), buf) == Some(1);
        let text = read_once(&info.join("error_stats"), buf).map(<[u8]>::to_vec).unwrap_or_default();
        let errors = BTRFS_ERRORS.map(|name| named_value(&text, name.as_bytes()).unwrap_or_default());
        let has_errors = errors.iter().any(|n| *n > 0);
        Some(BtrfsMember { id: id.parse().ok()?, is_missing, errors }).filter(|_| is_missing || has_errors)
    };
    let members = sorted_entry_names(&dir.join("devinfo")).into_iter().take(MAX_MEMBERS).filter_map(member).collect();
    let devices: Vec<String> =
        sorted_entry_names(&dir.join("devices")).into_iter().take(MAX_MEMBERS).map(sanitize).collect();
    let name = if label.is_empty() { sanitize(uuid) } else { label };
    let health = Health::Btrfs(BtrfsHealth { name, devices: devices.clone(), members });
    Some(DeviceHealth { device: devices.into_iter().next().unwrap_or_default(), health })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("block/md0/md/level", "raid5\n"),
        ("block/md0/md/degraded", "1\n"),
        ("block/md0/md/raid_disks", "3\n"),
        ("block/md0/md/dev-sdb1/state", "faulty,write_error\n"),
        ("block/md0/md/dev-sdc1/state", "in_sync\n"),
        ("block/md0/md/sync_action", "recover\n"),
        ("block/md0/md/sync_completed", "250 / 1000\n"),
        ("block/md0/md/mismatch_cnt", "128\n"),
        ("block/md1/md/degraded", "0\n"),
        ("block/md1/md/sync_action", "idle\n"),
        ("block/sda/device/state", "running\n"),
        ("block/sda/device/ioerr_cnt", "0x0\n"),
        ("block/xvda/device/state", "Connected\n"),
        ("block/sdb/device/state", "transport-offline\n"),
        ("block/sdb/device/ioerr_cnt", "0x1f\n"),
        ("block/sdb/device/iotmo_cnt", "0x2\n"),
        ("block/dm-0/dm/uuid", "mpath-3600\n"),
        ("block/dm-0/slaves/sda/x", ""),
        ("block/dm-0/slaves/sdb/x", ""),
        ("block/dm-1/dm/uuid", "LVM-abc\n"),
        ("block/dm-1/slaves/sdb/x", ""),
        ("block/zram0/mm_stat", " 4096000 1000000 1200000 0 1300000 0 0 0 0\n"),
        ("block/zram0/io_stat", "       0        3        0        0\n"),
        ("block/bcache0/bcache/state", "inconsistent\n"),
        ("block/bcache0/bcache/dirty_data", "1.0M\n"),
        ("block/sdd/bcache/state", "inconsistent\n"),
        ("block/sde/bcache/io_errors", "4\n"),
        ("fs/ext4/sda1/errors_count", "3\n"),
        ("fs/ext4/sda1/last_error_time", "1700000000\n"),
        ("fs/ext4/sda1/last_error_func", "ext4_find_entry\n"),
        ("fs/ext4/sda2/errors_count", "0\n"),
        ("fs/ext4/features/encryption", "supported\n"),
        ("fs/btrfs/11-22/label", "data\n"),
        ("fs/btrfs/11-22/devices/sdc/x", ""),
        ("fs/btrfs/11-22/devinfo/1/missing", "0\n"),
        (
            "fs/btrfs/11-22/devinfo/1/error_stats",
            "write_errs 0\nread_errs 0\nflush_errs 0\ncorruption_errs 2\ngeneration_errs 0\n",
        ),
        ("fs/btrfs/11-22/devinfo/2/missing", "1\n"),
        ("fs/btrfs/features/raid56", "0\n"),
    ];

    fn cache(kind: &str, state: &str, dirty_bytes: Option<u64>, io_errors: Option<u64>) -> Health {
        let (kind, state) = (kind.into(), state.into());
        Health::Cache(CacheHealth { kind, state, dirty_bytes, io_errors, ..CacheHealth::default() })
    }

    fn expected() -> [(&'static str, Health); 8] {
        [
            ("bcache0", cache("bcache", "inconsistent", Some(1 << 20), None)),
            (
                "dm-0",
                Health::Paths(PathHealth {
                    paths: vec![("sda".into(), "running".into()), ("sdb".into(), "transport-offline".into())],
                }),
            ),
            (
                "md0",
                Health::Array(ArrayHealth {
                    level: "raid5".into(),
                    members: 3,
                    missing: 1,
                    faulty: vec!["sdb1".into()],
                    sync_action: "recover".into(),
                    sync_sectors: Some((250, 1000)),
                    mismatched_sectors: 128,
                }),
            ),
            ("sde", cache("bcache cache", "", None, Some(4))),
            (
                "zram0",
                Health::Zram(ZramHealth {
                    stored_bytes: 4_096_000,
                    memory_bytes: 1_200_000,
                    limit_bytes: 0,
                    failed_writes: 3,
                }),
            ),
            (
                "sda1",
                Health::Ext4(Ext4Errors {
                    count: 3,
                    last_time: 1_700_000_000,
                    last_function: "ext4_find_entry".into(),
                }),
            ),
            (
                "sdc",
                Health::Btrfs(BtrfsHealth {
                    name: "data".into(),
                    devices: vec!["sdc".into()],
                    members: vec![
                        BtrfsMember { id: 1, is_missing: false, errors: [0, 0, 0, 2, 0] },
                        BtrfsMember { id: 2, is_missing: true, errors: [0; 5] },
                    ],
                }),
            ),
            (
                "sdb",
                Health::Disk(DiskHealth { state: "transport-offline".into(), errors: Some(31), timeouts: Some(2) }),
            ),
        ]
    }

    #[test]
    fn what_has_something_to_say_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in FILES {
            let path = dir.path().join("sys").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (found, left_out) = read_health(&Root::at(dir.path()), &mut Vec::new());
        let expected = expected().map(|(device, health)| DeviceHealth { device: device.into(), health });
        assert_eq!(found, expected);
        assert!(left_out.is_none());
    }

    #[test]
    fn many_disks_do_not_push_out_file_systems_and_those_that_do_not_work_are_kept() {
        let disk = |n: u64, state: &str| {
            let health = DiskHealth { state: state.into(), errors: Some(n), timeouts: None };
            DeviceHealth { device: format!("sd{n}"), health: Health::Disk(health) }
        };
        let mut all: Vec<DeviceHealth> = (1..=9).map(|n| disk(n, "running")).collect();
        all.push(disk(10, "offline"));
        let ext4 = Health::Ext4(Ext4Errors { count: 3, ..Ext4Errors::default() });
        all.push(DeviceHealth { device: "sda1".into(), health: ext4 });
        let (kept, left_out) = limit(all, 3, 2);
        let names: Vec<&str> = kept.iter().map(|found| found.device.as_str()).collect();
        assert_eq!(names, ["sda1", "sd10", "sd1", "sd2"]);
        assert_eq!(left_out, HealthLeftOut { disks: 7, others: 0 });
    }

    #[test]
    fn raid_volumes_of_lvm_are_found_by_the_names_of_their_members() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join("sys/block").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (device, name, slaves) in [
            ("dm-0", "vg-home_rmeta_0", &["sda"][..]),
            ("dm-1", "vg-home_rimage_0", &["sda"]),
            ("dm-2", "vg-home", &["dm-0", "dm-1"]),
            ("dm-3", "vg-root", &["sda"]),
        ] {
            put(&format!("{device}/dm/name"), name);
            slaves.iter().for_each(|slave| put(&format!("{device}/slaves/{slave}/x"), ""));
        }
        let root = Root::at(dir.path());
        let is = |name: &str| may_be_dm_raid(&root, &root.sys("block").join(name), &mut Vec::new());
        assert_eq!(["dm-0", "dm-1", "dm-2", "dm-3", "sda"].map(is), [false, false, true, false, false]);
        let status = parse_dm_raid_status(b"raid1 2 AD 2048/2048 idle 0 0 -").unwrap();
        let Health::Array(array) = dm_raid_health(status) else { panic!("no array") };
        assert!(array.is_degraded() && !array.is_syncing());
    }
}
