//! Thin pools without free space, as device mapper or the kernel log reports them (drivers/md/dm-thin.c). The log says
//! when space ran out, and rarely when there is space again: where device mapper was asked since, its answer counts.

use super::prelude::*;
use super::stalled_device::waiting_tasks;
use crate::model::kernel_log::{LogEntry, LogOrigin};
use crate::model::slow_facts::{BlockCount, ThinPoolFacts, ThinPoolMode};
use crate::model::topology::DeviceKind;

/// A pool that was nearly full this long ago may still be; after the second time that says nothing any more.
const LOW_SECS: f64 = 3600.0;
const OLD_LOW_SECS: f64 = 24.0 * 3600.0;

/// From this share of its data or metadata on a pool is nearly full, wherever its low water mark is: LVM's is 0 by default.
const NEARLY_FULL_PCT: u64 = 95;

/// What a pool says of itself begins with this, followed by its number: `253:2: switching pool to ...`.
pub(super) const PREFIX: &str = "device-mapper: thin: ";

/// What the newest message about its space says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolState {
    Fine,
    /// The low water mark of `data` or `metadata` was reached.
    Low(&'static str),
    /// Little of `data` or `metadata` is free, as device mapper reports it.
    NearlyFull(&'static str, BlockCount),
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

    fn of_facts(pool: &ThinPoolFacts) -> Self {
        let is_low = |blocks: Option<BlockCount>, mark: Option<u64>| {
            blocks.zip(mark).is_some_and(|(blocks, mark)| blocks.free() <= mark)
        };
        match pool.mode {
            ThinPoolMode::OutOfDataSpace if pool.queues_writes => Self::Waits,
            ThinPoolMode::OutOfDataSpace => Self::Fails,
            ThinPoolMode::ReadOnly if pool.is_read_only => Self::Fine,
            ThinPoolMode::ReadOnly | ThinPoolMode::Failed => Self::ReadOnly,
            ThinPoolMode::ReadWrite if is_low(pool.data, pool.data_low_water_blocks) => Self::Low("data"),
            ThinPoolMode::ReadWrite if is_low(pool.metadata, pool.metadata_low_water_blocks) => Self::Low("metadata"),
            ThinPoolMode::ReadWrite => {
                let nearly_full = |what, blocks: Option<BlockCount>| {
                    blocks.filter(is_nearly_full).map(|blocks| Self::NearlyFull(what, blocks))
                };
                nearly_full("data", pool.data).or_else(|| nearly_full("metadata", pool.metadata)).unwrap_or(Self::Fine)
            }
        }
    }
}

fn is_nearly_full(blocks: &BlockCount) -> bool {
    blocks.total > 0 && blocks.used.saturating_mul(100) >= blocks.total.saturating_mul(NEARLY_FULL_PCT)
}

/// The share that is used, in per cent.
fn used_pct(blocks: BlockCount) -> String {
    format::percent(blocks.used as f64 * 100.0 / blocks.total.max(1) as f64)
}

/// The pool that a message is about, and what it says of its space.
fn parse(entry: &LogEntry) -> Option<(DevId, PoolState)> {
    let (number, message) = entry.message.strip_prefix(PREFIX)?.split_once(": ")?;
    Some((DevId::parse(number.as_bytes())?, PoolState::of(message)?))
}

/// What is known of a pool's space.
struct PoolSpace<'a> {
    device: DevId,
    state: PoolState,
    /// The kernel's message, if it says the same.
    entry: Option<&'a LogEntry>,
    /// As device mapper reports it; `None` where it was not asked since the message.
    facts: Option<&'a ThinPoolFacts>,
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let facts = ctx.system.slow_facts.latest.as_ref();
    let pools = facts.map_or(&[][..], |facts| &facts.thin_pools);
    let mut seen: Vec<DevId> = Vec::new();
    for entry in ctx.system.kernel_log.entries().rev().filter(|entry| entry.origin == LogOrigin::Kernel) {
        let Some((device, state)) = parse(entry).filter(|(id, _)| !seen.contains(id)) else { continue };
        let is_newer = facts.is_some_and(|facts| entry.wall_ns > facts.time.wall_ns);
        let is_listed = pools.iter().any(|pool| pool.device == device);
        if is_listed && !is_newer {
            continue;
        }
        seen.push(device);
        if is_listed
            || is_pool(ctx, device) && !super::replaced_device::is_about_replaced_device(ctx, entry, Some(device))
        {
            out.extend(build_finding(ctx, &PoolSpace { device, state, entry: Some(entry), facts: None }));
        }
    }
    let is_there = |pool: &&ThinPoolFacts| !seen.contains(&pool.device) && ctx.device_kind(pool.device).is_some();
    for pool in pools.iter().filter(is_there) {
        let (device, state) = (pool.device, PoolState::of_facts(pool));
        let entry = newest_message(ctx, device).filter(|(_, said)| *said == state).map(|(entry, _)| entry);
        out.extend(build_finding(ctx, &PoolSpace { device, state, entry, facts: Some(pool) }));
    }
    ctx.require(&ctx.system.kernel_log_status).copied()
}

