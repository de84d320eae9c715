//! The lines of the Devices table: the tree of disks, partitions and what lies on them, or a sorted list.

use super::columns::device::{DeviceCol, DeviceRow};
use super::disk::{DevId, DiskRate};
use super::snapshot::Snapshot;
use super::topology::{BlockDev, DeviceKind, Topology, TreeRow};
use crate::text::{sanitize_into, sanitize_cow};
use std::fmt::Write as _;
use std::sync::Arc;

/// What to list, and how.
#[derive(Debug, Clone, Default)]
pub struct DeviceQuery<'a> {
    /// Sort by this column, largest first; `None`: the tree.
    pub sort: Option<DeviceCol>,
    /// The other way round.
    pub reverse: bool,
    /// Leave out what does nothing.
    pub only_active: bool,
    /// Only lines that contain this; case does not matter.
    pub filter: &'a str,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceLine {
    /// Which device.
    pub id: DevId,
    /// Index into the snapshot's devices; `None` for a device that never did anything.
    pub rate: Option<usize>,
    /// Tree prefix, name, mount points; cleaned.
    pub label: String,
}

/// The lines, in order.
pub fn lines(snap: &Snapshot, topo: Option<&Topology>, query: &DeviceQuery<'_>) -> Vec<DeviceLine> {
    let Some(rates) = snap.devices.ok() else { return Vec::new() };
    let mut out = match (topo, query.sort) {
        (Some(topo), None) => tree(rates, topo),
        (topo, _) => rates
            .iter()
            .enumerate()
            .map(|(i, r)| {
                let dev = topo.and_then(|t| t.get(r.id));
                DeviceLine { id: r.id, rate: Some(i), label: label(&r.name, dev) }
            })
            .collect(),
    };
    if query.only_active {
        out.retain(|l| l.rate.is_some_and(|i| rates[i].is_active()));
    }
    if !query.filter.is_empty() {
        let needle = query.filter.to_lowercase();
        out.retain(|l| l.label.to_lowercase().contains(&needle));
    }
    if let Some(col) = query.sort {
        let none = DiskRate::default();
        out.sort_by(|a, b| {
            let rate = |l: &DeviceLine| l.rate.map_or(&none, |i| &rates[i]);
            let (va, vb) =
                (DeviceRow { rate: rate(a), label: &a.label }, DeviceRow { rate: rate(b), label: &b.label });
            let order = va.value(col).order(&vb.value(col));
            let order = if col == DeviceCol::Name { order } else { order.reverse() };
            if query.reverse { order.reverse() } else { order }.then(a.id.cmp(&b.id))
        });
    }
    out
}

fn tree(rates: &[Arc<DiskRate>], topo: &Topology) -> Vec<DeviceLine> {
    let find = |id: DevId| rates.iter().position(|r| r.id == id);
    let mut out = Vec::new();
    let mut seen = Vec::new();
    for row in disks_first(topo) {
        let dev = &topo.devices[row.device];
        let rate = find(dev.id);
        if row.mount.is_some() || (rate.is_none() && dev.mounts.is_empty() && dev.swaps.is_empty()) {
            continue;
        }
        seen.push(dev.id);
        let mut label = String::new();
        for depth in (0..row.depth).rev() {
            label.push_str(if depth == 0 { "└ " } else { "  " });
        }
        if row.repeated {
            sanitize_into(&mut label, dev.name.as_bytes());
            label.push_str(" (see above)");
        } else {
            write_label(&mut label, &dev.name, Some(dev));
        }
        out.push(DeviceLine { id: dev.id, rate, label });
    }
    // A device that appeared after the topology was read.
    for (i, r) in rates.iter().enumerate().filter(|(_, r)| !seen.contains(&r.id)) {
        out.push(DeviceLine { id: r.id, rate: Some(i), label: label(&r.name, None) });
    }
    out
}

