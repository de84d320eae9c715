//! A device that is asked for more than it gives: by small random I/O, by bandwidth, or by one task.
//!
//! %util is not enough: a device that serves in parallel is "100 % busy" at a fraction of its power. So the
//! queue has to be deep for its class, and how bad it is follows from what a request waits there.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, Sustained};
use crate::doctor::storage_class::{StorageClass, storage_class};
use crate::model::disk::{DevId, DiskRate};
use crate::model::io_accounting::IoRates;
use crate::model::raw_bytes::RawBytes;
use crate::model::request_pattern::RequestPattern;
use crate::model::topology::{BlockDevice, DeviceKind, Topology};

/// The rule.
pub const RULE: Rule = Rule {
    name: "device-saturated",
    description: "a deep queue at a busy device: small random I/O, bandwidth, or one task",
    evaluate: look,
};

/// So long without a break: shorter is a burst that the queue is there for.
pub const WINDOW_SECS: f64 = 5.0;
/// Share of time with a request in flight.
const BUSY_PCT: f64 = 90.0;
/// More than one request waits: below it, a long await is the device's own.
const MIN_QUEUE: f64 = 2.0;
/// Requests of at most this many KiB are small: databases use 4 to 16.
const SMALL_KB: f64 = 32.0;
/// Requests of at least this many KiB are about bandwidth: read-ahead's default is 128.
const LARGE_KB: f64 = 96.0;
/// Requests that go on from one another, most of them: what is slow then is that each is small.
const SEQUENTIAL_PCT: f64 = 75.0;
/// One task is named when it moves at least this share of the bytes.
const DOMINANT_SHARE: f64 = 0.6;
/// And no more than so many times what the device moved.
const MAX_MISMATCH: f64 = 2.0;

/// Whether the device is saturated in this tick.
pub fn is_saturated(d: &DiskRate, class: StorageClass) -> bool {
    let limits = class.limits();
    // A deep queue, or a shorter one in which requests wait longer than this class should let them.
    let queued = d.queue_size >= limits.deep_queue || (d.queue_size >= MIN_QUEUE && d.await_ms >= limits.slow_ms);
    d.util_pct >= BUSY_PCT && queued && !d.stalled
}

/// Means over the window.
struct DeviceLoad {
    tps: f64,
    await_ms: f64,
    queue_size: f64,
    mb_per_s: f64,
    request_kb: f64,
    util_pct: f64,
    read_pct: f64,
    /// Requests that begin where a recent one ended, per cent; `None` where that is not traced.
    sequential_pct: Option<f64>,
    /// The most frequent size, from so many bytes on, and its share in per cent.
    most_common_size: Option<(u64, f64)>,
}

/// What requests were like over the window, reads and writes together.
fn request_pattern(case: &RuleContext<'_>, id: DevId) -> RequestPattern {
    let (mut looked, mut sum) = (0.0, RequestPattern::default());
    for snap in case.ticks() {
        if looked >= WINDOW_SECS {
            break;
        }
        looked += snap.interval_secs;
        let latency = snap.device(id).and_then(|d| d.latency.as_ref());
        for kind in latency.into_iter().flat_map(|l| &l.kinds[..2]) {
            sum.add(&kind.pattern);
        }
    }
    sum
}

fn mean_load(case: &RuleContext<'_>, id: DevId) -> Option<DeviceLoad> {
    let mean = |get: fn(&DiskRate) -> f64| case.device_mean(id, WINDOW_SECS, get);
    let (reads, tps) = (mean(|d| d.reads_per_s)?, mean(|d| d.tps)?);
    let mb = mean(|d| d.read_mb_per_s + d.write_mb_per_s)?;
    let shape = request_pattern(case, id);
    Some(DeviceLoad {
        tps,
        await_ms: case.mean_per_request(id, WINDOW_SECS, |d| d.await_ms)?,
        queue_size: mean(|d| d.queue_size)?,
        mb_per_s: mb,
        request_kb: if tps > 0.0 { mb * 1024.0 / tps } else { 0.0 },
        util_pct: mean(|d| d.util_pct)?,
        read_pct: if tps > 0.0 { reads * 100.0 / tps } else { 0.0 },
        sequential_pct: shape.sequential_pct(),
        most_common_size: shape.most_common_size(),
    })
}

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(why) = case.system.snapshot.devices.unavailable_reason(case.now_ns()) {
        return RuleStatus::Unavailable(why);
    }
    let mut judged = RuleStatus::NeedsMoreData("a few seconds of device counters");
    for d in case.devices() {
        let class = storage_class(case.system, d.id);
        match case.sustained(WINDOW_SECS, |s| s.device(d.id).map(|d| is_saturated(d, class))) {
            Sustained::TooEarly => continue,
            Sustained::Since(since) => out.extend(build_finding(case, d.id, class, since)),
            Sustained::NotSustained => {}
        }
        judged = RuleStatus::Evaluated;
    }
    if case.snapshot().is_some_and(|s| s.devices.ok().is_some_and(Vec::is_empty)) {
        RuleStatus::Evaluated
    } else {
        judged
    }
}

