//! Limits of control groups. They are invisible in the device's own counters: a loop device held to 66 IOPS
//! shows 0.06 ms await and no utilisation, while the program waits 66 ms for each request.

use crate::diagnose::case::Case;
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::slow_facts::{SystemFacts, CgroupFacts, CgroupIoLimit};

/// I/O.
pub const IO: Rule = Rule { name: "cgroup-io", about: "a control group at its I/O limit", look: io };
/// Memory.
pub const MEMORY: Rule =
    Rule { name: "cgroup-memory", about: "a control group held back at its memory limit", look: memory };
/// CPU.
pub const CPU: Rule =
    Rule { name: "cgroup-cpu", about: "a control group stopped by its CPU limit", look: cpu };

/// At this share of a limit it is the limit that slows it down.
const AT_LIMIT: f64 = 0.85;
/// Throttled for memory more often than this per second, it waits noticeably.
const THROTTLES: f64 = 1.0;
/// Stopped in this share of its periods.
const STOPPED_PCT: f64 = 20.0;

/// Pairs of a group before and now, with the seconds between; or what is to come.
fn pairs<'c>(
    case: &'c Case<'_>,
) -> Result<impl Iterator<Item = (&'c CgroupFacts, &'c CgroupFacts, f64)>, Judged> {
    let known = &case.world.slow_facts;
    let (Some(now), Some(before), Some(secs)) = (&known.latest, &known.previous, known.interval_secs()) else {
        return Err(Judged::NotYet("two looks at the control groups"));
    };
    let find = |path: &str, all: &'c SystemFacts| all.cgroups.iter().find(|g| g.path == path);
    Ok(now.cgroups.iter().filter_map(move |g| Some((find(&g.path, before)?, g, secs))))
}

/// Names of the limit's file for each direction, its value and what went through per second.
fn through(before: &CgroupIoLimit, now: &CgroupIoLimit, secs: f64) -> Option<[(&'static str, f64, Option<u64>); 4]> {
    let (a, b) = (before.transferred?, now.transferred?);
    let per_s = |i: usize| b[i].saturating_sub(a[i]) as f64 / secs;
    Some([
        ("read bytes/s", per_s(0), now.read_bytes_per_s),
        ("written bytes/s", per_s(1), now.write_bytes_per_s),
        ("reads/s", per_s(2), now.reads_per_s),
        ("writes/s", per_s(3), now.writes_per_s),
    ])
}

fn who(case: &Case<'_>, g: &CgroupFacts) -> Option<String> {
    let names = g.pids.iter().take(3).filter_map(|pid| case.world.processes.find_by_pid(*pid));
    let names: Vec<String> = names.map(|r| format!("{} ({})", r.comm, r.pid)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn io(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let pairs = match pairs(case) {
        Ok(pairs) => pairs,
        Err(judged) => return judged,
    };
    for (before, now, secs) in pairs {
        for limit in &now.io {
            let old = before.io.iter().find(|l| l.device == limit.device);
            let Some(all) = old.and_then(|old| through(old, limit, secs)) else { continue };
            let hit =
                all.into_iter().find(|(_, rate, most)| most.is_some_and(|m| *rate >= m as f64 * AT_LIMIT));
            let Some((what, rate, Some(most))) = hit else { continue };
            let name = case.device_name(limit.device);
            let figure = |n: f64| match what.contains("bytes") {
                true => words::rate(n),
                false => format!("{}/s", words::count(n)),
            };
            let kind = what.split(' ').next().unwrap_or(what).trim_end_matches("/s");
            let title = format!(
                "control group {} is held to {} of {kind} on {name}: it is at its limit",
                now.path,
                figure(most as f64)
            );
            out.push(
                Finding::new(IO.name, Severity::Warn, Subject::Group(now.path.clone()), title)
                    .fact("limit", figure(most as f64))
                    .fact("through", figure(rate))
                    .fact("device", name)
                    .fact_if("processes", who(case, now))
                    .why(
                        "Its requests wait before they reach the device, so the device looks idle and fast while its programs \
                         stand still. Nothing on the device helps.",
                    )
                    .advise("raise or remove the limit (io.max, blkio.throttle.*, IOReadIOPSMax= and the like of the unit)", "others on the device get less")
                    .advise("if it is meant: nothing is wrong with the storage", "nothing")
                    .look_at(Jump::Processes)
                    .touching(touched(case, limit)),
            );
        }
    }
    Judged::Yes
}

/// The device with what lies on it: the wait shows there.
fn touched(case: &Case<'_>, limit: &CgroupIoLimit) -> Vec<crate::model::disk::DevId> {
    let mut all = case.chain(limit.device);
    if let Some(topo) = case.world.topology.ok() {
        let above =
            topo.devices.iter().filter(|d| topo.chain(d.id).iter().any(|l| l.device.id == limit.device));
        all.extend(above.map(|d| d.id));
    }
    all
}

fn memory(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let pairs = match pairs(case) {
        Ok(pairs) => pairs,
        Err(judged) => return judged,
    };
    for (before, now, secs) in pairs {
        let grown =
            |get: fn(&CgroupFacts) -> Option<u64>| Some(get(now)?.saturating_sub(get(before)?) as f64 / secs);
        let (high, max) = (grown(|g| g.high_events).unwrap_or(0.0), grown(|g| g.max_events).unwrap_or(0.0));
        if high.max(max) < THROTTLES {
            continue;
        }
        let (limit, file) = match high >= THROTTLES {
            true => (now.memory_high, "memory.high"),
            false => (now.memory_max, "memory.max"),
        };
        let title = format!(
            "control group {} is at its {file} of {}: its tasks are made to wait {} times a second",
            now.path,
            limit.map_or("-".into(), |n| words::bytes(n as f64)),
            words::count(high.max(max))
        );
        out.push(
            Finding::new(MEMORY.name, Severity::Warn, Subject::Group(now.path.clone()), title)
                .fact_if("memory", now.memory_now.map(|n| words::bytes(n as f64)))
                .fact_if("memory.high", now.memory_high.map(|n| words::bytes(n as f64)))
                .fact_if("memory.max", now.memory_max.map(|n| words::bytes(n as f64)))
                .fact("at the limit", format!("{}/s", words::count(high.max(max))))
                .fact_if("processes", who(case, now))
                .why("Each time its tasks have to free memory first: they drop their file cache and read it again from disk.")
                .advise(format!("raise {file}, or lower what the programs use"), "others get less memory")
                .look_at(Jump::Processes),
        );
    }
    Judged::Yes
}

fn cpu(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let pairs = match pairs(case) {
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
        if periods < 10 || pct < STOPPED_PCT {
            continue;
        }
        let cores = quota as f64 / period.max(1) as f64;
        out.push(
            Finding::new(
                CPU.name,
                Severity::Warn,
                Subject::Group(now.path.clone()),
                format!("control group {} is stopped in {} of its periods by its CPU limit", now.path, words::pct(pct)),
            )
            .fact("cpu.max", format!("{cores:.2} CPUs"))
            .fact("stopped", format!("{stopped} of {periods} periods"))
            .fact_if("processes", who(case, now))
            .why("A stopped server answers late though disk and CPU look idle: it is easily taken for slow storage.")
            .advise("raise cpu.max (CPUQuota= of the unit), or run fewer threads", "others get less CPU")
            .look_at(Jump::Processes),
        );
    }
    Judged::Yes
}
