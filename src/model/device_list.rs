//! The rows of the Devices table: the tree of disks, partitions and the devices on them, or a sorted list.

use super::columns::device::{DeviceColumn, DeviceRow};
use super::containers::{ContainerNames, is_block_volume};
use super::disk::{DevId, DiskRate};
use super::snapshot::Snapshot;
use super::topology::{BlockDevice, DeviceKind, MountRef, Topology, TopologyRow};
use crate::sanitize::sanitize;
use std::fmt::Write as _;
use std::sync::Arc;

/// Selection and order of the rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceQuery<'a> {
    /// Sort by this column, largest first; `None` for the tree, which begins with the disks that are stalled, then with the
    /// saturated ones.
    pub sort: Option<DeviceColumn>,
    pub reverse: bool,
    /// Omits devices without I/O that have none above them with I/O.
    pub only_active: bool,
    /// Devices that are never omitted for having no I/O.
    pub kept: &'a [DevId],
    /// Only rows whose label contains this; case-insensitive.
    pub filter: &'a str,
    /// Names of pods, for their volumes.
    pub containers: Option<&'a ContainerNames>,
}

/// A row of the Devices table.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedDevice {
    pub id: DevId,
    /// Index into the snapshot's devices; `None` for a device that has never done any I/O.
    pub rate_index: Option<usize>,
    /// Tree prefix, name and mount points; sanitized.
    pub label: String,
    /// Number of devices in the tree that it is on.
    pub depth: usize,
}

/// The rows in display order.
pub(crate) fn list_devices(snap: &Snapshot, topo: Option<&Topology>, query: &DeviceQuery<'_>) -> Vec<ListedDevice> {
    let Some(rates) = snap.devices.ok() else { return Vec::new() };
    let mut out = match (topo, query.sort) {
        (Some(topo), None) => tree_devices(rates, topo, query.containers),
        (topo, _) => rates
            .iter()
            .enumerate()
            .map(|(i, r)| {
                let dev = topo.and_then(|t| t.get(r.id));
                ListedDevice { id: r.id, rate_index: Some(i), label: label(&r.name, dev, query.containers), depth: 0 }
            })
            .collect(),
    };
    if query.only_active {
        out = active_devices(out, rates, query.kept);
    }
    if query.sort.is_none() {
        out = most_urgent_first(out, rates);
    }
    if !query.filter.is_empty() {
        let needle = query.filter.to_lowercase();
        out.retain(|l| l.label.to_lowercase().contains(&needle));
    }
    if let Some(col) = query.sort {
        let none = DiskRate::default();
        out.sort_by(|a, b| {
            let rate = |l: &ListedDevice| l.rate_index.map_or(&none, |i| &rates[i]);
            let (va, vb) = (DeviceRow { rate: rate(a), label: &a.label }, DeviceRow { rate: rate(b), label: &b.label });
            let order = col.value(&va).compare(&col.value(&vb));
            let order = if col.spec().ascending { order } else { order.reverse() };
            if query.reverse { order.reverse() } else { order }.then(a.id.cmp(&b.id))
        });
    }
    out
}

/// The devices with I/O, those that are kept, and those below them.
fn active_devices(mut all: Vec<ListedDevice>, rates: &[Arc<DiskRate>], kept: &[DevId]) -> Vec<ListedDevice> {
    let rate = |line: &ListedDevice| line.rate_index.map(|i| &rates[i]);
    // From the last row up, a row stays if it is active or has a row of the next depth that stays.
    let mut needed_depth = 0;
    let mut keep: Vec<bool> = Vec::with_capacity(all.len());
    for line in all.iter().rev() {
        let is_busy = rate(line).is_some_and(|r| r.is_active());
        let stays = is_busy || kept.contains(&line.id) || needed_depth > line.depth;
        needed_depth = if stays { line.depth } else { needed_depth.min(line.depth) };
        keep.push(stays);
    }
    all.retain(|_| keep.pop() == Some(true));
    all
}

/// Disks that are stalled first, then saturated ones, each with what is on it.
fn most_urgent_first(all: Vec<ListedDevice>, rates: &[Arc<DiskRate>]) -> Vec<ListedDevice> {
    let urgency = |line: &ListedDevice| match line.rate_index.map(|i| &rates[i]) {
        Some(rate) if rate.stalled => 0,
        Some(rate) if rate.util_pct >= SATURATED_PCT => 1,
        _ => 2,
    };
    let urgency = |family: &&[ListedDevice]| family.iter().map(urgency).min();
    let mut families: Vec<&[ListedDevice]> = all.chunk_by(|_, next| next.depth > 0).collect();
    if families.is_sorted_by_key(urgency) {
        return all;
    }
    families.sort_by_key(urgency);
    families.concat()
}

