//! Devices that are slow in one direction: reads, writes, flushes or discards. A mean over all requests hides it: writes
//! of 100 ms beside a hundred times as many reads of 0.5 ms have an await of 1.5 ms.

use super::device_state::{is_saturated, is_slow};
use super::directions::{Direction, MIN_PER_S, is_discard_bound, is_flush_bound};
use super::prelude::*;
use super::saturation::{WINDOW_SECS, mount_point_on};
use crate::doctor::device_users::{DeviceUser, DeviceUsers, Requests};

/// The lowest devices for which `test` has held, each with since when: every device above a slow one is slow.
fn lowest_sustained<'a>(
    ctx: &RuleContext<'a>,
    test: impl Fn(&DiskRate, StorageClass) -> bool,
) -> Result<Vec<(&'a DiskRate, u64)>, RuleSkipped> {
    let holds = |device: &DiskRate| !device.stalled && test(device, ctx.storage_class(device.id));
    let mut found = ctx.sustained_devices(ctx.devices(), WINDOW_SECS, |_, device| Some(holds(device)))?;
    let below = |id: &DevId| ctx.is_sustained(WINDOW_SECS, |tick| tick.device(*id).map(holds));
    found.retain(|(device, _)| !ctx.device_chain(device.id).iter().skip(1).any(below));
    Ok(found)
}

pub(super) fn evaluate_reads_and_writes(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let directions = [("reads", Requests::Reads), ("writes", Requests::Writes)];
    for (name, requests) in directions {
        let pair = |device: &DiskRate| match requests {
            Requests::Reads => (Direction::reads(device), Direction::writes(device)),
            _ => (Direction::writes(device), Direction::reads(device)),
        };
        let is_slow_direction = |device: &DiskRate, class: StorageClass| {
            let (own, other) = pair(device);
            let is_judged = is_slow(device, class)
                || is_saturated(device, class)
                || is_flush_bound(device, class)
                || is_discard_bound(device, class);
            !is_judged && own.is_slow_beside(other, class.limits())
        };
        for (device, since) in lowest_sustained(ctx, is_slow_direction)? {
            let secs = ctx.figure_secs(since, WINDOW_SECS);
            let own = Direction::mean(ctx, device.id, secs, |d| Some(pair(d).0));
            let other = Direction::mean(ctx, device.id, secs, |d| Some(pair(d).1));
            let other_name = if name == "reads" { "writes" } else { "reads" };
            if let Some((own, other)) = own.zip(other) {
                out.push(direction_finding(ctx, device.id, (name, own), (other_name, other), requests).since(since));
            }
        }
    }
    Ok(())
}

