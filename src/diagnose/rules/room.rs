//! File systems nearly full, of bytes or of inodes.

use crate::diagnose::case::Case;
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::slow_facts::{MountSpace, SpaceReport};
use crate::model::reading::Reading;
use crate::model::topology::MountRef;

/// The rule.
pub const RULE: Rule = Rule { name: "filesystem-full", about: "file systems out of room or of inodes", look };

/// Used from here on: worth a word ...
const NEAR_PCT: f64 = 90.0;
/// ... unless this much is left all the same, bytes: 10 % of a large file system is much.
const PLENTY: u64 = 50 << 30;
/// Used from here on: writes fail any moment.
const FULL_PCT: f64 = 98.0;
/// Unless this much is left, bytes.
const SOME: u64 = 5 << 30;
/// Smaller file systems (boot partitions, images) are full by design, bytes.
const LEAST: u64 = 256 << 20;

fn look(case: &Case<'_>, out: &mut Vec<Finding>) -> Judged {
    let facts = &case.world.slow_facts;
    if facts.local_space.is_none() && facts.network_space.is_none() {
        return Judged::NotYet("the room on the file systems");
    }
    let mut blocked = None;
    let all = [&facts.local_space, &facts.network_space].into_iter().flatten().flat_map(|r: &SpaceReport| &r.mounts);
    for m in all {
        match &m.space {
            Reading::Ok(_) => {}
            other => blocked = other.unavailable_reason(case.now_ns()).map(|why| format!("{}: {why}", m.mount_point.sanitized())),
        }
        out.extend(bytes(case, m));
        out.extend(inodes(case, m));
    }
    blocked.map_or(Judged::Yes, Judged::Cannot)
}

/// The device under a mount point, with its options.
fn under<'a>(case: &Case<'a>, m: &MountSpace) -> Option<(crate::model::disk::DevId, &'a MountRef)> {
    let topo = case.world.topology.ok()?;
    let all = topo.devices.iter().flat_map(|d| d.mounts.iter().map(move |r| (d.id, r)));
    all.into_iter().find(|(_, r)| r.mount_point == m.mount_point && !r.is_hidden)
}

fn severity(used_pct: f64, left: u64) -> Option<Severity> {
    match used_pct {
        p if p >= FULL_PCT && left < SOME => Some(Severity::Critical),
        p if p >= NEAR_PCT && left < PLENTY => Some(Severity::Warn),
        _ => None,
    }
}

fn bytes(case: &Case<'_>, m: &MountSpace) -> Option<Finding> {
    let s = m.space.ok().filter(|s| s.total_bytes >= LEAST)?;
    // As df counts: what only root may use is neither used nor available.
    let used = s.total_bytes - s.free_bytes.min(s.total_bytes);
    let pct = used as f64 * 100.0 / (used + s.available_bytes).max(1) as f64;
    let severity = severity(pct, s.available_bytes)?;
    let (left, total) = (words::bytes(s.available_bytes as f64), words::bytes(s.total_bytes as f64));
    let title = format!("{} is {} full: {left} of {total} left", m.mount_point.sanitized(), words::pct(pct));
    Some(finish(
        case,
        m,
        Finding::new(RULE.name, severity, Subject::Mount(m.mount_point.clone()), title)
            .fact("available", left)
            .fact("size", total)
            .fact("used", words::pct(pct))
            .why("When it is full, writes fail. Long before that, file systems slow down: free pieces get small and far apart.")
            .advise("find what grew (du -x, deleted files still held open: lsof +L1), move or remove it", "reads every directory")
            .advise("enlarge the volume", "money"),
    ))
}

fn inodes(case: &Case<'_>, m: &MountSpace) -> Option<Finding> {
    let s = m.space.ok()?;
    let (total, free) = (s.inodes_total.filter(|n| *n > 0)?, s.inodes_free?);
    let pct = (total - free.min(total)) as f64 * 100.0 / total as f64;
    let severity = match pct {
        p if p >= FULL_PCT => Severity::Critical,
        p if p >= NEAR_PCT => Severity::Warn,
        _ => return None,
    };
    let title = format!("{} is out of inodes soon: {free} of {total} left", m.mount_point.sanitized());
    Some(finish(
        case,
        m,
        Finding::new(RULE.name, severity, Subject::Mount(m.mount_point.clone()), title)
            .fact("inodes free", free.to_string())
            .fact("inodes", total.to_string())
            .fact("used", words::pct(pct))
            .why("Without an inode no file can be made, however many bytes are free: \"No space left on device\".")
            .advise("find the directory with very many small files and empty it", "reads every directory"),
    ))
}

fn finish(case: &Case<'_>, m: &MountSpace, f: Finding) -> Finding {
    match under(case, m) {
        Some((id, _)) => f.look_at(Jump::Device(id)).touching(case.chain(id)),
        None => f.look_at(Jump::Devices),
    }
}

/// Whether a mount's room is worth asking for: it can be written to, and is no image.
pub fn counts(m: &MountRef) -> bool {
    let ro = |o: &crate::model::raw_bytes::RawBytes| o.as_bytes().split(|b| *b == b',').next() == Some(b"ro");
    !m.is_hidden && !m.is_bind && !ro(&m.options) && !ro(&m.super_options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_left_is_not_full() {
        assert_eq!(severity(95.0, 200 << 30), None);
        assert_eq!(severity(95.0, 10 << 30), Some(Severity::Warn));
        assert_eq!(severity(99.0, 10 << 30), Some(Severity::Warn));
        assert_eq!(severity(99.0, 1 << 30), Some(Severity::Critical));
        assert_eq!(severity(50.0, 1), None);
    }
}