/// The tree with what is not hardware (loop, zram, ram) after the disks.
fn disks_first(topo: &Topology) -> Vec<TreeRow> {
    let rows = topo.tree();
    let mut families: Vec<&[TreeRow]> = rows.chunk_by(|_, next| next.depth > 0).collect();
    families.sort_by_key(|family| match topo.devices[family[0].device].kind {
        DeviceKind::Zram | DeviceKind::Ram => 1,
        DeviceKind::Loop => 2,
        _ => 0,
    });
    families.concat()
}

/// `sda1  /var/lib/neo4j (ext4)`, `dm-0 vg-data  /srv (xfs) +2`.
fn write_label(out: &mut String, name: &str, dev: Option<&BlockDev>) {
    let name = sanitize_cow(name.as_bytes());
    out.push_str(&name);
    let Some(dev) = dev else { return };
    let shown = dev.shown_name();
    if shown != name {
        out.push(' ');
        out.push_str(&shown);
    }
    let mut mounts = dev.mounts.iter().filter(|m| !m.hidden);
    if let Some(first) = mounts.next() {
        out.push_str("  ");
        sanitize_into(out, first.mount_point.bytes());
        out.push_str(" (");
        sanitize_into(out, first.fs_type.bytes());
        out.push(')');
        let more = mounts.count();
        if more > 0 {
            let _ = write!(out, " +{more}");
        }
    }
    if !dev.swaps.is_empty() {
        out.push_str("  swap");
    }
}

fn label(name: &str, dev: Option<&BlockDev>) -> String {
    let mut out = String::new();
    write_label(&mut out, name, dev);
    out
}

#[cfg(test)]
mod tests {
    use super::super::section::Section;
    use super::super::topology::MountRef;
    use super::*;

    fn snap() -> Snapshot {
        let rate = |minor, name: &str, tps| {
            let id = DevId { major: 8, minor };
            Arc::new(DiskRate { id, name: name.into(), tps, ..Default::default() })
        };
        Snapshot {
            devices: Section::Ok(vec![rate(0, "sda", 5.0), rate(1, "sda1", 0.0), rate(16, "sdb", 9.0)]),
            ..Default::default()
        }
    }

    fn topo() -> Topology {
        let dev = |minor, name: &str, parent: Option<u32>| BlockDev {
            id: DevId { major: 8, minor },
            name: name.into(),
            kind: if parent.is_some() { DeviceKind::Partition } else { DeviceKind::Disk },
            parent: parent.map(|minor| DevId { major: 8, minor }),
            ..Default::default()
        };
        let mut part = dev(1, "sda1", Some(0));
        part.mounts.push(MountRef {
            mount_point: "/a\u{1b}b".into(),
            fs_type: "ext4".into(),
            ..Default::default()
        });
        Topology { devices: vec![dev(0, "sda", None), part] }
    }

    fn labels(query: &DeviceQuery<'_>, topo: Option<&Topology>) -> Vec<String> {
        lines(&snap(), topo, query).into_iter().map(|l| l.label).collect()
    }

    #[test]
    fn the_tree_shows_parts_mounts_and_newcomers_cleaned() {
        let topo = topo();
        assert_eq!(labels(&DeviceQuery::default(), Some(&topo)), ["sda", "└ sda1  /a\\x1bb (ext4)", "sdb"]);
    }

    #[test]
    fn sorting_filtering_and_activity() {
        let by = DeviceQuery { sort: Some(DeviceCol::Tps), ..Default::default() };
        assert_eq!(labels(&by, None), ["sdb", "sda", "sda1"]);
        assert_eq!(labels(&DeviceQuery { reverse: true, ..by.clone() }, None), ["sda1", "sda", "sdb"]);
        assert_eq!(labels(&DeviceQuery { only_active: true, ..Default::default() }, None), ["sda", "sdb"]);
        assert_eq!(labels(&DeviceQuery { filter: "DB", ..Default::default() }, None), ["sdb"]);
    }
}
