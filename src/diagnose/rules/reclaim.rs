//! Tasks that have to make room in memory themselves before they get any: each allocation may wait for pages to be
//! scanned, written out, or given up by somebody else. Who pays is often not who fills the memory.

use crate::diagnose::case::{Case, Held, Mover, Victim};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::snapshot::Snapshot;
use crate::model::memory_stalls::{RECLAIM, MemoryStalls};

/// The rule.
pub const RULE: Rule =
    Rule { name: "reclaim-stalls", about: "a task is held up making room in memory by itself", look };

/// Over so long.
const WINDOW_SECS: f64 = 5.0;
/// One task loses so many milliseconds of each second. A stream that recycles its own cache in a control group loses
/// less than half of that.
const LOST_MS: f64 = 200.0;
/// It hardly gets anywhere.
const CRAWLS_MS: f64 = 700.0;
/// A stream that fills the cache: bytes per second.
const STREAM: f64 = 32.0 * 1_048_576.0;
/// Tasks named.
const NAMED: usize = 3;

fn loses(s: &Snapshot) -> Option<bool> {
    let stalls: &MemoryStalls = s.memory_stalls.ok()?;
    stalls.totals[RECLAIM]?;
    Some(stalls.processes.iter().any(|t| t.rates[RECLAIM].ms_per_s >= LOST_MS))
}

fn look(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let snap = &case.world.snapshot;
    if let Some(why) = snap.memory_stalls.unavailable_reason(case.now_ns()) {
        return Judged::Cannot(why);
    }
    if let Some(why) = snap.memory_stalls.ok().filter(|s| s.totals[RECLAIM].is_none()).and_then(|s| s.unavailable.first()) {
        return Judged::Cannot(why.clone());
    }
    let since = match case.held(WINDOW_SECS, loses) {
        Held::NotYet => return Judged::NotYet("a few seconds of traced stalls"),
        Held::No => return Judged::Yes,
        Held::Since(since) => since,
    };
    let victims = case.held_up(WINDOW_SECS, RECLAIM);
    if let Some(first) = victims.first().filter(|v| v.ms_per_s >= LOST_MS) {
        out.push(finding(case, first, &victims, since));
    }
    Judged::Yes
}

fn finding(case: &Case<'_>, first: &Victim, victims: &[Victim], since: u64) -> Finding {
    let severity = if first.ms_per_s >= CRAWLS_MS { Severity::Critical } else { Severity::Warn };
    let row = case.world.processes.get(&first.key);
    let cgroup = row.as_ref().and_then(|r| r.cgroup).map(crate::text::sanitize).filter(|c| c != "/");
    let title = format!(
        "{} loses {} of its time making room in memory (direct reclaim)",
        first.name,
        words::pct(first.ms_per_s / 10.0)
    );
    let subject = Subject::Task(first.key, first.name.clone());
    let mut f = Finding::new(RULE.name, severity, subject, title).since(since);
    for v in victims.iter().take(NAMED) {
        let text = format!(
            "{}, {} of the time, up to {:.0} ms at once",
            v.name,
            words::pct(v.ms_per_s / 10.0),
            v.longest_ms
        );
        f = f.fact("in direct reclaim", text);
    }
    if let Some(m) = streamer(case) {
        let own = if m.key.pid == first.key.pid { " (the task itself)" } else { "" };
        f = f.fact("streams most", format!("{}, {}{own}", m.name, words::rate(m.read + m.write)));
    }
    f.fact_if("control group", cgroup)
        .fact_if(
            "memory pressure, all tasks waiting",
            case.snap().and_then(|s| s.pressure.ok()?.memory.full).map(|p| words::pct(p.avg10)),
        )
        .why(
            "The kernel keeps pages ready in the background. When they are used up faster, whoever asks next has to find \
             some by itself and stands still meanwhile; in a control group at its limit each of its tasks does.",
        )
        .advise(
            "run what streams past the cache, or in a control group with a memory.high of its own",
            "it may get slower",
        )
        .advise(
            "raise the limit of the control group, or give the task's group memory.low",
            "memory that others lack",
        )
        .advise_at(
            "have the kernel keep more pages ready: raise vm.watermark_scale_factor",
            "a little memory that is never used",
            Jump::Knob("vm.watermark_scale_factor".into()),
        )
        .look_at(Jump::Task(first.key))
}

/// Who fills the cache, if somebody moves enough for that.
fn streamer(case: &Case<'_>) -> Option<Mover> {
    case.movers(WINDOW_SECS).into_iter().find(|m| !m.kernel && m.read + m.write >= STREAM)
}
