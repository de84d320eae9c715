//! The figures that the main rules judge, each with the limit from which on there is a finding. What is well is shown as
//! well, so that an empty list of findings says what was looked at.

use super::prelude::*;
use super::{device_state, disk_space, fd_limits, kernel_errors, reclaim, saturation, stalled_device, swap, writeback};
use crate::model::kernel_log::hung_tasks::LIMIT_NS;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};

/// A figure that rules judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    /// What is judged.
    pub(crate) what: &'static str,
    /// Its mean over some seconds, or why it is not known.
    pub(crate) now: String,
    /// From where on there is a finding.
    pub(crate) limit: String,
}

/// The value, and the limit.
type Judged = Result<(String, String), RuleSkipped>;

type Judge = fn(&RuleContext<'_>) -> Judged;

const CHECKS: &[(&str, Judge)] = &[
    ("await of requests", request_waits),
    ("use of a device", device_use),
    ("requests that do not complete", stalled_requests),
    ("dirty pages and writeback", unwritten),
    ("writers put to sleep", throttled_writers),
    ("direct reclaim", direct_reclaim),
    ("swap in and out", swap_traffic),
    ("tasks in state D", sleeping_tasks),
    ("fullest file system", fullest_file_system),
    ("open files of a process", open_files),
    ("errors in the kernel log", kernel_log_errors),
];
const NO_DEVICE: &str = "no device with I/O";

/// Every figure, in the order of the list above.
pub(crate) fn checks(ctx: &RuleContext<'_>) -> Vec<Check> {
    let judge = |(what, judged): &(&'static str, Judge)| {
        let (now, limit) = judged(ctx).unwrap_or_else(|why| (unknown(why), String::new()));
        Check { what, now, limit }
    };
    CHECKS.iter().map(judge).collect()
}

fn unknown(why: RuleSkipped) -> String {
    match why {
        RuleSkipped::NeedsMoreData(what) => format!("- not enough data yet: {what}"),
        RuleSkipped::Unavailable(why) => format!("- {}", sanitize(why)),
    }
}

/// The device with the largest value of those that have one, with that value.
fn largest<'a>(ctx: &RuleContext<'a>, get: impl Fn(&DiskRate) -> Option<f64>) -> Option<(&'a DiskRate, f64)> {
    let known = ctx.devices().filter_map(|device| Some((device, get(device)?)));
    known.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn request_waits(ctx: &RuleContext<'_>) -> Judged {
    ctx.require(&ctx.system.snapshot.devices)?;
    let secs = saturation::WINDOW_SECS;
    let wait = |id: DevId| ctx.mean_await_ms(id, secs);
    let share = |device: &DiskRate| {
        let tps = ctx.device_mean(device.id, secs, |d| d.tps)?;
        Some(wait(device.id)? / ctx.storage_class(device.id).limits().slow_ms).filter(|_| tps >= device_state::MIN_TPS)
    };
    let Some((device, _)) = largest(ctx, share) else { return Ok((NO_DEVICE.into(), String::new())) };
    let class = ctx.storage_class(device.id);
    let now = format!("{} on {}", format::ms(wait(device.id).unwrap_or(0.0)), ctx.device_name(device.id));
    Ok((now, format!("{} on {}, for {secs:.0} s", format::ms(class.limits().slow_ms), class.description())))
}

fn device_use(ctx: &RuleContext<'_>) -> Judged {
    ctx.require(&ctx.system.snapshot.devices)?;
    let mean = |id: DevId, get: fn(&DiskRate) -> f64| ctx.device_mean(id, saturation::WINDOW_SECS, get);
    let Some((device, util)) = largest(ctx, |d| mean(d.id, |d| d.util_pct).filter(|pct| *pct > 0.0)) else {
        return Ok((NO_DEVICE.into(), String::new()));
    };
    let queue = mean(device.id, |d| d.queue_size).unwrap_or(0.0);
    let limits = ctx.storage_class(device.id).limits();
    let (name, util) = (ctx.device_name(device.id), format::percent(util));
    let now = format!("{util} and {} in the queue on {name}", format::count(queue));
    let least = format::percent(device_state::BUSY_PCT);
    Ok((now, format!("{least} and {} in the queue, for {:.0} s", limits.deep_queue, saturation::WINDOW_SECS)))
}

fn stalled_requests(ctx: &RuleContext<'_>) -> Judged {
    ctx.require(&ctx.system.snapshot.devices)?;
    let stalled: Vec<String> = ctx.devices().filter(|d| d.stalled).map(|d| ctx.device_name(d.id)).collect();
    let now = if stalled.is_empty() { "none".into() } else { format!("on {}", stalled.join(", ")) };
    Ok((now, format!("{:.0} s in which none completes", stalled_device::STALLED_SECS)))
}

fn unwritten(ctx: &RuleContext<'_>) -> Judged {
    let w = ctx.require(&ctx.system.snapshot.writeback)?;
    let missing = RuleSkipped::NeedsMoreData("writeback counters");
    let (Some(now), Some(limit)) = (writeback::dirty_bytes(w), w.background_threshold_bytes) else {
        return Err(missing);
    };
    let least = format::bytes_per_s(writeback::MIN_DIRTY_BYTES_PER_S);
    let limit = format::bytes(limit as f64);
    Ok((format::bytes(now), format!("{limit}, while {least} are dirtied and written")))
}

fn throttled_writers(ctx: &RuleContext<'_>) -> Judged {
    let limit = format!("{:.0} ms/s, for {:.0} s", writeback::MIN_THROTTLED_MS_PER_S, writeback::THROTTLED_SECS);
    stall(ctx, THROTTLE, writeback::THROTTLED_SECS, |stalls| stalls.sum()).map(|now| (now, limit))
}

fn direct_reclaim(ctx: &RuleContext<'_>) -> Judged {
    let limit = format!("{:.0} ms/s in one process, for {:.0} s", reclaim::WARN_MS_PER_S, reclaim::WINDOW_SECS);
    stall(ctx, RECLAIM, reclaim::WINDOW_SECS, |stalls| stalls.fold(0.0, f64::max)).map(|now| (now, limit))
}

/// Time that processes were stalled, as `of_all` puts them together.
fn stall(
    ctx: &RuleContext<'_>,
    kind: usize,
    secs: f64,
    of_all: fn(&mut dyn Iterator<Item = f64>) -> f64,
) -> Result<String, RuleSkipped> {
    let stalls = ctx.require(&ctx.system.snapshot.memory_stalls)?;
    if stalls.totals[kind].is_none() {
        let why = stalls.unavailable.first().cloned().unwrap_or_default();
        return Err(RuleSkipped::Unavailable(why));
    }
    let ms_per_s = of_all(&mut ctx.stalled_tasks(secs, kind).iter().map(|task| task.ms_per_s));
    Ok(if ms_per_s > 0.0 { format!("{ms_per_s:.0} ms/s") } else { "none".into() })
}

fn swap_traffic(ctx: &RuleContext<'_>) -> Judged {
    let swap = ctx.require(&ctx.system.snapshot.swap)?;
    if swap.total_bytes == Some(0) {
        return Ok(("no swap".into(), String::new()));
    }
    let now = ctx.mean(swap::WINDOW_SECS, swap::traffic_bytes_per_s);
    let now = now.ok_or(RuleSkipped::NeedsMoreData("a few seconds of swap counters"))?;
    let limit = format::bytes_per_s(swap::MIN_TRAFFIC_BYTES_PER_S);
    Ok((format::bytes_per_s(now), format!("{limit}, for {:.0} s", swap::WINDOW_SECS)))
}

fn sleeping_tasks(ctx: &RuleContext<'_>) -> Judged {
    ctx.require(&ctx.system.processes_status)?;
    let is_watched = |pid: u32| !ctx.is_own_process(pid);
    let tasks = ctx.system.processes.iter().filter(|row| row.may_hang() && !row.raw.kernel_thread);
    let threads = ctx.system.processes.uninterruptible_threads.iter();
    let threads = threads.filter(|thread| thread.may_hang());
    let threads = threads.map(|thread| thread.key.pid);
    let count = tasks.map(|row| row.pid()).chain(threads).filter(|pid| is_watched(*pid)).count();
    let limit = format!("one without progress for {} s", LIMIT_NS / 1_000_000_000);
    Ok((if count > 0 { count.to_string() } else { "none".into() }, limit))
}

fn fullest_file_system(ctx: &RuleContext<'_>) -> Judged {
    let facts = &ctx.system.slow_facts;
    let reports = [&facts.local_space, &facts.network_space];
    if reports.iter().all(|report| report.is_none()) {
        return Err(RuleSkipped::NeedsMoreData("free space of the file systems"));
    }
    let mounts = reports.into_iter().flatten().flat_map(|report| &report.mounts);
    let used = mounts.filter_map(|mount| Some((mount, disk_space::judged(mount)?.used_pct())));
    let Some((mount, pct)) = used.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Ok(("none".into(), String::new()));
    };
    let free = mount.space.ok().map_or(0, |space| space.available_bytes);
    let (free, least) = (format::bytes(free as f64), format::bytes(disk_space::WARN_FREE_BYTES as f64));
    let now = format!("{}: {} used, {free} free", mount.mount_point.sanitized(), format::percent(pct));
    Ok((now, format!("{} used and less than {least} free", format::percent(disk_space::WARN_PCT))))
}

