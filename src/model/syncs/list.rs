//! The rows of the two lists of syncs, by file and slow ones: named, filtered, sorted.

use super::columns::{SYNC_COLUMNS, SlowSyncRow, SyncColumn, SyncRow};
use super::wait::wait_text;
use super::{SlowSync, SyncActivity, SyncFile, SyncRate};
use crate::model::disk::DevId;
use crate::model::topology::Topology;
use crate::units::format_duration;
use std::sync::Arc;

/// Selection and order of the rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct SyncQuery<'a> {
    /// Sort by this column, largest first (text: A first); `None` for the longest wait.
    pub sort: Option<SyncColumn>,
    pub reverse: bool,
    /// Only rows that contain this; case-insensitive.
    pub filter: &'a str,
}

/// A device's name, sanitized; its number if the name is unknown, `-` without a device.
pub(crate) fn device_name(id: Option<DevId>, topo: Option<&Topology>) -> String {
    match (id, id.and_then(|id| topo?.get(id))) {
        (_, Some(dev)) => dev.display_name().into_owned(),
        (Some(id), None) => format!("{}:{}", id.major, id.minor),
        (None, None) => "-".into(),
    }
}

/// The name of the main device that a file is on; the number of its file system if that is unknown, `-` without a file.
pub(crate) fn file_device_name(file: &SyncFile, topo: Option<&Topology>) -> String {
    device_name(file.devices(topo).first().copied().or(file.file_system()), topo)
}

/// Syncs by process and file.
pub(crate) fn sync_rows(syncs: &SyncActivity, topo: Option<&Topology>, query: &SyncQuery<'_>) -> Vec<SyncRow> {
    let line = |rate: &SyncRate| SyncRow {
        comm: rate.file.comm.sanitized(),
        device: file_device_name(&rate.file, topo),
        path: rate.file.display_path(topo),
        last_ended: rate.last_ended_ns.map(|ns| format_duration(syncs.read_ns.saturating_sub(ns) / 1_000_000_000)),
        rate: rate.clone(),
    };
    let mut out: Vec<SyncRow> = syncs.rows.iter().map(line).collect();
    if !query.filter.is_empty() {
        let needle = query.filter.to_lowercase();
        out.retain(|l| contains_any(&needle, &[&l.comm, &l.device, &l.path, l.rate.file.call.name()], l.rate.file.pid));
    }
    if let Some(col) = query.sort {
        out.sort_by(|a, b| match (a.sort_value(col), b.sort_value(col)) {
            (a, b) if SYNC_COLUMNS.iter().any(|c| c.id == col && c.ascending) => a.compare(&b),
            (a, b) => b.compare(&a),
        });
    }
    if query.reverse {
        out.reverse();
    }
    out
}

/// Slow syncs: those in flight, longest first, then the completed ones, newest first.
pub(crate) fn slow_sync_rows(syncs: &SyncActivity, topo: Option<&Topology>, filter: &str) -> Vec<SlowSyncRow> {
    let on = |file: &SyncFile, on: &Option<String>| on.as_ref().map(|f| wait_text(f, &file_device_name(file, topo)));
    let in_flight = syncs.in_flight.iter().map(|f| SlowSyncRow {
        file: f.file.clone(),
        tid: f.tid,
        comm: f.file.comm.sanitized(),
        path: f.file.display_path(topo),
        started_ns: f.started_ns,
        duration_ns: syncs.read_ns.saturating_sub(f.started_ns),
        is_in_flight: true,
        error: 0,
        waiting_on: on(&f.file, &f.waiting_on),
    });
    let completed = syncs.slow.iter().rev().map(|s: &Arc<SlowSync>| SlowSyncRow {
        file: s.file.clone(),
        tid: s.tid,
        comm: s.comm.sanitized(),
        path: s.file.display_path(topo),
        started_ns: s.started_ns,
        duration_ns: s.duration_ns,
        is_in_flight: false,
        error: s.error,
        waiting_on: on(&s.file, &s.waiting_on),
    });
    let mut out: Vec<SlowSyncRow> =
        in_flight.filter(|l| l.duration_ns >= syncs.threshold_ns).chain(completed).collect();
    if !filter.is_empty() {
        let needle = filter.to_lowercase();
        out.retain(|l| {
            let on = l.waiting_on.as_deref().unwrap_or_default();
            contains_any(&needle, &[&l.comm, &l.path, on, l.file.call.name()], l.tid)
        });
    }
    out
}

fn contains_any(needle: &str, texts: &[&str], number: u32) -> bool {
    texts.iter().any(|t| t.to_lowercase().contains(needle)) || number.to_string().contains(needle)
}