fn build_finding(case: &RuleContext<'_>, id: DevId, class: StorageClass, since: u64) -> Option<Finding> {
    if case.device_kind(id).is_some_and(|k| matches!(k, DeviceKind::Zram | DeviceKind::Ram)) {
        return None;
    }
    let chain = case.device_chain(id);
    // What lies on a saturated device queues there as well: the lowest one is the news.
    let lower = |below: &DevId| {
        let class = crate::doctor::storage_class::storage_class(case.system, *below);
        case.sustained(WINDOW_SECS, |s| s.device(*below).map(|d| is_saturated(d, class))).since().is_some()
            && case.device_kind(*below) != Some(DeviceKind::Partition)
    };
    if chain.iter().skip(1).any(lower) {
        return None;
    }
    let load = mean_load(case, id)?;
    let limits = class.limits();
    let severity = match load.await_ms {
        ms if ms >= limits.critical_ms => Severity::Critical,
        ms if ms >= limits.slow_ms => Severity::Warn,
        _ => Severity::Note,
    };
    let task = dominant_task(case, &load, id);
    let name = case.device_name(id);
    let how = describe_load(&load);
    let by = task
        .as_ref()
        .map_or(String::new(), |(who, share, _)| format!("; {who} makes {} of it", format::percent(share * 100.0)));
    let title = match severity {
        Severity::Note => format!(
            "{name} works at full speed on {how}: {} tps, {} await, queue {}{by}",
            format::count(load.tps),
            format::ms(load.await_ms),
            format::count(load.queue_size)
        ),
        _ => format!(
            "{name} is saturated by {how}: {} tps, {} await, queue {}{by}",
            format::count(load.tps),
            format::ms(load.await_ms),
            format::count(load.queue_size)
        ),
    };
    let finding = Finding::new(RULE.name, severity, FindingSubject::Device(id, name), title)
        .fact("tps", format::count(load.tps))
        .fact("await", format::ms(load.await_ms))
        .fact("aqu-sz", format::count(load.queue_size))
        .fact("request size", format!("{:.1} KiB", load.request_kb))
        .fact_opt(
            "usual size",
            load.most_common_size.map(|(from, pct)| {
                format!("from {}, {} of the requests", format::bytes(from as f64), format::percent(pct))
            }),
        )
        .fact_opt("sequential", load.sequential_pct.map(format::percent))
        .fact("bandwidth", format::mb_per_s(load.mb_per_s))
        .fact("reads", format::percent(load.read_pct))
        .fact("%util", format::percent(load.util_pct))
        .fact("class", format!("{}; slow from {}", class.description(), format::ms(limits.slow_ms)))
        .fact_opt("task", task.as_ref().map(|t| format!("{}, {}", t.0, format::percent(t.1 * 100.0))))
        .since(since)
        .why(
            "Requests wait in the queue: every reader and every sync on this device takes at least the await, whoever \
             causes the load.",
        )
        .on_devices(chain);
    Some(add_remedies(case, finding, &load, id, task))
}

fn describe_load(load: &DeviceLoad) -> &'static str {
    match load.request_kb {
        // A mean says nothing of the order; where it is known, it is said as it is.
        kb if kb <= SMALL_KB => match load.sequential_pct {
            Some(pct) if pct >= SEQUENTIAL_PCT => "small sequential I/O",
            _ => "small random I/O",
        },
        kb if kb >= LARGE_KB => "bandwidth",
        _ => "requests of middling size",
    }
}

