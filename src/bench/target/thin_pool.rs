//! The pool below a thin volume: the file system's free space may be promised many times, and a pool that is full
//! stops every volume in it.
//!
//! Device mapper tables and states: Documentation/admin-guide/device-mapper/thin-provisioning.rst.

use super::size_hints::disk_sysfs_dir;
use crate::bench::syscalls::DeviceMapperTarget;
use crate::model::disk::{DevId, SECTOR_BYTES};
use crate::parse::thin_pool::{ThinPoolMode, parse_thin_pool_status, parse_thin_pool_table};
use crate::root::Root;
use crate::sanitize::sanitize;
use std::io;

/// Devices above each other that are followed.
const MAX_LAYERS: usize = 16;

/// Reads the targets of a device-mapper device: their table (`true`) or their state.
pub(crate) type ReadTargets<'a> = &'a dyn Fn(DevId, bool) -> io::Result<Vec<DeviceMapperTarget>>;

/// What is below a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PoolBelow {
    /// No thin volume.
    None,
    /// A thin volume whose pool could not be read: why.
    Unreadable(String),
    /// A thin volume's pool.
    Pool(ThinPool),
}

/// A pool's data space, bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThinPool {
    /// Its name, sanitized.
    pub name: String,
    pub size: u64,
    pub free: u64,
}

/// Follows a device down to a thin volume, if there is one.
pub(crate) fn find_thin_pool(root: &Root, device: DevId, read: ReadTargets) -> PoolBelow {
    let mut layers = vec![device];
    for _ in 0..MAX_LAYERS {
        let Some(id) = layers.pop() else { return PoolBelow::None };
        let Some(dir) = disk_sysfs_dir(root, id) else { continue };
        let slaves = std::fs::read_dir(dir.join("slaves")).into_iter().flatten().flatten();
        let slaves: Vec<_> = slaves.map(|entry| entry.path()).collect();
        if dir.join("dm").exists() {
            // LVM names its pools so; without root that is all that can be known.
            let is_pool = |uuid: String| uuid.trim_end().ends_with("-tpool");
            let mut uuids = slaves.iter().filter_map(|s| std::fs::read_to_string(s.join("dm/uuid")).ok());
            match read(id, true) {
                Ok(targets) => {
                    if let Some(thin) = targets.iter().find(|t| t.kind == "thin") {
                        return read_pool(root, thin, read);
                    }
                }
                Err(error) if uuids.any(is_pool) => return PoolBelow::Unreadable(describe(&error)),
                Err(_) => {}
            }
        }
        layers.extend(slaves.iter().filter_map(|s| DevId::parse(&std::fs::read(s.join("dev")).ok()?)));
    }
    PoolBelow::None
}

fn describe(error: &io::Error) -> String {
    crate::model::reading::describe_io_error(error)
}

fn read_pool(root: &Root, thin: &DeviceMapperTarget, read: ReadTargets) -> PoolBelow {
    let Some(id) = DevId::parse(thin.params.as_bytes()) else {
        return PoolBelow::Unreadable(format!("its table is \"{}\"", sanitize(&thin.params)));
    };
    let name = disk_sysfs_dir(root, id).and_then(|dir| std::fs::read_to_string(dir.join("dm/name")).ok());
    let name = name.map_or(id.to_string(), |text| sanitize(text.trim_end()));
    let pool = |table: bool| -> Result<String, String> {
        let targets = read(id, table).map_err(|error| describe(&error))?;
        let pool = targets.into_iter().find(|t| t.kind == "thin-pool");
        pool.map(|t| t.params).ok_or_else(|| format!("{name} is no thin pool"))
    };
    let space = pool(true).and_then(|table| pool(false).and_then(|state| parse_pool(&table, &state)));
    match space {
        Ok((size, free)) => PoolBelow::Pool(ThinPool { name, size, free }),
        Err(why) => PoolBelow::Unreadable(why),
    }
}

