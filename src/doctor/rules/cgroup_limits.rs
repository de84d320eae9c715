//! Limits of control groups. They are invisible in the device's own counters: a loop device held to 66 IOPS
//! shows 0.06 ms await and no utilisation, while the program waits 66 ms for each request.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::RuleContext;
use crate::model::slow_facts::{CgroupFacts, CgroupIoLimit, SystemFacts};

/// I/O.
pub const IO_LIMIT: Rule =
    Rule { name: "cgroup-io", description: "a control group at its I/O limit", evaluate: evaluate_io };
/// Memory.
pub const MEMORY_LIMIT: Rule = Rule {
    name: "cgroup-memory",
    description: "a control group held back at its memory limit",
    evaluate: evaluate_memory,
};
/// CPU.
pub const CPU_LIMIT: Rule =
    Rule { name: "cgroup-cpu", description: "a control group stopped by its CPU limit", evaluate: evaluate_cpu };

/// At this share of a limit it is the limit that slows it down.
const LIMIT_SHARE: f64 = 0.85;
/// Throttled for memory more often than this per second, it waits noticeably.
const MIN_LIMIT_EVENTS_PER_S: f64 = 1.0;
/// Stopped in this share of its periods.
const THROTTLED_PCT: f64 = 20.0;

/// Pairs of a group before and now, with the seconds between; or what is to come.
fn cgroup_intervals<'c>(
    case: &'c RuleContext<'_>,
) -> Result<impl Iterator<Item = (&'c CgroupFacts, &'c CgroupFacts, f64)>, RuleStatus> {
    let known = &case.system.slow_facts;
    let (Some(now), Some(before), Some(secs)) = (&known.latest, &known.previous, known.interval_secs()) else {
        return Err(RuleStatus::NeedsMoreData("two looks at the control groups"));
    };
    let find = |path: &str, all: &'c SystemFacts| all.cgroups.iter().find(|g| g.path == path);
    Ok(now.cgroups.iter().filter_map(move |g| Some((find(&g.path, before)?, g, secs))))
}

