//! Devices with requests in flight of which none completes. Other tools show an await of 0 then, because await counts
//! completed requests (Documentation/admin-guide/iostats.rst).

use super::hung_tasks::{involved_task, waited_for_devices};
use super::prelude::*;
use crate::model::mount::is_nfs;

/// Longer than a slow request: a spinning disk in error recovery answers or gives up within 7 s, others much sooner.
pub(super) const STALLED_SECS: f64 = 4.0;
const MAX_NAMED_TASKS: usize = 4;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for (device, since) in ctx.sustained_devices(ctx.devices(), STALLED_SECS, |_, device| Some(device.stalled))? {
        // Every device above a stalled one stalls: report the lowest.
        let is_stalled = |id: &DevId| ctx.snapshot().and_then(|s| s.device(*id)).is_some_and(|d| d.stalled);
        if !device.stalled || ctx.device_chain(device.id).iter().skip(1).any(is_stalled) {
            continue;
        }
        let duration = format::duration(ctx.secs_since(since));
        let server = file_server(ctx, device.id);
        let title = format!(
            "{} is stalled: {} request{} in flight, none completed for {duration}{}",
            ctx.device_name(device.id),
            device.in_flight,
            if device.in_flight == 1 { "" } else { "s" },
            server.as_ref().map_or(String::new(), |server| format!("; {server} does not answer")),
        );
        let mut finding = ctx.device_finding(Severity::Critical, device.id, title);
        if let Some(server) = server {
            finding = finding
                .fact("backing file served by", server)
                .advise("see whether that server runs, is stopped (state T) or hangs itself");
        }
        finding
            .fact("in flight", device.in_flight.to_string())
            .fact("completed", "0")
            .fact("for", duration)
            .since(since)
            .delays(waiting_tasks(ctx, device.id))
            .why(
                "Everything that needs this device blocks: reads, syncs, and every write once the dirty limit is \
                 reached. Tasks that wait for it cannot be killed.",
            )
            .advise_at("read the kernel log about the device and its link", NavTarget::KernelLog(None))
            .advise(
                "check the path to it: controller, cable, multipath, the server behind a network or loop device, \
                 a frozen file system below (fsfreeze)",
            )
            .advise("do not change its queue settings now: the write would block as well")
            .report(out);
    }
    Ok(())
}

/// Who has to answer for a loop device: `the FUSE server of /mnt/cloud`, `the NFS server of /srv`.
fn file_server(ctx: &RuleContext<'_>, id: DevId) -> Option<String> {
    let mount = ctx.system.topology.ok()?.get(id)?.backing_mount.as_ref()?;
    let (fs_type, point) = (mount.fs_type.as_bytes(), mount.mount_point.sanitized());
    match fs_type {
        b"fuse" | b"fuseblk" => Some(format!("the FUSE server of {point}")),
        _ if fs_type.starts_with(b"fuse.") => Some(format!("the FUSE server of {point}")),
        _ if is_nfs(fs_type) => Some(format!("the NFS server of {point}")),
        _ => None,
    }
}

/// Programs that hang on a file of the device, or for a device while no other one is stalled.
pub(super) fn waiting_tasks(ctx: &RuleContext<'_>, id: DevId) -> Vec<InvolvedTask> {
    let hung = ctx.system.hung_tasks.iter().filter(|task| {
        let row = ctx.system.processes.row_or_process(&task.key);
        let is_kernel_thread = row.is_some_and(|row| row.raw.kernel_thread);
        !is_kernel_thread && ctx.device_chains(&waited_for_devices(ctx, task)).contains(&id)
    });
    hung.take(MAX_NAMED_TASKS).map(|task| involved_task(ctx, task)).collect()
}
