//! Errors that file systems have recorded: in the superblock of ext4, by member of btrfs.

use super::device_health::{growth, named_finding, require_complete};
use super::prelude::*;
use crate::model::health::{BTRFS_ERRORS, BtrfsHealth, BtrfsMember, DeviceHealth, Ext4Errors, Health};

/// An error this recent is reported even if no earlier reading is there to compare with.
const RECENT_SECS: f64 = 600.0;

pub(super) fn evaluate(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleResult {
    let facts = ctx.require_facts("errors recorded by the file systems")?;
    for found in &facts.health {
        match &found.health {
            Health::Ext4(errors) if errors.count > 0 => ext4_finding(ctx, found, errors).report(out),
            Health::Btrfs(btrfs) => {
                out.extend(btrfs.members.iter().map(|member| btrfs_finding(ctx, found, btrfs, member)));
            }
            _ => {}
        }
    }
    require_complete(facts.health_left_out.others, "devices and file systems")
}

fn ext4_finding(ctx: &RuleContext<'_>, found: &DeviceHealth, errors: &Ext4Errors) -> Finding {
    let now_secs = ctx.system.now().wall_ns as f64 / 1e9;
    let age = (errors.last_time > 0).then(|| f64::max(now_secs - errors.last_time as f64, 0.0));
    let has_grown = growth(ctx, found, |h| if let Health::Ext4(e) = h { Some(e.count) } else { None }).is_some();
    // A file system that was mounted since the reading before brings old errors with it: the time of the last one counts.
    let is_new = age.map_or(has_grown, |secs| secs < RECENT_SECS);
    let last = age.map_or(String::new(), |secs| format!(", the last {} ago", format::duration(secs)));
    let (count, noun) = (errors.count, if errors.count == 1 { "error" } else { "errors" });
    let title = format!("ext4 on {} has recorded {count} {noun}{last}", found.device);
    named_finding(ctx, Severity::critical_if(is_new), &found.device, title)
        .fact("errors_count", errors.count.to_string())
        .fact("found in", errors.last_function.clone())
        .why("The kernel found the file system damaged and wrote that into its superblock, where it stays until the next check.")
        .advise("check the backup, unmount it and run e2fsck -f")
        .costs("the file system is away while it is checked")
}

fn btrfs_finding(ctx: &RuleContext<'_>, found: &DeviceHealth, btrfs: &BtrfsHealth, member: &BtrfsMember) -> Finding {
    let (name, id) = (&btrfs.name, member.id);
    let errors = BTRFS_ERRORS.iter().zip(member.errors).filter(|(_, count)| *count > 0);
    let errors: Vec<String> = errors.map(|(kind, n)| format!("{n} {}", kind.trim_end_matches("_errs"))).collect();
    let finding = match member.is_missing {
        true => {
            let title = format!("btrfs {name} works without its device {id}");
            named_finding(ctx, Severity::Critical, &found.device, title)
                .why("What was stored once is lost, what was stored twice has one copy left.")
                .advise("check the backup, then btrfs replace start DEVID DISK MOUNT")
                .costs("reads every other member whole")
        }
        false => {
            let title = format!("btrfs {name}: device {id} has had errors: {}", errors.join(", "));
            named_finding(ctx, Severity::Warn, &found.device, title)
                .why("The counts stay until they are reset. Corruption that a second copy could mend counts, too.")
                .advise("note the counts, reset them (btrfs device stats -z MOUNT), run btrfs scrub start -B MOUNT, and see whether they come back")
                .costs("a scrub reads everything")
        }
    };
    finding
        .aspect(format!("member {id}"))
        .fact("device id", id.to_string())
        .fact("present", btrfs.devices.join(", "))
        .fact_opt("errors", (!errors.is_empty()).then(|| errors.join(", ")))
}
