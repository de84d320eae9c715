//! Processes that wait for slow syncs: on which file, and which other process makes them slow.
//!
//! A sync waits for more than its own data: for requests ahead of it in the device's queue, and on journaling file
//! systems for everything in the same commit. Evaluated only while syncs are traced.

use super::prelude::*;
use crate::doctor::busiest_tasks::IoTask;
use crate::doctor::device_users::{DeviceUser, DeviceUsers, MAIN_DEVICE_SHARE, Requests};
use crate::doctor::storage_class::{ClassLimits, StorageClass};
use crate::model::latency::{LatencySummary, SparseHistogram};
use crate::model::reading::Reading;
use crate::model::syncs::{ON_CPU, SyncActivity, SyncRate, is_not_requested, wait_text};
use std::collections::HashMap;

const WINDOW_SECS: f64 = 4.0;
/// Data written to memory reaches the disk later, so streams are searched for over a longer time.
const STREAM_SECS: f64 = 15.0;
/// A process may spend less of its time than this in syncs.
const BEHIND_STREAM_MIN_PCT: f64 = 20.0;
/// Without a stream to blame it must be more.
const WAITS_MIN_PCT: f64 = 40.0;
/// etcd's disk recommendation: 99% of syncs take no longer.
const FAST_SYNC_MS: f64 = 10.0;
/// A slower stream delays nobody.
const STREAM_BYTES_PER_S: f64 = 20.0 * 1_048_576.0;
/// More processes that wait have one problem.
const MAX_FINDINGS: usize = 4;

#[derive(PartialEq)]
pub(super) enum SyncCause {
    Stream,
    Device,
}

struct SyncWaiter {
    pid: u32,
    /// `postgres (1234)`, sanitized.
    name: String,
    wait_pct: f64,
    calls_per_s: f64,
    /// Mean of completed and running calls.
    mean_ms: f64,
    /// The duration to judge: the mean, or that of long syncs where they take much of the window, which a thousand
    /// fast syncs in between would hide.
    typical_ms: f64,
    /// The longest sync above the tracing threshold; 0: none.
    max_ms: f64,
    /// The calls for that file that ended in the window; `None` if none did.
    ended: Option<LatencySummary>,
    /// The file it waits for most, from the newest tick.
    file: SyncRate,
    /// The devices that hold the file system, the main one first; where they are not known the number of the file system.
    devices: Vec<DevId>,
}

impl SyncWaiter {
    /// Of the calls that ended in the window.
    fn p99_ms(&self) -> Option<f64> {
        self.ended.map(|calls| calls.p99 / 1e3)
    }

    /// The longest in the window, running ones included; `None` if none has ended or is long.
    fn longest_ms(&self) -> Option<f64> {
        let ended = self.ended.map(|calls| calls.max / 1e3);
        ended.into_iter().chain((self.max_ms > 0.0).then_some(self.max_ms)).max_by(f64::total_cmp)
    }
}

/// Syncs above the tracing threshold within the window, running ones included.
#[derive(Default)]
struct LongSyncs {
    calls: u32,
    /// Time of the window spent in them; threads add up.
    secs: f64,
    /// Their whole durations.
    total_ms: f64,
    max_ms: f64,
}

impl LongSyncs {
    /// Those of a process in the last `secs` seconds.
    fn of_process(syncs: &SyncActivity, pid: u32, secs: f64) -> Self {
        let from = syncs.read_ns.saturating_sub((secs * 1e9) as u64);
        let completed =
            syncs.slow.iter().map(|s| (s.file.pid, s.started_ns, s.started_ns.saturating_add(s.duration_ns)));
        let running = syncs.in_flight.iter().map(|s| (s.file.pid, s.started_ns, syncs.read_ns));
        let mut long = Self::default();
        for (_, start, end) in completed.chain(running).filter(|(owner, _, end)| *owner == pid && *end > from) {
            let duration_ms = end.saturating_sub(start) as f64 / 1e6;
            long.calls += 1;
            long.secs += end.saturating_sub(start.max(from)) as f64 / 1e9;
            long.total_ms += duration_ms;
            long.max_ms = long.max_ms.max(duration_ms);
        }
        long
    }
}

