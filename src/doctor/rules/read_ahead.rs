//! Read-ahead that does not fit what is read: too little for a stream, or so much that random reads drag
//! megabytes along.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::{RuleContext, Sustained};
use crate::doctor::storage_class::{StorageClass, storage_class};
use crate::model::disk::{DevId, DiskRate};
use crate::model::queue::QueueAttrs;

/// Too small.
pub const TOO_SMALL: Rule =
    Rule { name: "readahead-small", description: "streams held back by a small read-ahead", evaluate: evaluate_small };
/// Too large.
pub const TOO_LARGE: Rule =
    Rule { name: "readahead-large", description: "random reads that drag read-ahead along", evaluate: evaluate_large };

/// Over so long.
const WINDOW_SECS: f64 = 6.0;
/// A stream reads at least this, MB/s.
const STREAM_MB_PER_S: f64 = 10.0;
/// Requests are as large as the read-ahead, or nearly: it is what limits them.
const LIMIT_SHARE: f64 = 0.85;
/// With this much no stream is held back, KiB; RAID arrays want a whole stripe.
const SUFFICIENT_KB: u64 = 512;
/// A queue this short means that one reader waits for each piece before asking for the next.
const SINGLE_READER_QUEUE: f64 = 2.5;
/// Smaller settings drag nothing worth a word, KiB.
const LARGE_KB: u64 = 256;
/// Mapped files read at random fault so often, per second, at the least.
const MIN_FAULTS_PER_S: f64 = 50.0;
/// And bring in at least so many KiB with each.
const MIN_REQUEST_KB: f64 = 64.0;

fn read_ahead_settings<'a>(case: &RuleContext<'a>, id: DevId) -> Option<(&'a QueueAttrs, u64)> {
    let queue = case.system.queue_attrs(id)?;
    Some((queue, queue.read_ahead_kb?))
}

fn recommended_kb(queue: &QueueAttrs) -> u64 {
    let stripe = queue.optimal_io_size.unwrap_or(0) / 1024;
    SUFFICIENT_KB.max(stripe)
}

fn evaluate_small(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let mut judged = RuleStatus::NeedsMoreData("a few seconds of device counters");
    for d in case.devices() {
        let Some((queue, kb)) = read_ahead_settings(case, d.id) else { continue };
        // Only where the next piece is far away does asking early pay.
        let far = matches!(
            storage_class(case.system, d.id),
            StorageClass::Spinning | StorageClass::Network | StorageClass::Virtual
        );
        let limit = kb as f64 * LIMIT_SHARE;
        let stream = |d: &DiskRate| {
            d.read_mb_per_s >= STREAM_MB_PER_S
                && d.read_request_kb >= limit
                && d.read_request_kb <= kb as f64 * 1.05
                && d.queue_size <= SINGLE_READER_QUEUE
                && d.util_pct >= 60.0
        };
        let held = case.sustained(WINDOW_SECS, |s| s.device(d.id).map(stream));
        if held != Sustained::TooEarly {
            judged = RuleStatus::Evaluated;
        }
        let (Sustained::Since(since), true) = (held, far && kb > 0 && kb < recommended_kb(queue)) else {
            continue;
        };
        let name = case.device_name(d.id);
        let mb = case.device_mean(d.id, WINDOW_SECS, |d| d.read_mb_per_s).unwrap_or(0.0);
        let better = recommended_kb(queue);
        out.push(
            Finding::new(
                TOO_SMALL.name,
                Severity::Note,
                FindingSubject::Device(d.id, name.clone()),
                format!(
                    "{name} streams {} in pieces of its read-ahead of {kb} KiB: a larger one may be faster",
                    format::mb_per_s(mb)
                ),
            )
            .fact("rareq-sz", format!("{:.0} KiB", d.read_request_kb))
            .fact("read_ahead_kb", kb.to_string())
            .fact("r/s", format::count(d.reads_per_s))
            .fact("aqu-sz", format::count(d.queue_size))
            .since(since)
            .why("A reader in sequence waits for each piece; larger pieces keep the device busy in between.")
            .advise_at(
                format!("raise read_ahead_kb of {name} to {better}"),
                "random reads bring in more than they need",
                NavTarget::Knob(format!("read_ahead_kb@{}", d.name)),
            )
            .advise_at("measure with read-ahead off and on", "adds load while it runs", NavTarget::Bench("sweep", None))
            .see_also(NavTarget::Device(d.id))
            .on_devices(case.device_chain(d.id)),
        );
    }
    if case.devices().next().is_none() { RuleStatus::Evaluated } else { judged }
}

fn evaluate_large(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let mut judged = RuleStatus::NeedsMoreData("a few seconds of device counters");
    for d in case.devices() {
        let Some((_, kb)) = read_ahead_settings(case, d.id) else { continue };
        let dragging =
            |d: &DiskRate| d.read_request_kb >= MIN_REQUEST_KB && d.util_pct >= 90.0 && d.reads_per_s >= d.writes_per_s;
        let held = case.sustained(WINDOW_SECS, |s| {
            let faults = s.major_faults_per_s?;
            let d = s.device(d.id)?;
            // Each fault a read of its own: mapped files, at random. A stream faults once for many.
            Some(dragging(d) && faults >= MIN_FAULTS_PER_S && faults >= d.reads_per_s * 0.3)
        });
        if held != Sustained::TooEarly {
            judged = RuleStatus::Evaluated;
        }
        let swap = case.system.topology.ok().and_then(|t| t.get(d.id)).is_some_and(|d| !d.swaps.is_empty());
        let (Sustained::Since(since), false) = (held, swap || kb < LARGE_KB) else { continue };
        let name = case.device_name(d.id);
        let faults = case.system.snapshot.major_faults_per_s.unwrap_or(0.0);
        out.push(
            Finding::new(
                TOO_LARGE.name,
                Severity::Warn,
                FindingSubject::Device(d.id, name.clone()),
                format!(
                    "{name} reads {:.0} KiB for each of {} page faults a second: its read-ahead of {kb} KiB is large for random reads",
                    d.read_request_kb,
                    format::count(faults)
                ),
            )
            .fact("rareq-sz", format!("{:.0} KiB", d.read_request_kb))
            .fact("read_ahead_kb", kb.to_string())
            .fact("major faults", format!("{}/s", format::count(faults)))
            .fact("read", format::mb_per_s(d.read_mb_per_s))
            .since(since)
            .why("A fault needs 4 KiB. The rest that is read around it takes the device's time and pushes other pages out.")
            .advise_at(
                format!("lower read_ahead_kb of {name} (to 16 or 32 for a database)"),
                "streams such as backups get slower",
                NavTarget::Knob(format!("read_ahead_kb@{}", d.name)),
            )
            .see_also(NavTarget::Device(d.id))
            .on_devices(case.device_chain(d.id)),
        );
    }
    if case.devices().next().is_none() { RuleStatus::Evaluated } else { judged }
}
