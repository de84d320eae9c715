//! Syncs that hold somebody up: who waits, on which file, and who makes them slow.
//!
//! A sync waits for more than its own bytes: for requests of others that lie before it in the device's queue, and on
//! file systems with a journal for everything that goes into the same commit. Judged only while syncs are traced.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{IoTask, RuleContext};
use crate::doctor::storage_class::storage_class;
use crate::model::disk::DevId;
use crate::model::process::TaskKey;
use crate::model::reading::Reading;
use crate::model::snapshot::Snapshot;
use crate::model::syncs::{NOT_REQUESTED, SyncActivity, SyncRate, SyncWait, wait_text};
use std::collections::HashMap;

/// A stream of one process makes the syncs of another slow.
pub const BEHIND_STREAM: Rule = Rule {
    name: "syncs-behind-a-stream",
    description: "a process waits on syncs because another streams to the same device",
    evaluate: |case, out| evaluate(case, out, true),
};

/// Slow syncs, and nobody else to blame.
pub const WAITS_ON_SYNCS: Rule = Rule {
    name: "waits-on-syncs",
    description: "a process spends much of its time in slow syncs",
    evaluate: |case, out| evaluate(case, out, false),
};

/// Looked at for so long.
const WINDOW_SECS: f64 = 4.0;
/// Who streams is looked for over a longer time: what was written to memory goes to the disk later.
const STREAM_SECS: f64 = 15.0;
/// Less of its time than this, per cent, a process may well spend in syncs.
const BEHIND_STREAM_MIN_PCT: f64 = 20.0;
/// With nobody to blame it must be more.
const WAITS_MIN_PCT: f64 = 40.0;
/// etcd's rule for its disk: 99 % of syncs take no longer, ms.
const FAST_SYNC_MS: f64 = 10.0;
/// A stream: less than this is no reason for anybody to wait, bytes per second.
const STREAM_BYTES_PER_S: f64 = 20.0 * 1_048_576.0;
/// Findings at most: whoever has more has one trouble.
const MAX_FINDINGS: usize = 4;

/// Who waits, over the window.
struct SyncWaiter {
    pid: u32,
    name: String,
    /// Share of the window, per cent.
    wait_pct: f64,
    /// Calls that ended in it, per second.
    calls_per_s: f64,
    /// Mean of these and of those under way, ms.
    mean_ms: f64,
    /// What one takes that is worth telling, ms: that mean, or where long ones take much of the window theirs, which
    /// a thousand quick ones in between would hide.
    reported_ms: f64,
    /// The longest that was over the threshold, ms; 0: none was.
    max_ms: f64,
    /// The file waited for most, as of the newest tick.
    file: SyncRate,
    device: DevId,
}

/// Syncs over the threshold within the window, those under way included.
#[derive(Default)]
struct LongSyncs {
    calls: u32,
    /// Time of the window that went to them, s; threads add up.
    secs: f64,
    /// Whole times, ms.
    total_ms: f64,
    max_ms: f64,
}

impl LongSyncs {
    /// Of one process in the last `secs` seconds.
    fn of_process(syncs: &SyncActivity, pid: u32, secs: f64) -> Self {
        let from = syncs.read_ns.saturating_sub((secs * 1e9) as u64);
        let ended = syncs.slow.iter().map(|s| (s.file.pid, s.started_ns, s.started_ns.saturating_add(s.duration_ns)));
        let flying = syncs.in_flight.iter().map(|f| (f.file.pid, f.started_ns, syncs.read_ns));
        let mut long = Self::default();
        for (_, began, end) in ended.chain(flying).filter(|(whose, _, end)| *whose == pid && *end > from) {
            let took_ms = end.saturating_sub(began) as f64 / 1e6;
            long.calls += 1;
            long.secs += end.saturating_sub(began.max(from)) as f64 / 1e9;
            long.total_ms += took_ms;
            long.max_ms = long.max_ms.max(took_ms);
        }
        long
    }
}

/// Ticks of the window in which syncs were traced.
fn traced_ticks<'a>(case: &'a RuleContext<'_>) -> impl Iterator<Item = &'a Snapshot> {
    let mut looked = 0.0;
    case.ticks().take_while(move |s| {
        let within = looked < WINDOW_SECS;
        looked += s.interval_secs;
        within && s.syncs.ok().is_some()
    })
}

fn evaluate(case: &RuleContext<'_>, out: &mut Vec<Finding>, streamed: bool) -> RuleStatus {
    match &case.system.snapshot.syncs {
        Reading::Absent(why) if why == NOT_REQUESTED => return RuleStatus::Evaluated,
        syncs => {
            if let Some(why) = syncs.unavailable_reason(case.now_ns()) {
                return RuleStatus::Unavailable(why);
            }
        }
    }
    let secs: f64 = traced_ticks(case).map(|s| s.interval_secs).sum();
    if secs < 0.8 * WINDOW_SECS {
        return RuleStatus::NeedsMoreData("a few seconds of syncs");
    }
    let waiters = sync_waiters(case, secs);
    let found = waiters.iter().filter_map(|w| match (find_stream(case, w), streamed) {
        (Some(mover), true) => Some(behind_stream_finding(case, w, &mover)),
        (None, false) => waits_on_syncs_finding(case, w),
        _ => None,
    });
    out.extend(found.take(MAX_FINDINGS));
    RuleStatus::Evaluated
}

