//! Swap: traffic that costs time now, told apart from what was put away long ago and is not missed, and
//! servers that wait for their own memory.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, Sustained};
use crate::model::memory::SwapRate;
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessQuery, ProcessRow};
use crate::model::snapshot::Snapshot;

/// Traffic now.
pub const SWAPPING: Rule =
    Rule { name: "swapping", description: "pages moving between memory and swap now", evaluate: evaluate_swapping };
/// Put away, not missed.
pub const SWAPPED_IDLE: Rule =
    Rule { name: "swapped-idle", description: "much in swap, but none of it is moving", evaluate: evaluate_idle };
/// A server's own memory.
pub const SERVER_SWAPPED: Rule = Rule {
    name: "server-swapped",
    description: "a server or a faulting program that is swapped out",
    evaluate: evaluate_servers,
};

/// Over so long: single pages come back all the time.
const WINDOW_SECS: f64 = 5.0;
/// Bytes per second in and out together: 16 pages a second all the time; the guides say "si and so should be 0".
const MIN_TRAFFIC_BYTES_PER_S: f64 = 16.0 * 4096.0;
/// Traffic with pauses is looked for over so long, and is so many bursts of it at least.
const BURST_SECS: f64 = 9.0;
const MIN_BURSTS: usize = 3;
/// Some come in at all, so that a program's faults are about swap and not about its files: 2 pages a second.
const MIN_SWAP_IN_BYTES_PER_S: f64 = 2.0 * 4096.0;
/// Tasks spend this share of their time waiting for memory (full avg10): work stands still.
const STANDSTILL_PCT: f64 = 25.0;
/// Quiet for so long before "idle" is said.
const QUIET_SECS: f64 = 10.0;
/// Less in swap than this share of memory is what every long-running machine has.
const MIN_USED_PCT: f64 = 5.0;
/// A server has this share of its own memory in swap: more than its cold start-up pages.
const SERVER_SWAPPED_PCT: f64 = 10.0;
/// Faults of a swapped program per second that say it misses its memory.
const MIN_FAULTS_PER_S: f64 = 5.0;
/// Tasks named.
const MAX_NAMED_TASKS: usize = 3;

fn traffic_bytes_per_s(s: &SwapRate) -> Option<f64> {
    Some(s.in_bytes_per_s? + s.out_bytes_per_s?)
}

fn unavailable(case: &RuleContext<'_>) -> Option<RuleStatus> {
    Some(RuleStatus::Unavailable(case.system.snapshot.swap.unavailable_reason(case.now_ns())?))
}

fn evaluate_swapping(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(cannot) = unavailable(case) {
        return cannot;
    }
    let moving = |s: &Snapshot| Some(traffic_bytes_per_s(s.swap.ok()?)? >= MIN_TRAFFIC_BYTES_PER_S);
    let since = match case.sustained(WINDOW_SECS, moving) {
        Sustained::TooEarly => return RuleStatus::NeedsMoreData("a few seconds of swap counters"),
        Sustained::NotSustained => return evaluate_bursts(case, out),
        Sustained::Since(since) => since,
    };
    let mean = |get: fn(&SwapRate) -> Option<f64>| case.mean(WINDOW_SECS, |s| get(s.swap.ok()?)).unwrap_or(0.0);
    let (si, so) = (mean(|s| s.in_bytes_per_s), mean(|s| s.out_bytes_per_s));
    let full = case.snapshot().and_then(|s| s.pressure.ok()?.memory.full).map(|p| p.avg10);
    let severity = match full {
        Some(pct) if pct >= STANDSTILL_PCT => Severity::Critical,
        _ => Severity::Warn,
    };
    let title = format!("the machine is swapping: si {}, so {}", format::bytes_per_s(si), format::bytes_per_s(so));
    let used = case.system.snapshot.swap.ok().and_then(|s| s.used_bytes);
    let mut finding = Finding::new(SWAPPING.name, severity, FindingSubject::Machine, title)
        .fact("si", format::bytes_per_s(si))
        .fact("so", format::bytes_per_s(so))
        .fact_opt("swap used", used.map(|n| format::bytes(n as f64)))
        .fact_opt("memory pressure, all tasks waiting", full.map(format::percent))
        .fact_opt("major faults", case.system.snapshot.major_faults_per_s.map(|n| format!("{}/s", format::count(n))))
        .since(since)
        .why(
            "A page that comes back from swap makes its program wait for a disk where it counted on memory: thousands of \
             times slower.",
        );
    for row in faulting_tasks(case) {
        let faults = row.major_faults_per_s.unwrap_or(0.0);
        finding = finding.fact("faulting", format!("{} ({}), {}/s", row.comm, row.pid, format::count(faults)));
    }
    out.push(
        finding
            .advise_at("find who grew: the SWAP and RES columns", "nothing", NavTarget::Processes)
            .advise("make room: smaller caches and heaps, fewer workers, or more memory", "less cache, or money")
            .advise_at(
                "lower vm.swappiness if it is file cache that pushes programs out",
                "the file cache is given up sooner",
                NavTarget::Knob("vm.swappiness".into()),
            )
            .see_also(NavTarget::Memory)
            .on_devices(swap_devices(case)),
    );
    RuleStatus::Evaluated
}

