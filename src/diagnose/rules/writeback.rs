//! Dirty pages over the lines that matter (mm/page-writeback.c): above the background threshold the flushers
//! write while a store is still being dirtied, so the same pages go out again and again; above the free-run
//! ceiling, (background + dirty) / 2, whoever writes is put to sleep, up to 200 ms at a time.

use crate::diagnose::case::{Case, Held, Victim};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::memory::WritebackRate;
use crate::model::snapshot::Snapshot;
use crate::model::memory_stalls::THROTTLE;

/// The background threshold is crossed while pages are dirtied.
pub const STORM: Rule = Rule {
    name: "writeback-storm",
    about: "the flushers write out a store that is still being dirtied",
    look: storm,
};

/// Writers are made to wait.
pub const THROTTLED: Rule = Rule {
    name: "writers-throttled",
    about: "too many dirty pages: writers are put to sleep",
    look: throttled,
};

/// A storm lasts so long: a file copied in one go is over sooner.
const STORM_SECS: f64 = 5.0;
/// Less than this dirtied per second is background noise: logs and metrics.
const DIRTYING: f64 = 1_048_576.0;
/// Throttling is noticed by writers within a few of their own 200 ms sleeps.
const THROTTLED_SECS: f64 = 3.0;
/// Writers are asleep for so many milliseconds of each second, all of them together: less is fine steering.
const ASLEEP_MS: f64 = 50.0;
/// Throttled writers told by name.
const NAMED: usize = 4;
/// Throttled writers under this much I/O pressure (per cent of time in which every task waited) stand
/// still rather than crawl.
const STANDSTILL_PCT: f64 = 40.0;
/// And only when it goes on for so long: shorter is the end of a copy.
const STANDSTILL_SECS: f64 = 10.0;

/// Dirty and under writeback, bytes.
pub fn dirty(w: &WritebackRate) -> Option<f64> {
    Some((w.dirty_bytes? + w.writeback_bytes?) as f64)
}

fn above_background(s: &Snapshot) -> Option<bool> {
    let w = s.writeback.ok()?;
    let over = dirty(w)? >= w.background_threshold_bytes? as f64;
    Some(over && w.dirtied_bytes_per_s? >= DIRTYING && w.written_bytes_per_s? >= DIRTYING)
}

fn above_free_run(s: &Snapshot) -> Option<bool> {
    let w = s.writeback.ok()?;
    Some(dirty(w)? > w.freerun_bytes? as f64)
}

/// By the pauses themselves where they are counted, else by the level above which there may be some.
fn writers_wait(s: &Snapshot) -> Option<bool> {
    match s.memory_stalls.ok().and_then(|s| s.totals[THROTTLE]) {
        Some(all) => Some(all.ms_per_s >= ASLEEP_MS),
        None => above_free_run(s),
    }
}

fn missing(case: &Case<'_>) -> Option<Judged> {
    Some(Judged::Cannot(case.world.snapshot.writeback.unavailable_reason(case.now_ns())?))
}

/// Who dirties most, with what share: for whom the flushers write, where that is traced; else who dirties by its own
/// counter. A flusher that dirties metadata does so for whom it writes.
fn dirtier(case: &Case<'_>) -> Option<(String, f64)> {
    if let Some(all) = case.charged(STORM_SECS, |task| task.total.writeback_bytes_per_s)
        && let Some((_, name, bytes)) = all.first().filter(|first| first.2 >= DIRTYING)
    {
        let sum: f64 = all.iter().map(|one| one.2).sum();
        return Some((name.clone(), bytes / sum));
    }
    let movers = case.movers(STORM_SECS);
    let all: f64 = movers.iter().map(|m| m.write).sum();
    let first = movers.into_iter().filter(|m| !m.kernel).max_by(|a, b| a.write.total_cmp(&b.write))?;
    (first.write >= DIRTYING).then(|| (first.name, first.write / all))
}

/// The same in a title: a share that is not the larger part is said with it.
fn by(case: &Case<'_>) -> String {
    match dirtier(case) {
        Some((who, share)) if share > 0.5 => format!(" by {who}"),
        Some((who, share)) => format!(", {} of it by {who},", words::pct(share * 100.0)),
        None => String::new(),
    }
}

fn figures(case: &Case<'_>, finding: Finding) -> Finding {
    let Some(w) = case.world.snapshot.writeback.ok() else { return finding };
    let level = |n: Option<u64>| n.map(|n| words::bytes(n as f64));
    let mean = |get: fn(&WritebackRate) -> Option<f64>| {
        case.mean(STORM_SECS, |s| get(s.writeback.ok()?)).map(words::rate)
    };
    finding
        .fact_if("dirty", level(w.dirty_bytes))
        .fact_if("writeback", level(w.writeback_bytes))
        .fact_if("background threshold", level(w.background_threshold_bytes))
        .fact_if("free-run ceiling", level(w.freerun_bytes))
        .fact_if("dirty threshold", level(w.dirty_threshold_bytes))
        .fact_if("dirtied", mean(|w| w.dirtied_bytes_per_s))
        .fact_if("written", mean(|w| w.written_bytes_per_s))
        .fact_if(
            "most dirtied by",
            dirtier(case).map(|(who, share)| format!("{who}, {}", words::pct(share * 100.0))),
        )
}