/// The newest message about the space of a pool, and what it says.
fn newest_message<'a>(ctx: &RuleContext<'a>, device: DevId) -> Option<(&'a LogEntry, PoolState)> {
    let entries = ctx.system.kernel_log.entries().rev().filter(|entry| entry.origin == LogOrigin::Kernel);
    let mut messages = entries.filter_map(|entry| Some((entry, parse(entry)?)));
    messages.find(|(_, (id, _))| *id == device).map(|(entry, (_, state))| (entry, state))
}

/// Whether it may be a pool, and not another device that has its number now. LVM gives its pools a name; others have
/// metadata and data directly below them.
fn is_pool(ctx: &RuleContext<'_>, id: DevId) -> bool {
    let Some(device) = ctx.system.topology.ok().and_then(|topology| topology.get(id)) else { return false };
    match device.kind {
        DeviceKind::Lvm => device.label.as_ref().is_some_and(|label| label.as_bytes().ends_with(b"-tpool")),
        DeviceKind::Dm => device.slaves.len() >= 2,
        _ => false,
    }
}

/// How bad it is, and what is wrong; `None` if nothing is, or if the message is too old to say so.
fn problem_of(ctx: &RuleContext<'_>, space: &PoolSpace<'_>) -> Option<(Severity, String)> {
    Some(match space.state {
        PoolState::Fine => return None,
        PoolState::Low(what) => return low_water_problem(ctx, space, what),
        PoolState::NearlyFull(what, blocks) => {
            (Severity::Warn, format!("is nearly full: {} of its {what} is used", used_pct(blocks)))
        }
        PoolState::Waits => {
            (Severity::Critical, "is full: writes to its volumes wait, by default for 60 s, and then fail".into())
        }
        PoolState::Fails => (Severity::Critical, "is full: writes to its volumes fail".into()),
        PoolState::ReadOnly => {
            (Severity::Critical, "cannot change its metadata any more: writes to its volumes fail".into())
        }
    })
}

/// The kernel says when the low water mark is reached, and not when space was freed since.
fn low_water_problem(ctx: &RuleContext<'_>, space: &PoolSpace<'_>, what: &str) -> Option<(Severity, String)> {
    let secs = space.entry.map_or(0.0, |entry| ctx.secs_since(ctx.wall_to_boot_ns(entry.wall_ns)));
    if space.facts.is_some() || secs <= LOW_SECS {
        return Some((Severity::Warn, format!("is nearly full: it reached its low water mark for {what}")));
    }
    let ago = format::duration(secs);
    let problem = format!("reached its low water mark for {what} {ago} ago; whether it has space again is not known");
    (secs <= OLD_LOW_SECS).then_some((Severity::Note, problem))
}

fn build_finding(ctx: &RuleContext<'_>, space: &PoolSpace<'_>) -> Option<Finding> {
    let (severity, problem) = problem_of(ctx, space)?;
    let id = space.device;
    let mut finding = ctx
        .device_finding(severity, id, format!("thin pool {} {problem}", ctx.device_name(id)))
        .fact_opt("data used", space.facts.and_then(|facts| facts.data).map(used_pct))
        .fact_opt("metadata used", space.facts.and_then(|facts| facts.metadata).map(used_pct))
        .delays(waiting_tasks(ctx, id))
        .why(
            "The volumes of a thin pool may together be larger than the pool. When it has no free block, a write to a new \
             place cannot be stored, whatever df says; by default it fails after 60 s, and the file system may lose data.",
        );
    if let Some(entry) = space.entry {
        finding = finding
            .fact("kernel message", sanitize(&entry.message))
            .since(ctx.wall_to_boot_ns(entry.first_wall_ns))
            .see_also(NavTarget::KernelLog(entry.seq));
        if space.facts.is_none() && matches!(space.state, PoolState::Low(_)) {
            finding = finding.last_seen(ctx.wall_to_boot_ns(entry.wall_ns));
        }
    }
    if severity == Severity::Note {
        finding = finding.advise("see how full it is: lvs -o +metadata_percent, or dmsetup status");
    }
    Some(add_advice(finding, space.state))
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
