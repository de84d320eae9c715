//! Dirty pages above the thresholds of mm/page-writeback.c. Above the background threshold the flushers write while data
//! is still being modified, so the same pages are written again and again. Above the middle between it and the dirty
//! threshold writers are throttled: put to sleep for up to 200 ms at a time.

use super::prelude::*;
use crate::doctor::busiest_tasks::{IoTask, StalledTask};
use crate::model::io_accounting::OwnerIo;
use crate::model::memory::WritebackRate;
use crate::model::memory_stalls::THROTTLE;
use crate::model::process::ProcessRow;
use std::collections::BTreeSet;

/// Copying one file is over sooner.
const STORM_SECS: f64 = 5.0;
/// Logs and metrics dirty less.
pub(super) const MIN_DIRTY_BYTES_PER_S: f64 = 1_048_576.0;
/// Writers notice throttling within a few sleeps of 200 ms.
pub(super) const THROTTLED_SECS: f64 = 3.0;
/// Time that all writers together sleep; less is normal control.
pub(super) const MIN_THROTTLED_MS_PER_S: f64 = 50.0;
/// A writer to another device than the one that pages pile up for is a victim if it sleeps so long.
const MIN_ELSEWHERE_MS_PER_S: f64 = 200.0;
const MAX_NAMED_TASKS: usize = 4;
/// With this much I/O pressure (PSI full avg10) throttled writers make no progress ...
const STANDSTILL_PCT: f64 = 40.0;
/// ... if it lasts this long; shorter is the end of a copy.
const STANDSTILL_SECS: f64 = 10.0;
/// A program that waits for its I/O for this share of the time is held up.
const MIN_DELAY_PCT: f64 = 20.0;
/// A device that is written less does not count beside another one, MB/s.
const MIN_OTHER_MB_PER_S: f64 = 0.5;
/// A process that dirties this share of all dirties it by itself.
const NEARLY_ALL: f64 = 0.95;
const MISSING: &str = "a few seconds of writeback counters";

pub(super) fn dirty_bytes(w: &WritebackRate) -> Option<f64> {
    w.unwritten_bytes().map(|n| n as f64)
}

fn is_storm(tick: &Snapshot) -> Option<bool> {
    let w = tick.writeback.ok()?;
    let above_background = dirty_bytes(w)? >= w.background_threshold_bytes? as f64;
    let slower = w.dirtied_bytes_per_s?.min(w.written_bytes_per_s?);
    Some(above_background && slower >= MIN_DIRTY_BYTES_PER_S)
}

fn is_above_freerun(tick: &Snapshot) -> Option<bool> {
    let w = tick.writeback.ok()?;
    Some(dirty_bytes(w)? > w.freerun_bytes? as f64)
}

/// By the traced sleeps, or without tracing by the level above which writers may sleep.
fn are_writers_throttled(tick: &Snapshot) -> Option<bool> {
    match tick.memory_stalls.ok().and_then(|stalls| stalls.totals[THROTTLE]) {
        Some(total) => Some(total.ms_per_s >= MIN_THROTTLED_MS_PER_S),
        None => is_above_freerun(tick),
    }
}

/// The process that dirties most.
struct Dirtier {
    /// `dd (1234)`, sanitized.
    name: String,
    /// Its share, 0 to 1: of what is written back to the device if there is one, else of all that is dirtied.
    share: f64,
    /// The device that pages pile up for, where others are written as well.
    device: Option<DevId>,
}

/// Traced writeback of less than this share of all that is written back tells nothing of the rest: it goes to a server.
const MIN_TRACED_SHARE: f64 = 0.5;

/// By traced writeback where there is any, else by its own counters. Kernel threads dirty metadata for the processes whose
/// data they write. Where several devices are written, the one with most requests in flight counts: a process that writes
/// much to a fast device beside it is no cause.
fn top_dirtier(ctx: &RuleContext<'_>, secs: f64) -> Option<Dirtier> {
    let backlog = backlog_device(ctx, secs);
    let written_back = |device: Option<DevId>| {
        let of = move |owner: &OwnerIo<u32>| match device {
            Some(id) => owner.on_device(id).map_or(0.0, |rates| rates.writeback_bytes_per_s),
            None => owner.total.writeback_bytes_per_s,
        };
        let all = ctx.attributed_io(secs, of)?;
        let first = all.first().filter(|first| first.bytes_per_s >= MIN_DIRTY_BYTES_PER_S)?;
        let total: f64 = all.iter().map(|process| process.bytes_per_s).sum();
        Some(Dirtier { name: first.name.clone(), share: first.bytes_per_s / total, device })
    };
    if goes_to_servers(ctx, secs) {
        return top_writer(ctx, secs);
    }
    if let Some(dirtier) = backlog.and_then(|id| written_back(Some(id))).or_else(|| written_back(None)) {
        return Some(dirtier);
    }
    top_writer(ctx, secs)
}

