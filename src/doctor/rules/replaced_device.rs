//! Devices that come back with another content under the same name.

use super::prelude::*;
use crate::model::kernel_log::LogEntry;

/// Whether the message is about what was attached under this name before: loop devices and card readers come back with
/// another file or medium.
pub(super) fn is_about_replaced_device(ctx: &RuleContext<'_>, entry: &LogEntry, id: Option<DevId>) -> bool {
    let log = &ctx.system.kernel_log;
    let own = entry.device.as_deref().and_then(|name| log.attached_at(name));
    let chain = id.zip(ctx.system.topology.ok()).into_iter().flat_map(|(id, topology)| {
        ctx.device_chain(id).into_iter().filter_map(|id| log.attached_at(&topology.get(id)?.name))
    });
    own.max(chain.max()).is_some_and(|attached_at| entry.wall_ns < attached_at)
}
