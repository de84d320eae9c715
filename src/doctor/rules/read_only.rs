//! File systems that stopped accepting writes after an error.
//!
//! ext4 then shows `emergency_ro` beside `rw` (Linux 6.15), other file systems `shutdown`. Older kernels remount `ro`,
//! which may be intended, so a message of the kernel is needed as well.

use super::prelude::*;

/// How far back to look for the kernel's message: as far as the log goes.
const LOG_WINDOW_SECS: u64 = 30 * 86_400;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for device in &ctx.require(&ctx.system.topology)?.devices {
        for mount in device.mounts.iter().filter(|m| !m.is_hidden && !m.is_bind) {
            let sign = if mount.has_option("emergency_ro") || mount.has_option("shutdown") {
                "emergency_ro"
            } else if mount.has_option("ro") && was_reported_read_only(ctx, &device.name) {
                "ro, after an error"
            } else {
                continue;
            };
            let (fs_type, name) = (mount.fs_type.sanitized(), device.display_name());
            let title = format!(
                "{} ({fs_type} on {name}) is read-only after an error: writes fail",
                mount.mount_point.sanitized()
            );

            Finding::of_mount(Severity::Critical, &mount.mount_point, title)
                .fact("file system", fs_type)
                .fact("device", name)
                .fact("sign", sign)
                .why("Every write there fails. Programs that keep running may believe that their data is safe.")
                .advise("stop the programs that use it, save what can be read")
                .costs("the service is down")
                .advise("find the cause (I/O errors of the device), then check it unmounted (fsck) and mount it again")
                .costs("time")
                .see_also(NavTarget::Device(device.id))
                .on_devices(ctx.device_chain(device.id))
                .report(out);
        }
    }
    Ok(())
}

fn was_reported_read_only(ctx: &RuleContext<'_>, device: &str) -> bool {
    ctx.kernel_messages(KernelLogClass::Filesystem, LOG_WINDOW_SECS)
        .any(|entry| entry.device.as_deref() == Some(device) && entry.message.contains("read-only"))
}