fn direction_finding(
    ctx: &RuleContext<'_>,
    id: DevId,
    (name, own): (&'static str, Direction),
    (other_name, other): (&'static str, Direction),
    requests: Requests,
) -> Finding {
    let (class, users) = (ctx.storage_class(id), DeviceUsers::find(ctx, id, WINDOW_SECS, requests));
    let (own_ms, other_ms) = (format::ms(own.await_ms), format::ms(other.await_ms));
    let used_by = users.summary().map_or(String::new(), |users| format!("; {users}"));
    let title = format!(
        "{} on {} take {own_ms} with few in flight, {other_name} {other_ms}{used_by}",
        name,
        ctx.device_name(id)
    );
    ctx.device_finding(Severity::critical_if(own.await_ms >= class.limits().critical_ms), id, title)
        .fact(name, own.text())
        .fact(other_name, other.text())
        .fact("expected", format!("below {} for {}", format::ms(class.limits().slow_ms), class.description()))
        .fact_opt(users.fact_name(), users.list())
        .delays(users.sufferers(class.limits().slow_ms))
        .on_files(main_files(ctx, id, WINDOW_SECS, requests))
        .why("The mean over reads and writes hides it, but what waits for the slow ones is as slow as they are.")
        .advise_at("look for errors and resets in the kernel log", NavTarget::KernelLog(None))
        .advise("look for what makes one direction slow: a write cache that is off or worn out, a limit of the cloud volume, \
                 a journal or parity to write as well")
        .advise_benchmark("benchmark both directions alone", "randrw", mount_point_on(ctx, id))
}

pub(super) fn evaluate_flushes(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for (device, since) in lowest_sustained(ctx, is_flush_bound)? {
        let secs = ctx.figure_secs(since, WINDOW_SECS);
        let Some(flushes) = Direction::mean(ctx, device.id, secs, Direction::flushes) else { continue };
        let (class, users) =
            (ctx.storage_class(device.id), DeviceUsers::find(ctx, device.id, WINDOW_SECS, Requests::Flushes));
        let await_ms = format::ms(flushes.await_ms);
        let used_by = users.summary().map_or(String::new(), |users| format!("; {users}"));
        let name = ctx.device_name(device.id);
        let title = format!("{name} is slow to flush its write cache: {await_ms} for each flush{used_by}");
        ctx.device_finding(Severity::critical_if(flushes.await_ms >= class.limits().critical_ms), device.id, title)
            .fact("flushes", flushes.text())
            .fact("w_await", format::ms(device.write_await_ms))
            .fact("expected", format!("below {} for {}", format::ms(class.limits().slow_ms), class.description()))
            .fact_opt(users.fact_name(), users.list())
            .since(since)
            .delays(users.sufferers(class.limits().slow_ms))
            .on_files(main_files(ctx, device.id, WINDOW_SECS, Requests::Writes))
            .why("Every fsync and every commit of a journal waits for a flush, however little it writes.")
            .advise("sync less often: group commit, or less durability for what may be lost")
            .costs("more data lost in a power failure")
            .advise("put what syncs on a device with power loss protection, which has nothing to flush")
            .costs("money")
            .advise_benchmark(
                "benchmark how long a sync takes when nothing else runs",
                "fsync",
                mount_point_on(ctx, device.id),
            )
            .report(out);
    }
    Ok(())
}

/// Programs whose purpose is to discard.
const DISCARDING: [&str; 2] = ["fstrim", "blkdiscard"];

/// A running program of that kind, where discards are not traced by process.
fn discarding_task(ctx: &RuleContext<'_>) -> Option<InvolvedTask> {
    let mut rows = ctx.system.processes.iter().filter(|row| !row.has_exited());
    Some(InvolvedTask::named(rows.find(|row| DISCARDING.contains(&&*row.comm()))?.label()))
}

/// The newest program of that kind that has submitted discards to the device, by process id.
fn traced_discarding_task(ctx: &RuleContext<'_>, id: DevId) -> Option<(u32, InvolvedTask)> {
    let attributions = ctx.window(WINDOW_SECS).filter_map(|tick| tick.io_attribution.ok());
    attributions.into_iter().find_map(|attribution| {
        let discards = |pid: u32| attribution.process(pid)?.on_device(id).filter(|rates| rates.discards_per_s > 0.0);
        let named = attribution
            .names
            .iter()
            .rev()
            .find(|(pid, name)| DISCARDING.contains(&&**name) && discards(*pid).is_some());
        named.map(|(pid, name)| (*pid, InvolvedTask::named(format::task(name, *pid))))
    })
}

/// Those with most of the discards, and the program that one of them runs for that. Where discards are not traced, a running
/// program of that kind, if only this device is busy with them.
fn discarding_tasks(ctx: &RuleContext<'_>, id: DevId, users: Option<&DeviceUsers>, is_only: bool) -> Vec<InvolvedTask> {
    let main = users.map(DeviceUsers::main).unwrap_or_default();
    if main.is_empty() {
        return discarding_task(ctx).filter(|_| is_only).into_iter().collect();
    }
    // Its discards count as those of the script that started it.
    let child = traced_discarding_task(ctx, id).filter(|(pid, _)| main.iter().all(|user| user.pid != *pid));
    main.iter().map(DeviceUser::involved).chain(child.map(|(_, task)| task)).collect()
}

pub(super) fn evaluate_discards(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let found = lowest_sustained(ctx, is_discard_bound)?;
    let is_only_one = found.len() == 1;
    for (device, since) in found {
        let secs = ctx.figure_secs(since, WINDOW_SECS);
        let Some(discards) = Direction::mean(ctx, device.id, secs, Direction::discards) else { continue };
        let limits = ctx.storage_class(device.id).limits();
        let others = [
            ("reads", Direction::mean(ctx, device.id, secs, |d| Some(Direction::reads(d)))),
            ("writes", Direction::mean(ctx, device.id, secs, |d| Some(Direction::writes(d)))),
        ];
        let waits = |(name, direction): &(&str, Option<Direction>)| {
            let direction = direction.filter(|d| d.per_s >= MIN_PER_S && d.await_ms >= limits.slow_ms)?;
            Some(format!("{name} take {}", format::ms(direction.await_ms)))
        };
        let delayed: Vec<String> = others.iter().filter_map(waits).collect();
        // Discards that delay nobody are work in the background.
        let severity = if delayed.is_empty() { Severity::Note } else { Severity::Warn };
        let behind = if delayed.is_empty() { String::new() } else { format!("; {} behind them", delayed.join(", ")) };
        let name = ctx.device_name(device.id);
        let users = DeviceUsers::traced(ctx, device.id, WINDOW_SECS, Requests::Discards);
        let users = users.as_ref();
        let used_by =
            users.and_then(|users| users.summary_of("them")).map_or(String::new(), |users| format!("; {users}"));
        let title = format!("{name} is busy with discards: {}{used_by}{behind}", discards.text());
        ctx.device_finding(severity, device.id, title)
            .fact("discards", discards.text())
            .fact_opt("discarded", device.discard_mb_per_s.map(format::mb_per_s))
            .fact("in flight", format::count(discards.in_flight()))
            .since(since)
            .fact_opt("discards by task", users.and_then(DeviceUsers::list))
            .caused_by(discarding_tasks(ctx, device.id, users, is_only_one))
            .of_group(users.and_then(DeviceUsers::main_group))
            .delays(DeviceUsers::find(ctx, device.id, WINDOW_SECS, Requests::Data).sufferers(limits.slow_ms))
            .why("A discard tells the device which blocks are free: fstrim, mkfs, blkdiscard, deleting files on a mount with \
                  the option discard. Many devices serve nothing else meanwhile.")
            .advise("run fstrim when the machine is idle, and mount without the option discard")
            .costs("freed blocks are known to the device later")
            .advise("lower discard_max_bytes of the device's queue, so that requests of others come in between")
            .costs("fstrim takes longer")
            .report(out);
    }
    Ok(())
}
