//! Swap: traffic that costs time now, told apart from what was put away long ago and is not missed, and
//! servers that wait for their own memory.

use crate::diagnose::case::{Case, Held};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::memory::SwapRate;
use crate::model::process::{ProcessColumn, ProcessFilter, ProcessRow, ProcessQuery};
use crate::model::snapshot::Snapshot;

/// Traffic now.
pub const NOW: Rule = Rule { name: "swapping", about: "pages moving between memory and swap now", look: now };
/// Put away, not missed.
pub const IDLE: Rule =
    Rule { name: "swapped-idle", about: "much in swap, but none of it is moving", look: idle };
/// A server's own memory.
pub const SERVER: Rule = Rule {
    name: "server-swapped",
    about: "a server or a faulting program that is swapped out",
    look: server,
};

/// Over so long: single pages come back all the time.
const WINDOW_SECS: f64 = 5.0;
/// Bytes per second in and out together: 16 pages a second all the time; the guides say "si and so should be 0".
const MOVING: f64 = 16.0 * 4096.0;
/// Traffic with pauses is looked for over so long, and is so many bursts of it at least.
const BURST_SECS: f64 = 9.0;
const BURSTS: usize = 3;
/// Some come in at all, so that a program's faults are about swap and not about its files: 2 pages a second.
const COMING_IN: f64 = 2.0 * 4096.0;
/// Tasks spend this share of their time waiting for memory (full avg10): work stands still.
const STANDSTILL_PCT: f64 = 25.0;
/// Quiet for so long before "idle" is said.
const QUIET_SECS: f64 = 10.0;
/// Less in swap than this share of memory is what every long-running machine has.
const MUCH_PCT: f64 = 5.0;
/// A server has this share of its own memory in swap: more than its cold start-up pages.
const SWAPPED_PCT: f64 = 10.0;
/// Faults of a swapped program per second that say it misses its memory.
const FAULTS: f64 = 5.0;
/// Tasks named.
const NAMED: usize = 3;

fn traffic(s: &SwapRate) -> Option<f64> {
    Some(s.in_bytes_per_s? + s.out_bytes_per_s?)
}

fn missing(case: &Case<'_>) -> Option<Judged> {
    Some(Judged::Cannot(case.world.snapshot.swap.unavailable_reason(case.now_ns())?))
}

fn now(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(cannot) = missing(case) {
        return cannot;
    }
    let moving = |s: &Snapshot| Some(traffic(s.swap.ok()?)? >= MOVING);
    let since = match case.held(WINDOW_SECS, moving) {
        Held::NotYet => return Judged::NotYet("a few seconds of swap counters"),
        Held::No => return bursts(case, out),
        Held::Since(since) => since,
    };
    let mean =
        |get: fn(&SwapRate) -> Option<f64>| case.mean(WINDOW_SECS, |s| get(s.swap.ok()?)).unwrap_or(0.0);
    let (si, so) = (mean(|s| s.in_bytes_per_s), mean(|s| s.out_bytes_per_s));
    let full = case.snap().and_then(|s| s.pressure.ok()?.memory.full).map(|p| p.avg10);
    let severity = match full {
        Some(pct) if pct >= STANDSTILL_PCT => Severity::Critical,
        _ => Severity::Warn,
    };
    let title = format!("the machine is swapping: si {}, so {}", words::rate(si), words::rate(so));
    let used = case.world.snapshot.swap.ok().and_then(|s| s.used_bytes);
    let mut finding = Finding::new(NOW.name, severity, Subject::Machine, title)
        .fact("si", words::rate(si))
        .fact("so", words::rate(so))
        .fact_if("swap used", used.map(|n| words::bytes(n as f64)))
        .fact_if("memory pressure, all tasks waiting", full.map(words::pct))
        .fact_if("major faults", case.world.snapshot.major_faults_per_s.map(|n| format!("{}/s", words::count(n))))
        .since(since)
        .why(
            "A page that comes back from swap makes its program wait for a disk where it counted on memory: thousands of \
             times slower.",
        );
    for row in faulting(case) {
        let faults = row.major_faults_per_s.unwrap_or(0.0);
        finding = finding.fact("faulting", format!("{} ({}), {}/s", row.comm, row.pid, words::count(faults)));
    }
    out.push(
        finding
            .advise_at("find who grew: the SWAP and RES columns", "nothing", Jump::Processes)
            .advise(
                "make room: smaller caches and heaps, fewer workers, or more memory",
                "less cache, or money",
            )
            .advise_at(
                "lower vm.swappiness if it is file cache that pushes programs out",
                "the file cache is given up sooner",
                Jump::Knob("vm.swappiness".into()),
            )
            .look_at(Jump::Memory)
            .touching(swap_devices(case)),
    );
    Judged::Yes
}

