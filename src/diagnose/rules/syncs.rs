//! Syncs that hold somebody up: who waits, on which file, and who makes them slow.
//!
//! A sync waits for more than its own bytes: for requests of others that lie before it in the device's queue, and on
//! file systems with a journal for everything that goes into the same commit. Judged only while syncs are traced.

use crate::diagnose::case::{Case, Mover};
use crate::diagnose::class::class;
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::disk::DevId;
use crate::model::process::TaskKey;
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;
use crate::model::syncs::{SyncRate, SyncActivity, NOT_REQUESTED, SyncWait, wait_text};
use std::collections::HashMap;

/// A stream of one process makes the syncs of another slow.
pub const VICTIM: Rule = Rule {
    name: "syncs-behind-a-stream",
    about: "a process waits on syncs because another streams to the same device",
    look: |case, out| judge(case, out, true),
};

/// Slow syncs, and nobody else to blame.
pub const BOUND: Rule = Rule {
    name: "waits-on-syncs",
    about: "a process spends much of its time in slow syncs",
    look: |case, out| judge(case, out, false),
};

/// Looked at for so long.
const WINDOW_SECS: f64 = 4.0;
/// Who streams is looked for over a longer time: what was written to memory goes to the disk later.
const STREAM_SECS: f64 = 15.0;
/// Less of its time than this, per cent, a process may well spend in syncs.
const VICTIM_PCT: f64 = 20.0;
/// With nobody to blame it must be more.
const BOUND_PCT: f64 = 40.0;
/// etcd's rule for its disk: 99 % of syncs take no longer, ms.
const QUICK_MS: f64 = 10.0;
/// A stream: less than this is no reason for anybody to wait, bytes per second.
const STREAM: f64 = 20.0 * 1_048_576.0;
/// Findings at most: whoever has more has one trouble.
const MOST: usize = 4;

/// Who waits, over the window.
struct Waiter {
    pid: u32,
    name: String,
    /// Share of the window, per cent.
    pct: f64,
    /// Calls that ended in it, per second.
    calls_per_s: f64,
    /// Mean of these and of those under way, ms.
    mean_ms: f64,
    /// What one takes that is worth telling, ms: that mean, or where long ones take much of the window theirs, which
    /// a thousand quick ones in between would hide.
    takes_ms: f64,
    /// The longest that was over the threshold, ms; 0: none was.
    longest_ms: f64,
    /// The file waited for most, as of the newest tick.
    file: SyncRate,
    device: DevId,
}

/// Syncs over the threshold within the window, those under way included.
#[derive(Default)]
struct Long {
    calls: u32,
    /// Time of the window that went to them, s; threads add up.
    secs: f64,
    /// Whole times, ms.
    sum_ms: f64,
    longest_ms: f64,
}

impl Long {
    /// Of one process in the last `secs` seconds.
    fn of(syncs: &SyncActivity, pid: u32, secs: f64) -> Self {
        let from = syncs.read_ns.saturating_sub((secs * 1e9) as u64);
        let ended = syncs.slow.iter().map(|s| (s.file.pid, s.started_ns, s.started_ns.saturating_add(s.duration_ns)));
        let flying = syncs.in_flight.iter().map(|f| (f.file.pid, f.started_ns, syncs.read_ns));
        let mut long = Self::default();
        for (_, began, end) in ended.chain(flying).filter(|(whose, _, end)| *whose == pid && *end > from) {
            let took_ms = end.saturating_sub(began) as f64 / 1e6;
            long.calls += 1;
            long.secs += end.saturating_sub(began.max(from)) as f64 / 1e9;
            long.sum_ms += took_ms;
            long.longest_ms = long.longest_ms.max(took_ms);
        }
        long
    }
}

/// Ticks of the window in which syncs were traced.
fn ticks<'a>(case: &'a Case<'_>) -> impl Iterator<Item = &'a Snapshot> {
    let mut looked = 0.0;
    case.ticks().take_while(move |s| {
        let within = looked < WINDOW_SECS;
        looked += s.interval_secs;
        within && s.syncs.ok().is_some()
    })
}

fn judge(case: &Case<'_>, out: &mut Vec<Finding>, streamed: bool) -> Judged {
    match &case.world.snapshot.syncs {
        Reading::Absent(why) if why == NOT_REQUESTED => return Judged::Yes,
        syncs => {
            if let Some(why) = syncs.unavailable_reason(case.now_ns()) {
                return Judged::Cannot(why);
            }
        }
    }
    let secs: f64 = ticks(case).map(|s| s.interval_secs).sum();
    if secs < 0.8 * WINDOW_SECS {
        return Judged::NotYet("a few seconds of syncs");
    }
    let waiters = waiters(case, secs);
    let found = waiters.iter().filter_map(|w| match (stream(case, w), streamed) {
        (Some(mover), true) => Some(victim(case, w, &mover)),
        (None, false) => bound(case, w),
        _ => None,
    });
    out.extend(found.take(MOST));
    Judged::Yes
}

