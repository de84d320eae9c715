//! File systems nearly full, of bytes or of inodes.

use crate::doctor::finding::{Finding, FindingSubject, NavTarget, Rule, RuleStatus, Severity};
use crate::doctor::format;
use crate::doctor::rule_context::RuleContext;
use crate::model::reading::Reading;
use crate::model::slow_facts::{MountSpace, SpaceReport};
use crate::model::topology::MountRef;

/// The rule.
pub const RULE: Rule =
    Rule { name: "filesystem-full", description: "file systems out of room or of inodes", evaluate: look };

/// Used from here on: worth a word ...
const WARN_PCT: f64 = 90.0;
/// ... unless this much is left all the same, bytes: 10 % of a large file system is much.
const WARN_FREE_BYTES: u64 = 50 << 30;
/// Used from here on: writes fail any moment.
const CRITICAL_PCT: f64 = 98.0;
/// Unless this much is left, bytes.
const CRITICAL_FREE_BYTES: u64 = 5 << 30;
/// Smaller file systems (boot partitions, images) are full by design, bytes.
const MIN_TOTAL_BYTES: u64 = 256 << 20;

fn look(case: &RuleContext<'_>, out: &mut Vec<Finding>) -> RuleStatus {
    let facts = &case.system.slow_facts;
    if facts.local_space.is_none() && facts.network_space.is_none() {
        return RuleStatus::NeedsMoreData("the room on the file systems");
    }
    let mut blocked = None;
    let all = [&facts.local_space, &facts.network_space].into_iter().flatten().flat_map(|r: &SpaceReport| &r.mounts);
    for m in all {
        match &m.space {
            Reading::Ok(_) => {}
            other => {
                blocked =
                    other.unavailable_reason(case.now_ns()).map(|why| format!("{}: {why}", m.mount_point.sanitized()))
            }
        }
        out.extend(space_finding(case, m));
        out.extend(inode_finding(case, m));
    }
    blocked.map_or(RuleStatus::Evaluated, RuleStatus::Unavailable)
}

/// The device under a mount point, with its options.
fn mounted_device<'a>(case: &RuleContext<'a>, m: &MountSpace) -> Option<(crate::model::disk::DevId, &'a MountRef)> {
    let topo = case.system.topology.ok()?;
    let all = topo.devices.iter().flat_map(|d| d.mounts.iter().map(move |r| (d.id, r)));
    all.into_iter().find(|(_, r)| r.mount_point == m.mount_point && !r.is_hidden)
}

fn space_severity(used_pct: f64, left: u64) -> Option<Severity> {
    match used_pct {
        p if p >= CRITICAL_PCT && left < CRITICAL_FREE_BYTES => Some(Severity::Critical),
        p if p >= WARN_PCT && left < WARN_FREE_BYTES => Some(Severity::Warn),
        _ => None,
    }
}

fn space_finding(case: &RuleContext<'_>, m: &MountSpace) -> Option<Finding> {
    let s = m.space.ok().filter(|s| s.total_bytes >= MIN_TOTAL_BYTES)?;
    // As df counts: what only root may use is neither used nor available.
    let used = s.total_bytes - s.free_bytes.min(s.total_bytes);
    let pct = used as f64 * 100.0 / (used + s.available_bytes).max(1) as f64;
    let severity = space_severity(pct, s.available_bytes)?;
    let (left, total) = (format::bytes(s.available_bytes as f64), format::bytes(s.total_bytes as f64));
    let title = format!("{} is {} full: {left} of {total} left", m.mount_point.sanitized(), format::percent(pct));
    Some(with_device(
        case,
        m,
        Finding::new(RULE.name, severity, FindingSubject::Mount(m.mount_point.clone()), title)
            .fact("available", left)
            .fact("size", total)
            .fact("used", format::percent(pct))
            .why("When it is full, writes fail. Long before that, file systems slow down: free pieces get small and far apart.")
            .advise("find what grew (du -x, deleted files still held open: lsof +L1), move or remove it", "reads every directory")
            .advise("enlarge the volume", "money"),
    ))
}

fn inode_finding(case: &RuleContext<'_>, m: &MountSpace) -> Option<Finding> {
    let s = m.space.ok()?;
    let (total, free) = (s.inodes_total.filter(|n| *n > 0)?, s.inodes_free?);
    let pct = (total - free.min(total)) as f64 * 100.0 / total as f64;
    let severity = match pct {
        p if p >= CRITICAL_PCT => Severity::Critical,
        p if p >= WARN_PCT => Severity::Warn,
        _ => return None,
    };
    let title = format!("{} is out of inodes soon: {free} of {total} left", m.mount_point.sanitized());
    Some(with_device(
        case,
        m,
        Finding::new(RULE.name, severity, FindingSubject::Mount(m.mount_point.clone()), title)
            .fact("inodes free", free.to_string())
            .fact("inodes", total.to_string())
            .fact("used", format::percent(pct))
            .why("Without an inode no file can be made, however many bytes are free: \"No space left on device\".")
            .advise("find the directory with very many small files and empty it", "reads every directory"),
    ))
}

fn with_device(case: &RuleContext<'_>, m: &MountSpace, f: Finding) -> Finding {
    match mounted_device(case, m) {
        Some((id, _)) => f.see_also(NavTarget::Device(id)).on_devices(case.device_chain(id)),
        None => f.see_also(NavTarget::Devices),
    }
}

/// Whether a mount's room is worth asking for: it can be written to, and is no image.
pub fn is_checked(m: &MountRef) -> bool {
    let ro = |o: &crate::model::raw_bytes::RawBytes| o.as_bytes().split(|b| *b == b',').next() == Some(b"ro");
    !m.is_hidden && !m.is_bind && !ro(&m.options) && !ro(&m.super_options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_needs_a_high_share_and_little_free_space() {
        assert_eq!(space_severity(95.0, 200 << 30), None);
        assert_eq!(space_severity(95.0, 10 << 30), Some(Severity::Warn));
        assert_eq!(space_severity(99.0, 10 << 30), Some(Severity::Warn));
        assert_eq!(space_severity(99.0, 1 << 30), Some(Severity::Critical));
        assert_eq!(space_severity(50.0, 1), None);
    }
}
