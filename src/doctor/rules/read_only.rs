//! A file system that stopped writing after an error, though its options still say `rw`.
//!
//! ext4 shows `emergency_ro` beside `rw` then (Linux 6.15), others `shutdown`; older kernels only remount
//! `ro`, which by itself may be meant: then the kernel's own word for it is needed.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::rule_context::RuleContext;
use crate::model::kernel_log::KernelLogClass;
use crate::model::topology::MountRef;

/// The rule.
pub const RULE: Rule =
    Rule { name: "read-only", description: "file systems that went read-only by themselves", evaluate: look };

/// So far back the kernel's word is looked for, seconds: as long as the log holds it.
const LOG_WINDOW_SECS: u64 = 30 * 86_400;

fn has_option(m: &MountRef, word: &[u8]) -> bool {
    let words = |o: &crate::model::raw_bytes::RawBytes| o.as_bytes().split(|b| *b == b',').any(|w| w == word);
    words(&m.options) || words(&m.super_options)
}

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let Some(topo) = case.system.topology.ok() else {
        return RuleStatus::Unavailable(case.system.topology.unavailable_reason(case.now_ns()).unwrap_or_default());
    };
    for dev in &topo.devices {
        for m in dev.mounts.iter().filter(|m| !m.is_hidden && !m.is_bind) {
            let emergency = has_option(m, b"emergency_ro") || has_option(m, b"shutdown");
            let remounted = has_option(m, b"ro") && was_reported_read_only(case, &dev.name);
            if !emergency && !remounted {
                continue;
            }
            let point = m.mount_point.sanitized();
            let sign = if emergency { "emergency_ro" } else { "ro, after an error" };
            let title = format!(
                "{point} ({}, {}) went read-only after an error: nothing can be written there",
                m.fs_type.sanitized(),
                dev.display_name()
            );
            out.push(
                Finding::new(RULE.name, Severity::Critical, FindingSubject::Mount(m.mount_point.clone()), title)
                    .fact("file system", m.fs_type.sanitized())
                    .fact("device", dev.display_name())
                    .fact("sign", sign)
                    .why("Every write there fails. Programs that keep running may believe that their data is safe.")
                    .advise("stop the programs that use it, save what can be read", "the service is down")
                    .advise(
                        "find the cause (I/O errors of the device), then check it unmounted (fsck) and mount it again",
                        "time",
                    )
                    .see_also(NavTarget::Device(dev.id))
                    .on_devices(case.device_chain(dev.id)),
            );
        }
    }
    RuleStatus::Evaluated
}

fn was_reported_read_only(case: &RuleContext<'_>, device: &str) -> bool {
    case.kernel_messages(KernelLogClass::Filesystem, LOG_WINDOW_SECS)
        .any(|e| e.device.as_deref() == Some(device) && e.message.contains("read-only"))
}
