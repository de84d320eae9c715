//! A device that is asked for more than it gives: by small random I/O, by bandwidth, or by one task.
//!
//! %util is not enough: a device that serves in parallel is "100 % busy" at a fraction of its power. So the
//! queue has to be deep for its class, and how bad it is follows from what a request waits there.

use crate::diagnose::case::{Case, Held};
use crate::diagnose::class::{Class, class};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::io_accounting::IoRates;
use crate::model::disk::{DevId, DiskRate};
use crate::model::raw_bytes::RawBytes;
use crate::model::request_pattern::RequestPattern;
use crate::model::topology::{BlockDevice, DeviceKind, Topology};

/// The rule.
pub const RULE: Rule = Rule {
    name: "device-saturated",
    about: "a deep queue at a busy device: small random I/O, bandwidth, or one task",
    look,
};

/// So long without a break: shorter is a burst that the queue is there for.
pub const LASTS_SECS: f64 = 5.0;
/// Share of time with a request in flight.
const BUSY_PCT: f64 = 90.0;
/// More than one request waits: below it, a long await is the device's own.
const SOME_QUEUE: f64 = 2.0;
/// Requests of at most this many KiB are small: databases use 4 to 16.
const SMALL_KB: f64 = 32.0;
/// Requests of at least this many KiB are about bandwidth: read-ahead's default is 128.
const LARGE_KB: f64 = 96.0;
/// Requests that go on from one another, most of them: what is slow then is that each is small.
const SEQUENTIAL_PCT: f64 = 75.0;
/// One task is named when it moves at least this share of the bytes.
const ONE_TASK: f64 = 0.6;
/// And no more than so many times what the device moved.
const MISMATCH: f64 = 2.0;

/// Whether the device is saturated in this tick.
pub fn is_saturated(d: &DiskRate, class: Class) -> bool {
    let limits = class.limits();
    // A deep queue, or a shorter one in which requests wait longer than this class should let them.
    let queued = d.queue_size >= limits.deep || (d.queue_size >= SOME_QUEUE && d.await_ms >= limits.slow_ms);
    d.util_pct >= BUSY_PCT && queued && !d.stalled
}

/// Means over the window.
struct Load {
    tps: f64,
    await_ms: f64,
    queue: f64,
    mb: f64,
    kb: f64,
    util: f64,
    read_pct: f64,
    /// Requests that begin where a recent one ended, per cent; `None` where that is not traced.
    sequential_pct: Option<f64>,
    /// The most frequent size, from so many bytes on, and its share in per cent.
    usual: Option<(u64, f64)>,
}