/// A device that is busy for this share of the time is saturated, per cent.
const SATURATED_PCT: f64 = 95.0;

fn tree_devices(rates: &[Arc<DiskRate>], topo: &Topology, containers: Option<&ContainerNames>) -> Vec<ListedDevice> {
    let find = |id: DevId| rates.iter().position(|r| r.id == id);
    let mut out = Vec::new();
    let mut seen = Vec::new();
    for row in disks_first(topo) {
        let dev = &topo.devices[row.device_index];
        let rate = find(dev.id);
        if row.mount_index.is_some() || (rate.is_none() && dev.mounts.is_empty() && dev.swaps.is_empty()) {
            continue;
        }
        seen.push(dev.id);
        if dev.is_vacant() {
            continue;
        }
        let indent = if row.depth > 0 { "  ".repeat(row.depth - 1) + "└ " } else { String::new() };
        let text = if row.is_repeated {
            sanitize(&dev.name) + " (see above)"
        } else {
            label(&dev.name, Some(dev), containers)
        };
        let label = indent + &text;
        out.push(ListedDevice { id: dev.id, rate_index: rate, label, depth: row.depth });
    }
    // A device that appeared after the topology was read.
    for (i, r) in rates.iter().enumerate().filter(|(_, r)| !seen.contains(&r.id)) {
        out.push(ListedDevice { id: r.id, rate_index: Some(i), label: label(&r.name, None, None), depth: 0 });
    }
    out
}

/// The tree, with devices that are not hardware (loop, zram, ram) after the disks.
fn disks_first(topo: &Topology) -> Vec<TopologyRow> {
    let rows = topo.tree();
    let mut families: Vec<&[TopologyRow]> = rows.chunk_by(|_, next| next.depth > 0).collect();
    families.sort_by_key(|family| match topo.devices[family[0].device_index].kind {
        DeviceKind::Zram | DeviceKind::Ram => 1,
        DeviceKind::Loop => 2,
        _ => 0,
    });
    families.concat()
}

