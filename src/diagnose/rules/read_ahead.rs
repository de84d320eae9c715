//! Read-ahead that does not fit what is read: too little for a stream, or so much that random reads drag
//! megabytes along.

use crate::diagnose::case::{Case, Held};
use crate::diagnose::class::{Class, class};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::disk::{DevId, DiskRate};
use crate::model::queue::QueueAttrs;

/// Too small.
pub const SMALL: Rule =
    Rule { name: "readahead-small", about: "streams held back by a small read-ahead", look: small };
/// Too large.
pub const LARGE: Rule =
    Rule { name: "readahead-large", about: "random reads that drag read-ahead along", look: large };

/// Over so long.
const WINDOW_SECS: f64 = 6.0;
/// A stream reads at least this, MB/s.
const STREAM_MB: f64 = 10.0;
/// Requests are as large as the read-ahead, or nearly: it is what limits them.
const AT_LIMIT: f64 = 0.85;
/// With this much no stream is held back, KiB; RAID arrays want a whole stripe.
const ENOUGH_KB: u64 = 512;
/// A queue this short means that one reader waits for each piece before asking for the next.
const ONE_READER: f64 = 2.5;
/// Smaller settings drag nothing worth a word, KiB.
const MUCH_KB: u64 = 256;
/// Mapped files read at random fault so often, per second, at the least.
const FAULTS: f64 = 50.0;
/// And bring in at least so many KiB with each.
const DRAGGED_KB: f64 = 64.0;

fn settings<'a>(case: &Case<'a>, id: DevId) -> Option<(&'a QueueAttrs, u64)> {
    let queue = case.world.queue_attrs(id)?;
    Some((queue, queue.read_ahead_kb?))
}

fn wanted(queue: &QueueAttrs) -> u64 {
    let stripe = queue.optimal_io_size.unwrap_or(0) / 1024;
    ENOUGH_KB.max(stripe)
}

fn small(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let mut judged = Judged::NotYet("a few seconds of device counters");
    for d in case.devices() {
        let Some((queue, kb)) = settings(case, d.id) else { continue };
        // Only where the next piece is far away does asking early pay.
        let far = matches!(class(case.world, d.id), Class::Spinning | Class::Network | Class::Virtual);
        let limit = kb as f64 * AT_LIMIT;
        let stream = |d: &DiskRate| {
            d.read_mb_per_s >= STREAM_MB
                && d.read_request_kb >= limit
                && d.read_request_kb <= kb as f64 * 1.05
                && d.queue_size <= ONE_READER
                && d.util_pct >= 60.0
        };
        let held = case.held(WINDOW_SECS, |s| s.device(d.id).map(stream));
        if held != Held::NotYet {
            judged = Judged::Yes;
        }
        let (Held::Since(since), true) = (held, far && kb > 0 && kb < wanted(queue)) else { continue };
        let name = case.device_name(d.id);
        let mb = case.device_mean(d.id, WINDOW_SECS, |d| d.read_mb_per_s).unwrap_or(0.0);
        let better = wanted(queue);
        out.push(
            Finding::new(
                SMALL.name,
                Severity::Note,
                Subject::Device(d.id, name.clone()),
                format!(
                    "{name} streams {} in pieces of its read-ahead of {kb} KiB: a larger one may be faster",
                    words::mb(mb)
                ),
            )
            .fact("rareq-sz", format!("{:.0} KiB", d.read_request_kb))
            .fact("read_ahead_kb", kb.to_string())
            .fact("r/s", words::count(d.reads_per_s))
            .fact("aqu-sz", words::count(d.queue_size))
            .since(since)
            .why("A reader in sequence waits for each piece; larger pieces keep the device busy in between.")
            .advise_at(
                format!("raise read_ahead_kb of {name} to {better}"),
                "random reads bring in more than they need",
                Jump::Knob(format!("read_ahead_kb@{}", d.name)),
            )
            .advise_at(
                "measure with read-ahead off and on",
                "adds load while it runs",
                Jump::Bench("sweep", None),
            )
            .look_at(Jump::Device(d.id))
            .touching(case.chain(d.id)),
        );
    }
    if case.devices().next().is_none() { Judged::Yes } else { judged }
}

fn large(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let mut judged = Judged::NotYet("a few seconds of device counters");
    for d in case.devices() {
        let Some((_, kb)) = settings(case, d.id) else { continue };
        let dragging = |d: &DiskRate| {
            d.read_request_kb >= DRAGGED_KB && d.util_pct >= 90.0 && d.reads_per_s >= d.writes_per_s
        };
        let held = case.held(WINDOW_SECS, |s| {
            let faults = s.major_faults_per_s?;
            let d = s.device(d.id)?;
            // Each fault a read of its own: mapped files, at random. A stream faults once for many.
            Some(dragging(d) && faults >= FAULTS && faults >= d.reads_per_s * 0.3)
        });
        if held != Held::NotYet {
            judged = Judged::Yes;
        }
        let swap = case.world.topology.ok().and_then(|t| t.get(d.id)).is_some_and(|d| !d.swaps.is_empty());
        let (Held::Since(since), false) = (held, swap || kb < MUCH_KB) else { continue };
        let name = case.device_name(d.id);
        let faults = case.world.snapshot.major_faults_per_s.unwrap_or(0.0);
        out.push(
            Finding::new(
                LARGE.name,
                Severity::Warn,
                Subject::Device(d.id, name.clone()),
                format!(
                    "{name} reads {:.0} KiB for each of {} page faults a second: its read-ahead of {kb} KiB is large for random reads",
                    d.read_request_kb,
                    words::count(faults)
                ),
            )
            .fact("rareq-sz", format!("{:.0} KiB", d.read_request_kb))
            .fact("read_ahead_kb", kb.to_string())
            .fact("major faults", format!("{}/s", words::count(faults)))
            .fact("read", words::mb(d.read_mb_per_s))
            .since(since)
            .why("A fault needs 4 KiB. The rest that is read around it takes the device's time and pushes other pages out.")
            .advise_at(
                format!("lower read_ahead_kb of {name} (to 16 or 32 for a database)"),
                "streams such as backups get slower",
                Jump::Knob(format!("read_ahead_kb@{}", d.name)),
            )
            .look_at(Jump::Device(d.id))
            .touching(case.chain(d.id)),
        );
    }
    if case.devices().next().is_none() { Judged::Yes } else { judged }
}