/// The ticks of the window, up to the first without traced syncs.
fn traced_ticks<'a>(ctx: &RuleContext<'a>) -> impl Iterator<Item = (&'a Snapshot, &'a SyncActivity)> + use<'a> {
    ctx.window(WINDOW_SECS).map_while(|tick| Some((tick, &**tick.syncs.ok()?)))
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>, cause: SyncCause) -> RuleResult {
    if matches!(&ctx.system.snapshot.syncs, Reading::Absent(why) if is_not_requested(why)) {
        return Ok(());
    }
    let newest = ctx.require(&ctx.system.snapshot.syncs)?;
    let secs: f64 = traced_ticks(ctx).map(|(tick, _)| tick.interval_secs).sum();
    if secs < 0.8 * WINDOW_SECS {
        return Err(RuleSkipped::NeedsMoreData("a few seconds of syncs"));
    }
    let waiters = sync_waiters(ctx, newest, secs);
    let findings = waiters.iter().filter_map(|waiter| match (find_stream(ctx, waiter), &cause) {
        (Some(stream), SyncCause::Stream) => Some(behind_stream_finding(ctx, newest, waiter, &stream)),
        (None, SyncCause::Device) => waits_on_syncs_finding(ctx, newest, waiter),
        _ => None,
    });
    out.extend(findings.take(MAX_FINDINGS));
    Ok(())
}

/// The processes that wait long, longest first.
fn sync_waiters(ctx: &RuleContext<'_>, newest: &SyncActivity, secs: f64) -> Vec<SyncWaiter> {
    let mut totals: HashMap<u32, (f64, f64)> = HashMap::new();
    for (tick, syncs) in traced_ticks(ctx) {
        for row in &syncs.rows {
            let (waited_secs, calls) = totals.entry(row.file.pid).or_default();
            *waited_secs += row.wait_pct / 100.0 * tick.interval_secs;
            *calls += row.calls_per_s * tick.interval_secs;
        }
    }
    for sync in &newest.in_flight {
        totals.entry(sync.file.pid).or_default();
    }
    let waiter = |(pid, (waited_secs, calls)): (u32, (f64, f64))| {
        let own = newest.rows.iter().filter(|row| row.file.pid == pid);
        let file = own.max_by(|a, b| file_weight(a).total_cmp(&file_weight(b)))?;
        // A sync of the whole machine or of a mapping has no device.
        let devices = devices_of(ctx, file)?;
        let running = newest.in_flight.iter().filter(|sync| sync.file.pid == pid).count();
        let all_calls = calls + running as f64;
        let long = LongSyncs::of_process(newest, pid, secs);
        let mean_ms = waited_secs / all_calls * 1e3;
        let long_dominate = long.secs * 100.0 >= BEHIND_STREAM_MIN_PCT * secs;
        (all_calls > 0.0).then(|| SyncWaiter {
            pid,
            name: format::task(&file.file.comm.sanitized(), pid),
            wait_pct: waited_secs / secs * 100.0,
            calls_per_s: calls / secs,
            mean_ms,
            typical_ms: if long_dominate { mean_ms.max(long.total_ms / f64::from(long.calls)) } else { mean_ms },
            max_ms: long.max_ms,
            ended: ended_calls(ctx, file),
            file: file.clone(),
            devices,
        })
    };
    let is_slow = |waiter: &SyncWaiter| {
        let slow_ms = (limits(ctx, waiter).slow_ms / 2.0).max(FAST_SYNC_MS);
        waiter.wait_pct >= BEHIND_STREAM_MIN_PCT
            && waiter.typical_ms.max(waiter.p99_ms().unwrap_or(0.0)) >= slow_ms
            && !ctx.is_own_process(waiter.pid)
    };
    let mut out: Vec<SyncWaiter> = totals.into_iter().filter_map(waiter).filter(is_slow).collect();
    out.sort_by(|a, b| b.wait_pct.total_cmp(&a.wait_pct));
    out
}

/// The devices that hold the file system of a file; its number where they are not known; `None` without a file.
fn devices_of(ctx: &RuleContext<'_>, rate: &SyncRate) -> Option<Vec<DevId>> {
    let number = rate.file.file_system()?;
    let known = rate.file.devices(ctx.system.topology.ok());
    Some(if known.is_empty() { vec![number] } else { known })
}

/// What is slow for the slowest of the devices.
fn limits(ctx: &RuleContext<'_>, waiter: &SyncWaiter) -> ClassLimits {
    let classes = waiter.devices.iter().map(|id| ctx.storage_class(*id));
    classes.min_by_key(|class| *class as u8).unwrap_or(StorageClass::Virtual).limits()
}

/// The calls for a file that ended in the window: percentiles since tracing began would remember a slow phase for hours.
fn ended_calls(ctx: &RuleContext<'_>, of: &SyncRate) -> Option<LatencySummary> {
    let key = of.file.key();
    let rows = traced_ticks(ctx).flat_map(|(_, syncs)| &syncs.rows).filter(|row| row.file.key() == key);
    let calls = SparseHistogram::sum(rows.map(|row| &row.ended));
    of.summary_of(&calls)
}

/// `sda1`, `sda2, sdb2`.
fn device_names(ctx: &RuleContext<'_>, waiter: &SyncWaiter) -> String {
    let names: Vec<String> = waiter.devices.iter().map(|id| ctx.device_name(*id)).collect();
    names.join(", ")
}