/// Whether most of what is written back goes to no device that is traced: to a network file system or FUSE.
fn goes_to_servers(ctx: &RuleContext<'_>, secs: f64) -> bool {
    let written = ctx.mean(secs, |tick| tick.writeback.ok()?.written_bytes_per_s).unwrap_or(0.0);
    let traced = ctx.mean(secs, |tick| {
        let attribution = tick.io_attribution.ok()?;
        let of_processes: f64 = attribution.processes.iter().map(|process| process.total.writeback_bytes_per_s).sum();
        let apart: f64 = attribution.unattributed.iter().map(|(_, io)| io.unknown + io.metadata).sum();
        Some(of_processes + apart)
    });
    traced.is_some_and(|traced| traced < written * MIN_TRACED_SHARE)
}

/// The process that writes most by its own counters.
fn top_writer(ctx: &RuleContext<'_>, secs: f64) -> Option<Dirtier> {
    let tasks = ctx.top_io_tasks(secs);
    let total: f64 = tasks.iter().map(|task| task.write_bytes_per_s).sum();
    let by_writes = |a: &IoTask, b: &IoTask| a.write_bytes_per_s.total_cmp(&b.write_bytes_per_s);
    let first = tasks.into_iter().filter(|task| !task.is_kernel_thread).max_by(by_writes)?;
    let (name, share) = (first.name, first.write_bytes_per_s / total);
    (first.write_bytes_per_s >= MIN_DIRTY_BYTES_PER_S).then_some(Dirtier { name, share, device: None })
}

/// The device with most requests in flight, of those that are written; also of one, so that what is said does not change with
/// the little that others are written.
fn backlog_device(ctx: &RuleContext<'_>, secs: f64) -> Option<DevId> {
    let in_flight = |id: DevId| ctx.device_mean(id, secs, |d| d.queue_size).unwrap_or(0.0);
    let written = ctx.devices().filter(|device| {
        ctx.device_mean(device.id, secs, |d| d.write_mb_per_s).is_some_and(|mb_per_s| mb_per_s >= MIN_OTHER_MB_PER_S)
    });
    written.map(|device| device.id).max_by(|a, b| in_flight(*a).total_cmp(&in_flight(*b)))
}

/// A device that takes a smaller share of what the busiest one is written does not count.
const MIN_WRITTEN_SHARE: f64 = 0.2;

/// The devices that dirty pages go to: those of throttled writers, those written most, those that complete nothing.
pub(super) fn written_devices(ctx: &RuleContext<'_>) -> Vec<DevId> {
    let written = |device: &DiskRate| ctx.device_mean(device.id, STORM_SECS, |d| d.write_mb_per_s).unwrap_or(0.0);
    let busiest = ctx.devices().map(written).fold(0.0, f64::max);
    let is_written = |device: &&DiskRate| {
        let mb_per_s = written(device);
        device.stalled || (mb_per_s > 0.0 && mb_per_s >= busiest * MIN_WRITTEN_SHARE)
    };
    let throttled = ctx.stalled_tasks(THROTTLED_SECS, THROTTLE).into_iter().filter_map(|task| task.device);
    let mut out: Vec<DevId> = throttled.flat_map(|id| ctx.device_chain(id)).collect();
    out.extend(ctx.devices().filter(is_written).map(|device| device.id));
    out
}