/// Those that wait for long, longest first.
fn sync_waiters(case: &RuleContext<'_>, secs: f64) -> Vec<SyncWaiter> {
    let mut all: HashMap<u32, (f64, f64, f64)> = HashMap::new();
    for snap in traced_ticks(case) {
        let Some(syncs) = snap.syncs.ok() else { continue };
        for r in &syncs.rows {
            let sum = all.entry(r.file.pid).or_default();
            sum.0 += r.wait_pct / 100.0 * snap.interval_secs;
            sum.1 += r.calls_per_s * snap.interval_secs;
        }
    }
    let Some(now) = case.system.snapshot.syncs.ok() else { return Vec::new() };
    for f in &now.in_flight {
        all.entry(f.file.pid).or_default().2 += 1.0;
    }
    let mut out: Vec<SyncWaiter> = all
        .into_iter()
        .filter_map(|(pid, (waited, calls, flying))| {
            // Rows come longest first; one that waits for a whole machine or a mapping has no device to look at.
            let own = now.rows.iter().filter(|r| r.file.pid == pid);
            let file = own.max_by(|a, b| file_weight(a).total_cmp(&file_weight(b)))?;
            let device = file.file.device_id()?;
            let n = calls + flying;
            let long = LongSyncs::of_process(now, pid, secs);
            let much = long.secs * 100.0 >= BEHIND_STREAM_MIN_PCT * secs;
            let mean_ms = waited / n * 1e3;
            (n > 0.0).then(|| SyncWaiter {
                pid,
                reported_ms: if much { mean_ms.max(long.total_ms / f64::from(long.calls)) } else { mean_ms },
                max_ms: long.max_ms,
                name: format!("{} ({pid})", file.file.comm.sanitized()),
                wait_pct: waited / secs * 100.0,
                calls_per_s: calls / secs,
                mean_ms,
                file: file.clone(),
                device,
            })
        })
        .filter(|w| {
            let slow = (storage_class(case.system, w.device).limits().slow_ms / 2.0).max(FAST_SYNC_MS);
            let p99 = w.file.latency.map_or(0.0, |s| s.p99 / 1e3);
            w.wait_pct >= BEHIND_STREAM_MIN_PCT && w.reported_ms.max(p99) >= slow
        })
        .collect();
    out.sort_by(|a, b| b.wait_pct.total_cmp(&a.wait_pct));
    out
}

/// How much of the time goes to a file: of this tick, else of all.
fn file_weight(r: &SyncRate) -> f64 {
    r.wait_pct + r.mean_us.unwrap_or(0.0) * r.calls as f64 / 1e12
}

