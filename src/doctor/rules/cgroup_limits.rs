//! Control groups at their limits. The limits do not show in the device's counters: a loop device limited to 66 IOPS has
//! an await of 0.06 ms and no utilisation while its program waits 66 ms for each request.

use super::prelude::*;
use crate::doctor::incident::is_in_group;
use crate::model::memory_stalls::RECLAIM;
use crate::model::process::ProcessRow;
use crate::model::slow_facts::{CgroupFacts, CgroupIoLimit};

/// From this share of a limit on, the limit slows the group down.
const LIMIT_SHARE: f64 = 0.85;
/// Memory limit events from which on the delay is noticeable.
const MIN_LIMIT_EVENTS_PER_S: f64 = 1.0;
/// A group at its limit whose tasks wait less than this for memory, and hardly fault, drops file cache that it does not need.
const MIN_RECLAIM_MS_PER_S: f64 = 50.0;
const MIN_FAULTS_PER_S: f64 = 5.0;
const STALL_SECS: f64 = 5.0;
/// Share of CPU periods in which the group was throttled.
const THROTTLED_PCT: f64 = 20.0;
/// Fewer periods prove nothing: ten are a second.
const MIN_CPU_PERIODS: u64 = 10;
const MAX_NAMED_PROCESSES: usize = 3;

/// A control group in two successive readings.
struct CgroupInterval<'a> {
    before: &'a CgroupFacts,
    now: &'a CgroupFacts,
    secs: f64,
}

fn cgroup_intervals<'a>(ctx: &RuleContext<'a>) -> Result<Vec<CgroupInterval<'a>>, RuleSkipped> {
    let facts = &ctx.system.slow_facts;
    let (Some(now), Some(before), Some(secs)) = (&facts.latest, &facts.previous, facts.interval_secs()) else {
        return Err(RuleSkipped::NeedsMoreData("two readings of the control groups"));
    };
    let interval = |now: &'a CgroupFacts| {
        let before = before.cgroups.iter().find(|before| before.path == now.path)?;
        Some(CgroupInterval { before, now, secs })
    };
    Ok(now.cgroups.iter().filter_map(interval).collect())
}

fn cgroup_finding(ctx: &RuleContext<'_>, cgroup: &CgroupFacts, problem: &str) -> Finding {
    let pids = cgroup.pids.iter().filter(|pid| !ctx.is_own_process(**pid));
    let rows = pids.take(MAX_NAMED_PROCESSES).filter_map(|pid| ctx.find_by_pid(*pid));
    let names: Vec<String> = rows.map(|row| row.label()).collect();
    let title = format!("control group {} {problem}", cgroup.path);
    Finding::new(Severity::Warn, FindingSubject::Cgroup(cgroup.path.clone()), title)
        .fact_opt("processes", (!names.is_empty()).then(|| names.join(", ")))
        .delays(names.iter().map(InvolvedTask::named))
        .in_cgroup(Some(&cgroup.path))
        .see_also(NavTarget::Processes)
}

/// The first limit that was reached: its name, the rate and the limit, formatted.
fn reached_io_limit(before: &CgroupIoLimit, now: &CgroupIoLimit, secs: f64) -> Option<(&'static str, String, String)> {
    let (a, b) = (before.transferred?, now.transferred?);
    let limits = [
        ("read throughput", now.read_bytes_per_s, format::bytes_per_s as fn(f64) -> String),
        ("write throughput", now.write_bytes_per_s, format::bytes_per_s),
        ("reads", now.reads_per_s, format::per_s),
        ("writes", now.writes_per_s, format::per_s),
    ];
    limits.into_iter().enumerate().find_map(|(i, (name, limit, format))| {
        let (rate, limit) = (b[i].saturating_sub(a[i]) as f64 / secs, limit? as f64);
        (rate >= limit * LIMIT_SHARE).then(|| (name, format(rate), format(limit)))
    })
}

pub(super) fn evaluate_io(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for CgroupInterval { before, now, secs } in cgroup_intervals(ctx)? {
        for limit in &now.io {
            let Some(previous) = before.io.iter().find(|l| l.device == limit.device) else { continue };
            let Some((name, rate, max)) = reached_io_limit(previous, limit, secs) else { continue };
            let device = ctx.device_name(limit.device);
            cgroup_finding(ctx, now, &format!("is at its limit of {max} for {name} on {device}"))
                .aspect(&device)
                .fact("limit", max)
                .fact("rate", rate)
                .fact("device", device)
                .why(
                    "Its requests wait before they reach the device, so the device looks idle and fast while its \
                     programs wait. No setting of the device helps.",
                )
                .advise(
                    "raise or remove the limit (io.max, blkio.throttle.*, or the unit's IOReadIOPSMax= and the like)",
                )
                .costs("others on the device get less")
                .advise("if the limit is intended, nothing is wrong with the storage")
                .on_devices(affected_devices(ctx, limit.device))
                .report(out);
        }
    }
    Ok(())
}

