//! Devices with more requests than they can serve: small random I/O, large requests, or one task.
//!
//! %util alone proves nothing: a device that serves requests in parallel is 100% busy at a fraction of its throughput.
//! So the queue has to be deep for the device's class, and the severity follows from the await.

use super::device_state::{is_held_up, is_saturated, is_slow};
use super::prelude::*;
use crate::doctor::device_users::{DelayedUser, DeviceUser, DeviceUsers, Requests};
use crate::model::topology::{BlockDevice, DeviceKind};

/// Shorter is a burst, which the queue is there for.
pub(super) const WINDOW_SECS: f64 = 5.0;
/// Databases use requests of 4 to 16 KiB.
const SMALL_KB: f64 = 32.0;
/// From here on throughput counts rather than IOPS; the default read-ahead is 128 KiB.
const LARGE_KB: f64 = 96.0;
/// From here on requests count as sequential.
const SEQUENTIAL_PCT: f64 = 75.0;

/// With a smaller share of reads a device only writes.
const ONLY_WRITES_PCT: f64 = 1.0;

/// Means over the window.
struct DeviceLoad {
    tps: f64,
    await_ms: f64,
    queue_size: f64,
    mb_per_s: f64,
    request_kb: f64,
    util_pct: f64,
    read_pct: f64,
    /// Requests that start where a recent one ended; `None` where that is not traced.
    sequential_pct: Option<f64>,
    /// Lower bound of the most frequent size in bytes, and its share in per cent.
    most_common_size: Option<(u64, f64)>,
}

impl DeviceLoad {
    /// Means over the last `secs` seconds.
    fn of(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> Option<Self> {
        let mean = |get: fn(&DiskRate) -> f64| ctx.device_mean(id, secs, get);
        let (reads_per_s, tps) = (mean(|d| d.reads_per_s)?, mean(|d| d.tps)?);
        let mb_per_s = mean(|d| d.read_mb_per_s + d.write_mb_per_s)?;
        let pattern = ctx.request_pattern(id, secs);
        Some(Self {
            tps,
            await_ms: ctx.mean_await_ms(id, secs)?,
            queue_size: mean(|d| d.queue_size)?,
            mb_per_s,
            request_kb: if tps > 0.0 { mb_per_s * 1024.0 / tps } else { 0.0 },
            util_pct: mean(|d| d.util_pct)?,
            read_pct: if tps > 0.0 { reads_per_s * 100.0 / tps } else { 0.0 },
            sequential_pct: pattern.sequential_pct(),
            most_common_size: pattern.most_common_size(),
        })
    }

    fn is_small(&self) -> bool {
        self.request_kb <= SMALL_KB
    }

    fn is_sequential(&self) -> bool {
        self.sequential_pct.is_some_and(|pct| pct >= SEQUENTIAL_PCT)
    }

    fn description(&self) -> &'static str {
        match self.request_kb {
            _ if self.is_small() && self.is_sequential() => "small sequential I/O",
            _ if self.is_small() => "small random I/O",
            kb if kb >= LARGE_KB => "large requests",
            _ => "medium-sized requests",
        }
    }
}

/// Whether the requests on a device that may seem slow only wait behind those of a stream.
pub(super) fn is_behind_stream(ctx: &RuleContext<'_>, id: DevId, secs: f64) -> bool {
    DeviceUsers::find(ctx, id, secs, Requests::All).is_slow_behind_stream(ctx.storage_class(id).limits().slow_ms)
}

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let found = saturated_devices(ctx, is_saturated)?;
    let held_up = saturated_devices(ctx, |device, class| is_saturated(device, class) || is_held_up(device, class))?;
    let behind_stream = held_up.into_iter().filter(|(id, since)| {
        found.iter().all(|(other, _)| other != id) && is_behind_stream(ctx, *id, ctx.figure_secs(*since, WINDOW_SECS))
    });
    for (id, since) in found.iter().copied().chain(behind_stream).filter(|(id, since)| !is_only_slow(ctx, *id, *since))
    {
        let load = DeviceLoad::of(ctx, id, ctx.figure_secs(since, WINDOW_SECS));
        // Whether writes are those of programs or a backlog that nobody waits for shows by who issues them.
        let load = load.filter(|load| load.read_pct >= ONLY_WRITES_PCT || !DeviceUsers::are_not_yet_known(ctx, id));
        out.extend(load.map(|load| build_finding(ctx, id, &load, since)));
    }
    Ok(())
}