/// Pages that go out again and again with pauses between, as under a limit that is met now and then.
fn bursts(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let out_of = |s: &Snapshot| s.swap.ok()?.out_bytes_per_s;
    let Some(so) = case.mean(BURST_SECS, out_of) else {
        return Judged::NotYet("nine seconds of swap counters");
    };
    let (mut looked, mut begun, mut moved) = (0.0, 0, false);
    for snap in case.ticks() {
        if looked >= BURST_SECS {
            break;
        }
        looked += snap.interval_secs;
        let now = out_of(snap).is_some_and(|n| n >= MOVING);
        begun += usize::from(now && !moved);
        moved = now;
    }
    if begun < BURSTS || so < MOVING {
        return Judged::Yes;
    }
    let used = case.world.snapshot.swap.ok().and_then(|s| s.used_bytes);
    let title = format!("pages go out to swap again and again: so {}", words::rate(so));
    out.push(
        Finding::new(NOW.name, Severity::Note, Subject::Machine, title)
            .fact("so", words::rate(so))
            .fact("bursts", format!("{begun} in {}", words::secs(looked)))
            .fact_if("swap used", used.map(|n| words::bytes(n as f64)))
                        .why(
                "Something grows against a limit, or gives its memory away on purpose. As long as nothing comes back \
                 (si), programs do not wait for it.",
            )
            .advise_at("see whose memory goes: the SWAP column, and si in the Memory view", "nothing", Jump::Memory)
            .advise("raise the limit of the control group that is met, if there is one", "memory that others lack")
            .look_at(Jump::Memory)
            .touching(swap_devices(case)),
    );
    Judged::Yes
}

/// Devices that hold swap, with what they lie on; none if not known.
fn swap_devices(case: &Case<'_>) -> Vec<crate::model::disk::DevId> {
    let Some(topo) = case.world.topology.ok() else { return Vec::new() };
    topo.devices.iter().filter(|d| !d.swaps.is_empty()).flat_map(|d| case.chain(d.id)).collect()
}

fn faulting<'a>(case: &Case<'a>) -> Vec<ProcessRow<'a>> {
    let query = ProcessQuery {
        sort_by: ProcessColumn::MajorFaults,
        filter: ProcessFilter { only_active: true, ..ProcessFilter::default() },
        height: NAMED,
        ..ProcessQuery::default()
    };
    let rows = case.world.processes.window(&query).rows.into_iter().map(|at| case.world.processes.row(at));
    rows.filter(|r| r.major_faults_per_s.is_some_and(|n| n >= FAULTS)).collect()
}

fn idle(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(cannot) = missing(case) {
        return cannot;
    }
    let used = case.world.snapshot.swap.ok().and_then(|s| s.used_bytes);
    let total = case.world.snapshot.mem.ok().map(|m| m.total);
    let (Some(used), Some(total)) = (used, total) else {
        return Judged::Cannot("memory sizes: not read".into());
    };
    let share = used as f64 * 100.0 / total.max(1) as f64;
    if share < MUCH_PCT {
        return Judged::Yes;
    }
    let quiet = |s: &Snapshot| Some(traffic(s.swap.ok()?)? < MOVING);
    let since = match case.held(QUIET_SECS, quiet) {
        Held::NotYet => return Judged::NotYet("ten seconds of swap counters"),
        Held::No => return Judged::Yes,
        Held::Since(since) => since,
    };
    out.push(
        Finding::new(
            IDLE.name,
            Severity::Note,
            Subject::Machine,
            format!("{} in swap, and none of it is moving", words::bytes(used as f64)),
        )
        .fact("swap used", words::bytes(used as f64))
        .fact("of memory", words::pct(share))
        .fact("quiet for", words::secs(case.now_ns().saturating_sub(since) as f64 / 1e9))
        .since(since)
        .why("It was put away under pressure some time ago. It costs nothing now; whoever needs it again will wait once.")
        .advise_at("see whose it is, before a server needs it", "nothing", Jump::Memory)
        .look_at(Jump::Memory),
    );
    Judged::Yes
}

fn server(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(why) = case.world.processes_status.unavailable_reason(case.now_ns()) {
        return Judged::Cannot(why);
    }
    let survey = case.survey();
    for at in &survey.swapped {
        let row = case.world.processes.row(*at);
        let Some(swap) = row.swap_bytes else { continue };
        let share = swap as f64 * 100.0 / (swap + row.rss_bytes).max(1) as f64;
        let known = survey.servers.iter().any(|(other, _)| other == at);
        let faults = row.major_faults_per_s.unwrap_or(0.0);
        let misses = faults >= FAULTS && swapping_in(case);
        if share < SWAPPED_PCT || !(known || misses) {
            continue;
        }
        let what = if known { "the server" } else { "" };
        let title = format!(
            "{what} {} ({}) has {} of its memory in swap ({})",
            row.comm,
            row.pid,
            words::bytes(swap as f64),
            words::pct(share)
        );
        out.push(
            Finding::new(
                SERVER.name,
                Severity::Warn,
                Subject::Task(row.key(), row.comm.to_string()),
                title.trim_start().to_owned(),
            )
            .fact("in swap", words::bytes(swap as f64))
            .fact("resident", words::bytes(row.rss_bytes as f64))
            .fact("share in swap", words::pct(share))
            .fact("major faults", format!("{}/s", words::count(faults)))
            .why(
                "A server that answers from memory waits for the disk with every page that is missing. Healthy servers have \
                 some kilobytes of start-up code in swap, no more. Shared memory would come on top: VmSwap leaves it out.",
            )
            .advise_at(
                "see which mappings are swapped (m on its page)",
                "walks its page tables: it stalls meanwhile, for seconds if it is large",
                Jump::Task(row.key()),
            )
            .advise_at(
                "lower vm.swappiness; give it memory.low, or lock its memory",
                "the file cache is given up sooner",
                Jump::Knob("vm.swappiness".into()),
            )
            .look_at(Jump::Task(row.key())),
        );
    }
    Judged::Yes
}

fn swapping_in(case: &Case<'_>) -> bool {
    case.mean(WINDOW_SECS, |s| s.swap.ok()?.in_bytes_per_s).is_some_and(|n| n >= COMING_IN)
}