/// Those that wait for long, longest first.
fn waiters(case: &Case<'_>, secs: f64) -> Vec<Waiter> {
    let mut all: HashMap<u32, (f64, f64, f64)> = HashMap::new();
    for snap in ticks(case) {
        let Some(syncs) = snap.syncs.ok() else { continue };
        for r in &syncs.rows {
            let sum = all.entry(r.file.pid).or_default();
            sum.0 += r.wait_pct / 100.0 * snap.interval_secs;
            sum.1 += r.calls_per_s * snap.interval_secs;
        }
    }
    let Some(now) = case.world.snapshot.syncs.ok() else { return Vec::new() };
    for f in &now.in_flight {
        all.entry(f.file.pid).or_default().2 += 1.0;
    }
    let mut out: Vec<Waiter> = all
        .into_iter()
        .filter_map(|(pid, (waited, calls, flying))| {
            // Rows come longest first; one that waits for a whole machine or a mapping has no device to look at.
            let own = now.rows.iter().filter(|r| r.file.pid == pid);
            let file = own.max_by(|a, b| weight(a).total_cmp(&weight(b)))?;
            let device = file.file.device_id()?;
            let n = calls + flying;
            let long = Long::of(now, pid, secs);
            let much = long.secs * 100.0 >= VICTIM_PCT * secs;
            let mean_ms = waited / n * 1e3;
            (n > 0.0).then(|| Waiter {
                pid,
                takes_ms: if much { mean_ms.max(long.sum_ms / f64::from(long.calls)) } else { mean_ms },
                longest_ms: long.longest_ms,
                name: format!("{} ({pid})", file.file.comm.sanitized()),
                pct: waited / secs * 100.0,
                calls_per_s: calls / secs,
                mean_ms,
                file: file.clone(),
                device,
            })
        })
        .filter(|w| {
            let slow = (class(case.world, w.device).limits().slow_ms / 2.0).max(QUICK_MS);
            let p99 = w.file.latency.map_or(0.0, |s| s.p99 / 1e3);
            w.pct >= VICTIM_PCT && w.takes_ms.max(p99) >= slow
        })
        .collect();
    out.sort_by(|a, b| b.pct.total_cmp(&a.pct));
    out
}

/// How much of the time goes to a file: of this tick, else of all.
fn weight(r: &SyncRate) -> f64 {
    r.wait_pct + r.mean_us.unwrap_or(0.0) * r.calls as f64 / 1e12
}

