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
            let is_shut_down = mount.has_option("shutdown");
            let sign = if is_shut_down {
                "shutdown"
            } else if mount.has_option("emergency_ro") {
                "emergency_ro"
            } else if mount.has_option("ro") && was_reported_read_only(ctx, &device.name) {
                "ro, after an error"
            } else {
                continue;
            };
            let (fs_type, name) = (mount.fs_type.sanitized(), device.display_name());
            let state = match is_shut_down {
                true => "was shut down after an error: reads and writes fail",
                false => "is read-only after an error: writes fail",
            };
            let title = format!("{} ({fs_type} on {name}) {state}", mount.mount_point.sanitized());

            Finding::of_mount(Severity::Critical, &mount.mount_point, title)
                .fact("file system", fs_type)
                .fact("device", name)
                .fact("sign", sign)
                .why("Every write there fails. Programs that keep running may believe that their data is safe.")
                .advise_at("find the cause first: I/O errors or resets of the device below", NavTarget::KernelLog(None))
                .advise(super::kernel_errors::CHECK_FILESYSTEM)
                .costs("the service is down")
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