fn add_counters(ctx: &RuleContext<'_>, finding: Finding, w: &WritebackRate, secs: f64) -> Finding {
    let bytes = |n: Option<u64>| n.map(|n| format::bytes(n as f64));
    let dirtier = top_dirtier(ctx, secs).map(|top| {
        let device = top.device.map_or(String::new(), |id| format!(" for {}", ctx.device_name(id)));
        format!("{}, {}{device}", top.name, format::percent(top.share * 100.0))
    });
    finding
        .fact_opt("dirty", bytes(w.dirty_bytes))
        .fact_opt("writeback", bytes(w.writeback_bytes))
        .fact_opt("background threshold", bytes(w.background_threshold_bytes))
        .fact_opt("writers slowed above", bytes(w.freerun_bytes))
        .fact_opt("dirty threshold", bytes(w.dirty_threshold_bytes))
        .fact_opt("dirtied", mean_rate(ctx, secs, |w| w.dirtied_bytes_per_s).map(format::bytes_per_s))
        .fact_opt("written", mean_rate(ctx, secs, |w| w.written_bytes_per_s).map(format::bytes_per_s))
        .fact_opt("most dirtied by", dirtier)
        .see_also(NavTarget::Memory)
        .on_devices(written_devices(ctx))
}

fn mean_rate(ctx: &RuleContext<'_>, secs: f64, get: fn(&WritebackRate) -> Option<f64>) -> Option<f64> {
    ctx.mean(secs, |tick| get(tick.writeback.ok()?))
}

pub(super) fn evaluate_storm(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let w = ctx.require(&ctx.system.snapshot.writeback)?;
    let Some(since) = ctx.sustained(STORM_SECS, is_storm, MISSING)? else { return Ok(()) };
    let secs = ctx.figure_secs(since, STORM_SECS);
    let rate = |get| format::bytes_per_s(mean_rate(ctx, secs, get).unwrap_or(0.0));
    let (dirtied, written) = (rate(|w| w.dirtied_bytes_per_s), rate(|w| w.written_bytes_per_s));
    let (percent, device) = (|share: f64| format::percent(share * 100.0), |id: DevId| ctx.device_name(id));
    let title = match top_dirtier(ctx, secs) {
        Some(Dirtier { name, share, device: Some(id) }) => format!(
            "writeback storm on {}: {name} has {} of what is written back to it; {dirtied} are dirtied in all, and the \
             flushers write {written}",
            device(id),
            percent(share)
        ),
        Some(Dirtier { name, share, .. }) if share >= NEARLY_ALL => {
            format!("writeback storm: {name} dirties {dirtied} while the flushers write {written}")
        }
        Some(Dirtier { name, share, .. }) => format!(
            "writeback storm: {dirtied} are dirtied, {} of it by {name}, while the flushers write {written}",
            percent(share)
        ),
        None => format!("writeback storm: {dirtied} are dirtied while the flushers write {written}"),
    };
    let finding = Finding::of_machine(Severity::Warn, title).since(since).why(
        "Pages that are modified often are written each time. Data that fits below the background threshold is \
         written once: the write test of one database ran 9.6 times faster with the threshold above its data.",
    );
    add_counters(ctx, finding, w, secs)
        .advise_at(
            "if the data fits in memory, raise vm.dirty_background_bytes above its size (and vm.dirty_bytes more)",
            knob("vm.dirty_background_bytes"),
        )
        .costs("more data lost in a power failure without sync; the final flush takes longer, and syncs wait for it")
        .advise_benchmark("benchmark random updates before and after", "txlog", None)
        .report(out);
    Ok(())
}

/// The most dirty pages of the last `secs` seconds, in bytes.
fn peak_dirty_bytes(ctx: &RuleContext<'_>, secs: f64) -> f64 {
    ctx.window(secs).filter_map(|tick| dirty_bytes(tick.writeback.ok()?)).fold(0.0, f64::max)
}

fn throttled_title(ctx: &RuleContext<'_>, w: &WritebackRate, writers: &[StalledTask], secs: f64) -> String {
    let peak = peak_dirty_bytes(ctx, secs);
    let limit = w.freerun_bytes.map(|n| n as f64).unwrap_or(f64::INFINITY);
    let more = if writers.len() > 1 { format!(" and {} more", writers.len() - 1) } else { String::new() };
    let who = writers.first().map(|task| format!("{} sleeps {} of the time{more}; ", task.name, task.percent()));
    // The figures are written so that what is above the limit is also read as above it.
    let cause = match w.freerun_bytes {
        Some(_) if peak > limit => {
            let (peak, limit) = format::bytes_above(peak, limit);
            format!("up to {peak} dirty and under writeback, above the {limit} from which writers are slowed")
        }
        Some(_) if who.is_some() => {
            let (limit, peak) = format::bytes_above(limit, peak);
            format!("limited by its device or cgroup (at most {peak} dirty, the machine slows writers above {limit})")
        }
        _ => format!("up to {} dirty and under writeback", format::bytes(peak)),
    };
    format!("writers are throttled: {}{cause}", who.unwrap_or_default())
}