/// Whether the device is slow for its class and none of its users waits behind another: then its users do not cause the
/// queue, they suffer from the device.
fn is_only_slow(ctx: &RuleContext<'_>, id: DevId, since: u64) -> bool {
    let class = ctx.storage_class(id);
    let users = || DeviceUsers::find(ctx, id, ctx.figure_secs(since, WINDOW_SECS), Requests::All);
    ctx.is_sustained(WINDOW_SECS, |tick| tick.device(id).map(|device| is_slow(device, class)))
        && users().delayed(class.limits().slow_ms).is_empty()
}

/// The devices that are saturated according to a test of one tick, and since when; of several above each other the lowest.
fn saturated_devices(
    ctx: &RuleContext<'_>,
    test: fn(&DiskRate, StorageClass) -> bool,
) -> Result<Vec<(DevId, u64)>, RuleSkipped> {
    let saturated = |id, device: &DiskRate| test(device, ctx.storage_class(id));
    let devices = ctx.sustained_devices(ctx.devices(), WINDOW_SECS, |_, device| Some(saturated(device.id, device)))?;
    // Requests queue on every device above a saturated one.
    let below_is_saturated = |id: &DevId| {
        ctx.is_sustained(WINDOW_SECS, |tick| tick.device(*id).map(|d| saturated(*id, d)))
            && ctx.device_kind(*id) != Some(DeviceKind::Partition)
    };
    let is_lowest = |id: DevId| {
        let in_memory = matches!(ctx.device_kind(id), Some(DeviceKind::Zram | DeviceKind::Ram));
        !in_memory && !ctx.device_chain(id).iter().skip(1).any(below_is_saturated)
    };
    Ok(devices.into_iter().map(|(device, since)| (device.id, since)).filter(|(id, _)| is_lowest(*id)).collect())
}

fn build_finding(ctx: &RuleContext<'_>, id: DevId, load: &DeviceLoad, since: u64) -> Finding {
    let class = ctx.storage_class(id);
    let limits = class.limits();
    let secs = ctx.figure_secs(since, WINDOW_SECS);
    let users = DeviceUsers::find(ctx, id, secs, Requests::All);
    // Whom a backlog of writeback delays has findings of its own: slow syncs, whose flushes wait here, and throttled writers.
    let is_backlog = load.read_pct < ONLY_WRITES_PCT && {
        let users = DeviceUsers::find(ctx, id, secs, Requests::Data);
        users.is_only_writeback() && !users.delay_others(limits.slow_ms)
    };
    let delayed = if is_backlog { &[] } else { users.delayed(limits.slow_ms) };
    let (severity, verb) = match load.await_ms {
        ms if ms >= limits.critical_ms && !is_backlog => (Severity::Critical, "is saturated by"),
        _ if is_backlog => (Severity::Note, "writes dirty pages at full speed in"),
        ms if ms >= limits.slow_ms => (Severity::Warn, "is saturated by"),
        _ => (Severity::Note, "runs at full speed with"),
    };
    let title = format!(
        "{} {verb} {}: {} tps, await {}, aqu-sz {}{}{}",
        ctx.device_name(id),
        load.description(),
        format::count(load.tps),
        format::ms(load.await_ms),
        format::count(load.queue_size),
        users.summary().map_or(String::new(), |text| format!("; {text}")),
        users.summary_of_delayed(delayed).map_or(String::new(), |text| format!("; {text}")),
    );
    let times: Vec<String> = delayed.iter().map(DelayedUser::describe).collect();
    let size = |(from, pct)| format!("from {}, {} of the requests", format::bytes(from as f64), format::percent(pct));
    let finding = ctx.device_finding(severity, id, title)
        .fact("tps", format::count(load.tps))
        .fact("await", format::ms(load.await_ms))
        .fact("aqu-sz", format::count(load.queue_size))
        .fact("request size", format!("{:.1} KiB", load.request_kb))
        .fact_opt("delayed, by request", (!times.is_empty()).then(|| times.join(", ")))
        .fact_opt("most common size", load.most_common_size.map(size))
        .fact_opt("sequential", load.sequential_pct.map(format::percent))
        .fact("throughput", format::mb_per_s(load.mb_per_s))
        .fact("reads", format::percent(load.read_pct))
        .fact("%util", format::percent(load.util_pct))
        .fact("class", format!("{}; slow from {}", class.description(), format::ms(limits.slow_ms)))
        .fact_opt(users.fact_name(), users.list())
        .since(since)
        .caused_by(users.main().iter().map(DeviceUser::involved))
        .of_group(users.main_group())
        .delays(delayed.iter().map(|delayed| delayed.user.involved()))
        .on_files(main_files(ctx, id, secs, Requests::All))
        .why("Requests wait in the queue: every read and every sync on this device takes at least the await, whoever causes the load.");
    add_remedies(ctx, finding, load, id, &users)
}