/// What requests were like over the window, reads and writes together.
fn shape(case: &Case<'_>, id: DevId) -> RequestPattern {
    let (mut looked, mut sum) = (0.0, RequestPattern::default());
    for snap in case.ticks() {
        if looked >= LASTS_SECS {
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

fn load(case: &Case<'_>, id: DevId) -> Option<Load> {
    let mean = |get: fn(&DiskRate) -> f64| case.device_mean(id, LASTS_SECS, get);
    let (reads, tps) = (mean(|d| d.reads_per_s)?, mean(|d| d.tps)?);
    let mb = mean(|d| d.read_mb_per_s + d.write_mb_per_s)?;
    let shape = shape(case, id);
    Some(Load {
        tps,
        await_ms: case.per_request(id, LASTS_SECS, |d| d.await_ms)?,
        queue: mean(|d| d.queue_size)?,
        mb,
        kb: if tps > 0.0 { mb * 1024.0 / tps } else { 0.0 },
        util: mean(|d| d.util_pct)?,
        read_pct: if tps > 0.0 { reads * 100.0 / tps } else { 0.0 },
        sequential_pct: shape.sequential_pct(),
        usual: shape.most_common_size(),
    })
}

fn look(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(why) = case.world.snapshot.devices.unavailable_reason(case.now_ns()) {
        return Judged::Cannot(why);
    }
    let mut judged = Judged::NotYet("a few seconds of device counters");
    for d in case.devices() {
        let class = class(case.world, d.id);
        match case.held(LASTS_SECS, |s| s.device(d.id).map(|d| is_saturated(d, class))) {
            Held::NotYet => continue,
            Held::Since(since) => out.extend(found(case, d.id, class, since)),
            Held::No => {}
        }
        judged = Judged::Yes;
    }
    if case.snap().is_some_and(|s| s.devices.ok().is_some_and(Vec::is_empty)) { Judged::Yes } else { judged }
}

fn found(case: &Case<'_>, id: DevId, class: Class, since: u64) -> Option<Finding> {
    if case.kind(id).is_some_and(|k| matches!(k, DeviceKind::Zram | DeviceKind::Ram)) {
        return None;
    }
    let chain = case.chain(id);
    // What lies on a saturated device queues there as well: the lowest one is the news.
    let lower = |below: &DevId| {
        let class = crate::diagnose::class::class(case.world, *below);
        case.held(LASTS_SECS, |s| s.device(*below).map(|d| is_saturated(d, class))).since().is_some()
            && case.kind(*below) != Some(DeviceKind::Partition)
    };
    if chain.iter().skip(1).any(lower) {
        return None;
    }
    let load = load(case, id)?;
    let limits = class.limits();
    let severity = match load.await_ms {
        ms if ms >= limits.bad_ms => Severity::Critical,
        ms if ms >= limits.slow_ms => Severity::Warn,
        _ => Severity::Note,
    };
    let task = one_task(case, &load, id);
    let name = case.device_name(id);
    let how = how(&load);
    let by = task.as_ref().map_or(String::new(), |(who, share, _)| {
        format!("; {who} makes {} of it", words::pct(share * 100.0))
    });
    let title = match severity {
        Severity::Note => format!(
            "{name} works at full speed on {how}: {} tps, {} await, queue {}{by}",
            words::count(load.tps),
            words::ms(load.await_ms),
            words::count(load.queue)
        ),
        _ => format!(
            "{name} is saturated by {how}: {} tps, {} await, queue {}{by}",
            words::count(load.tps),
            words::ms(load.await_ms),
            words::count(load.queue)
        ),
    };
    let finding = Finding::new(RULE.name, severity, Subject::Device(id, name), title)
        .fact("tps", words::count(load.tps))
        .fact("await", words::ms(load.await_ms))
        .fact("aqu-sz", words::count(load.queue))
        .fact("request size", format!("{:.1} KiB", load.kb))
        .fact_if(
            "usual size",
            load.usual.map(|(from, pct)| format!("from {}, {} of the requests", words::bytes(from as f64), words::pct(pct))),
        )
        .fact_if("sequential", load.sequential_pct.map(words::pct))
        .fact("bandwidth", words::mb(load.mb))
        .fact("reads", words::pct(load.read_pct))
        .fact("%util", words::pct(load.util))
        .fact("class", format!("{}; slow from {}", class.name(), words::ms(limits.slow_ms)))
        .fact_if("task", task.as_ref().map(|t| format!("{}, {}", t.0, words::pct(t.1 * 100.0))))
        .since(since)
        .why(
            "Requests wait in the queue: every reader and every sync on this device takes at least the await, whoever \
             causes the load.",
        )
        .touching(chain);
    Some(advise(case, finding, &load, id, task))
}

fn how(load: &Load) -> &'static str {
    match load.kb {
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
fn one_task(case: &Case<'_>, load: &Load, id: DevId) -> Option<(String, f64, Jump)> {
    let own = |f: &IoRates| f.read_bytes_per_s + f.write_bytes_per_s.max(f.writeback_bytes_per_s);
    let charged = case.charged(LASTS_SECS, |task| task.on_device(id).map_or(0.0, own)).filter(|all| !all.is_empty());
    if let Some(all) = charged {
        let sum: f64 = all.iter().map(|one| one.2).sum();
        let (pid, name, bytes) = all.first()?;
        let share = bytes / f64::max(sum, load.mb * 1_048_576.0);
        let key = case.world.processes.find_by_pid(*pid)?.key();
        return (share >= ONE_TASK).then(|| (name.clone(), share.min(1.0), Jump::Task(key)));
    }
    let movers = case.movers(LASTS_SECS);
    let first = movers.first()?;
    let bytes = load.mb * 1_048_576.0;
    let own = first.read + first.write;
    let others: f64 = movers.iter().skip(1).map(|m| m.read + m.write).sum();
    let share = own / bytes.max(own + others);
    // Far more than the device moved went elsewhere, or into the cache.
    let plausible = bytes > 0.0 && own <= bytes * MISMATCH;
    (share >= ONE_TASK && plausible).then(|| (first.name.clone(), share.min(1.0), Jump::Task(first.key)))
}

fn advise(
    case: &Case<'_>,
    mut f: Finding,
    load: &Load,
    id: DevId,
    task: Option<(String, f64, Jump)>,
) -> Finding {
    if let Some((who, _, jump)) = task {
        f = f.advise_at(
            format!("lower {who}: ionice idle (i on its page) or a limit of its own"),
            "it gets slower; ionice acts only with the bfq scheduler (and mq-deadline, by class)",
            jump,
        );
    }
    if load.kb <= SMALL_KB && load.sequential_pct.is_some_and(|pct| pct >= SEQUENTIAL_PCT) {
        f = f.advise(
            "have the program read and write larger pieces: they lie beside each other already",
            "a change to the program, or to its block size",
        );
    } else if load.kb <= SMALL_KB {
        f = f.advise(
            "make the I/O larger or fewer: more cache for the database, group commits, noatime",
            "memory, or seconds of data at a crash",
        );
        if load.read_pct < 50.0 {
            f = f.advise_at(
                "let more dirty pages gather, so that neighbours are written together",
                "a longer stall when they are synced, more lost at a power cut",
                Jump::Knob("vm.dirty_background_bytes".into()),
            );
        }
    } else {
        f = f.advise(
            "spread or limit the streams: one at a time, at night, or with a bandwidth limit (io.max)",
            "they take longer",
        );
    }
    let dir = case.world.topology.ok().and_then(|t| mount_on(t, id));
    f.advise_at(
        "measure what the device can give by itself",
        "adds load while it runs; do it when the service is quiet",
        Jump::Bench("randrw", dir),
    )
    .look_at(Jump::Device(id))
}

/// A mount point on the device or its partitions, else on what lies on it.
pub fn mount_on(topo: &Topology, id: DevId) -> Option<RawBytes> {
    let above = |d: &&BlockDevice| d.id == id || topo.chain(d.id).iter().any(|l| l.device.id == id);
    let mut all: Vec<&BlockDevice> = topo.devices.iter().filter(above).collect();
    all.sort_by_key(|d| d.id != id && d.kind != DeviceKind::Partition);
    let mounts = all.into_iter().flat_map(|d| &d.mounts);
    mounts.into_iter().find(|m| !m.is_hidden && !m.is_bind).map(|m| m.mount_point.clone())
}