/// Pages that go out again and again with pauses between, as under a limit that is met now and then.
fn evaluate_bursts(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let out_of = |s: &Snapshot| s.swap.ok()?.out_bytes_per_s;
    let Some(so) = case.mean(BURST_SECS, out_of) else {
        return RuleStatus::NeedsMoreData("nine seconds of swap counters");
    };
    let (mut looked, mut begun, mut moved) = (0.0, 0, false);
    for snap in case.ticks() {
        if looked >= BURST_SECS {
            break;
        }
        looked += snap.interval_secs;
        let now = out_of(snap).is_some_and(|n| n >= MIN_TRAFFIC_BYTES_PER_S);
        begun += usize::from(now && !moved);
        moved = now;
    }
    if begun < MIN_BURSTS || so < MIN_TRAFFIC_BYTES_PER_S {
        return RuleStatus::Evaluated;
    }
    let used = case.system.snapshot.swap.ok().and_then(|s| s.used_bytes);
    let title = format!("pages go out to swap again and again: so {}", format::bytes_per_s(so));
    out.push(
        Finding::new(SWAPPING.name, Severity::Note, FindingSubject::Machine, title)
            .fact("so", format::bytes_per_s(so))
            .fact("bursts", format!("{begun} in {}", format::duration(looked)))
            .fact_opt("swap used", used.map(|n| format::bytes(n as f64)))
            .why(
                "Something grows against a limit, or gives its memory away on purpose. As long as nothing comes back \
                 (si), programs do not wait for it.",
            )
            .advise_at(
                "see whose memory goes: the SWAP column, and si in the Memory view",
                "nothing",
                NavTarget::Memory,
            )
            .advise("raise the limit of the control group that is met, if there is one", "memory that others lack")
            .see_also(NavTarget::Memory)
            .on_devices(swap_devices(case)),
    );
    RuleStatus::Evaluated
}

/// Devices that hold swap, with what they lie on; none if not known.
fn swap_devices(case: &RuleContext<'_>) -> Vec<crate::model::disk::DevId> {
    let Some(topo) = case.system.topology.ok() else { return Vec::new() };
    topo.devices.iter().filter(|d| !d.swaps.is_empty()).flat_map(|d| case.device_chain(d.id)).collect()
}

fn faulting_tasks<'a>(case: &RuleContext<'a>) -> Vec<ProcessRow<'a>> {
    let query = ProcessQuery {
        sort_by: ProcessColumn::MajorFaults,
        filter: ProcessFilter { only_active: true, ..ProcessFilter::default() },
        height: MAX_NAMED_TASKS,
        ..ProcessQuery::default()
    };
    let rows = case.system.processes.window(&query).rows.into_iter().map(|at| case.system.processes.row(at));
    rows.filter(|r| r.major_faults_per_s.is_some_and(|n| n >= MIN_FAULTS_PER_S)).collect()
}

