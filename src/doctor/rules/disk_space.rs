//! File systems nearly out of space or inodes.

use super::prelude::*;
use crate::model::path::FilesystemSpace;
use crate::model::slow_facts::MountSpace;
use crate::model::topology::{MountRef, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// Used from here on is a warning ...
pub(super) const WARN_PCT: f64 = 90.0;
/// ... unless this much is free: 10% of a large file system is much.
pub(super) const WARN_FREE_BYTES: u64 = 50 << 30;
/// Used from here on writes may fail any moment ...
const CRITICAL_PCT: f64 = 98.0;
/// ... unless this much is free.
const CRITICAL_FREE_BYTES: u64 = 5 << 30;
/// Smaller file systems (boot partitions, images) are full by design.
const MIN_TOTAL_BYTES: u64 = 256 << 20;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let facts = &ctx.system.slow_facts;
    if facts.local_space.is_none() && facts.network_space.is_none() {
        return Err(RuleSkipped::NeedsMoreData("free space of the file systems"));
    }
    let repeated = ctx.system.topology.ok().map(repeated_mounts).unwrap_or_default();
    let mut result = Ok(());
    for mount in [&facts.local_space, &facts.network_space].into_iter().flatten().flat_map(|report| &report.mounts) {
        if repeated.contains(&mount.mount_point) {
            continue;
        }
        if let Some(why) = mount.space.unavailable_reason(ctx.now_ns()) {
            result = Err(RuleSkipped::Unavailable(format!("{}: {why}", mount.mount_point.sanitized())));
        }
        out.extend(space_finding(ctx, mount));
        out.extend(inode_finding(ctx, mount));
    }
    result
}

/// The mount points of file systems that are judged at another one, so that a full disk is one finding: those of the other
/// subvolumes of a btrfs, and overlays. The shortest of a file system is judged.
fn repeated_mounts(topology: &Topology) -> BTreeSet<&RawBytes> {
    let mut judged: BTreeMap<DevId, &RawBytes> = BTreeMap::new();
    for device in &topology.devices {
        for mount in device.space_mounts() {
            // A file system on several devices, or with several subvolumes, has one number.
            let has_number = mount.file_system != DevId::default() && !mount.is_overlay();
            let number = if has_number { mount.file_system } else { device.id };
            let point = &mount.mount_point;
            let best = judged.entry(number).or_insert(point);
            if (point.as_bytes().len(), point) < (best.as_bytes().len(), *best) {
                *best = point;
            }
        }
    }
    // Not those that are hidden: a file system of a server may be mounted over them.
    let all = topology.devices.iter().flat_map(|device| &device.mounts).filter(|mount| mount.can_fill_up());
    let judged: BTreeSet<&RawBytes> = judged.into_values().collect();
    all.map(|mount| &mount.mount_point).filter(|point| !judged.contains(point)).collect()
}

fn space_severity(used_pct: f64, free_bytes: u64) -> Option<Severity> {
    match used_pct {
        pct if pct >= CRITICAL_PCT && free_bytes < CRITICAL_FREE_BYTES => Some(Severity::Critical),
        pct if pct >= WARN_PCT && free_bytes < WARN_FREE_BYTES => Some(Severity::Warn),
        _ => None,
    }
}

/// The space of a file system that is large enough to be judged.
pub(super) fn judged(mount: &MountSpace) -> Option<&FilesystemSpace> {
    mount.space.ok().filter(|space| space.total_bytes >= MIN_TOTAL_BYTES)
}

fn space_finding(ctx: &RuleContext<'_>, mount: &MountSpace) -> Option<Finding> {
    let space = judged(mount)?;
    let used_pct = space.used_pct();
    let severity = space_severity(used_pct, space.available_bytes)?;
    let (free, total) = (format::bytes(space.available_bytes as f64), format::bytes(space.total_bytes as f64));
    let used = format::percent(used_pct);
    let point = mount.mount_point.sanitized();
    let title = match space.available_bytes {
        0 => format!("{point} is full: nothing of {total} is free"),
        _ => format!("{point} is {used} full: {free} of {total} free"),
    };
    Some(
        mount_finding(ctx, mount, severity, title)
            .fact("available", free)
            .fact("size", total)
            .fact("used", used)
            .why("When it is full, writes fail. Before that the file system slows down, because free extents get small and scattered.")
            .advise("find what grew (du -x; deleted files still open: lsof +L1), move or remove it").costs("reads every directory")
            .advise("enlarge the volume").costs("money"),
    )
}

fn inode_finding(ctx: &RuleContext<'_>, mount: &MountSpace) -> Option<Finding> {
    let space = mount.space.ok()?;
    let (total, free) = (space.inodes_total.filter(|n| *n > 0)?, space.inodes_free?);
    let used_pct = (total - free.min(total)) as f64 * 100.0 / total as f64;
    let severity = match used_pct {
        pct if pct >= CRITICAL_PCT => Severity::Critical,
        pct if pct >= WARN_PCT => Severity::Warn,
        _ => return None,
    };
    let point = mount.mount_point.sanitized();
    let title = match free {
        0 => format!("{point} is out of inodes: none of {total} is free"),
        _ => format!("{point} is nearly out of inodes: {free} of {total} free"),
    };
    Some(
        mount_finding(ctx, mount, severity, title)
            .fact("inodes free", free.to_string())
            .fact("inodes", total.to_string())
            .fact("used", format::percent(used_pct))
            .why("Without an inode no file can be created, however much space is free: \"No space left on device\".")
            .advise(format!(
                "find the directory with most files (du --inodes -xS {point} | sort -n | tail) and remove those that are not needed"
            ))
            .costs("reads every directory"),
    )
}

fn mount_finding(ctx: &RuleContext<'_>, mount: &MountSpace, severity: Severity, title: String) -> Finding {
    let is_it = |m: &MountRef| m.mount_point == mount.mount_point && !m.is_hidden;
    let topology = ctx.system.topology.ok();
    let device = topology.and_then(|topology| topology.devices.iter().find(|d| d.mounts.iter().any(is_it)));
    let finding = Finding::of_mount(severity, &mount.mount_point, title);
    match device {
        Some(device) => finding.see_also(NavTarget::Device(device.id)).on_devices(ctx.device_chain(device.id)),
        None => finding.see_also(NavTarget::Devices),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_needs_a_high_share_and_little_free_space() {
        assert_eq!(space_severity(95.0, 200 << 30), None);
        assert_eq!(space_severity(95.0, 10 << 30), Some(Severity::Warn));
        assert_eq!(space_severity(99.0, 10 << 30), Some(Severity::Warn));
        assert_eq!(space_severity(99.0, 1 << 30), Some(Severity::Critical));
        assert_eq!(space_severity(50.0, 1), None);
    }
}