/// Names of the limit's file for each direction, its value and what went through per second.
fn io_rates(before: &CgroupIoLimit, now: &CgroupIoLimit, secs: f64) -> Option<[(&'static str, f64, Option<u64>); 4]> {
    let (a, b) = (before.transferred?, now.transferred?);
    let per_s = |i: usize| b[i].saturating_sub(a[i]) as f64 / secs;
    Some([
        ("read bytes/s", per_s(0), now.read_bytes_per_s),
        ("written bytes/s", per_s(1), now.write_bytes_per_s),
        ("reads/s", per_s(2), now.reads_per_s),
        ("writes/s", per_s(3), now.writes_per_s),
    ])
}

fn process_names(case: &RuleContext<'_>, g: &CgroupFacts) -> Option<String> {
    let names = g.pids.iter().take(3).filter_map(|pid| case.system.processes.find_by_pid(*pid));
    let names: Vec<String> = names.map(|r| format!("{} ({})", r.comm, r.pid)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn evaluate_io(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let pairs = match cgroup_intervals(case) {
        Ok(pairs) => pairs,
        Err(judged) => return judged,
    };
    for (before, now, secs) in pairs {
        for limit in &now.io {
            let old = before.io.iter().find(|l| l.device == limit.device);
            let Some(all) = old.and_then(|old| io_rates(old, limit, secs)) else { continue };
            let hit = all.into_iter().find(|(_, rate, most)| most.is_some_and(|m| *rate >= m as f64 * LIMIT_SHARE));
            let Some((what, rate, Some(most))) = hit else { continue };
            let name = case.device_name(limit.device);
            let figure = |n: f64| match what.contains("bytes") {
                true => format::bytes_per_s(n),
                false => format!("{}/s", format::count(n)),
            };
            let kind = what.split(' ').next().unwrap_or(what).trim_end_matches("/s");
            let title = format!(
                "control group {} is held to {} of {kind} on {name}: it is at its limit",
                now.path,
                figure(most as f64)
            );
            out.push(
                Finding::new(IO_LIMIT.name, Severity::Warn, FindingSubject::Cgroup(now.path.clone()), title)
                    .fact("limit", figure(most as f64))
                    .fact("through", figure(rate))
                    .fact("device", name)
                    .fact_opt("processes", process_names(case, now))
                    .why(
                        "Its requests wait before they reach the device, so the device looks idle and fast while its programs \
                         stand still. Nothing on the device helps.",
                    )
                    .advise("raise or remove the limit (io.max, blkio.throttle.*, IOReadIOPSMax= and the like of the unit)", "others on the device get less")
                    .advise("if it is meant: nothing is wrong with the storage", "nothing")
                    .see_also(NavTarget::Processes)
                    .on_devices(affected_devices(case, limit)),
            );
        }
    }
    RuleStatus::Evaluated
}

/// The device with what lies on it: the wait shows there.
fn affected_devices(case: &RuleContext<'_>, limit: &CgroupIoLimit) -> Vec<crate::model::disk::DevId> {
    let mut all = case.device_chain(limit.device);
    if let Some(topo) = case.system.topology.ok() {
        let above = topo.devices.iter().filter(|d| topo.chain(d.id).iter().any(|l| l.device.id == limit.device));
        all.extend(above.map(|d| d.id));
    }
    all
}

fn evaluate_memory(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let pairs = match cgroup_intervals(case) {
        Ok(pairs) => pairs,
        Err(judged) => return judged,
    };
    for (before, now, secs) in pairs {
        let grown = |get: fn(&CgroupFacts) -> Option<u64>| Some(get(now)?.saturating_sub(get(before)?) as f64 / secs);
        let (high, max) = (grown(|g| g.high_events).unwrap_or(0.0), grown(|g| g.max_events).unwrap_or(0.0));
        if high.max(max) < MIN_LIMIT_EVENTS_PER_S {
            continue;
        }
        let (limit, file) = match high >= MIN_LIMIT_EVENTS_PER_S {
            true => (now.memory_high, "memory.high"),
            false => (now.memory_max, "memory.max"),
        };
        let title = format!(
            "control group {} is at its {file} of {}: its tasks are made to wait {} times a second",
            now.path,
            limit.map_or("-".into(), |n| format::bytes(n as f64)),
            format::count(high.max(max))
        );
        out.push(
            Finding::new(MEMORY_LIMIT.name, Severity::Warn, FindingSubject::Cgroup(now.path.clone()), title)
                .fact_opt("memory", now.memory_now.map(|n| format::bytes(n as f64)))
                .fact_opt("memory.high", now.memory_high.map(|n| format::bytes(n as f64)))
                .fact_opt("memory.max", now.memory_max.map(|n| format::bytes(n as f64)))
                .fact("at the limit", format!("{}/s", format::count(high.max(max))))
                .fact_opt("processes", process_names(case, now))
                .why("Each time its tasks have to free memory first: they drop their file cache and read it again from disk.")
                .advise(format!("raise {file}, or lower what the programs use"), "others get less memory")
                .see_also(NavTarget::Processes),
        );
    }
    RuleStatus::Evaluated
}

fn evaluate_cpu(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let pairs = match cgroup_intervals(case) {
        Ok(pairs) => pairs,
        Err(judged) => return judged,
    };
    for (before, now, _) in pairs {
        let (Some((p0, s0)), Some((p1, s1)), Some((quota, period))) =
            (before.cpu_periods, now.cpu_periods, now.cpu_max)
        else {
            continue;
        };
        let (periods, stopped) = (p1.saturating_sub(p0), s1.saturating_sub(s0));
        let pct = stopped as f64 * 100.0 / periods.max(1) as f64;
        // Few periods say nothing: ten are a second.
        if periods < 10 || pct < THROTTLED_PCT {
            continue;
        }
        let cores = quota as f64 / period.max(1) as f64;
        out.push(
            Finding::new(
                CPU_LIMIT.name,
                Severity::Warn,
                FindingSubject::Cgroup(now.path.clone()),
                format!(
                    "control group {} is stopped in {} of its periods by its CPU limit",
                    now.path,
                    format::percent(pct)
                ),
            )
            .fact("cpu.max", format!("{cores:.2} CPUs"))
            .fact("stopped", format!("{stopped} of {periods} periods"))
            .fact_opt("processes", process_names(case, now))
            .why("A stopped server answers late though disk and CPU look idle: it is easily taken for slow storage.")
            .advise("raise cpu.max (CPUQuota= of the unit), or run fewer threads", "others get less CPU")
            .see_also(NavTarget::Processes),
        );
    }
    RuleStatus::Evaluated
}