fn storm(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(cannot) = missing(case) {
        return cannot;
    }
    let since = match case.held(STORM_SECS, above_background) {
        Held::NotYet => return Judged::NotYet("a few seconds of writeback counters"),
        Held::No => return Judged::Yes,
        Held::Since(since) => since,
    };
    let mean = |get: fn(&WritebackRate) -> Option<f64>| {
        case.mean(STORM_SECS, |s| get(s.writeback.ok()?)).unwrap_or(0.0)
    };
    let (dirtied, written) = (mean(|w| w.dirtied_bytes_per_s), mean(|w| w.written_bytes_per_s));
    let by = by(case);
    let title = format!(
        "writeback storm: {} are dirtied{by} while the flushers write {}",
        words::rate(dirtied),
        words::rate(written)
    );
    let finding = Finding::new(STORM.name, Severity::Warn, Subject::Machine, title).since(since).why(
        "Pages that are changed often are written each time the flushers come by. A store that fits below the background \
         threshold is written once instead: one database's write test ran 9.6 times faster with the threshold above its \
         store.",
    );
    out.push(
        figures(case, finding)
            .advise_at(
                "raise vm.dirty_background_bytes above the size of the store (and vm.dirty_bytes well above that)",
                "more lost at a power cut without a sync; the flush at the end is longer and others' syncs wait for it",
                Jump::Knob("vm.dirty_background_bytes".into()),
            )
            .advise_at(
                "measure before and after with a store that is dirtied at random",
                "adds load while it runs",
                Jump::Bench("txlog", None),
            )
            .look_at(Jump::Memory),
    );
    Judged::Yes
}

/// Who is, and how far above the ceiling; or that it is another limit than the machine's.
fn throttled_title(case: &Case<'_>, w: &WritebackRate, writers: &[Victim]) -> String {
    let level = words::bytes(dirty(w).unwrap_or(0.0));
    let ceiling = w.freerun_bytes.map_or("-".into(), |n| words::bytes(n as f64));
    let above =
        case.mean(THROTTLED_SECS, |s| above_free_run(s).map(f64::from)).is_none_or(|share| share > 0.0);
    match writers.first() {
        None => format!("{level} dirty and in writeback, above the free-run ceiling of {ceiling}"),
        Some(v) => {
            let who = format!("{} sleeps {} of the time", v.name, words::pct(v.ms_per_s / 10.0));
            let more =
                if writers.len() > 1 { format!(" and {} more", writers.len() - 1) } else { String::new() };
            let why = if above {
                format!("{level} dirty and in writeback, above the free-run ceiling of {ceiling}")
            } else {
                format!(
                    "by a limit of its device or control group: {level} dirty, the machine's ceiling is {ceiling}"
                )
            };
            format!("{who}{more}; {why}")
        }
    }
}

fn throttled(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(cannot) = missing(case) {
        return cannot;
    }
    let since = match case.held(THROTTLED_SECS, writers_wait) {
        Held::NotYet => return Judged::NotYet("a few seconds of writeback counters"),
        Held::No => return Judged::Yes,
        Held::Since(since) => since,
    };
    let Some(w) = case.world.snapshot.writeback.ok() else { return Judged::Yes };
    let lasting = case.now_ns().saturating_sub(since) as f64 / 1e9;
    let full = case.mean(STANDSTILL_SECS, |s| Some(s.pressure.ok()?.io.full?.avg10)).unwrap_or(0.0);
    let severity = match lasting >= STANDSTILL_SECS && full >= STANDSTILL_PCT {
        true => Severity::Critical,
        false => Severity::Warn,
    };
    let writers = case.held_up(THROTTLED_SECS, THROTTLE);
    let title = format!("writers are throttled: {}", throttled_title(case, w, &writers));
    let pressure = case.snap().and_then(|s| s.pressure.ok()?.io.full).map(|s| words::pct(s.avg10));
    let mut finding = Finding::new(THROTTLED.name, severity, Subject::Machine, title).since(since);
    for v in writers.iter().take(NAMED) {
        let on = v.device.map_or(String::new(), |id| format!(", for {}", case.device_name(id)));
        finding = finding.fact(
            "throttled",
            format!(
                "{}, {} of the time, pauses up to {:.0} ms{on}",
                v.name,
                words::pct(v.ms_per_s / 10.0),
                v.longest_ms
            ),
        );
    }
    let finding = finding
        .fact_if("I/O pressure, all tasks waiting", pressure)
        .why(
            "Above this ceiling each write() may sleep up to 200 ms at a time, for whichever program dirties pages and on \
             whichever device, until the flushers have caught up.",
        );
    out.push(
        figures(case, finding)
            .advise_at(
                "raise vm.dirty_bytes if the burst would fit into memory",
                "a longer stall when it is synced; more lost at a power cut",
                Jump::Knob("vm.dirty_bytes".into()),
            )
            .advise(
                "have the writer sync every few MiB, or write past the cache: then it waits for its own data only",
                "it gets slower by itself",
            )
            .advise_at(
                "lower vm.dirty_bytes if a slow device is the problem: the backlog stays short",
                "writers wait sooner, in smaller steps",
                Jump::Knob("vm.dirty_bytes".into()),
            )
            .look_at(Jump::Memory),
    );
    Judged::Yes
}
