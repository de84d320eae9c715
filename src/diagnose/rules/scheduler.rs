//! An I/O scheduler that does not suit its device (Documentation/block/): a spinning disk wants its requests
//! sorted, NVMe and virtual disks are sorted elsewhere.

use crate::diagnose::case::Case;
use crate::diagnose::class::{Class, class};
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;

/// The rule.
pub const RULE: Rule =
    Rule { name: "scheduler-unsuitable", about: "an I/O scheduler that does not suit a busy device", look };

/// On a spinning disk the order matters from some requests at a time on.
const SPINNING_QUEUE: f64 = 2.0;
/// On fast devices the scheduler's own cost shows from so many requests per second on.
const FAST_TPS: f64 = 10_000.0;
/// bfq costs most: it is told earlier.
const BFQ_TPS: f64 = 2_000.0;
/// Over so long.
const WINDOW_SECS: f64 = 5.0;

fn look(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    if case.world.topology.ok().is_none() {
        return Judged::Cannot(case.world.topology.unavailable_reason(case.now_ns()).unwrap_or_default());
    }
    let mut unknown = false;
    for d in case.devices() {
        let mean = |get: fn(&crate::model::disk::DiskRate) -> f64| case.device_mean(d.id, WINDOW_SECS, get);
        let (Some(tps), Some(queue)) = (mean(|d| d.tps), mean(|d| d.queue_size)) else { continue };
        if tps < 1.0 {
            continue;
        }
        let hardware = case.world.topology.ok().and_then(|t| t.get(d.id)).is_some_and(|d| d.is_hardware());
        let Some(now) = case.world.queue_attrs(d.id).and_then(|q| q.scheduler.as_deref()) else {
            unknown |= hardware;
            continue;
        };
        if !hardware {
            continue;
        }
        let kind = class(case.world, d.id);
        let Some((severity, better, why)) = verdict(kind, now, tps, queue) else { continue };
        let name = case.device_name(d.id);
        out.push(
            Finding::new(
                RULE.name,
                severity,
                Subject::Device(d.id, name.clone()),
                format!(
                    "{name} is {} with the scheduler {}: {better} suits it better",
                    kind.name(),
                    crate::text::sanitize(now)
                ),
            )
            .fact("scheduler", crate::text::sanitize(now))
            .fact("tps", words::count(tps))
            .fact("aqu-sz", words::count(queue))
            .why(why)
            .advise_at(
                format!("set the scheduler of {name} to {better}, measure before and after"),
                "ionice classes act only with bfq (and mq-deadline); queued requests are flushed once",
                Jump::Knob(format!("scheduler@{}", d.name)),
            )
            .look_at(Jump::Device(d.id))
            .touching(case.chain(d.id)),
        );
    }
    if unknown { Judged::NotYet("the queue settings of the devices") } else { Judged::Yes }
}

fn verdict(kind: Class, now: &str, tps: f64, queue: f64) -> Option<(Severity, &'static str, &'static str)> {
    match (kind, now) {
        (Class::Spinning, "none" | "noop" | "kyber") if queue >= SPINNING_QUEUE => Some((
            Severity::Warn,
            "mq-deadline (or bfq)",
            "A head that moves serves requests in the order they come; sorted by place it serves several times as many.",
        )),
        (Class::Nvme | Class::Flash | Class::Memory, "bfq") if tps >= BFQ_TPS => Some((
            Severity::Note,
            "none (or mq-deadline)",
            "bfq spends CPU on every request and lets one queue wait for another: fast devices lose much of their rate.",
        )),
        (Class::Nvme, "mq-deadline" | "cfq" | "deadline") if tps >= FAST_TPS => Some((
            Severity::Note,
            "none",
            "The device has many queues of its own; one scheduler lock for all CPUs costs more than sorting gains.",
        )),
        (Class::Virtual, "bfq" | "cfq") if tps >= BFQ_TPS => Some((
            Severity::Note,
            "none or mq-deadline",
            "The host sorts requests once more: sorting and idling here only adds waiting.",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_suits_whom() {
        assert!(verdict(Class::Spinning, "none", 100.0, 8.0).is_some());
        assert!(verdict(Class::Spinning, "none", 100.0, 0.5).is_none(), "one request has no order");
        assert!(verdict(Class::Spinning, "mq-deadline", 100.0, 8.0).is_none());
        assert!(verdict(Class::Nvme, "none", 1e5, 64.0).is_none());
        assert!(verdict(Class::Nvme, "bfq", 5e3, 64.0).is_some());
        assert!(verdict(Class::Virtual, "mq-deadline", 1e5, 64.0).is_none());
    }
}
