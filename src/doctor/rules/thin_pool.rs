//! Thin pools without free space, as the kernel log reports them (drivers/md/dm-thin.c).

use super::prelude::*;
use super::stalled_device::waiting_tasks;
use crate::model::kernel_log::{LogEntry, LogOrigin};
use crate::model::topology::DeviceKind;

/// What a pool says of itself begins with this, followed by its number: `253:2: switching pool to ...`.
pub(super) const PREFIX: &str = "device-mapper: thin: ";

/// What the newest message about its space says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolState {
    Fine,
    /// The low water mark of `data` or `metadata` was reached.
    Low(&'static str),
    /// Writes wait until there is space.
    Waits,
    /// Writes fail.
    Fails,
    /// Its metadata cannot be changed any more.
    ReadOnly,
}

impl PoolState {
    fn of(message: &str) -> Option<Self> {
        let says = |words: &str| message.contains(words);
        let is_switch = says("switching pool ");
        Some(match () {
            () if is_switch && says("to out-of-data-space (queue IO)") => Self::Waits,
            () if is_switch && says("to out-of-data-space") => Self::Fails,
            () if is_switch && (says("to read-only") || says("to out-of-metadata-space") || says("to fail")) => {
                Self::ReadOnly
            }
            () if is_switch && says("to write") => Self::Fine,
            () if says("growing the data device") || says("growing the metadata device") => Self::Fine,
            () if says("reached low water mark for metadata device") => Self::Low("metadata"),
            () if says("reached low water mark for data device") => Self::Low("data"),
            () => return None,
        })
    }
}

/// The pool that a message is about, and what it says of its space.
fn parse(entry: &LogEntry) -> Option<(DevId, PoolState)> {
    let (number, message) = entry.message.strip_prefix(PREFIX)?.split_once(": ")?;
    Some((DevId::parse(number.as_bytes())?, PoolState::of(message)?))
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let mut seen: Vec<DevId> = Vec::new();
    for entry in ctx.system.kernel_log.entries().rev().filter(|entry| entry.origin == LogOrigin::Kernel) {
        let Some((id, state)) = parse(entry).filter(|(id, _)| !seen.contains(id)) else { continue };
        seen.push(id);
        if is_pool(ctx, id) {
            out.extend(build_finding(ctx, id, state, entry));
        }
    }
    ctx.require(&ctx.system.kernel_log_status).copied()
}

/// Whether it may be a pool, with metadata and data below it, and not another device that has its number now.
fn is_pool(ctx: &RuleContext<'_>, id: DevId) -> bool {
    let is_mapped = matches!(ctx.device_kind(id), Some(DeviceKind::Dm | DeviceKind::Lvm));
    is_mapped && ctx.device_chain(id).len() > 2
}

fn build_finding(ctx: &RuleContext<'_>, id: DevId, state: PoolState, entry: &LogEntry) -> Option<Finding> {
    let (severity, problem) = match state {
        PoolState::Fine => return None,
        PoolState::Low(what) => (Severity::Warn, format!("is nearly full: it reached its low water mark for {what}")),
        PoolState::Waits => {
            (Severity::Critical, "is full: writes to its volumes wait, by default for 60 s, and then fail".into())
        }
        PoolState::Fails => (Severity::Critical, "is full: writes to its volumes fail".into()),
        PoolState::ReadOnly => {
            (Severity::Critical, "cannot change its metadata any more: writes to its volumes fail".into())
        }
    };
    let finding = ctx.device_finding(severity, id, format!("thin pool {} {problem}", ctx.device_name(id)));
    let finding = finding
            .fact("kernel message", sanitize(&entry.message))
            .since(ctx.wall_to_boot_ns(entry.first_wall_ns))
            .delays(waiting_tasks(ctx, id))
            .why(
                "The volumes of a thin pool may together be larger than the pool. When it has no free block, a write to a new \
                 place cannot be stored, whatever df says; by default it fails after 60 s, and the file system may lose data.",
            )
            .see_also(NavTarget::KernelLog(entry.seq));
    Some(add_advice(finding, state))
}

fn add_advice(finding: Finding, state: PoolState) -> Finding {
    if state == PoolState::ReadOnly {
        return finding
            .advise("read the kernel log for the cause, and check the backup")
            .advise(
                "deactivate the pool and repair its metadata (lvconvert --repair POOL, or thin_check and thin_repair); only \
                 then can it be extended",
            )
            .costs("its volumes are away meanwhile");
    }
    finding
        .advise("add space to the pool (lvextend POOL, or --poolmetadatasize for metadata) before anything else")
        .advise("free space: remove volumes or snapshots, run fstrim in the file systems on its volumes")
        .costs("discards keep the disks busy for a while")
}
