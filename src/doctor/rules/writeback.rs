//! Dirty pages over the lines that matter (mm/page-writeback.c): above the background threshold the flushers
//! write while a store is still being dirtied, so the same pages go out again and again; above the free-run
//! ceiling, (background + dirty) / 2, whoever writes is put to sleep, up to 200 ms at a time.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, StalledTask, Sustained};
use crate::model::memory::WritebackRate;
use crate::model::memory_stalls::THROTTLE;
use crate::model::snapshot::Snapshot;

/// The background threshold is crossed while pages are dirtied.
pub const WRITEBACK_STORM: Rule = Rule {
    name: "writeback-storm",
    description: "the flushers write out a store that is still being dirtied",
    evaluate: evaluate_storm,
};

/// Writers are made to wait.
pub const WRITERS_THROTTLED: Rule = Rule {
    name: "writers-throttled",
    description: "too many dirty pages: writers are put to sleep",
    evaluate: evaluate_throttled,
};

/// A storm lasts so long: a file copied in one go is over sooner.
const STORM_SECS: f64 = 5.0;
/// Less than this dirtied per second is background noise: logs and metrics.
const MIN_DIRTY_BYTES_PER_S: f64 = 1_048_576.0;
/// Throttling is noticed by writers within a few of their own 200 ms sleeps.
const THROTTLED_SECS: f64 = 3.0;
/// Writers are asleep for so many milliseconds of each second, all of them together: less is fine steering.
const MIN_THROTTLED_MS_PER_S: f64 = 50.0;
/// Throttled writers told by name.
const MAX_NAMED_TASKS: usize = 4;
/// Throttled writers under this much I/O pressure (per cent of time in which every task waited) stand
/// still rather than crawl.
const STANDSTILL_PCT: f64 = 40.0;
/// And only when it goes on for so long: shorter is the end of a copy.
const STANDSTILL_SECS: f64 = 10.0;

/// Dirty and under writeback, bytes.
pub fn dirty_bytes(w: &WritebackRate) -> Option<f64> {
    Some((w.dirty_bytes? + w.writeback_bytes?) as f64)
}

fn is_above_background(s: &Snapshot) -> Option<bool> {
    let w = s.writeback.ok()?;
    let over = dirty_bytes(w)? >= w.background_threshold_bytes? as f64;
    Some(over && w.dirtied_bytes_per_s? >= MIN_DIRTY_BYTES_PER_S && w.written_bytes_per_s? >= MIN_DIRTY_BYTES_PER_S)
}

fn is_above_freerun(s: &Snapshot) -> Option<bool> {
    let w = s.writeback.ok()?;
    Some(dirty_bytes(w)? > w.freerun_bytes? as f64)
}

/// By the pauses themselves where they are counted, else by the level above which there may be some.
fn are_writers_throttled(s: &Snapshot) -> Option<bool> {
    match s.memory_stalls.ok().and_then(|s| s.totals[THROTTLE]) {
        Some(all) => Some(all.ms_per_s >= MIN_THROTTLED_MS_PER_S),
        None => is_above_freerun(s),
    }
}

fn unavailable(case: &RuleContext<'_>) -> Option<RuleStatus> {
    Some(RuleStatus::Unavailable(case.system.snapshot.writeback.unavailable_reason(case.now_ns())?))
}

/// Who dirties most, with what share: for whom the flushers write, where that is traced; else who dirties by its own
/// counter. A flusher that dirties metadata does so for whom it writes.
fn top_dirtier(case: &RuleContext<'_>) -> Option<(String, f64)> {
    if let Some(all) = case.attributed_io(STORM_SECS, |task| task.total.writeback_bytes_per_s)
        && let Some((_, name, bytes)) = all.first().filter(|first| first.2 >= MIN_DIRTY_BYTES_PER_S)
    {
        let sum: f64 = all.iter().map(|one| one.2).sum();
        return Some((name.clone(), bytes / sum));
    }
    let movers = case.top_io_tasks(STORM_SECS);
    let all: f64 = movers.iter().map(|m| m.write_bytes_per_s).sum();
    let first = movers
        .into_iter()
        .filter(|m| !m.is_kernel_thread)
        .max_by(|a, b| a.write_bytes_per_s.total_cmp(&b.write_bytes_per_s))?;
    (first.write_bytes_per_s >= MIN_DIRTY_BYTES_PER_S).then(|| (first.name, first.write_bytes_per_s / all))
}

/// The same in a title: a share that is not the larger part is said with it.
fn dirtier_suffix(case: &RuleContext<'_>) -> String {
    match top_dirtier(case) {
        Some((who, share)) if share > 0.5 => format!(" by {who}"),
        Some((who, share)) => format!(", {} of it by {who},", format::percent(share * 100.0)),
        None => String::new(),
    }
}

fn add_figures(case: &RuleContext<'_>, finding: Finding) -> Finding {
    let Some(w) = case.system.snapshot.writeback.ok() else { return finding };
    let level = |n: Option<u64>| n.map(|n| format::bytes(n as f64));
    let mean = |get: fn(&WritebackRate) -> Option<f64>| {
        case.mean(STORM_SECS, |s| get(s.writeback.ok()?)).map(format::bytes_per_s)
    };
    finding
        .fact_opt("dirty", level(w.dirty_bytes))
        .fact_opt("writeback", level(w.writeback_bytes))
        .fact_opt("background threshold", level(w.background_threshold_bytes))
        .fact_opt("free-run ceiling", level(w.freerun_bytes))
        .fact_opt("dirty threshold", level(w.dirty_threshold_bytes))
        .fact_opt("dirtied", mean(|w| w.dirtied_bytes_per_s))
        .fact_opt("written", mean(|w| w.written_bytes_per_s))
        .fact_opt(
            "most dirtied by",
            top_dirtier(case).map(|(who, share)| format!("{who}, {}", format::percent(share * 100.0))),
        )
}

