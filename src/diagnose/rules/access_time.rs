//! Reads that write: access times kept on a file system that a busy database reads from.

use crate::diagnose::case::Case;
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::disk::DevId;
use crate::model::topology::MountRef;

/// The rule.
pub const RULE: Rule =
    Rule { name: "atime-mount", about: "access times kept under a database that reads much", look };

/// Reads of the device per second that make a database busy with it.
const BUSY_READS: f64 = 50.0;
/// Over so long.
const WINDOW_SECS: f64 = 5.0;
/// File systems with access times worth a word.
const WITH_TIMES: &[&str] = &["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs", "ocfs2"];

fn has(m: &MountRef, word: &[u8]) -> bool {
    [&m.options, &m.super_options].into_iter().any(|o| o.as_bytes().split(|b| *b == b',').any(|w| w == word))
}

fn look(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let Some(topo) = case.world.topology.ok() else {
        return Judged::Cannot(case.world.topology.unavailable_reason(case.now_ns()).unwrap_or_default());
    };
    // Whose reads they are: a known server among those that read now.
    let servers = &case.survey().servers;
    let reads = |m: &&crate::model::process::TaskActivity| m.read.is_some_and(|n| n > 0.0);
    let reader = case.busiest().iter().filter(reads).find(|m| servers.iter().any(|(at, _)| *at == m.row_index));
    let Some(reader) = reader else { return Judged::Yes };
    for dev in topo.devices.iter().filter(|d| !d.mounts.is_empty()) {
        let busy = |id: DevId| case.device_mean(id, WINDOW_SECS, |d| d.reads_per_s).unwrap_or(0.0);
        let reads = busy(dev.id);
        if reads < BUSY_READS {
            continue;
        }
        for m in dev.mounts.iter().filter(|m| !m.is_hidden && !m.is_bind && !has(m, b"noatime") && !has(m, b"ro")) {
            if !WITH_TIMES.iter().any(|t| m.fs_type == *t) {
                continue;
            }
            let strict = !has(m, b"relatime");
            out.push(finding(case, dev.id, m, strict, reads, &case.task_name(reader.row_index)));
        }
    }
    Judged::Yes
}

fn finding(case: &Case<'_>, id: DevId, m: &MountRef, strict: bool, reads: f64, who: &str) -> Finding {
    let point = m.mount_point.sanitized();
    let (severity, how) = match strict {
        true => (Severity::Warn, "every read of a file writes its access time"),
        false => (Severity::Note, "relatime writes access times once a day and after changes"),
    };
    let title = format!("{point} keeps access times under {who}: {how}");
    let f = Finding::new(RULE.name, severity, Subject::Mount(m.mount_point.clone()), title)
        .fact("options", m.options.sanitized())
        .fact("reads", format!("{}/s", words::count(reads)))
        .fact("reader", who)
        .why("Reads become writes: seeks, journal commits and flushes that nobody asked for.");
    // The knob's address ends at a comma or blank; an odd mount point is left to the person.
    let plain = m.mount_point.as_bytes().iter().all(|b| b.is_ascii_graphic());
    let what = "mount it noatime,nodiratime";
    let cost = "programs that look at access times (old mail readers, tmp cleaners) see old ones";
    let f = match plain {
        true => f.advise_at(what, cost, Jump::Knob(format!("atime@{point}"))),
        false => f.advise(what, cost),
    };
    f.look_at(Jump::Device(id)).touching(case.chain(id))
}