/// What is not traced and what was dropped, so that nobody takes the lists for complete.
pub(crate) fn notes(syncs: &SyncActivity) -> Vec<String> {
    let uring = match syncs.io_uring_per_s {
        Some(n) => format!("syncs by io_uring ({n:.0}/s, counted but not timed)"),
        None => "syncs by io_uring".into(),
    };
    let mut out = vec![format!("not traced: writes that sync by themselves (O_SYNC, O_DSYNC), {uring}")];
    out.extend(syncs.unavailable.iter().cloned());
    out.extend(syncs.drops_text());
    if syncs.hidden_rows > 0 {
        out.push(format!("{} faster files hidden", syncs.hidden_rows));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::InFlightSync;
    use super::*;
    use crate::model::topology::{BlockDevice, MountRef};

    fn sync_rate(pid: u32, comm: &str, wait_pct: f64, calls: u64) -> SyncRate {
        let file = SyncFile {
            pid,
            comm: comm.as_bytes().into(),
            path_tail: b"db/wal".as_slice().into(),
            device: DevId { major: 8, minor: 1 },
            ..Default::default()
        };
        SyncRate {
            file: Arc::new(file),
            calls_per_s: 1.0,
            wait_pct,
            calls,
            errors: 0,
            mean_us: Some(1500.0),
            latency: None,
            ended: Default::default(),
            max_ns: 9_000_000,
            last_ended_ns: Some(1_000_000_000),
        }
    }

    fn sync_activity() -> SyncActivity {
        let rows =
            vec![sync_rate(10, "zeta", 50.0, 1), sync_rate(20, "al\u{1b}pha", 5.0, 9), sync_rate(30, "mid", 0.0, 4)];
        let slow = |id, took_ns| {
            let file = rows[0].file.clone();
            Arc::new(SlowSync {
                id,
                file,
                duration_ns: took_ns,
                waiting_on: Some("jbd2_log_wait_commit".into()),
                ..Default::default()
            })
        };
        let in_flight =
            |began_ns| InFlightSync { file: rows[1].file.clone(), tid: 21, started_ns: began_ns, waiting_on: None };
        SyncActivity {
            read_ns: 5_000_000_000,
            threshold_ns: 10_000_000,
            slow: vec![slow(1, 20_000_000), slow(2, 30_000_000)],
            in_flight: vec![in_flight(1_000_000_000), in_flight(4_999_000_000)],
            rows,
            ..Default::default()
        }
    }

    fn pids(query: &SyncQuery<'_>) -> Vec<u32> {
        sync_rows(&sync_activity(), None, query).iter().map(|l| l.rate.file.pid).collect()
    }

    #[test]
    fn sync_rows_are_sorted_and_filtered() {
        let by = |sort| SyncQuery { sort, ..Default::default() };
        assert_eq!(pids(&by(None)), [10, 20, 30]);
        assert_eq!(pids(&by(Some(SyncColumn::Calls))), [20, 30, 10]);
        assert_eq!(pids(&by(Some(SyncColumn::Comm))), [20, 30, 10]);
        assert_eq!(pids(&SyncQuery { reverse: true, ..by(None) }), [30, 20, 10]);
        assert_eq!(pids(&SyncQuery { filter: "ZET", ..by(None) }), [10]);
        assert_eq!(pids(&SyncQuery { filter: "30", ..by(None) }), [30]);
        assert!(
            sync_rows(&sync_activity(), None, &by(None)).iter().all(|l| l.comm.chars().all(crate::sanitize::is_safe))
        );
    }

    #[test]
    fn a_file_system_with_a_number_of_its_own_has_the_name_of_its_device() {
        let file_system = DevId { major: 0, minor: 44 };
        let mount = MountRef { file_system, mount_point: "/data".into(), ..MountRef::default() };
        let id = DevId { major: 8, minor: 1 };
        let device = BlockDevice { id, name: "sda1".into(), mounts: vec![mount], ..BlockDevice::default() };
        let topology = Topology { devices: vec![device] };
        let name = |device| file_device_name(&SyncFile { device, ..SyncFile::default() }, Some(&topology));
        assert_eq!((name(file_system), name(id), name(DevId::default())), ("sda1".into(), "sda1".into(), "-".into()));
        assert_eq!(name(DevId { major: 0, minor: 45 }), "0:45", "no mount of it is known");
    }

    #[test]
    fn syncs_in_flight_come_first_then_the_newest() {
        let seen: Vec<_> = slow_sync_rows(&sync_activity(), None, "")
            .iter()
            .map(|l| (l.is_in_flight, l.duration_ns / 1_000_000))
            .collect();
        assert_eq!(seen, [(true, 4000), (false, 30), (false, 20)], "one of a millisecond is not slow");
        assert_eq!(slow_sync_rows(&sync_activity(), None, "")[1].waiting_on.as_deref(), Some("journal commit of 8:1"));
        assert_eq!(slow_sync_rows(&sync_activity(), None, "journal").len(), 2);
    }

    #[test]
    fn the_notes_always_name_untraced_syncs() {
        assert!(notes(&SyncActivity::default())[0].contains("O_SYNC"));
        let counted = SyncActivity { io_uring_per_s: Some(12.0), hidden_rows: 3, ..Default::default() };
        assert!(notes(&counted)[0].contains("12/s") && notes(&counted)[1].starts_with("3 faster"));
    }
}
