//! Arrays, paths, disks and compressed devices that report a problem in sysfs.

use super::prelude::*;
use crate::model::health::{ArrayHealth, DeviceHealth, DiskHealth, Health, is_working};
use crate::model::slow_facts::SystemFacts;

const MISSING: &str = "health of the devices";
/// A zram device this full refuses writes soon.
const ZRAM_FULL_PCT: u64 = 95;
/// Less is not worth a word.
const MIN_ZRAM_BYTES: u64 = 256 << 20;

fn facts<'a>(ctx: &RuleContext<'a>) -> Result<&'a SystemFacts, RuleSkipped> {
    ctx.require_facts(MISSING)
}

/// A finding about the device with this kernel name.
pub(super) fn named_finding(ctx: &RuleContext<'_>, severity: Severity, device: &str, title: String) -> Finding {
    match ctx.find_device(device) {
        Some(id) => ctx.device_finding(severity, id, title),
        None => {
            Finding::new(severity, FindingSubject::KernelName(device.to_owned()), title).see_also(NavTarget::Devices)
        }
    }
}

/// How much a number has grown since the facts before; `None` without those, or where they do not say it.
pub(super) fn growth(ctx: &RuleContext<'_>, found: &DeviceHealth, get: fn(&Health) -> Option<u64>) -> Option<u64> {
    let before = ctx.system.slow_facts.previous.as_ref()?;
    let is_same = |b: &&DeviceHealth| {
        b.device == found.device && std::mem::discriminant(&b.health) == std::mem::discriminant(&found.health)
    };
    let old = match before.health.iter().find(is_same) {
        Some(same) => get(&same.health)?,
        // It may have had no room in the list: what it had counted by then is not known.
        None if before.health_left_out.like(&found.health) > 0 => return None,
        // What had nothing to say was left out.
        None => 0,
    };
    get(&found.health)?.checked_sub(old).filter(|n| *n > 0)
}

/// Says so where the list was cut: those left out are not judged.
pub(super) fn require_complete(left_out: u64, what: &str) -> RuleResult {
    match left_out {
        0 => Ok(()),
        n => Err(RuleSkipped::Unavailable(format!("too many {what} have something to report: {n} are left out"))),
    }
}

pub(super) fn evaluate_degraded(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for found in &facts(ctx)?.health {
        let Health::Array(array) = &found.health else { continue };
        if !array.is_degraded() {
            continue;
        }
        let lost = array.missing.max(array.faulty.len() as u64);
        let (severity, why) = severity_of_loss(array, lost);
        let faulty = match array.faulty.is_empty() {
            true => String::new(),
            false => format!(" ({} faulty)", array.faulty.join(", ")),
        };
        let name = shown_name(ctx, &found.device);
        let title = format!("{name} ({}) works without {lost} of {} members{faulty}", array.level, array.members);
        let replace = match is_mapped(&found.device) {
            true => "check the backup, then replace the member (lvconvert --repair VG/LV)",
            false => "check the backup, then replace the member (mdadm --manage DEVICE --add DISK)",
        };
        named_finding(ctx, severity, &found.device, title)
            .fact("level", array.level.clone())
            .fact("missing", lost.to_string())
            .fact("members", array.members.to_string())
            .fact_opt("sync", progress(array))
            .why(why)
            .advise(replace)
            .costs("the rebuild reads every other member whole")
            .report(out);
    }
    require_complete(facts(ctx)?.health_left_out.others, "devices and file systems")
}

/// How bad it is that an array has lost so many members, and why.
fn severity_of_loss(array: &ArrayHealth, lost: u64) -> (Severity, &'static str) {
    match array.level.as_str() {
        "raid1" if array.members.saturating_sub(lost) >= 2 => (
            Severity::Warn,
            "Each member that is left has all data, so another failure loses none. The rebuild to come slows all I/O.",
        ),
        "raid6" if lost == 1 => (
            Severity::Warn,
            "The array survives the failure of one more member, and not of a third. The rebuild to come slows all I/O.",
        ),
        "raid10" if lost == 1 => (
            Severity::Warn,
            "Whether another failure loses data depends on which member it is: the one with the copy of what the lost member \
             had must not fail. The rebuild to come slows all I/O.",
        ),
        _ => (
            Severity::Critical,
            "The array goes on with the members that are left. Another failure may lose data, and the rebuild to come slows all \
             I/O.",
        ),
    }
}