fn evaluate_idle(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(cannot) = unavailable(case) {
        return cannot;
    }
    let used = case.system.snapshot.swap.ok().and_then(|s| s.used_bytes);
    let total = case.system.snapshot.mem.ok().map(|m| m.total);
    let (Some(used), Some(total)) = (used, total) else {
        return RuleStatus::Unavailable("memory sizes: not read".into());
    };
    let share = used as f64 * 100.0 / total.max(1) as f64;
    if share < MIN_USED_PCT {
        return RuleStatus::Evaluated;
    }
    let quiet = |s: &Snapshot| Some(traffic_bytes_per_s(s.swap.ok()?)? < MIN_TRAFFIC_BYTES_PER_S);
    let since = match case.sustained(QUIET_SECS, quiet) {
        Sustained::TooEarly => return RuleStatus::NeedsMoreData("ten seconds of swap counters"),
        Sustained::NotSustained => return RuleStatus::Evaluated,
        Sustained::Since(since) => since,
    };
    out.push(
        Finding::new(
            SWAPPED_IDLE.name,
            Severity::Note,
            FindingSubject::Machine,
            format!("{} in swap, and none of it is moving", format::bytes(used as f64)),
        )
        .fact("swap used", format::bytes(used as f64))
        .fact("of memory", format::percent(share))
        .fact("quiet for", format::duration(case.now_ns().saturating_sub(since) as f64 / 1e9))
        .since(since)
        .why("It was put away under pressure some time ago. It costs nothing now; whoever needs it again will wait once.")
        .advise_at("see whose it is, before a server needs it", "nothing", NavTarget::Memory)
        .see_also(NavTarget::Memory),
    );
    RuleStatus::Evaluated
}

fn evaluate_servers(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if let Some(why) = case.system.processes_status.unavailable_reason(case.now_ns()) {
        return RuleStatus::Unavailable(why);
    }
    let survey = case.task_survey();
    for at in &survey.swapped_tasks {
        let row = case.system.processes.row(*at);
        let Some(swap) = row.swap_bytes else { continue };
        let share = swap as f64 * 100.0 / (swap + row.rss_bytes).max(1) as f64;
        let known = survey.servers.iter().any(|(other, _)| other == at);
        let faults = row.major_faults_per_s.unwrap_or(0.0);
        let misses = faults >= MIN_FAULTS_PER_S && is_swapping_in(case);
        if share < SERVER_SWAPPED_PCT || !(known || misses) {
            continue;
        }
        let what = if known { "the server" } else { "" };
        let title = format!(
            "{what} {} ({}) has {} of its memory in swap ({})",
            row.comm,
            row.pid,
            format::bytes(swap as f64),
            format::percent(share)
        );
        out.push(
            Finding::new(
                SERVER_SWAPPED.name,
                Severity::Warn,
                FindingSubject::Task(row.key(), row.comm.to_string()),
                title.trim_start().to_owned(),
            )
            .fact("in swap", format::bytes(swap as f64))
            .fact("resident", format::bytes(row.rss_bytes as f64))
            .fact("share in swap", format::percent(share))
            .fact("major faults", format!("{}/s", format::count(faults)))
            .why(
                "A server that answers from memory waits for the disk with every page that is missing. Healthy servers have \
                 some kilobytes of start-up code in swap, no more. Shared memory would come on top: VmSwap leaves it out.",
            )
            .advise_at(
                "see which mappings are swapped (m on its page)",
                "walks its page tables: it stalls meanwhile, for seconds if it is large",
                NavTarget::Task(row.key()),
            )
            .advise_at(
                "lower vm.swappiness; give it memory.low, or lock its memory",
                "the file cache is given up sooner",
                NavTarget::Knob("vm.swappiness".into()),
            )
            .see_also(NavTarget::Task(row.key())),
        );
    }
    RuleStatus::Evaluated
}

fn is_swapping_in(case: &RuleContext<'_>) -> bool {
    case.mean(WINDOW_SECS, |s| s.swap.ok()?.in_bytes_per_s).is_some_and(|n| n >= MIN_SWAP_IN_BYTES_PER_S)
}
