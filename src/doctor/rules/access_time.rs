//! Access times that turn reads into writes on a file system a busy database reads from.

use super::prelude::*;
use crate::doctor::busiest_tasks::IoTask;
use crate::doctor::device_users::{DeviceUser, DeviceUsers, Requests};
use crate::model::topology::MountRef;

/// Reads of the device that make a database busy.
const BUSY_READS_PER_S: f64 = 50.0;
const WINDOW_SECS: f64 = 5.0;
/// File systems that store access times.
const ATIME_FILESYSTEMS: [&str; 9] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs", "ocfs2"];

fn updates_access_times(mount: &MountRef) -> bool {
    let visible = !mount.is_hidden && !mount.is_bind;
    let disabled = mount.has_option("noatime") || mount.has_option("ro");
    visible && !disabled && ATIME_FILESYSTEMS.iter().any(|fs_type| mount.fs_type == *fs_type)
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let topology = ctx.require(&ctx.system.topology)?;
    let reads = |task: &IoTask| task.read_bytes_per_s > 0.0 && ctx.task_survey().is_server(task.key);
    let Some(anywhere) = ctx.top_io_tasks(WINDOW_SECS).into_iter().find(reads) else { return Ok(()) };
    for device in topology.devices.iter().filter(|d| d.mounts.iter().any(updates_access_times)) {
        let reads_per_s = ctx.device_mean(device.id, WINDOW_SECS, |d| d.reads_per_s).unwrap_or(0.0);
        if reads_per_s < BUSY_READS_PER_S {
            continue;
        }
        let is_traced = ctx.system.snapshot.io_attribution.ok().is_some();
        let reader = if is_traced { reading_server(ctx, device.id) } else { Some(anywhere.name.clone()) };
        for mount in device.mounts.iter().filter(|mount| updates_access_times(mount)) {
            out.extend(reader.as_ref().map(|reader| build_finding(ctx, device.id, mount, reads_per_s, reader)));
        }
    }
    Ok(())
}

/// A server among those that read the device or the disk below it most, by tracing.
fn reading_server(ctx: &RuleContext<'_>, id: DevId) -> Option<String> {
    let is_server = |user: &&DeviceUser| user.key.is_some_and(|key| ctx.task_survey().is_server(key));
    ctx.device_chain(id).into_iter().find_map(|id| {
        let users = DeviceUsers::traced(ctx, id, WINDOW_SECS, Requests::Reads)?;
        users.main().iter().find(is_server).map(|user| user.name.clone())
    })
}

fn build_finding(ctx: &RuleContext<'_>, id: DevId, mount: &MountRef, reads_per_s: f64, reader: &str) -> Finding {
    let point = mount.mount_point.sanitized();
    let (severity, effect) = match mount.has_option("relatime") {
        false => (Severity::Warn, "every read of a file writes its access time"),
        true => (Severity::Note, "relatime writes access times once a day and after changes"),
    };
    let title = format!("{point}, read by {reader}, keeps access times: {effect}");
    let finding = Finding::of_mount(severity, &mount.mount_point, title)
        .fact("options", mount.options.sanitized())
        .fact("reads", format::per_s(reads_per_s))
        .fact("reader", reader)
        .see_also(NavTarget::Device(id))
        .on_devices(ctx.device_chain(id))
        .why("Reads become writes: seeks, journal commits and flushes that no program asked for.");
    let action = "mount it with noatime,nodiratime";
    let cost = "programs that use access times (old mail readers, tmp cleaners) see old ones";
    // A knob id ends at a space or comma, so an unusual mount point cannot be named in one.
    match mount.mount_point.as_bytes().iter().all(|b| b.is_ascii_graphic()) {
        true => finding.advise_at(action, knob(format!("atime@{point}"))).costs(cost),
        false => finding.advise(action).costs(cost),
    }
}