/// The name of a device for a sentence: that of the volume where it has one.
fn shown_name(ctx: &RuleContext<'_>, device: &str) -> String {
    ctx.find_device(device).map_or_else(|| device.to_owned(), |id| ctx.device_name(id))
}

/// Whether the array is a volume of LVM: those of md have other commands.
fn is_mapped(device: &str) -> bool {
    device.starts_with("dm-")
}

/// `recover, 34% done`.
fn progress(array: &ArrayHealth) -> Option<String> {
    let done = array.sync_sectors.map(|(done, all)| format::percent(done as f64 * 100.0 / all.max(1) as f64));
    let done = done.map_or(String::new(), |done| format!(", {done} done"));
    array.is_syncing().then(|| format!("{}{done}", array.sync_action))
}

pub(super) fn evaluate_sync(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for found in &facts(ctx)?.health {
        let Health::Array(array) = &found.health else { continue };
        let Some(progress) = progress(array) else { continue };
        let name = shown_name(ctx, &found.device);
        let title = format!("{name} ({}) runs a {progress}: its disks serve that, too", array.level);
        named_finding(ctx, Severity::Note, &found.device, title)
            .fact("sync", progress)
            .why("A sync of an array reads or writes its members from end to end, beside the I/O of programs.")
            .advise("lower dev.raid.speed_limit_max while users wait")
            .costs("a degraded array stays without redundancy for longer")
            .report(out);
    }
    Ok(())
}

pub(super) fn evaluate_mismatch(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for found in &facts(ctx)?.health {
        let Health::Array(array) = &found.health else { continue };
        if array.mismatched_sectors == 0 || array.is_syncing() {
            continue;
        }
        // A mirror may differ where a page changed while it was written, as those of swap do (man 4 md).
        let is_mirror = matches!(array.level.as_str(), "raid1" | "raid10");
        let severity = if is_mirror { Severity::Note } else { Severity::Warn };
        let sectors = format::count(array.mismatched_sectors as f64);
        let name = shown_name(ctx, &found.device);
        let title = format!("{name} ({}): {sectors} sectors differed in the last check", array.level);
        let repair = match is_mapped(&found.device) {
            true => {
                "only then run lvchange --syncaction repair VG/LV: it makes the members equal, and cannot know which one is right"
            }
            false => {
                "only then write `repair` to its md/sync_action: it makes the members equal, and cannot know which one is right"
            }
        };
        named_finding(ctx, severity, &found.device, title)
            .fact("mismatch_cnt", sectors)
            .why("The members do not agree. On a mirror that can be harmless (swap); on parity RAID a rebuild would write wrong data.")
            .advise("look for errors of a member or its cable, replace a bad member, and verify the data (backup, checksums)")
            .costs("reads the data")
            .advise(repair)
            .costs("reads every member whole; may overwrite the good copy")
            .report(out);
    }
    Ok(())
}

pub(super) fn evaluate_paths(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for found in &facts(ctx)?.health {
        let Health::Paths(all) = &found.health else { continue };
        let down: Vec<String> =
            all.paths.iter().filter(|p| !is_working(&p.1)).map(|p| format!("{} {}", p.0, p.1)).collect();
        if down.is_empty() {
            continue;
        }
        let (count, total) = (down.len(), all.paths.len());
        let name = shown_name(ctx, &found.device);
        let title = format!("{name} has lost {count} of {total} paths: {}", down.join(", "));
        named_finding(ctx, Severity::critical_if(count == total), &found.device, title)
            .fact("paths", total.to_string())
            .fact("down", down.join(", "))
            .why("The other paths carry all I/O. With the last one, requests fail or wait for ever, as no_path_retry says.")
            .advise("check cables, switch and storage port of that path (multipath -ll)")
            .report(out);
    }
    require_complete(facts(ctx)?.health_left_out.others, "devices and file systems")
}