/// `sda1  /var/lib/neo4j (ext4)`, `dm-0 vg-data  /srv (xfs) +2`, `sdb  pvc-9 of shop/web-7d9f (ext4) +1`.
fn label(name: &str, dev: Option<&BlockDevice>, containers: Option<&ContainerNames>) -> String {
    let mut out = sanitize(name);
    let Some(dev) = dev else { return out };
    let shown = dev.display_name();
    if shown != out {
        let _ = write!(out, " {shown}");
    }
    let mounts: Vec<&MountRef> = dev.mounts.iter().filter(|m| !m.is_hidden).collect();
    // In a container there may be nothing but bind mounts of single files: the device is mounted elsewhere.
    if let Some(first) = mounts.iter().find(|m| !m.is_bind).or_else(|| mounts.first()) {
        let volume = containers.and_then(|names| names.volume_name(mounts.iter().map(|m| &m.mount_point)));
        let bind = if first.is_bind { "bind " } else { "" };
        let place = volume.unwrap_or_else(|| format!("{bind}{}", first.mount_point.sanitized()));
        let is_block = is_block_volume(first.mount_point.as_bytes());
        let kind = if is_block { "block volume".into() } else { first.fs_type.sanitized() };
        let _ = write!(out, "  {place} ({kind})");
        let more = mounts.len() - 1;
        if more > 0 {
            let _ = write!(out, " +{more}");
        }
    }
    if !dev.swaps.is_empty() {
        out.push_str("  swap");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::reading::Reading;
    use super::*;

    fn snapshot() -> Snapshot {
        let rate = |minor, name: &str, tps| {
            let id = DevId { major: 8, minor };
            Arc::new(DiskRate { id, name: name.into(), tps, ..Default::default() })
        };
        Snapshot {
            devices: Reading::Ok(vec![rate(0, "sda", 5.0), rate(1, "sda1", 0.0), rate(16, "sdb", 9.0)]),
            ..Default::default()
        }
    }

    fn topology() -> Topology {
        let dev = |minor, name: &str, parent: Option<u32>| BlockDevice {
            id: DevId { major: 8, minor },
            name: name.into(),
            kind: if parent.is_some() { DeviceKind::Partition } else { DeviceKind::Disk },
            parent: parent.map(|minor| DevId { major: 8, minor }),
            ..Default::default()
        };
        let mut part = dev(1, "sda1", Some(0));
        part.mounts.push(MountRef { mount_point: "/a\u{1b}b".into(), fs_type: "ext4".into(), ..Default::default() });
        Topology { devices: vec![dev(0, "sda", None), part] }
    }

    fn labels(query: &DeviceQuery<'_>, topo: Option<&Topology>) -> Vec<String> {
        list_devices(&snapshot(), topo, query).into_iter().map(|l| l.label).collect()
    }

    #[test]
    fn a_volume_of_a_pod_has_its_name() {
        let mut topo = topology();
        let mount = |point: &str| MountRef { mount_point: point.into(), fs_type: "ext4".into(), ..Default::default() };
        let volume = "/var/lib/kubelet/pods/77/volumes/kubernetes.io~csi/pvc-9/mount";
        topo.devices[1].mounts = vec![mount("/var/lib/kubelet/plugins/x/globalmount"), mount(volume)];
        let containers = ContainerNames::new(&[]);
        let query = DeviceQuery { containers: Some(&containers), ..DeviceQuery::default() };
        assert_eq!(labels(&query, Some(&topo))[1], "└ sda1  pvc-9 of pod 77 (ext4) +1");
    }

    #[test]
    fn a_bind_mount_is_not_called_the_mount_of_a_device() {
        let mount = |point: &str, is_bind| MountRef {
            mount_point: point.into(),
            fs_type: "ext4".into(),
            is_bind,
            ..MountRef::default()
        };
        let mut device =
            BlockDevice { name: "vda".into(), mounts: vec![mount("/etc/hosts", true)], ..BlockDevice::default() };
        assert_eq!(label("vda", Some(&device), None), "vda  bind /etc/hosts (ext4)");
        device.mounts.push(mount("/data", false));
        assert_eq!(label("vda", Some(&device), None), "vda  /data (ext4) +1");
    }

    #[test]
    fn the_tree_lists_partitions_mounts_and_new_devices_sanitized() {
        let topo = topology();
        assert_eq!(labels(&DeviceQuery::default(), Some(&topo)), ["sda", "└ sda1  /a\\x1bb (ext4)", "sdb"]);
    }

    #[test]
    fn the_tree_begins_with_stalled_disks_then_saturated_ones() {
        let labels = |change: fn(&mut DiskRate)| {
            let mut snap = snapshot();
            let Reading::Ok(rates) = &mut snap.devices else { unreachable!() };
            change(Arc::make_mut(&mut rates[2]));
            let topo = topology();
            let lines = list_devices(&snap, Some(&topo), &DeviceQuery::default());
            lines.into_iter().map(|line| line.label).collect::<Vec<_>>()
        };
        let tree = ["sda", "└ sda1  /a\\x1bb (ext4)", "sdb"];
        assert_eq!(labels(|rate| rate.util_pct = 94.0), tree);
        assert_eq!(labels(|rate| rate.util_pct = 99.0), [tree[2], tree[0], tree[1]]);
        assert_eq!(labels(|rate| rate.stalled = true), [tree[2], tree[0], tree[1]]);
    }

    #[test]
    fn devices_are_sorted_and_filtered() {
        let by = DeviceQuery { sort: Some(DeviceColumn::Tps), ..Default::default() };
        assert_eq!(labels(&by, None), ["sdb", "sda", "sda1"]);
        assert_eq!(labels(&DeviceQuery { reverse: true, ..by.clone() }, None), ["sda1", "sda", "sdb"]);
        assert_eq!(labels(&DeviceQuery { only_active: true, ..Default::default() }, None), ["sda", "sdb"]);
        let snap = snapshot();
        let idle = snap.devices.ok().unwrap().iter().find(|rate| &*rate.name == "sda1").unwrap().id;
        let kept = DeviceQuery { only_active: true, kept: &[idle], ..Default::default() };
        assert!(labels(&kept, None).contains(&"sda1".to_owned()), "a device of a finding stays");
        assert_eq!(labels(&DeviceQuery { filter: "DB", ..Default::default() }, None), ["sdb"]);
    }
}