/// Throttled writers, those to the device that pages pile up for first. Those to other devices count only if they are held
/// up for long.
fn delayed_writers(ctx: &RuleContext<'_>, secs: f64) -> Vec<StalledTask> {
    let backlog = backlog_device(ctx, secs);
    let is_above = |(id, backlog): (DevId, DevId)| ctx.device_chain(id).contains(&backlog);
    let is_here = |task: &StalledTask| task.device.zip(backlog).is_none_or(is_above);
    let (mut writers, elsewhere): (Vec<_>, Vec<_>) = ctx.stalled_tasks(secs, THROTTLE).into_iter().partition(is_here);
    writers.extend(elsewhere.into_iter().filter(|task| task.ms_per_s >= MIN_ELSEWHERE_MS_PER_S));
    writers
}

/// Whether more than one program is held up, by traced sleeps, delays or state D. One that copies to a slow disk on an idle
/// machine waits for itself only, and the pressure is as high.
fn are_several_delayed(ctx: &RuleContext<'_>, writers: &[StalledTask]) -> bool {
    let writers = writers.iter().filter(|writer| writer.ms_per_s >= MIN_THROTTLED_MS_PER_S);
    let mut pids: BTreeSet<u32> = writers.map(|writer| writer.key.pid).collect();
    let processes = &ctx.system.processes;
    let is_delayed = |row: &ProcessRow<'_>| {
        let waits = row.may_hang() || row.rates().io_delay_pct.is_some_and(|pct| pct >= MIN_DELAY_PCT);
        waits && !row.raw.kernel_thread && !row.has_exited()
    };
    pids.extend(processes.iter().filter(is_delayed).map(|row| row.pid()));
    let threads = processes.uninterruptible_threads.iter().filter(|thread| thread.may_hang());
    pids.extend(threads.map(|thread| thread.key.pid));
    pids.into_iter().filter(|pid| !ctx.is_own_process(*pid)).count() > 1
}

pub(super) fn evaluate_throttled(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let w = ctx.require(&ctx.system.snapshot.writeback)?;
    let Some(since) = ctx.sustained(THROTTLED_SECS, are_writers_throttled, MISSING)? else { return Ok(()) };
    let full_pct = ctx.mean(STANDSTILL_SECS, |tick| Some(tick.pressure.ok()?.io.full?.avg10)).unwrap_or(0.0);
    let secs = ctx.figure_secs(since, THROTTLED_SECS);
    let writers = delayed_writers(ctx, secs);
    let is_standstill = ctx.secs_since(since) >= STANDSTILL_SECS && full_pct >= STANDSTILL_PCT;
    let severity = Severity::critical_if(is_standstill && are_several_delayed(ctx, &writers));
    let title = throttled_title(ctx, w, &writers, secs);
    let mut finding = Finding::of_machine(severity, title);
    for task in writers.iter().take(MAX_NAMED_TASKS) {
        let device = task.device.map_or(String::new(), |id| format!(", for {}", ctx.device_name(id)));
        let sleeps =
            format!("{}, {} of the time, up to {:.0} ms at once{device}", task.name, task.percent(), task.max_ms);
        finding = finding.fact("throttled", sleeps);
    }
    let pressure = ctx.snapshot().and_then(|s| s.pressure.ok()?.io.full).map(|psi| format::percent(psi.avg10));
    let victims = writers.iter().take(MAX_NAMED_TASKS).map(|task| InvolvedTask::named(&task.name));
    let finding = finding.fact_opt("I/O pressure, full", pressure).since(since).delays(victims).why(
        "Above this ceiling each write() may sleep up to 200 ms at a time, whichever program dirties pages and on \
         whichever device, until the flushers have caught up.",
    );
    add_counters(ctx, finding, w, secs)
        .advise_at("raise vm.dirty_bytes if the burst would fit in memory", knob("vm.dirty_bytes"))
        .costs("longer stalls on sync; more data lost in a power failure")
        .advise("have the writer sync every few MiB, or use direct I/O: then it waits for its own data only")
        .costs("it gets slower by itself")
        .advise_at(
            "lower vm.dirty_bytes if a slow device is the problem: the backlog stays short",
            knob("vm.dirty_bytes"),
        )
        .costs("writers wait earlier, in smaller steps")
        .report(out);
    Ok(())
}
