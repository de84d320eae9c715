//! File systems nearly full, of bytes or of inodes.

use crate::diagnose::case::Case;
use crate::diagnose::finding::{Finding, Judged, Jump, Rule, Severity, Subject};
use crate::diagnose::words;
use crate::model::facts::{MountRoom, Room};
use crate::model::section::Section;
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
    let facts = &case.world.facts;
    if facts.room.is_none() && facts.network_room.is_none() {
        return Judged::NotYet("the room on the file systems");
    }
    let mut blocked = None;
    let all = [&facts.room, &facts.network_room].into_iter().flatten().flat_map(|r: &Room| &r.mounts);
    for m in all {
        match &m.space {
            Section::Ok(_) => {}
            other => blocked = other.why(case.now_ns()).map(|why| format!("{}: {why}", m.point.clean())),
        }
        out.extend(bytes(case, m));
        out.extend(inodes(case, m));
    }
    blocked.map_or(Judged::Yes, Judged::Cannot)
}

/// The device under a mount point, with its options.
fn under<'a>(case: &Case<'a>, m: &MountRoom) -> Option<(crate::model::disk::DevId, &'a MountRef)> {
    let topo = case.world.topo.ok()?;
    let all = topo.devices.iter().flat_map(|d| d.mounts.iter().map(move |r| (d.id, r)));
    all.into_iter().find(|(_, r)| r.mount_point == m.point && !r.hidden)
}

fn severity(used_pct: f64, left: u64) -> Option<Severity> {
    match used_pct {
        p if p >= FULL_PCT && left < SOME => Some(Severity::Critical),
        p if p >= NEAR_PCT && left < PLENTY => Some(Severity::Warn),
        _ => None,
    }
}

fn bytes(case: &Case<'_>, m: &MountRoom) -> Option<Finding> {
    let s = m.space.ok().filter(|s| s.total_bytes >= LEAST)?;
    // As df counts: what only root may use is neither used nor available.
    let used = s.total_bytes - s.free_bytes.min(s.total_bytes);
    let pct = used as f64 * 100.0 / (used + s.available_bytes).max(1) as f64;
    let severity = severity(pct, s.available_bytes)?;
    let (left, total) = (words::bytes(s.available_bytes as f64), words::bytes(s.total_bytes as f64));
    let title = format!("{} is {} full: {left} of {total} left", m.point.clean(), words::pct(pct));
    Some(finish(
        case,
        m,
        Finding::new(RULE.name, severity, Subject::Mount(m.point.clone()), title)
            .fact("available", left)
            .fact("size", total)
            .fact("used", words::pct(pct))
            .why("When it is full, writes fail. Long before that, file systems slow down: free pieces get small and far apart.")
            .advise("find what grew (du -x, deleted files still held open: lsof +L1), move or remove it", "reads every directory")
            .advise("enlarge the volume", "money"),
    ))
}

fn inodes(case: &Case<'_>, m: &MountRoom) -> Option<Finding> {
    let s = m.space.ok()?;
    let (total, free) = (s.inodes_total.filter(|n| *n > 0)?, s.inodes_free?);
    let pct = (total - free.min(total)) as f64 * 100.0 / total as f64;
    let severity = match pct {
        p if p >= FULL_PCT => Severity::Critical,
        p if p >= NEAR_PCT => Severity::Warn,
        _ => return None,
    };
    let title = format!("{} is out of inodes soon: {free} of {total} left", m.point.clean());
    Some(finish(
        case,
        m,
        Finding::new(RULE.name, severity, Subject::Mount(m.point.clone()), title)
            .fact("inodes free", free.to_string())
            .fact("inodes", total.to_string())
            .fact("used", words::pct(pct))
            .why("Without an inode no file can be made, however many bytes are free: \"No space left on device\".")
            .advise("find the directory with very many small files and empty it", "reads every directory"),
    ))
}

fn finish(case: &Case<'_>, m: &MountRoom, f: Finding) -> Finding {
    match under(case, m) {
        Some((id, _)) => f.look_at(Jump::Device(id)).touching(case.chain(id)),
        None => f.look_at(Jump::Devices),
    }
}

/// Whether a mount's room is worth asking for: it can be written to, and is no image.
pub fn counts(m: &MountRef) -> bool {
    let ro = |o: &crate::model::raw::Raw| o.bytes().split(|b| *b == b',').next() == Some(b"ro");
    !m.hidden && !m.bind && !ro(&m.options) && !ro(&m.super_options)
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