/// The disk at the bottom of a device that takes the most of what is written to it, and how much, MB/s.
fn busiest_disk(case: &RuleContext<'_>, id: DevId) -> Option<(DevId, f64)> {
    let topo = case.system.topology.ok()?;
    let disks = topo.physical_disks(id);
    let written = disks.filter_map(|d| Some((d.id, case.device_mean(d.id, WINDOW_SECS, |r| r.write_mb_per_s)?)));
    written.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Who streams to the device a waiter waits for. That the device takes most of what all disks take is what tells that
/// the stream goes there.
fn find_stream(case: &RuleContext<'_>, w: &SyncWaiter) -> Option<IoTask> {
    let (_, written) = busiest_disk(case, w.device)?;
    let all = case.mean(WINDOW_SECS, |s| Some(s.disks_mb_per_s(case.system.topology.ok())?.1))?;
    if written * 1_048_576.0 < STREAM_BYTES_PER_S || written < all / 2.0 {
        return None;
    }
    let movers = case.top_io_tasks(STREAM_SECS).into_iter();
    let others =
        movers.filter(|m| !m.is_kernel_thread && m.key.pid != w.pid && m.write_bytes_per_s >= STREAM_BYTES_PER_S);
    others.max_by(|a, b| a.write_bytes_per_s.total_cmp(&b.write_bytes_per_s))
}

fn task_key(case: &RuleContext<'_>, pid: u32) -> Option<TaskKey> {
    case.system.processes.live_tasks().map(|(_, raw)| raw.key).find(|k| k.pid == pid)
}

fn finding_severity(case: &RuleContext<'_>, w: &SyncWaiter) -> Severity {
    let bad = storage_class(case.system, w.device).limits().critical_ms;
    if w.reported_ms >= 5.0 * bad && w.wait_pct >= 80.0 { Severity::Critical } else { Severity::Warn }
}

/// `62 % of its time, p99 180 ms`, or the longest where few are long.
fn format_figures(w: &SyncWaiter) -> String {
    let p99 = w.file.latency.map(|s| s.p99 / 1e3);
    let rest = match p99 {
        Some(p99) if p99 >= w.mean_ms || w.max_ms == 0.0 => format!(", p99 {}", format::ms(p99)),
        _ if w.max_ms > 0.0 => format!(", longest {}", format::ms(w.max_ms)),
        _ => String::new(),
    };
    format!("{} of its time{rest}", format::percent(w.wait_pct.min(100.0)))
}

fn build_finding(case: &RuleContext<'_>, w: &SyncWaiter, rule: &'static str, title: String) -> Finding {
    let (device, r) = (case.device_name(w.device), &w.file);
    let subject = match task_key(case, w.pid) {
        Some(key) => FindingSubject::Task(key, r.file.comm.sanitized()),
        None => FindingSubject::Pid(w.pid, r.file.comm.sanitized()),
    };
    let mut found = Finding::new(rule, finding_severity(case, w), subject, title)
        .fact("waits", format!("{} of its time", format::percent(w.wait_pct)))
        .fact("file", r.file.display_path(case.system.topology.ok()))
        .fact("device", device.clone())
        .fact("syncs", format!("{}/s, {} each", format::count(w.calls_per_s), format::ms(w.mean_ms)))
        .fact("worst", format::ms(r.max_ns as f64 / 1e6))
        .fact_opt("waited on", most_common_wait(case, w).map(|on| wait_text(&on, &device)))
        .see_also(NavTarget::Syncs)
        .on_devices(case.device_chain(w.device));
    if let Some((_, mb)) = busiest_disk(case, w.device) {
        found = found.fact("written to the device", format::mb_per_s(mb));
    }
    found
}

/// The function in which its slow syncs were found waiting most often.
fn most_common_wait(case: &RuleContext<'_>, w: &SyncWaiter) -> Option<String> {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let syncs = case.system.snapshot.syncs.ok()?;
    let flying = syncs.in_flight.iter().filter(|f| f.file.pid == w.pid).filter_map(|f| f.waiting_on.as_deref());
    let slow = syncs.slow.iter().filter(|s| s.file.pid == w.pid).filter_map(|s| s.waiting_on.as_deref());
    flying.chain(slow).for_each(|on| *seen.entry(on).or_default() += 1);
    seen.into_iter().max_by_key(|(on, n)| (*n, *on)).map(|(on, _)| on.to_owned())
}

fn behind_stream_finding(case: &RuleContext<'_>, w: &SyncWaiter, mover: &IoTask) -> Finding {
    let device = case.device_name(w.device);
    // Found running more often than waiting for the disk: the stream is there, but is not all.
    let busy = most_common_wait(case, w).is_some_and(|on| SyncWait::from_function(&on) == Some(SyncWait::Cpu));
    let because = if busy { "while" } else { "because" };
    let title = format!(
        "{} waits on syncs of {} ({}) {because} {} streams {} to the same device, {device}",
        w.name,
        w.file.file.display_path(case.system.topology.ok()),
        format_figures(w),
        mover.name,
        format::bytes_per_s(mover.write_bytes_per_s),
    );
    let mut found = build_finding(case, w, BEHIND_STREAM.name, title);
    if busy {
        found.severity = Severity::Note;
    }
    found
        .fact("streams", format!("{}, {}", mover.name, format::bytes_per_s(mover.write_bytes_per_s)))
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
            NavTarget::Knob("vm.dirty_background_bytes".into()),
        )
        .advise("give the stream a limit (io.max of its cgroup), or put the log on a device of its own", "set-up")
        .advise_at(
            "measure what pieces with a sync each would change",
            "adds load while it runs",
            NavTarget::Bench("chunks", None),
        )
}

fn waits_on_syncs_finding(case: &RuleContext<'_>, w: &SyncWaiter) -> Option<Finding> {
    let slow = storage_class(case.system, w.device).limits().slow_ms;
    if w.wait_pct < WAITS_MIN_PCT || w.reported_ms < slow {
        return None;
    }
    let title = format!(
        "{} waits on syncs of {}: {}",
        w.name,
        w.file.file.display_path(case.system.topology.ok()),
        format_figures(w)
    );
    let found = build_finding(case, w, WAITS_ON_SYNCS.name, title)
        .why("Whatever the process does between two syncs, it goes no faster than its device answers them.")
        .advise_at(
            "measure what a sync takes on this device when nothing else runs",
            "adds load while it runs",
            NavTarget::Bench("fsync", None),
        )
        .advise(
            "sync less often: group commits, or relax the durability of what may be lost",
            "more lost at a power cut",
        )
        .advise("put the file on a faster device", "money");
    Some(found)
}
