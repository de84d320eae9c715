//! Reads that write: access times kept on a file system that a busy database reads from.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::topology::MountRef;

/// The rule.
pub const RULE: Rule =
    Rule { name: "atime-mount", description: "access times kept under a database that reads much", evaluate: look };

/// Reads of the device per second that make a database busy with it.
const BUSY_READS_PER_S: f64 = 50.0;
/// Over so long.
const WINDOW_SECS: f64 = 5.0;
/// File systems with access times worth a word.
const ATIME_FILESYSTEMS: &[&str] = &["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs", "ocfs2"];

fn has_option(m: &MountRef, word: &[u8]) -> bool {
    [&m.options, &m.super_options].into_iter().any(|o| o.as_bytes().split(|b| *b == b',').any(|w| w == word))
}

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let Some(topo) = case.system.topology.ok() else {
        return RuleStatus::Unavailable(case.system.topology.unavailable_reason(case.now_ns()).unwrap_or_default());
    };
    // Whose reads they are: a known server among those that read now.
    let servers = &case.task_survey().servers;
    let reads = |m: &&crate::model::process::TaskActivity| m.read.is_some_and(|n| n > 0.0);
    let reader = case.busiest_tasks().iter().filter(reads).find(|m| servers.iter().any(|(at, _)| *at == m.row_index));
    let Some(reader) = reader else { return RuleStatus::Evaluated };
    for dev in topo.devices.iter().filter(|d| !d.mounts.is_empty()) {
        let busy = |id: DevId| case.device_mean(id, WINDOW_SECS, |d| d.reads_per_s).unwrap_or(0.0);
        let reads = busy(dev.id);
        if reads < BUSY_READS_PER_S {
            continue;
        }
        for m in dev
            .mounts
            .iter()
            .filter(|m| !m.is_hidden && !m.is_bind && !has_option(m, b"noatime") && !has_option(m, b"ro"))
        {
            if !ATIME_FILESYSTEMS.iter().any(|t| m.fs_type == *t) {
                continue;
            }
            let strict = !has_option(m, b"relatime");
            out.push(build_finding(case, dev.id, m, strict, reads, &case.task_name(reader.row_index)));
        }
    }
    RuleStatus::Evaluated
}

fn build_finding(case: &RuleContext<'_>, id: DevId, m: &MountRef, strict: bool, reads: f64, who: &str) -> Finding {
    let point = m.mount_point.sanitized();
    let (severity, how) = match strict {
        true => (Severity::Warn, "every read of a file writes its access time"),
        false => (Severity::Note, "relatime writes access times once a day and after changes"),
    };
    let title = format!("{point} keeps access times under {who}: {how}");
    let f = Finding::new(RULE.name, severity, FindingSubject::Mount(m.mount_point.clone()), title)
        .fact("options", m.options.sanitized())
        .fact("reads", format!("{}/s", format::count(reads)))
        .fact("reader", who)
        .why("Reads become writes: seeks, journal commits and flushes that nobody asked for.");
    // The knob's address ends at a comma or blank; an odd mount point is left to the person.
    let plain = m.mount_point.as_bytes().iter().all(|b| b.is_ascii_graphic());
    let what = "mount it noatime,nodiratime";
    let cost = "programs that look at access times (old mail readers, tmp cleaners) see old ones";
    let f = match plain {
        true => f.advise_at(what, cost, NavTarget::Knob(format!("atime@{point}"))),
        false => f.advise(what, cost),
    };
    f.see_also(NavTarget::Device(id)).on_devices(case.device_chain(id))
}
