//! The lines of the two lists: who waits for which file, and the slow ones; named, filtered, sorted.

use super::wait::on_text;
use super::{SlowSync, SyncFile, SyncRate, Syncs};
use crate::model::column::Value;
use crate::model::columns::syncs::SyncCol;
use crate::model::disk::DevId;
use crate::model::topology::Topology;
use crate::units::format_duration;
use std::sync::Arc;

/// What to list, and how.
#[derive(Debug, Clone, Default)]
pub struct SyncQuery<'a> {
    /// Sort by this column, largest first (words: from A on); `None`: who waits longest.
    pub sort: Option<SyncCol>,
    /// The other way round.
    pub reverse: bool,
    /// Only lines that contain this; case does not matter.
    pub filter: &'a str,
}

/// Who waits for which file. Texts are cleaned.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncLine {
    /// The figures.
    pub rate: SyncRate,
    /// The process's name.
    pub comm: String,
    /// The device's name, `-` where there is none.
    pub device: String,
    /// The file.
    pub path: String,
    /// Time since the last one ended.
    pub last: Option<String>,
}

/// A slow sync, over or under way. Texts are cleaned.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowLine {
    /// What.
    pub file: Arc<SyncFile>,
    /// The thread.
    pub tid: u32,
    /// Its name; of one under way the process's.
    pub comm: String,
    /// The file.
    pub path: String,
    /// CLOCK_BOOTTIME when it began, ns.
    pub began_ns: u64,
    /// How long it took, or takes by now, ns.
    pub took_ns: u64,
    /// It is not over.
    pub under_way: bool,
    /// `errno`.
    pub error: u32,
    /// What it waited on, in words.
    pub on: Option<String>,
}

/// A device's name, cleaned: its number where the name is not known, `-` where there is none.
pub fn device_name(id: Option<DevId>, topo: Option<&Topology>) -> String {
    match (id, id.and_then(|id| topo?.get(id))) {
        (_, Some(dev)) => dev.shown_name().into_owned(),
        (Some(id), None) => format!("{}:{}", id.major, id.minor),
        (None, None) => "-".into(),
    }
}

/// Who waits for which file.
pub fn lines(syncs: &Syncs, topo: Option<&Topology>, query: &SyncQuery<'_>) -> Vec<SyncLine> {
    let line = |rate: &SyncRate| SyncLine {
        comm: rate.file.comm.clean(),
        device: device_name(rate.file.device(), topo),
        path: rate.file.path(topo),
        last: rate.last_ns.map(|ns| format_duration(syncs.at_ns.saturating_sub(ns) / 1_000_000_000)),
        rate: rate.clone(),
    };
    let mut out: Vec<SyncLine> = syncs.rows.iter().map(line).collect();
    if !query.filter.is_empty() {
        let needle = query.filter.to_lowercase();
        out.retain(|l| {
            has(&needle, &[&l.comm, &l.device, &l.path, l.rate.file.call.name()], l.rate.file.pid)
        });
    }
    if let Some(col) = query.sort {
        out.sort_by(|a, b| match (a.order(col), b.order(col)) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (a, b) => b.order(&a),
        });
    }
    if query.reverse {
        out.reverse();
    }
    out
}

/// The slow ones: those under way, longest first, then those that are over, newest first.
pub fn slow(syncs: &Syncs, topo: Option<&Topology>, filter: &str) -> Vec<SlowLine> {
    let on = |file: &SyncFile, on: &Option<String>| {
        on.as_ref().map(|f| on_text(f, &device_name(file.device(), topo)))
    };
    let flying = syncs.flying.iter().map(|f| SlowLine {
        file: f.file.clone(),
        tid: f.tid,
        comm: f.file.comm.clean(),
        path: f.file.path(topo),
        began_ns: f.began_ns,
        took_ns: syncs.at_ns.saturating_sub(f.began_ns),
        under_way: true,
        error: 0,
        on: on(&f.file, &f.on),
    });
    let over = syncs.slow.iter().rev().map(|s: &Arc<SlowSync>| SlowLine {
        file: s.file.clone(),
        tid: s.tid,
        comm: s.comm.clean(),
        path: s.file.path(topo),
        began_ns: s.began_ns,
        took_ns: s.took_ns,
        under_way: false,
        error: s.error,
        on: on(&s.file, &s.on),
    });
    let mut out: Vec<SlowLine> = flying.filter(|l| l.took_ns >= syncs.threshold_ns).chain(over).collect();
    if !filter.is_empty() {
        let needle = filter.to_lowercase();
        out.retain(|l| {
            let on = l.on.as_deref().unwrap_or_default();
            has(&needle, &[&l.comm, &l.path, on, l.file.call.name()], l.tid)
        });
    }
    out
}

