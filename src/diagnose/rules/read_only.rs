//! A file system that stopped writing after an error, though its options still say `rw`.
//!
//! ext4 shows `emergency_ro` beside `rw` then (Linux 6.15), others `shutdown`; older kernels only remount
//! `ro`, which by itself may be meant: then the kernel's own word for it is needed.

use crate::diagnose::case::Case;
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::model::kernel_log::KernelLogClass;
use crate::model::topology::MountRef;

/// The rule.
pub const RULE: Rule =
    Rule { name: "read-only", about: "file systems that went read-only by themselves", look };

/// So far back the kernel's word is looked for, seconds: as long as the log holds it.
const EVER_SECS: u64 = 30 * 86_400;

fn option(m: &MountRef, word: &[u8]) -> bool {
    let words = |o: &crate::model::raw_bytes::RawBytes| o.as_bytes().split(|b| *b == b',').any(|w| w == word);
    words(&m.options) || words(&m.super_options)
}

fn look(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let Some(topo) = case.world.topology.ok() else {
        return Judged::Cannot(case.world.topology.unavailable_reason(case.now_ns()).unwrap_or_default());
    };
    for dev in &topo.devices {
        for m in dev.mounts.iter().filter(|m| !m.is_hidden && !m.is_bind) {
            let emergency = option(m, b"emergency_ro") || option(m, b"shutdown");
            let remounted = option(m, b"ro") && said(case, &dev.name);
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
                Finding::new(RULE.name, Severity::Critical, Subject::Mount(m.mount_point.clone()), title)
                    .fact("file system", m.fs_type.sanitized())
                    .fact("device", dev.display_name())
                    .fact("sign", sign)
                    .why("Every write there fails. Programs that keep running may believe that their data is safe.")
                    .advise("stop the programs that use it, save what can be read", "the service is down")
                    .advise("find the cause (I/O errors of the device), then check it unmounted (fsck) and mount it again", "time")
                    .look_at(Jump::Device(dev.id))
                    .touching(case.chain(dev.id)),
            );
        }
    }
    Judged::Yes
}

fn said(case: &Case<'_>, device: &str) -> bool {
    case.kernel_said(KernelLogClass::Filesystem, EVER_SECS)
        .any(|e| e.device.as_deref() == Some(device) && e.message.contains("read-only"))
}