fn advise_slowing(ctx: &RuleContext<'_>, finding: Finding, user: &DeviceUser) -> Finding {
    let row = user.key.and_then(|key| ctx.system.processes.get(&key));
    if row.as_ref().is_some_and(|row| row.raw.kernel_thread) {
        return advise_slowing_kernel_thread(finding, user);
    }
    let is_idle_class = row.as_ref().and_then(|row| row.ionice()).is_some_and(|class| class.starts_with("idle"));
    match (user.key, is_idle_class) {
        (Some(key), false) => finding
            .advise_at(
                format!("slow {} down: ionice class idle (on its page), or io.max of its cgroup", user.name),
                NavTarget::Task(key),
            )
            .costs("it takes longer; ionice works only with the bfq scheduler (and mq-deadline, by class)"),
        _ => finding.advise(format!("limit {} (io.max of its cgroup)", user.name)).costs("it takes longer"),
    }
}

/// Kernel threads have no control group with a limit, and their I/O class is their own.
fn advise_slowing_kernel_thread(finding: Finding, user: &DeviceUser) -> Finding {
    if user.name.starts_with("md") {
        finding
            .advise(format!("slow {} down: lower dev.raid.speed_limit_max", user.name))
            .costs("the array is without its redundancy, or unchecked, for longer")
    } else {
        finding.advise(format!("limit those that {} works for", user.name)).costs("they take longer")
    }
}

fn add_remedies(
    ctx: &RuleContext<'_>,
    mut finding: Finding,
    load: &DeviceLoad,
    id: DevId,
    users: &DeviceUsers,
) -> Finding {
    if let Some(user) = users.main().first() {
        finding = advise_slowing(ctx, finding, user);
    }
    finding = if load.is_small() && load.is_sequential() {
        finding
            .advise("have the program issue larger requests: its requests are adjacent")
            .costs("a change to the program, or to its block size")
    } else if load.is_small() {
        finding
            .advise("issue fewer or larger requests: more cache for the database, group commit, noatime")
            .costs("memory, or seconds of data lost in a crash")
    } else {
        finding
            .advise("spread or limit the streams: one at a time, at night, or with io.max of their cgroups")
            .costs("they take longer")
    };
    if load.is_small() && !load.is_sequential() && load.read_pct < 50.0 && users.may_write_page_cache() {
        finding = finding
            .advise_at(
                "raise vm.dirty_background_bytes, so that adjacent pages are written together",
                knob("vm.dirty_background_bytes"),
            )
            .costs("longer stalls on sync, more data lost in a power failure");
    }
    finding
        .advise_at(
            "benchmark the device to see what it can do by itself",
            NavTarget::Bench("randrw", mount_point_on(ctx, id)),
        )
        .costs("adds load while it runs; do it when the service is idle")
}

/// A mount point on the device or its partitions, else on a device above it.
pub(super) fn mount_point_on(ctx: &RuleContext<'_>, id: DevId) -> Option<RawBytes> {
    let topology = ctx.system.topology.ok()?;
    let is_above = |d: &&BlockDevice| d.id == id || topology.chain(d.id).iter().any(|link| link.device.id == id);
    let mut devices: Vec<&BlockDevice> = topology.devices.iter().filter(is_above).collect();
    devices.sort_by_key(|d| d.id != id && d.kind != DeviceKind::Partition);
    let mut mounts = devices.into_iter().flat_map(|d| &d.mounts);
    mounts.find(|m| !m.is_hidden && !m.is_bind).map(|m| m.mount_point.clone())
}
