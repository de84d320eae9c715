//! An I/O scheduler that does not suit its device (Documentation/block/): a spinning disk wants its requests
//! sorted, NVMe and virtual disks are sorted elsewhere.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::RuleContext;
use crate::doctor::storage_class::{StorageClass, storage_class};

/// The rule.
pub const RULE: Rule = Rule {
    name: "scheduler-unsuitable",
    description: "an I/O scheduler that does not suit a busy device",
    evaluate: look,
};

/// On a spinning disk the order matters from some requests at a time on.
const SPINNING_MIN_QUEUE: f64 = 2.0;
/// On fast devices the scheduler's own cost shows from so many requests per second on.
const FAST_MIN_TPS: f64 = 10_000.0;
/// bfq costs most: it is told earlier.
const BFQ_MIN_TPS: f64 = 2_000.0;
/// Over so long.
const WINDOW_SECS: f64 = 5.0;

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    if case.system.topology.ok().is_none() {
        return RuleStatus::Unavailable(case.system.topology.unavailable_reason(case.now_ns()).unwrap_or_default());
    }
    let mut unknown = false;
    for d in case.devices() {
        let mean = |get: fn(&crate::model::disk::DiskRate) -> f64| case.device_mean(d.id, WINDOW_SECS, get);
        let (Some(tps), Some(queue)) = (mean(|d| d.tps), mean(|d| d.queue_size)) else { continue };
        if tps < 1.0 {
            continue;
        }
        let hardware = case.system.topology.ok().and_then(|t| t.get(d.id)).is_some_and(|d| d.is_hardware());
        let Some(now) = case.system.queue_attrs(d.id).and_then(|q| q.scheduler.as_deref()) else {
            unknown |= hardware;
            continue;
        };
        if !hardware {
            continue;
        }
        let kind = storage_class(case.system, d.id);
        let Some((severity, better, why)) = recommend(kind, now, tps, queue) else { continue };
        let name = case.device_name(d.id);
        out.push(
            Finding::new(
                RULE.name,
                severity,
                FindingSubject::Device(d.id, name.clone()),
                format!(
                    "{name} is {} with the scheduler {}: {better} suits it better",
                    kind.description(),
                    crate::sanitize::sanitize(now)
                ),
            )
            .fact("scheduler", crate::sanitize::sanitize(now))
            .fact("tps", format::count(tps))
            .fact("aqu-sz", format::count(queue))
            .why(why)
            .advise_at(
                format!("set the scheduler of {name} to {better}, measure before and after"),
                "ionice classes act only with bfq (and mq-deadline); queued requests are flushed once",
                NavTarget::Knob(format!("scheduler@{}", d.name)),
            )
            .see_also(NavTarget::Device(d.id))
            .on_devices(case.device_chain(d.id)),
        );
    }
    if unknown { RuleStatus::NeedsMoreData("the queue settings of the devices") } else { RuleStatus::Evaluated }
}

fn recommend(kind: StorageClass, now: &str, tps: f64, queue: f64) -> Option<(Severity, &'static str, &'static str)> {
    match (kind, now) {
        (StorageClass::Spinning, "none" | "noop" | "kyber") if queue >= SPINNING_MIN_QUEUE => Some((
            Severity::Warn,
            "mq-deadline (or bfq)",
            "A head that moves serves requests in the order they come; sorted by place it serves several times as many.",
        )),
        (StorageClass::Nvme | StorageClass::Flash | StorageClass::Memory, "bfq") if tps >= BFQ_MIN_TPS => Some((
            Severity::Note,
            "none (or mq-deadline)",
            "bfq spends CPU on every request and lets one queue wait for another: fast devices lose much of their rate.",
        )),
        (StorageClass::Nvme, "mq-deadline" | "cfq" | "deadline") if tps >= FAST_MIN_TPS => Some((
            Severity::Note,
            "none",
            "The device has many queues of its own; one scheduler lock for all CPUs costs more than sorting gains.",
        )),
        (StorageClass::Virtual, "bfq" | "cfq") if tps >= BFQ_MIN_TPS => Some((
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
    fn schedulers_are_recommended_by_storage_class_and_load() {
        assert!(recommend(StorageClass::Spinning, "none", 100.0, 8.0).is_some());
        assert!(recommend(StorageClass::Spinning, "none", 100.0, 0.5).is_none(), "one request has no order");
        assert!(recommend(StorageClass::Spinning, "mq-deadline", 100.0, 8.0).is_none());
        assert!(recommend(StorageClass::Nvme, "none", 1e5, 64.0).is_none());
        assert!(recommend(StorageClass::Nvme, "bfq", 5e3, 64.0).is_some());
        assert!(recommend(StorageClass::Virtual, "mq-deadline", 1e5, 64.0).is_none());
    }
}
