//! Thin pools: how full they are is in no file, so device mapper is asked, without a commit of their metadata
//! (DM_NOFLUSH_FLAG).

use crate::bench::syscalls::{DeviceMapperTarget, device_mapper_targets};
use crate::collect::kernel_file::{read_once, sorted_entry_names};
use crate::model::disk::DevId;
use crate::model::slow_facts::ThinPoolFacts;
use crate::parse::thin_pool::{parse_thin_pool_status, parse_thin_pool_table};
use crate::root::Root;
use std::io;
use std::path::Path;

/// Pools read at most.
const MAX_POOLS: usize = 64;

/// All thin pools; none without the permission to ask (CAP_SYS_ADMIN).
pub(super) fn read_thin_pools(root: &Root, buf: &mut Vec<u8>) -> Vec<ThinPoolFacts> {
    let candidates = find_candidates(root, buf);
    if !root.is_live() || candidates.is_empty() {
        return Vec::new();
    }
    let Ok(control) = std::fs::File::open(root.dev("mapper/control")) else { return Vec::new() };
    let read = |id: DevId, table: bool| device_mapper_targets(&control, id, table);
    candidates.into_iter().filter_map(|id| read_pool(id, &read)).take(MAX_POOLS).collect()
}

/// Devices that may be a pool.
fn find_candidates(root: &Root, buf: &mut Vec<u8>) -> Vec<DevId> {
    let dir = |name: String| root.sys("block").join(name);
    let dirs = sorted_entry_names(&root.sys("block")).into_iter().map(dir);
    dirs.filter_map(|dir| {
        may_be_pool(&dir, buf).then(|| DevId::parse(read_once(&dir.join("dev"), buf).ok()?.trim_ascii()))?
    })
    .collect()
}

/// LVM names its pools; of others two devices, metadata and data, are below.
fn may_be_pool(dir: &Path, buf: &mut Vec<u8>) -> bool {
    let uuid = read_once(&dir.join("dm/uuid"), buf).map(<[u8]>::trim_ascii);
    match uuid {
        Ok(uuid) if uuid.starts_with(b"LVM-") => uuid.ends_with(b"-tpool"),
        Ok(_) => sorted_entry_names(&dir.join("slaves")).len() == 2,
        Err(_) => false,
    }
}

/// Reads the targets of a device: their table (`true`) or their state.
type ReadTargets<'a> = &'a dyn Fn(DevId, bool) -> io::Result<Vec<DeviceMapperTarget>>;

fn read_pool(id: DevId, read: ReadTargets) -> Option<ThinPoolFacts> {
    let pool = |table: bool| {
        let targets = read(id, table).ok()?;
        targets.into_iter().find(|target| target.kind == "thin-pool").map(|target| target.params)
    };
    let status = parse_thin_pool_status(pool(false)?.as_bytes())?;
    let table = pool(true).and_then(|table| parse_thin_pool_table(table.as_bytes()));
    Some(ThinPoolFacts {
        device: id,
        mode: status.mode,
        queues_writes: status.queues_writes,
        is_read_only: table.is_some_and(|table| table.is_read_only),
        data: status.data,
        metadata: status.metadata,
        data_low_water_blocks: table.map(|table| table.low_water_blocks),
        metadata_low_water_blocks: status.metadata_low_water_blocks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::slow_facts::{BlockCount, ThinPoolMode};

    #[test]
    fn devices_that_may_be_pools_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let devices = [
            ("LVM-abcd-tpool", &["dm-8", "dm-9"][..]),
            ("LVM-abcd", &["sda", "sdb"]),
            ("", &["sda", "loop0"]),
            ("", &["sda"]),
        ];
        for (minor, (uuid, slaves)) in devices.into_iter().enumerate() {
            let dir = dir.path().join(format!("sys/block/dm-{minor}"));
            std::fs::create_dir_all(dir.join("dm")).unwrap();
            std::fs::write(dir.join("dm/uuid"), format!("{uuid}\n")).unwrap();
            std::fs::write(dir.join("dev"), format!("253:{minor}\n")).unwrap();
            slaves.iter().for_each(|slave| std::fs::create_dir_all(dir.join("slaves").join(slave)).unwrap());
        }
        std::fs::create_dir_all(dir.path().join("sys/block/md0/slaves/sda")).unwrap();
        let found = find_candidates(&Root::at(dir.path()), &mut Vec::new());
        assert_eq!(found, [DevId { major: 253, minor: 0 }, DevId { major: 253, minor: 2 }]);
    }

    #[test]
    fn the_state_of_a_pool_is_read_and_other_targets_are_none() {
        let id = DevId { major: 253, minor: 2 };
        let target = |kind: &str, params: &str| DeviceMapperTarget { kind: kind.into(), params: params.into() };
        let pool = |_: DevId, table: bool| {
            Ok(vec![match table {
                true => target("thin-pool", "253:0 253:1 128 96 0"),
                false => target(
                    "thin-pool",
                    "1 142/4096 9600/9600 - out_of_data_space discard_passdown queue_if_no_space - 512",
                ),
            }])
        };
        let expected = ThinPoolFacts {
            device: id,
            mode: ThinPoolMode::OutOfDataSpace,
            queues_writes: true,
            is_read_only: false,
            data: Some(BlockCount { used: 9600, total: 9600 }),
            metadata: Some(BlockCount { used: 142, total: 4096 }),
            data_low_water_blocks: Some(96),
            metadata_low_water_blocks: Some(512),
        };
        assert_eq!(read_pool(id, &pool), Some(expected));
        assert_eq!(read_pool(id, &|_, _| Ok(vec![target("striped", "2 128 8:0 0 8:16 0")])), None);
        assert_eq!(read_pool(id, &|_, _| Err(io::ErrorKind::PermissionDenied.into())), None);
    }
}
