//! Lists the knobs of this machine, its disks and its mounts.

use super::knob::KnobLocation;
use super::knob_id::KnobId;
use super::knobs::KNOBS;
use crate::parse::mountinfo;
use crate::root::Root;

/// The machine's knobs and those of its disks and of mounts that are backed by a disk. Loop, RAM and network disks
/// are only included with `all_disks`.
pub(crate) fn discover_knobs(root: &Root, all_disks: bool) -> Vec<KnobId> {
    let (disks, mounts) = (list_disks(root, all_disks), list_mounts(root));
    let mut all = Vec::new();
    for knob in KNOBS {
        let places: Vec<String> = match knob.location {
            KnobLocation::Queue | KnobLocation::Bdi => disks.iter().map(|d| format!("{}@{d}", knob.name)).collect(),
            KnobLocation::Atime => mounts.iter().map(|m| format!("{}@{m}", knob.name)).collect(),
            KnobLocation::Nofile | KnobLocation::IoPrio => Vec::new(),
            KnobLocation::Sysctl | KnobLocation::Sys(_) => vec![knob.name.to_owned()],
        };
        all.extend(places.iter().filter_map(|p| KnobId::parse(p).ok()));
    }
    all
}

fn list_disks(root: &Root, all: bool) -> Vec<String> {
    let Ok(dir) = std::fs::read_dir(root.sys("block")) else { return Vec::new() };
    let mut names: Vec<String> = dir.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    names.retain(|n| all || !["loop", "ram", "zram", "nbd", "fd", "sr"].iter().any(|p| n.starts_with(p)));
    names.sort();
    names
}

fn list_mounts(root: &Root) -> Vec<String> {
    let table = std::fs::read(root.mount_table("mountinfo")).unwrap_or_default();
    let mut points: Vec<String> = mountinfo::parse(&table)
        .filter(|mount| mount.source.as_bytes().starts_with(Root::DEV_PREFIX))
        .filter_map(|mount| String::from_utf8(mount.mount_point.as_bytes().to_vec()).ok())
        .collect();
    points.sort();
    points.dedup();
    points
}