pub(super) fn evaluate_disks(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let all = &facts(ctx)?.health;
    let is_path = |device: &str| {
        all.iter().any(|h| matches!(&h.health, Health::Paths(p) if p.paths.iter().any(|(name, _)| name == device)))
    };
    for found in all {
        let Health::Disk(disk) = &found.health else { continue };
        let device = &found.device;
        if !is_working(&disk.state) && !is_path(device) {
            offline_finding(ctx, device, disk).report(out);
        }
        if let Some(count) = growth(ctx, found, |h| disk_of(h)?.timeouts) {
            let title = format!("{device}: {count} commands timed out since the reading before");
            disk_errors_finding(ctx, Severity::Warn, device, disk, title).report(out);
        } else if let Some(count) = growth(ctx, found, |h| disk_of(h)?.errors) {
            let title = format!("{device}: {count} commands ended with an error since the reading before");
            disk_errors_finding(ctx, Severity::Note, device, disk, title).report(out);
        }
    }
    require_complete(facts(ctx)?.health_left_out.disks, "disks")
}

fn disk_of(health: &Health) -> Option<&DiskHealth> {
    if let Health::Disk(disk) = health { Some(disk) } else { None }
}

fn offline_finding(ctx: &RuleContext<'_>, device: &str, disk: &DiskHealth) -> Finding {
    let may_come_back = matches!(disk.state.as_str(), "blocked" | "quiesce" | "resetting" | "connecting");
    let title = format!("{device} is {}: the kernel does not send it requests", disk.state);
    named_finding(ctx, Severity::critical_if(!may_come_back), device, title)
        .aspect("state")
        .fact("state", disk.state.clone())
        .why("Requests fail or wait until the driver finds the disk again.")
        .advise("read the kernel log for the cause: cable, port, controller or the disk itself")
        .advise("check what lies on it, and its backup")
}

fn disk_errors_finding(
    ctx: &RuleContext<'_>,
    severity: Severity,
    device: &str,
    disk: &DiskHealth,
    title: String,
) -> Finding {
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    named_finding(ctx, severity, device, title)
        .fact_opt("timeouts since attached", number(disk.timeouts))
        .fact_opt("errors since attached", number(disk.errors))
        .why("Every failed command is tried again, and the request waits. A command that a disk does not know counts as an error, too, so only what grows matters.")
        .advise("read the disk's own log (smartctl -a)")
        .costs("wakes a sleeping disk")
}

pub(super) fn evaluate_zram(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    for found in &facts(ctx)?.health {
        let Health::Zram(zram) = &found.health else { continue };
        let failed = growth(ctx, found, |h| if let Health::Zram(z) = h { Some(z.failed_writes) } else { None });
        let is_full = zram.limit_bytes > 0 && zram.memory_bytes >= zram.limit_bytes / 100 * ZRAM_FULL_PCT;
        let is_poor = zram.stored_bytes >= MIN_ZRAM_BYTES && zram.memory_bytes >= zram.stored_bytes / 10 * 9;
        let [stored, used] = [zram.stored_bytes, zram.memory_bytes].map(|n| format::bytes(n as f64));
        const RAISE_LIMIT: [&str; 2] = ["raise its mem_limit, or swap to a disk", "memory, or slower swapping"];
        let (severity, title, [advice, costs]) = match failed {
            Some(count) => {
                let title = format!("{}: {count} writes failed, {used} of memory used", found.device);
                let free_memory = ["free memory: there was none for the compressed pages", "less cache"];
                (Severity::Warn, title, if zram.limit_bytes > 0 { RAISE_LIMIT } else { free_memory })
            }
            None if is_full => {
                (Severity::Warn, format!("{} is at its memory limit: {used} used", found.device), RAISE_LIMIT)
            }
            None if is_poor => {
                let title = format!("{} saves little: {stored} take {used}", found.device);
                let other = [
                    "try another compressor (comp_algorithm), or keep this data on a disk",
                    "processor time, or slower access",
                ];
                (Severity::Note, title, other)
            }
            None => continue,
        };
        named_finding(ctx, severity, &found.device, title)
            .fact("stored", stored)
            .fact("memory used", used)
            .fact_opt("limit", (zram.limit_bytes > 0).then(|| format::bytes(zram.limit_bytes as f64)))
            .why("A compressed device in memory is worth its processor time only while it holds much more than it takes.")
            .advise(advice)
            .costs(costs)
            .report(out);
    }
    Ok(())
}