/// The process that moves most of the device's bytes, its share, and who it is. Without tracing tasks are not counted
/// by device, so this is only told where one task alone accounts for most of what this device moves.
fn dominant_task(case: &RuleContext<'_>, load: &DeviceLoad, id: DevId) -> Option<(String, f64, NavTarget)> {
    let own = |f: &IoRates| f.read_bytes_per_s + f.write_bytes_per_s.max(f.writeback_bytes_per_s);
    let charged =
        case.attributed_io(WINDOW_SECS, |task| task.on_device(id).map_or(0.0, own)).filter(|all| !all.is_empty());
    if let Some(all) = charged {
        let sum: f64 = all.iter().map(|one| one.2).sum();
        let (pid, name, bytes) = all.first()?;
        let share = bytes / f64::max(sum, load.mb_per_s * 1_048_576.0);
        let key = case.system.processes.find_by_pid(*pid)?.key();
        return (share >= DOMINANT_SHARE).then(|| (name.clone(), share.min(1.0), NavTarget::Task(key)));
    }
    let movers = case.top_io_tasks(WINDOW_SECS);
    let first = movers.first()?;
    let bytes = load.mb_per_s * 1_048_576.0;
    let own = first.read_bytes_per_s + first.write_bytes_per_s;
    let others: f64 = movers.iter().skip(1).map(|m| m.read_bytes_per_s + m.write_bytes_per_s).sum();
    let share = own / bytes.max(own + others);
    // Far more than the device moved went elsewhere, or into the cache.
    let plausible = bytes > 0.0 && own <= bytes * MAX_MISMATCH;
    (share >= DOMINANT_SHARE && plausible).then(|| (first.name.clone(), share.min(1.0), NavTarget::Task(first.key)))
}

fn add_remedies(
    case: &RuleContext<'_>,
    mut f: Finding,
    load: &DeviceLoad,
    id: DevId,
    task: Option<(String, f64, NavTarget)>,
) -> Finding {
    if let Some((who, _, jump)) = task {
        f = f.advise_at(
            format!("lower {who}: ionice idle (i on its page) or a limit of its own"),
            "it gets slower; ionice acts only with the bfq scheduler (and mq-deadline, by class)",
            jump,
        );
    }
    if load.request_kb <= SMALL_KB && load.sequential_pct.is_some_and(|pct| pct >= SEQUENTIAL_PCT) {
        f = f.advise(
            "have the program read and write larger pieces: they lie beside each other already",
            "a change to the program, or to its block size",
        );
    } else if load.request_kb <= SMALL_KB {
        f = f.advise(
            "make the I/O larger or fewer: more cache for the database, group commits, noatime",
            "memory, or seconds of data at a crash",
        );
        if load.read_pct < 50.0 {
            f = f.advise_at(
                "let more dirty pages gather, so that neighbours are written together",
                "a longer stall when they are synced, more lost at a power cut",
                NavTarget::Knob("vm.dirty_background_bytes".into()),
            );
        }
    } else {
        f = f.advise(
            "spread or limit the streams: one at a time, at night, or with a bandwidth limit (io.max)",
            "they take longer",
        );
    }
    let dir = case.system.topology.ok().and_then(|t| mount_point_on(t, id));
    f.advise_at(
        "measure what the device can give by itself",
        "adds load while it runs; do it when the service is quiet",
        NavTarget::Bench("randrw", dir),
    )
    .see_also(NavTarget::Device(id))
}

/// A mount point on the device or its partitions, else on what lies on it.
pub fn mount_point_on(topo: &Topology, id: DevId) -> Option<RawBytes> {
    let above = |d: &&BlockDevice| d.id == id || topo.chain(d.id).iter().any(|l| l.device.id == id);
    let mut all: Vec<&BlockDevice> = topo.devices.iter().filter(above).collect();
    all.sort_by_key(|d| d.id != id && d.kind != DeviceKind::Partition);
    let mounts = all.into_iter().flat_map(|d| &d.mounts);
    mounts.into_iter().find(|m| !m.is_hidden && !m.is_bind).map(|m| m.mount_point.clone())
}