fn has(needle: &str, texts: &[&str], number: u32) -> bool {
    texts.iter().any(|t| t.to_lowercase().contains(needle)) || number.to_string().contains(needle)
}

/// What is not seen, and what had no room: nobody shall take the lists for more than they are.
pub fn notes(syncs: &Syncs) -> Vec<String> {
    let uring = match syncs.uring_per_s {
        Some(n) => format!("syncs by io_uring ({n:.0}/s, counted but not timed)"),
        None => "syncs by io_uring".into(),
    };
    let mut out = vec![format!("not seen: writes that sync by themselves (O_SYNC, O_DSYNC), {uring}")];
    out.extend(syncs.without.iter().cloned());
    out.extend(syncs.lost_text());
    if syncs.more > 0 {
        out.push(format!("{} more files that waited less", syncs.more));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Flying;
    use super::*;

    fn rate(pid: u32, comm: &str, wait_pct: f64, calls: u64) -> SyncRate {
        let file = SyncFile {
            pid,
            comm: comm.as_bytes().into(),
            names: b"db/wal".as_slice().into(),
            dev: DevId { major: 8, minor: 1 },
            ..Default::default()
        };
        SyncRate {
            file: Arc::new(file),
            calls_per_s: 1.0,
            wait_pct,
            calls,
            errors: 0,
            mean_us: Some(1500.0),
            spread: None,
            worst_ns: 9_000_000,
            last_ns: Some(1_000_000_000),
        }
    }

    fn syncs() -> Syncs {
        let rows = vec![rate(10, "zeta", 50.0, 1), rate(20, "al\u{1b}pha", 5.0, 9), rate(30, "mid", 0.0, 4)];
        let slow = |id, took_ns| {
            let file = rows[0].file.clone();
            Arc::new(SlowSync {
                id,
                file,
                took_ns,
                on: Some("jbd2_log_wait_commit".into()),
                ..Default::default()
            })
        };
        let flying = |began_ns| Flying { file: rows[1].file.clone(), tid: 21, began_ns, on: None };
        Syncs {
            at_ns: 5_000_000_000,
            threshold_ns: 10_000_000,
            slow: vec![slow(1, 20_000_000), slow(2, 30_000_000)],
            flying: vec![flying(1_000_000_000), flying(4_999_000_000)],
            rows,
            ..Default::default()
        }
    }

    fn pids(query: &SyncQuery<'_>) -> Vec<u32> {
        lines(&syncs(), None, query).iter().map(|l| l.rate.file.pid).collect()
    }

    #[test]
    fn lines_are_sorted_and_filtered() {
        let by = |sort| SyncQuery { sort, ..Default::default() };
        assert_eq!(pids(&by(None)), [10, 20, 30]);
        assert_eq!(pids(&by(Some(SyncCol::Calls))), [20, 30, 10]);
        assert_eq!(pids(&by(Some(SyncCol::Comm))), [20, 30, 10]);
        assert_eq!(pids(&SyncQuery { reverse: true, ..by(None) }), [30, 20, 10]);
        assert_eq!(pids(&SyncQuery { filter: "ZET", ..by(None) }), [10]);
        assert_eq!(pids(&SyncQuery { filter: "30", ..by(None) }), [30]);
        assert!(lines(&syncs(), None, &by(None)).iter().all(|l| l.comm.chars().all(crate::text::is_safe)));
    }

    #[test]
    fn those_under_way_come_first_and_then_the_newest() {
        let seen: Vec<_> =
            slow(&syncs(), None, "").iter().map(|l| (l.under_way, l.took_ns / 1_000_000)).collect();
        assert_eq!(seen, [(true, 4000), (false, 30), (false, 20)], "one of a millisecond is not slow");
        assert_eq!(slow(&syncs(), None, "")[1].on.as_deref(), Some("journal commit of 8:1"));
        assert_eq!(slow(&syncs(), None, "journal").len(), 2);
    }

    #[test]
    fn what_is_not_seen_is_always_said() {
        assert!(notes(&Syncs::default())[0].contains("O_SYNC"));
        let counted = Syncs { uring_per_s: Some(12.0), more: 3, ..Default::default() };
        assert!(notes(&counted)[0].contains("12/s") && notes(&counted)[1].starts_with("3 more"));
    }
}
