//! I/O schedulers that do not suit their device (Documentation/block/): a spinning disk needs its requests sorted; NVMe
//! devices and hypervisors sort by themselves.

use super::prelude::*;
use crate::model::topology::{BlockDevice, DeviceKind, Topology};

/// On a spinning disk the order matters from this queue size on.
const SPINNING_MIN_QUEUE: f64 = 2.0;
/// On fast devices the scheduler's own cost shows from this rate on.
const FAST_MIN_TPS: f64 = 10_000.0;
/// bfq costs most: its cost shows earlier.
const BFQ_MIN_TPS: f64 = 2_000.0;
const WINDOW_SECS: f64 = 5.0;
/// Parts of the model names of volumes that a RAID controller makes of disks, in lower case, separated by commas.
const RAID_MODELS: &str = "raid,perc,mr2,mr4,mr9,rms3,smc2,smc3,logical volume,logical drive,logicaldrv,arc-,lun,msa ,\
                           md32,md34,md36,md38";

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let topology = ctx.require(&ctx.system.topology)?;
    let mut settings_missing = false;
    let is_judged = |disk: &BlockDevice| disk.is_hardware() && !is_sorted_elsewhere(topology, disk);
    for device in ctx.devices().filter(|device| topology.get(device.id).is_some_and(is_judged)) {
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
        let is_volume = class == StorageClass::Spinning && topology.get(device.id).is_some_and(is_raid_volume);
        let (severity, why, title) = match is_volume {
            true => (
                Severity::Note,
                "The controller sorts the requests of its disks, too. Where its cache is small or off, sorting them before may \
                 still help.",
                format!("{name} is a volume of a RAID controller with scheduler {scheduler}: {better} may be faster"),
            ),
            false => {
                let what = class.description();
                (severity, why, format!("{name} is {what} with scheduler {scheduler}: {better} is faster"))
            }
        };
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

/// Whether the scheduler of a disk does not matter: requests of a multipath map reach its paths past their schedulers, and
/// an array behind a storage network sorts the requests of all its hosts.
fn is_sorted_elsewhere(topology: &Topology, disk: &BlockDevice) -> bool {
    let is_multipath = |id: &DevId| topology.get(*id).is_some_and(|holder| holder.kind == DeviceKind::Multipath);
    disk.is_in_storage_network() || disk.holders.iter().any(is_multipath)
}

/// Whether it is a volume of a RAID controller, which says that it spins where its disks do.
fn is_raid_volume(disk: &BlockDevice) -> bool {
    let model = disk.model.as_deref().unwrap_or_default().to_ascii_lowercase();
    RAID_MODELS.split(',').any(|part| model.contains(part))
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

    #[test]
    fn volumes_of_raid_controllers_are_told_by_their_model() {
        let is = |model: &str| is_raid_volume(&BlockDevice { model: Some(model.into()), ..BlockDevice::default() });
        for model in ["PERC H740P Adp", "MR9361-8i", "LOGICAL VOLUME", "RAID 930-8i-2GB", "PRAID EP400i"] {
            assert!(is(model), "{model}");
        }
        for model in ["ST8000NM0055-1RM", "WDC WD40EFRX-68N", "HUH721212AL5200", "TOSHIBA MG08ACA1", ""] {
            assert!(!is(model), "{model}");
        }
    }
}
