//! Dirty pages that would take long to write at the present rate: a sync, a clean shutdown or a file system
//! that is unmounted waits for all of them.

use super::writeback::dirty;
use crate::diagnose::case::{Case, Held};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::snapshot::Snapshot;

/// The rule.
pub const RULE: Rule =
    Rule { name: "slow-drain", about: "dirty pages that take long to write at the present rate", look };

/// The kernel itself wants no page dirty for longer than this (vm.dirty_expire_centisecs = 3000).
const LONG_SECS: f64 = 30.0;
/// Services are killed when they do not end within this time (systemd's TimeoutStopSec is 90 s).
const TOO_LONG_SECS: f64 = 90.0;
/// Less is not worth a word, bytes.
const LEAST: f64 = 32.0 * 1_048_576.0;
/// The rate is a mean over so long: writeback comes in bursts.
const WINDOW_SECS: f64 = 8.0;

/// Less than a page per second is nothing, bytes.
const TRICKLE: f64 = 4096.0;

/// The flushers are at work at their full speed: below the background threshold they only write what expired,
/// and their rate says nothing of what they could do.
fn flushing(s: &Snapshot) -> Option<bool> {
    let w = s.writeback.ok()?;
    let all = dirty(w)?;
    Some(all >= LEAST && all >= w.background_threshold_bytes? as f64)
}

fn look(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if let Some(why) = case.world.snapshot.writeback.unavailable_reason(case.now_ns()) {
        return Judged::Cannot(why);
    }
    let since = match case.held(WINDOW_SECS, flushing) {
        Held::NotYet => return Judged::NotYet("a few seconds of writeback counters"),
        Held::No => return Judged::Yes,
        Held::Since(since) => since,
    };
    let Some(w) = case.world.snapshot.writeback.ok() else { return Judged::Yes };
    let (Some(all), Some(written)) =
        (dirty(w), case.mean(WINDOW_SECS, |s| s.writeback.ok()?.written_bytes_per_s))
    else {
        return Judged::Yes;
    };
    let secs = all / written.max(1.0);
    if secs < LONG_SECS {
        return Judged::Yes;
    }
    let severity = if secs >= TOO_LONG_SECS { Severity::Critical } else { Severity::Warn };
    // Without a trickle the quotient is no time at all.
    let title = match written < TRICKLE {
        true => format!("{} of dirty pages do not get less: nothing is written", words::bytes(all)),
        false => format!(
            "{} of dirty pages take {} to write at the present {}",
            words::bytes(all),
            words::secs(secs),
            words::rate(written)
        ),
    };
    out.push(
        Finding::new(RULE.name, severity, Subject::Machine, title)
            .fact("dirty + writeback", words::bytes(all))
            .fact("written", words::rate(written))
            .fact_if("time to drain", (written >= TRICKLE).then(|| words::secs(secs)))
            .fact_if("dirtied", w.dirtied_bytes_per_s.map(words::rate))
            .since(since)
            .why(
                "A sync, an unmount or a shutdown has to wait for all of it, and a power cut loses it. Programs that \
                 only sync a little wait behind it on the same device.",
            )
            .advise_at(
                "cap the backlog: lower vm.dirty_bytes to what the device writes in a few seconds",
                "writers are slowed down to the device's speed sooner",
                Jump::Knob("vm.dirty_bytes".into()),
            )
            .advise_at("find who dirties: the WRITE column", "nothing", Jump::Processes)
            .look_at(Jump::Memory),
    );
    Judged::Yes
}