/// The disk at the bottom of a device that takes the most of what is written to it, and how much, MB/s.
fn disk(case: &Case<'_>, id: DevId) -> Option<(DevId, f64)> {
    let topo = case.world.topology.ok()?;
    let disks = topo.physical_disks(id);
    let written =
        disks.filter_map(|d| Some((d.id, case.device_mean(d.id, WINDOW_SECS, |r| r.write_mb_per_s)?)));
    written.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Who streams to the device a waiter waits for. That the device takes most of what all disks take is what tells that
/// the stream goes there.
fn stream(case: &Case<'_>, w: &Waiter) -> Option<Mover> {
    let (_, written) = disk(case, w.device)?;
    let all = case.mean(WINDOW_SECS, |s| Some(s.disks_mb_per_s(case.world.topology.ok())?.1))?;
    if written * 1_048_576.0 < STREAM || written < all / 2.0 {
        return None;
    }
    let movers = case.movers(STREAM_SECS).into_iter();
    let others = movers.filter(|m| !m.kernel && m.key.pid != w.pid && m.write >= STREAM);
    others.max_by(|a, b| a.write.total_cmp(&b.write))
}

fn key(case: &Case<'_>, pid: u32) -> Option<TaskKey> {
    case.world.processes.live_tasks().map(|(_, raw)| raw.key).find(|k| k.pid == pid)
}

fn severity(case: &Case<'_>, w: &Waiter) -> Severity {
    let bad = class(case.world, w.device).limits().bad_ms;
    if w.takes_ms >= 5.0 * bad && w.pct >= 80.0 { Severity::Critical } else { Severity::Warn }
}

/// `62 % of its time, p99 180 ms`, or the longest where few are long.
fn figures(w: &Waiter) -> String {
    let p99 = w.file.latency.map(|s| s.p99 / 1e3);
    let rest = match p99 {
        Some(p99) if p99 >= w.mean_ms || w.longest_ms == 0.0 => format!(", p99 {}", words::ms(p99)),
        _ if w.longest_ms > 0.0 => format!(", longest {}", words::ms(w.longest_ms)),
        _ => String::new(),
    };
    format!("{} of its time{rest}", words::pct(w.pct.min(100.0)))
}

fn finding(case: &Case<'_>, w: &Waiter, rule: &'static str, title: String) -> Finding {
    let (device, r) = (case.device_name(w.device), &w.file);
    let subject = match key(case, w.pid) {
        Some(key) => Subject::Task(key, r.file.comm.sanitized()),
        None => Subject::Pid(w.pid, r.file.comm.sanitized()),
    };
    let mut found = Finding::new(rule, severity(case, w), subject, title)
        .fact("waits", format!("{} of its time", words::pct(w.pct)))
        .fact("file", r.file.display_path(case.world.topology.ok()))
        .fact("device", device.clone())
        .fact("syncs", format!("{}/s, {} each", words::count(w.calls_per_s), words::ms(w.mean_ms)))
        .fact("worst", words::ms(r.max_ns as f64 / 1e6))
        .fact_if("waited on", waited_in(case, w).map(|on| wait_text(&on, &device)))
        .look_at(Jump::Syncs)
        .touching(case.chain(w.device));
    if let Some((_, mb)) = disk(case, w.device) {
        found = found.fact("written to the device", words::mb(mb));
    }
    found
}

/// The function in which its slow syncs were found waiting most often.
fn waited_in(case: &Case<'_>, w: &Waiter) -> Option<String> {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let syncs = case.world.snapshot.syncs.ok()?;
    let flying = syncs.in_flight.iter().filter(|f| f.file.pid == w.pid).filter_map(|f| f.waiting_on.as_deref());
    let slow = syncs.slow.iter().filter(|s| s.file.pid == w.pid).filter_map(|s| s.waiting_on.as_deref());
    flying.chain(slow).for_each(|on| *seen.entry(on).or_default() += 1);
    seen.into_iter().max_by_key(|(on, n)| (*n, *on)).map(|(on, _)| on.to_owned())
}

fn victim(case: &Case<'_>, w: &Waiter, mover: &Mover) -> Finding {
    let device = case.device_name(w.device);
    // Found running more often than waiting for the disk: the stream is there, but is not all.
    let busy = waited_in(case, w).is_some_and(|on| SyncWait::from_function(&on) == Some(SyncWait::Cpu));
    let because = if busy { "while" } else { "because" };
    let title = format!(
        "{} waits on syncs of {} ({}) {because} {} streams {} to the same device, {device}",
        w.name,
        w.file.file.display_path(case.world.topology.ok()),
        figures(w),
        mover.name,
        words::rate(mover.write),
    );
    let mut found = finding(case, w, VICTIM.name, title);
    if busy {
        found.severity = Severity::Note;
    }
    found
        .fact("streams", format!("{}, {}", mover.name, words::rate(mover.write)))
        .why(
            "A sync waits behind what others have in the device's queue, and on a file system with a journal for the \
             commit that holds their changes too. One big file written in one go stalls every database beside it.",
        )
        .advise(
            format!("have {} sync after every few megabytes instead of once at the end", mover.name),
            "its own run takes longer",
        )
        .advise_at(
            "let writeback begin early: a lower vm.dirty_background_bytes, and vm.dirty_bytes above it",
            "writers are made to wait sooner",
            Jump::Knob("vm.dirty_background_bytes".into()),
        )
        .advise("give the stream a limit (io.max of its cgroup), or put the log on a device of its own", "set-up")
        .advise_at(
            "measure what pieces with a sync each would change",
            "adds load while it runs",
            Jump::Bench("chunks", None),
        )
}

fn bound(case: &Case<'_>, w: &Waiter) -> Option<Finding> {
    let slow = class(case.world, w.device).limits().slow_ms;
    if w.pct < BOUND_PCT || w.takes_ms < slow {
        return None;
    }
    let title =
        format!("{} waits on syncs of {}: {}", w.name, w.file.file.display_path(case.world.topology.ok()), figures(w));
    let found = finding(case, w, BOUND.name, title)
        .why("Whatever the process does between two syncs, it goes no faster than its device answers them.")
        .advise_at(
            "measure what a sync takes on this device when nothing else runs",
            "adds load while it runs",
            Jump::Bench("fsync", None),
        )
        .advise(
            "sync less often: group commits, or relax the durability of what may be lost",
            "more lost at a power cut",
        )
        .advise("put the file on a faster device", "money");
    Some(found)
}