/// Orders files by the time spent in their syncs: in this tick, else in total.
fn file_weight(row: &SyncRate) -> f64 {
    row.wait_pct + row.mean_us.unwrap_or(0.0) * row.calls as f64 / 1e12
}

/// Write throughput (MB/s) of the physical disk below the waiter's devices that is written most.
fn disk_write_mb_per_s(ctx: &RuleContext<'_>, waiter: &SyncWaiter) -> Option<f64> {
    let topology = ctx.system.topology.ok()?;
    let disks = waiter.devices.iter().flat_map(|id| topology.physical_disks(*id));
    disks.filter_map(|disk| ctx.device_mean(disk.id, WINDOW_SECS, |d| d.write_mb_per_s)).max_by(f64::total_cmp)
}

/// A process that writes much to the device that another one waits for.
struct Stream {
    /// `dd (1234)`, sanitized.
    name: String,
    write_bytes_per_s: f64,
    /// The device it writes to; `None` if that is not known.
    device: Option<DevId>,
}

/// The process that streams to the device the waiter waits for, or to one below it.
fn find_stream(ctx: &RuleContext<'_>, waiter: &SyncWaiter) -> Option<Stream> {
    let traced = |id| {
        let users = DeviceUsers::traced(ctx, id, STREAM_SECS, Requests::Writes).map(|users| users.users);
        users.unwrap_or_default().into_iter().map(move |user| (id, user))
    };
    if ctx.system.snapshot.io_attribution.ok().is_none() {
        return find_untraced_stream(ctx, waiter);
    }
    let users = ctx.device_chains(&waiter.devices).into_iter().flat_map(traced);
    let streams = users.filter(|(_, user)| {
        user.pid != waiter.pid && !ctx.is_own_process(user.pid) && user.bytes_per_s >= STREAM_BYTES_PER_S
    });
    // Of the devices that it reaches the first one, which is nearest to the waiter's.
    let larger = |a: (DevId, DeviceUser), b: (DevId, DeviceUser)| if b.1.bytes_per_s > a.1.bytes_per_s { b } else { a };
    let (device, largest) = streams.reduce(larger)?;
    Some(Stream { name: largest.name, write_bytes_per_s: largest.bytes_per_s, device: Some(device) })
}

/// Without tracing processes are not counted by device, so the device has to take most of what all disks write.
fn find_untraced_stream(ctx: &RuleContext<'_>, waiter: &SyncWaiter) -> Option<Stream> {
    let written = disk_write_mb_per_s(ctx, waiter)?;
    let all_disks = ctx.mean(WINDOW_SECS, |tick| Some(tick.disks_mb_per_s(ctx.system.topology.ok())?.1))?;
    if written * 1_048_576.0 < STREAM_BYTES_PER_S || written < all_disks * MAIN_DEVICE_SHARE {
        return None;
    }
    let is_stream = |task: &IoTask| {
        !task.is_kernel_thread && task.key.pid != waiter.pid && task.write_bytes_per_s >= STREAM_BYTES_PER_S
    };
    let streams = ctx.top_io_tasks(STREAM_SECS).into_iter().filter(is_stream);
    let largest = streams.max_by(|a, b| a.write_bytes_per_s.total_cmp(&b.write_bytes_per_s))?;
    Some(Stream { name: largest.name, write_bytes_per_s: largest.write_bytes_per_s, device: None })
}

/// `62% of its time, p99 180 ms`, or the longest sync where few are long.
fn wait_summary(waiter: &SyncWaiter) -> String {
    let share = format::percent(waiter.wait_pct.min(100.0));
    let tail = match waiter.p99_ms() {
        Some(p99) if p99 >= waiter.mean_ms || waiter.max_ms == 0.0 => format!(", p99 {}", format::ms(p99)),
        _ if waiter.max_ms > 0.0 => format!(", max {}", format::ms(waiter.max_ms)),
        _ => String::new(),
    };
    format!("{share} of its time{tail}")
}

