//! I/O schedulers that do not suit their device (Documentation/block/): a spinning disk needs its requests sorted; NVMe
//! devices and hypervisors sort by themselves.

use super::prelude::*;

/// On a spinning disk the order matters from this queue size on.
const SPINNING_MIN_QUEUE: f64 = 2.0;
/// On fast devices the scheduler's own cost shows from this rate on.
const FAST_MIN_TPS: f64 = 10_000.0;
/// bfq costs most: its cost shows earlier.
const BFQ_MIN_TPS: f64 = 2_000.0;
const WINDOW_SECS: f64 = 5.0;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let topology = ctx.require(&ctx.system.topology)?;
    let mut settings_missing = false;
    for device in ctx.devices().filter(|device| topology.get(device.id).is_some_and(|d| d.is_hardware())) {
        let mean = |get: fn(&DiskRate) -> f64| ctx.device_mean(device.id, WINDOW_SECS, get);
        let (Some(tps), Some(queue_size)) = (mean(|d| d.tps), mean(|d| d.queue_size)) else { continue };
        if tps < 1.0 {
            continue;
        }
        let Some(scheduler) = ctx.system.queue_attrs(device.id).and_then(|queue| queue.scheduler.as_deref()) else {
            settings_missing = true;
            continue;
        };
        let class = ctx.storage_class(device.id);
        let Some((severity, better, why)) = recommend(class, scheduler, tps, queue_size) else { continue };
        let (name, scheduler) = (ctx.device_name(device.id), sanitize(scheduler));
        let title = format!("{name} is {} with scheduler {scheduler}: {better} is faster", class.description());
        ctx.device_finding(severity, device.id, title)
            .fact("scheduler", scheduler)
            .fact("tps", format::count(tps))
            .fact("aqu-sz", format::count(queue_size))
            .why(why)
            .advise_at(
                format!("set the scheduler of {name} to {better}; measure before and after"),
                knob(format!("scheduler@{}", device.name)),
            )
            .costs("ionice works only with bfq (and mq-deadline, by class); queued requests are flushed once")
            .report(out);
    }
    match settings_missing {
        true => Err(RuleSkipped::NeedsMoreData("queue settings of the devices")),
        false => Ok(()),
    }
}

/// Severity, better scheduler, and why; `None` if the scheduler is fine.
fn recommend(
    class: StorageClass,
    scheduler: &str,
    tps: f64,
    queue_size: f64,
) -> Option<(Severity, &'static str, &'static str)> {
    use StorageClass::{Flash, Memory, Nvme, Spinning, Virtual};
    match (class, scheduler) {
        (Spinning, "none" | "noop" | "kyber") if queue_size >= SPINNING_MIN_QUEUE => Some((
            Severity::Warn,
            "mq-deadline (or bfq)",
            "Unsorted requests make the head seek for each of them; sorted by sector, several times as many are served.",
        )),
        (Nvme | Flash | Memory, "bfq") if tps >= BFQ_MIN_TPS => Some((
            Severity::Note,
            "none (or mq-deadline)",
            "bfq spends CPU time on every request and idles one queue for another, which costs fast devices much of \
             their rate.",
        )),
        (Nvme, "mq-deadline" | "cfq" | "deadline") if tps >= FAST_MIN_TPS => Some((
            Severity::Note,
            "none",
            "The device has many queues of its own; one scheduler lock for all CPUs costs more than sorting gains.",
        )),
        (Virtual, "bfq" | "cfq") if tps >= BFQ_MIN_TPS => Some((
            Severity::Note,
            "none or mq-deadline",
            "The host sorts requests again: sorting and idling in the guest only adds latency.",
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