fn evaluate_storm(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(cannot) = unavailable(case) {
        return cannot;
    }
    let since = match case.sustained(STORM_SECS, is_above_background) {
        Sustained::TooEarly => return RuleStatus::NeedsMoreData("a few seconds of writeback counters"),
        Sustained::NotSustained => return RuleStatus::Evaluated,
        Sustained::Since(since) => since,
    };
    let mean =
        |get: fn(&WritebackRate) -> Option<f64>| case.mean(STORM_SECS, |s| get(s.writeback.ok()?)).unwrap_or(0.0);
    let (dirtied, written) = (mean(|w| w.dirtied_bytes_per_s), mean(|w| w.written_bytes_per_s));
    let by = dirtier_suffix(case);
    let title = format!(
        "writeback storm: {} are dirtied{by} while the flushers write {}",
        format::bytes_per_s(dirtied),
        format::bytes_per_s(written)
    );
    let finding = Finding::new(WRITEBACK_STORM.name, Severity::Warn, FindingSubject::Machine, title).since(since).why(
        "Pages that are changed often are written each time the flushers come by. A store that fits below the background \
         threshold is written once instead: one database's write test ran 9.6 times faster with the threshold above its \
         store.",
    );
    out.push(
        add_figures(case, finding)
            .advise_at(
                "raise vm.dirty_background_bytes above the size of the store (and vm.dirty_bytes well above that)",
                "more lost at a power cut without a sync; the flush at the end is longer and others' syncs wait for it",
                NavTarget::Knob("vm.dirty_background_bytes".into()),
            )
            .advise_at(
                "measure before and after with a store that is dirtied at random",
                "adds load while it runs",
                NavTarget::Bench("txlog", None),
            )
            .see_also(NavTarget::Memory),
    );
    RuleStatus::Evaluated
}

/// Who is, and how far above the ceiling; or that it is another limit than the machine's.
fn throttled_title(case: &RuleContext<'_>, w: &WritebackRate, writers: &[StalledTask]) -> String {
    let level = format::bytes(dirty_bytes(w).unwrap_or(0.0));
    let ceiling = w.freerun_bytes.map_or("-".into(), |n| format::bytes(n as f64));
    let above = case.mean(THROTTLED_SECS, |s| is_above_freerun(s).map(f64::from)).is_none_or(|share| share > 0.0);
    match writers.first() {
        None => format!("{level} dirty and in writeback, above the free-run ceiling of {ceiling}"),
        Some(v) => {
            let who = format!("{} sleeps {} of the time", v.name, format::percent(v.ms_per_s / 10.0));
            let more = if writers.len() > 1 { format!(" and {} more", writers.len() - 1) } else { String::new() };
            let why = if above {
                format!("{level} dirty and in writeback, above the free-run ceiling of {ceiling}")
            } else {
                format!("by a limit of its device or control group: {level} dirty, the machine's ceiling is {ceiling}")
            };
            format!("{who}{more}; {why}")
        }
    }
}

fn evaluate_throttled(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(cannot) = unavailable(case) {
        return cannot;
    }
    let since = match case.sustained(THROTTLED_SECS, are_writers_throttled) {
        Sustained::TooEarly => return RuleStatus::NeedsMoreData("a few seconds of writeback counters"),
        Sustained::NotSustained => return RuleStatus::Evaluated,
        Sustained::Since(since) => since,
    };
    let Some(w) = case.system.snapshot.writeback.ok() else { return RuleStatus::Evaluated };
    let lasting = case.now_ns().saturating_sub(since) as f64 / 1e9;
    let full = case.mean(STANDSTILL_SECS, |s| Some(s.pressure.ok()?.io.full?.avg10)).unwrap_or(0.0);
    let severity = match lasting >= STANDSTILL_SECS && full >= STANDSTILL_PCT {
        true => Severity::Critical,
        false => Severity::Warn,
    };
    let writers = case.stalled_tasks(THROTTLED_SECS, THROTTLE);
    let title = format!("writers are throttled: {}", throttled_title(case, w, &writers));
    let pressure = case.snapshot().and_then(|s| s.pressure.ok()?.io.full).map(|s| format::percent(s.avg10));
    let mut finding = Finding::new(WRITERS_THROTTLED.name, severity, FindingSubject::Machine, title).since(since);
    for v in writers.iter().take(MAX_NAMED_TASKS) {
        let on = v.device.map_or(String::new(), |id| format!(", for {}", case.device_name(id)));
        finding = finding.fact(
            "throttled",
            format!(
                "{}, {} of the time, pauses up to {:.0} ms{on}",
                v.name,
                format::percent(v.ms_per_s / 10.0),
                v.max_ms
            ),
        );
    }
    let finding = finding.fact_opt("I/O pressure, all tasks waiting", pressure).why(
        "Above this ceiling each write() may sleep up to 200 ms at a time, for whichever program dirties pages and on \
             whichever device, until the flushers have caught up.",
    );
    out.push(
        add_figures(case, finding)
            .advise_at(
                "raise vm.dirty_bytes if the burst would fit into memory",
                "a longer stall when it is synced; more lost at a power cut",
                NavTarget::Knob("vm.dirty_bytes".into()),
            )
            .advise(
                "have the writer sync every few MiB, or write past the cache: then it waits for its own data only",
                "it gets slower by itself",
            )
            .advise_at(
                "lower vm.dirty_bytes if a slow device is the problem: the backlog stays short",
                "writers wait sooner, in smaller steps",
                NavTarget::Knob("vm.dirty_bytes".into()),
            )
            .see_also(NavTarget::Memory),
    );
    RuleStatus::Evaluated
}