fn build_finding(ctx: &RuleContext<'_>, newest: &SyncActivity, waiter: &SyncWaiter, title: String) -> Finding {
    let (device, row) = (device_names(ctx, waiter), &waiter.file);
    let comm = row.file.comm.sanitized();
    let subject = match ctx.system.processes.find_live(waiter.pid) {
        Some(row) => FindingSubject::Task(row.key(), comm),
        None => FindingSubject::Pid(waiter.pid, comm),
    };
    let critical_ms = limits(ctx, waiter).critical_ms;
    let severity = Severity::critical_if(waiter.typical_ms >= 5.0 * critical_ms && waiter.wait_pct >= 80.0);
    let waits_on = most_common_wait(newest, waiter.pid).map(|function| wait_text(function, &device));
    let written = disk_write_mb_per_s(ctx, waiter);
    Finding::new(severity, subject, title)
        .fact("waits", format!("{} of its time", format::percent(waiter.wait_pct)))
        .fact("file", row.file.display_path(ctx.system.topology.ok()))
        .fact("device", device)
        .fact("syncs", format!("{}, {} each", format::per_s(waiter.calls_per_s), format::ms(waiter.mean_ms)))
        .fact_opt("max", waiter.longest_ms().map(format::ms))
        .fact_opt("waits on", waits_on)
        .fact_opt("written to the device", written.map(format::mb_per_s))
        .see_also(NavTarget::Syncs)
        .delays([InvolvedTask::named(&waiter.name)])
        .on_files([row.file.display_path(ctx.system.topology.ok())])
        .on_devices(ctx.device_chains(&waiter.devices))
}

/// The kernel function in which the process' slow syncs were seen waiting most often.
fn most_common_wait(syncs: &SyncActivity, pid: u32) -> Option<&str> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let running = syncs.in_flight.iter().filter(|s| s.file.pid == pid).filter_map(|s| s.waiting_on.as_deref());
    let completed = syncs.slow.iter().filter(|s| s.file.pid == pid).filter_map(|s| s.waiting_on.as_deref());
    running.chain(completed).for_each(|function| *counts.entry(function).or_default() += 1);
    counts.into_iter().max_by_key(|(function, count)| (*count, *function)).map(|(function, _)| function)
}

/// `the same device, sda1`; `sda, which is below vg-db`.
fn stream_target(ctx: &RuleContext<'_>, waiter: &SyncWaiter, stream: &Stream) -> String {
    let own = device_names(ctx, waiter);
    match stream.device.filter(|id| !waiter.devices.contains(id)) {
        Some(id) => format!("{}, which is below {own}", ctx.device_name(id)),
        None => format!("the same device, {own}"),
    }
}

fn behind_stream_finding(
    ctx: &RuleContext<'_>,
    newest: &SyncActivity,
    waiter: &SyncWaiter,
    stream: &Stream,
) -> Finding {
    // Seen running more often than waiting for the disk, so the stream is not the whole cause.
    let is_cpu_bound = most_common_wait(newest, waiter.pid).is_some_and(|function| function.starts_with(ON_CPU));
    let because = if is_cpu_bound { "while" } else { "because" };
    let rate = format::bytes_per_s(stream.write_bytes_per_s);
    let title = format!(
        "{} waits on syncs of {} ({}) {because} {} streams {rate} to {}",
        waiter.name,
        waiter.file.file.display_path(ctx.system.topology.ok()),
        wait_summary(waiter),
        stream.name,
        stream_target(ctx, waiter, stream),
    );
    let mut finding = build_finding(ctx, newest, waiter, title);
    if is_cpu_bound {
        finding.severity = Severity::Note;
    }
    finding
        .fact("stream", format!("{}, {rate}", stream.name))
        .caused_by([InvolvedTask::named(&stream.name)])
        .why(
            "A sync waits behind others' requests in the device's queue, and on a journaling file system for the commit \
             that holds their changes as well. Writing one big file in one go delays every database beside it.",
        )
        .advise(format!("have {} sync every few megabytes instead of once at the end", stream.name)).costs("it takes longer")
        .advise_at("start writeback earlier: lower vm.dirty_background_bytes, and vm.dirty_bytes above it", knob("vm.dirty_background_bytes")).costs("writers wait earlier")
        .advise("limit the stream (io.max of its cgroup), or put the log on its own device").costs("set-up")
        .advise_benchmark("benchmark writing in pieces with a sync after each", "chunks", None)
}

fn waits_on_syncs_finding(ctx: &RuleContext<'_>, newest: &SyncActivity, waiter: &SyncWaiter) -> Option<Finding> {
    let slow_ms = limits(ctx, waiter).slow_ms;
    if waiter.wait_pct < WAITS_MIN_PCT || waiter.typical_ms < slow_ms {
        return None;
    }
    let path = waiter.file.file.display_path(ctx.system.topology.ok());
    let title = format!("{} waits on syncs of {path}: {}", waiter.name, wait_summary(waiter));
    Some(
        build_finding(ctx, newest, waiter, title)
            .why("Whatever the process does between syncs, it is no faster than its device completes them.")
            .advise_benchmark("benchmark how long a sync takes when nothing else runs", "fsync", None)
            .advise("sync less often: group commit, or less durability for what may be lost")
            .costs("more data lost in a power failure")
            .advise("put the file on a faster device")
            .costs("money"),
    )
}
