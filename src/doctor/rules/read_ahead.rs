//! Read-ahead that does not suit the reads: too small for a stream, or so large that random reads fetch megabytes.

use super::prelude::*;
use crate::doctor::device_users::{DeviceUser, DeviceUsers, Requests};

const WINDOW_SECS: f64 = 6.0;
const STREAM_MB_PER_S: f64 = 10.0;
/// Requests of at least this share of the read-ahead are limited by it.
const LIMIT_SHARE: f64 = 0.85;
/// No stream is limited by this much; RAID arrays need a whole stripe.
const SUFFICIENT_KB: u64 = 512;
/// Up to this queue size one reader waits for each request before it issues the next.
const SINGLE_READER_QUEUE: f64 = 2.5;
/// Smaller settings cost random reads little.
const LARGE_KB: u64 = 256;
/// Major faults of mapped files that are read at random: a slow disk serves few of a megabyte each.
const MIN_FAULTS_PER_S: f64 = 10.0;
/// Requests that start where a recent one ended, from this share on, are a stream.
const SEQUENTIAL_PCT: f64 = 75.0;
/// Each fault reads at least this much.
const MIN_REQUEST_KB: f64 = 64.0;

/// The read_ahead_kb of a device, and the one to set for a stream.
fn read_ahead_kb(ctx: &RuleContext<'_>, id: DevId) -> Option<(u64, u64)> {
    let queue = ctx.system.queue_attrs(id)?;
    Some((queue.read_ahead_kb?, SUFFICIENT_KB.max(queue.optimal_io_size.unwrap_or(0) / 1024)))
}

/// The devices with known read-ahead for which `test` is sustained.
fn sustained_devices<'a>(
    ctx: &RuleContext<'a>,
    test: impl Fn(&Snapshot, &DiskRate) -> Option<bool>,
) -> Result<Vec<(&'a DiskRate, u64)>, RuleSkipped> {
    if ctx.devices().next().is_none() {
        return Ok(Vec::new());
    }
    ctx.sustained_devices(ctx.devices().filter(|device| read_ahead_kb(ctx, device.id).is_some()), WINDOW_SECS, test)
}

pub(super) fn evaluate_small(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let is_limited = |device: &DiskRate| {
        let kb = read_ahead_kb(ctx, device.id)?.0 as f64;
        Some(
            device.read_mb_per_s >= STREAM_MB_PER_S
                && (kb * LIMIT_SHARE..=kb * 1.05).contains(&device.read_request_kb)
                && device.queue_size <= SINGLE_READER_QUEUE
                && device.util_pct >= 60.0,
        )
    };
    for (device, since) in sustained_devices(ctx, |_, device| is_limited(device))? {
        let Some((kb, better)) = read_ahead_kb(ctx, device.id) else { continue };
        // Reading ahead pays only where each request has a long latency.
        let class = ctx.storage_class(device.id);
        let is_far = matches!(class, StorageClass::Spinning | StorageClass::Network | StorageClass::Virtual);
        if !is_far || kb == 0 || kb >= better {
            continue;
        }
        let name = ctx.device_name(device.id);
        let rate = ctx.device_mean(device.id, WINDOW_SECS, |d| d.read_mb_per_s).unwrap_or(0.0);
        let title = format!(
            "{name} streams {} in requests as small as its read-ahead of {kb} KiB: a larger one may be faster",
            format::mb_per_s(rate)
        );
        ctx.device_finding(Severity::Note, device.id, title)
            .fact("rareq-sz", format!("{:.0} KiB", device.read_request_kb))
            .fact("read_ahead_kb", kb.to_string())
            .fact("r/s", format::count(device.reads_per_s))
            .fact("aqu-sz", format::count(device.queue_size))
            .since(since)
            .why("A sequential reader waits for each request; larger requests keep the device busy in between.")
            .advise_at(
                format!("raise read_ahead_kb of {name} to {better}"),
                knob(format!("read_ahead_kb@{}", device.name)),
            )
            .costs("random reads fetch more than they need")
            .advise_benchmark("benchmark with read-ahead off and on", "sweep", None)
            .report(out);
    }
    Ok(())
}

pub(super) fn evaluate_large(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let devices = sustained_devices(ctx, |tick, device| {
        let faults_per_s = tick.major_faults_per_s?;
        // A stream faults once for many reads; random reads of mapped files fault for each.
        Some(
            device.read_request_kb >= MIN_REQUEST_KB
                && device.util_pct >= 90.0
                && device.reads_per_s >= device.writes_per_s
                && faults_per_s >= MIN_FAULTS_PER_S.max(device.reads_per_s * 0.3),
        )
    })?;
    for (device, since) in devices {
        let Some((kb, _)) = read_ahead_kb(ctx, device.id) else { continue };
        let block_device = ctx.system.topology.ok().and_then(|topology| topology.get(device.id));
        let pattern = ctx.request_pattern(device.id, WINDOW_SECS).sequential_pct();
        if pattern.is_some_and(|pct| pct >= SEQUENTIAL_PCT) {
            continue;
        }
        if kb < LARGE_KB || block_device.is_some_and(|d| !d.swaps.is_empty()) {
            continue;
        }
        let name = ctx.device_name(device.id);
        let faults_per_s = ctx.system.snapshot.major_faults_per_s.unwrap_or(0.0);
        let title = format!(
            "{name} reads {:.0} KiB for each of {} page faults/s: its read-ahead of {kb} KiB is too large for random \
             reads",
            device.read_request_kb,
            format::count(faults_per_s)
        );
        ctx.device_finding(Severity::Warn, device.id, title)
            .fact("rareq-sz", format!("{:.0} KiB", device.read_request_kb))
            .fact("read_ahead_kb", kb.to_string())
            .fact("major faults", format::per_s(faults_per_s))
            .fact("read", format::mb_per_s(device.read_mb_per_s))
            .since(since)
            .delays(
                DeviceUsers::find(ctx, device.id, WINDOW_SECS, Requests::Reads).main().iter().map(DeviceUser::involved),
            )
            .on_files(main_files(ctx, device.id, WINDOW_SECS, Requests::Reads))
            .why("A fault needs 4 KiB. Reading more takes the device's time and evicts other pages from the cache.")
            .advise_at(
                format!("lower read_ahead_kb of {name} (to 16 or 32 for a database)"),
                knob(format!("read_ahead_kb@{}", device.name)),
            )
            .costs("streams such as backups get slower")
            .report(out);
    }
    Ok(())
}