/// The device, those below it and those above it, where the wait shows.
fn affected_devices(ctx: &RuleContext<'_>, id: DevId) -> Vec<DevId> {
    let mut out = ctx.device_chain(id);
    if let Some(topology) = ctx.system.topology.ok() {
        let is_above = |above: &DevId| topology.chain(*above).iter().any(|link| link.device.id == id);
        out.extend(topology.devices.iter().map(|device| device.id).filter(is_above));
    }
    out
}

/// Whether the tasks of a group are traced and hardly wait for memory.
fn reclaims_easily(ctx: &RuleContext<'_>, group: &str) -> bool {
    if ctx.system.snapshot.memory_stalls.ok().is_none_or(|stalls| stalls.totals[RECLAIM].is_none()) {
        return false;
    }
    let is_inside = |row: &ProcessRow<'_>| row.cgroup().is_some_and(|path| is_in_group(path, group));
    let stalled = ctx.stalled_tasks(STALL_SECS, RECLAIM).into_iter();
    let inside = stalled.filter(|task| ctx.find_by_pid(task.key.pid).is_some_and(|row| is_inside(&row)));
    let rows = ctx.system.processes.iter().filter(is_inside);
    let faults_per_s: f64 = rows.filter_map(|row| row.rates().major_faults_per_s).sum();
    inside.map(|task| task.ms_per_s).sum::<f64>() < MIN_RECLAIM_MS_PER_S && faults_per_s < MIN_FAULTS_PER_S
}

pub(super) fn evaluate_memory(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for CgroupInterval { before, now, secs } in cgroup_intervals(ctx)? {
        let events_per_s = |get: fn(&CgroupFacts) -> Option<u64>| {
            get(now).zip(get(before)).map_or(0.0, |(now, before)| now.saturating_sub(before) as f64 / secs)
        };
        let (high, max) = (events_per_s(|g| g.high_events), events_per_s(|g| g.max_events));
        let (file, limit) = match (high >= MIN_LIMIT_EVENTS_PER_S, max >= MIN_LIMIT_EVENTS_PER_S) {
            (true, _) => ("memory.high", now.memory_high),
            (false, true) if now.is_v1_memory => ("memory.limit_in_bytes", now.memory_max),
            (false, true) => ("memory.max", now.memory_max),
            (false, false) => continue,
        };
        let bytes = |n: Option<u64>| n.map(|n| format::bytes(n as f64));
        let events = format::per_s(high.max(max));
        let limit = bytes(limit).unwrap_or_else(|| "-".into());
        let mut finding = cgroup_finding(ctx, now, &format!("is at its {file} of {limit}: its tasks reclaim {events}"));
        // Above memory.high tasks are put to sleep.
        if file != "memory.high" && reclaims_easily(ctx, &now.path) {
            finding.severity = Severity::Note;
        }
        finding
            .fact_opt("memory", bytes(now.memory_now))
            .fact_opt("memory.high", bytes(now.memory_high))
            .fact_opt(if now.is_v1_memory { "memory.limit_in_bytes" } else { "memory.max" }, bytes(now.memory_max))
            .fact("limit events", events)
            .why("Each time, its tasks free memory first: they drop their file cache and read it again from disk.")
            .advise(format!("raise {file}, or lower what the programs use"))
            .costs("others get less memory")
            .report(out);
    }
    Ok(())
}

pub(super) fn evaluate_cpu(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for CgroupInterval { before, now, .. } in cgroup_intervals(ctx)? {
        let counters = (before.cpu_periods, now.cpu_periods, now.cpu_max);
        let (Some((periods_0, throttled_0)), Some((periods_1, throttled_1)), Some((quota, period))) = counters else {
            continue;
        };
        let (periods, throttled) = (periods_1.saturating_sub(periods_0), throttled_1.saturating_sub(throttled_0));
        let pct = throttled as f64 * 100.0 / periods.max(1) as f64;
        if periods < MIN_CPU_PERIODS || pct < THROTTLED_PCT {
            continue;
        }
        let problem = format!("is throttled in {} of its periods by its CPU limit", format::percent(pct));
        cgroup_finding(ctx, now, &problem)
                .fact("cpu.max", format!("{:.2} CPUs", quota as f64 / period.max(1) as f64))
                .fact("throttled", format!("{throttled} of {periods} periods"))
                .why("A throttled server answers late while disk and CPU look idle, which is easily mistaken for slow storage.")
                .advise("raise cpu.max (CPUQuota= of the unit), or run fewer threads").costs("others get less CPU").report(out);
    }
    Ok(())
}