/// Bytes and free bytes of a pool, from its table and its state.
fn parse_pool(table: &str, state: &str) -> Result<(u64, u64), String> {
    let unknown = || format!("the pool's state is \"{}\"", sanitize(state));
    let block_sectors = parse_thin_pool_table(table.as_bytes()).ok_or_else(unknown)?.block_sectors;
    let status = parse_thin_pool_status(state.as_bytes()).ok_or_else(unknown)?;
    let blocks = status.data.ok_or_else(unknown)?;
    let bytes = |blocks: u64| blocks.saturating_mul(block_sectors).saturating_mul(SECTOR_BYTES);
    let takes_writes = status.mode == ThinPoolMode::ReadWrite;
    Ok((bytes(blocks.total), if takes_writes { bytes(blocks.free()) } else { 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A partition-less LVM stack: a crypt volume (253:5) on a thin volume (253:4), whose pool is 253:2.
    fn thin_stack(at: &std::path::Path) -> Root {
        let uuids = [(5, "CRYPT-LUKS2-x", Some(4)), (4, "LVM-abcd", Some(2)), (2, "LVM-efgh-tpool", None)];
        for (minor, uuid, slave) in uuids {
            let dir = at.join(format!("sys/devices/virtual/block/dm-{minor}"));
            std::fs::create_dir_all(dir.join("dm")).unwrap();
            std::fs::create_dir_all(dir.join("slaves")).unwrap();
            std::fs::create_dir_all(at.join("sys/dev/block")).unwrap();
            std::fs::write(dir.join("dev"), format!("253:{minor}\n")).unwrap();
            std::fs::write(dir.join("dm/uuid"), format!("{uuid}\n")).unwrap();
            std::fs::write(dir.join("dm/name"), format!("vg-volume{minor}\n")).unwrap();
            let to = format!("../../devices/virtual/block/dm-{minor}");
            std::os::unix::fs::symlink(to, at.join(format!("sys/dev/block/253:{minor}"))).unwrap();
            if let Some(below) = slave {
                let to = format!("../../dm-{below}");
                std::os::unix::fs::symlink(to, dir.join(format!("slaves/dm-{below}"))).unwrap();
            }
        }
        Root::at(at)
    }

    fn target(kind: &str, params: &str) -> DeviceMapperTarget {
        DeviceMapperTarget { kind: kind.into(), params: params.into() }
    }

    const TOP: DevId = DevId { major: 253, minor: 5 };

    #[test]
    fn the_pool_is_found_below_other_layers_and_its_space_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = thin_stack(dir.path());
        let read = |id: DevId, table: bool| {
            Ok(vec![match (id.minor, table) {
                (5, _) => target("crypt", "aes-xts-plain64 :32:logon:x 0 253:4 32768"),
                (4, _) => target("thin", "253:2 1"),
                (_, true) => target("thin-pool", "253:0 253:1 128 0 0"),
                (_, false) => {
                    target("thin-pool", "1 142/4096 2400/9600 - rw discard_passdown queue_if_no_space - 1024")
                }
            }])
        };
        let PoolBelow::Pool(pool) = find_thin_pool(&root, TOP, &read) else { panic!("no pool found") };
        assert_eq!((pool.name.as_str(), pool.size, pool.free), ("vg-volume2", 600 << 20, 450 << 20));
    }

    #[test]
    fn a_pool_that_cannot_be_read_is_not_free_space() {
        let dir = tempfile::tempdir().unwrap();
        let root = thin_stack(dir.path());
        let denied = |_: DevId, _: bool| Err(io::Error::from_raw_os_error(libc::EACCES));
        assert!(matches!(find_thin_pool(&root, TOP, &denied), PoolBelow::Unreadable(_)));
        let linear = |_: DevId, _: bool| Ok(vec![target("linear", "8:0 2048")]);
        assert_eq!(find_thin_pool(&root, TOP, &linear), PoolBelow::None);
        assert_eq!(find_thin_pool(&root, DevId { major: 8, minor: 0 }, &denied), PoolBelow::None);
    }

    #[test]
    fn a_pool_out_of_space_or_failed_has_none() {
        let table = "253:0 253:1 128 0 0";
        let state = |mode: &str| format!("0 5/4096 10/9600 - {mode} no_discard_passdown error_if_no_space - 1024");
        assert_eq!(parse_pool(table, &state("rw")).map(|p| p.1), Ok(9590 * 65_536));
        assert_eq!(parse_pool(table, &state("out_of_data_space")).map(|p| p.1), Ok(0));
        assert!(parse_pool(table, "Fail").is_err_and(|why| why.contains("Fail")));
    }
}