fn open_files(ctx: &RuleContext<'_>) -> Judged {
    let files = ctx.require_facts("open files of the processes")?.open_files.iter();
    let share = files.filter_map(|f| Some((f, f.open as f64 * 100.0 / f.soft.filter(|n| *n > 0)? as f64)));
    let named = |key| ctx.system.processes.get(key).map(|row| row.label());
    let most = share.filter_map(|(f, pct)| Some((named(&f.key)?, f, pct))).max_by(|a, b| a.2.total_cmp(&b.2));
    let Some((name, files, pct)) = most else { return Ok(("none near its limit".into(), String::new())) };
    let (pct, limit) = (format::percent(pct), format::percent(fd_limits::WARN_PCT));
    Ok((format!("{name}: {} open, {pct} of its limit", files.open), format!("{limit} of its limit")))
}

fn kernel_log_errors(ctx: &RuleContext<'_>) -> Judged {
    ctx.require(&ctx.system.kernel_log_status)?;
    let classes = [KernelLogClass::IoError, KernelLogClass::Filesystem, KernelLogClass::ResetTimeout];
    let messages = classes.into_iter().flat_map(|class| ctx.kernel_messages(class, kernel_errors::RECENT_SECS));
    let of_disks = messages.filter(|entry| !kernel_errors::is_of_no_disk(ctx, entry));
    let count: u64 = of_disks.map(|entry| entry.recent_counts(ctx.system.now().wall_ns).0).sum();
    let mins = kernel_errors::RECENT_SECS / 60;
    Ok((
        if count > 0 { count.to_string() } else { "none".into() },
        format!("one in {mins} min about a device that is there"),
    ))
}
