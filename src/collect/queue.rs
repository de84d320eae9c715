//! `/sys/block/*/queue/*` (Documentation/ABI/stable/sysfs-block).
//!
//! Can block unkillably while a hung device is being reconfigured: only for child processes.

use super::kernel_file::read_once;
use crate::model::queue::QueueAttrs;
use crate::parse::bracketed_choice;
use crate::parse::bytes::{parse_i64, parse_u64};
use crate::root::Root;
use std::collections::BTreeMap;

/// The queue settings of the named disks (kernel names; partitions have no queue of their own). Names without a queue
/// directory, and names that are paths, are left out.
pub fn read_queue_attrs(root: &Root, names: &[impl AsRef<str>]) -> BTreeMap<String, QueueAttrs> {
    let mut buf = Vec::new();
    names
        .iter()
        .map(AsRef::as_ref)
        .filter(|name| is_plain_name(name) && root.sys(&format!("block/{name}/queue")).is_dir())
        .map(|name| (name.to_owned(), read_one_queue(root, name, &mut buf)))
        .collect()
}

/// Names come from other processes: they must not leave the directory.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains('/') && !name.contains('\0')
}

fn read_one_queue(root: &Root, name: &str, buf: &mut Vec<u8>) -> QueueAttrs {
    let mut get = |file: &str| -> Option<Vec<u8>> {
        let text = read_once(&root.sys(&format!("block/{name}/queue/{file}")), buf).ok()?;
        Some(text.trim_ascii().to_vec()).filter(|t| !t.is_empty())
    };
    let mut text = |file| get(file).map(|t| String::from_utf8_lossy(&t).into_owned());
    let (write_cache, zoned) = (text("write_cache"), text("zoned"));
    let schedulers = text("scheduler").unwrap_or_default();
    let (scheduler, schedulers) = bracketed_choice(&schedulers);
    let wbt_lat_usec = get("wbt_lat_usec").and_then(|t| parse_i64(&t));
    let mut num = |file| parse_u64(&get(file)?);
    QueueAttrs {
        scheduler: scheduler.map(str::to_owned),
        schedulers: schedulers.into_iter().map(str::to_owned).collect(),
        rotational: num("rotational").map(|n| n != 0),
        iostats: num("iostats").map(|n| n != 0),
        nr_requests: num("nr_requests"),
        read_ahead_kb: num("read_ahead_kb"),
        wbt_lat_usec,
        max_sectors_kb: num("max_sectors_kb"),
        max_hw_sectors_kb: num("max_hw_sectors_kb"),
        logical_block_size: num("logical_block_size"),
        physical_block_size: num("physical_block_size"),
        minimum_io_size: num("minimum_io_size"),
        optimal_io_size: num("optimal_io_size"),
        write_cache,
        fua: num("fua").map(|n| n != 0),
        discard_max_bytes: num("discard_max_bytes"),
        zoned,
        nomerges: num("nomerges"),
        rq_affinity: num("rq_affinity"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_none_and_unsafe_names_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let queue = dir.path().join("sys/block/sda/queue");
        std::fs::create_dir_all(&queue).unwrap();
        std::fs::write(queue.join("rotational"), "1\n").unwrap();
        std::fs::write(queue.join("iostats"), "0\n").unwrap();
        std::fs::write(queue.join("wbt_lat_usec"), "-1\n").unwrap();
        std::fs::write(queue.join("nr_requests"), "junk\n").unwrap();
        let got = read_queue_attrs(&Root::at(dir.path()), &["sda", "nope", "../sda", ""]);
        assert_eq!(got.keys().collect::<Vec<_>>(), ["sda"]);
        let a = &got["sda"];
        assert_eq!((a.rotational, a.wbt_lat_usec, a.nr_requests, a.read_ahead_kb), (Some(true), Some(-1), None, None));
        assert_eq!(a.iostats, Some(false));
        let json = serde_json::to_string(&got).unwrap();
        assert_eq!(serde_json::from_str::<BTreeMap<String, QueueAttrs>>(&json).unwrap(), got);
    }
}
