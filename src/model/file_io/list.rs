//! The rows of the lists of files and directories: named, summed over processes, filtered, sorted.

use super::columns::{FILE_COLUMNS, FileColumn};
use super::{FileActivity, FileClass, FileId, FileIoRates, FileRate, FileRow};
use crate::model::disk::DevId;
use crate::model::file_path;
use crate::model::io_accounting::rates::percentile_us;
use crate::model::latency::SparseHistogram;
use crate::model::snapshot::Snapshot;
use crate::model::syncs::list::device_name;
use crate::model::topology::{DeviceMatch, MountRef, Topology};
use std::collections::{BTreeMap, BTreeSet};
use strum::VariantArray as _;

const MIB: f64 = 1_048_576.0;

/// Selection and order of the rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileQuery<'a> {
    /// Sort by this column, largest first (text: A first); `None` for the most time.
    pub sort: Option<FileColumn>,
    pub reverse: bool,
    /// Only rows that contain this; case-insensitive.
    pub filter: &'a str,
    /// Only this device.
    pub device: Option<DevId>,
    /// Only this process.
    pub pid: Option<u32>,
    /// Only these processes.
    pub pids: Option<&'a BTreeSet<u32>>,
}

/// Where the file system of a file is mounted. File systems with numbers of their own (btrfs) are found by the device.
pub(crate) fn mount_of(topo: Option<&Topology>, file_system: DevId, device: DevId) -> Option<String> {
    file_path::mount_point(topo, file_system).or_else(|| {
        let devices = topo?.devices.iter().filter(|d| d.id == device || d.parent == Some(device));
        let mounts = devices.flat_map(|d| &d.mounts).filter(|m| !m.is_bind && !m.is_hidden);
        let is_by_source = |m: &&MountRef| matches!(m.matched_by, DeviceMatch::Source | DeviceMatch::Member);
        let points: BTreeSet<&[u8]> = mounts.filter(is_by_source).map(|m| m.mount_point.as_bytes()).collect();
        let only = (points.len() == 1).then(|| points.first().copied()).flatten()?;
        Some(crate::sanitize::sanitize(only).trim_end_matches('/').to_owned())
    })
}

/// The path of a file for display; what it is instead in parentheses.
pub(crate) fn display_path(topo: Option<&Topology>, rate: &FileRate) -> String {
    if rate.class != FileClass::File {
        return format!("({})", rate.class.name());
    }
    let id = rate.file.id;
    let mount = mount_of(topo, id.file_system, rate.device);
    if !rate.file.path_tail.is_empty() {
        return file_path::join(mount.as_deref(), &rate.file.path_tail, rate.file.is_full_path);
    }
    let DevId { major, minor } = id.file_system;
    match mount {
        Some(mount) => format!("{mount}/… inode {}", id.ino),
        None => format!("{major}:{minor} inode {}", id.ino),
    }
}

/// A row of the rates of one file by process.
fn row_of(files: &FileActivity, topo: Option<&Topology>, rates: &[&FileRate]) -> Option<FileRow> {
    let first = rates.first()?;
    let (mut reads, mut writes) = (FileIoRates::default(), FileIoRates::default());
    for rate in rates {
        reads += rate.reads;
        writes += rate.writes;
    }
    let busiest = rates.iter().max_by(|a, b| a.bytes_per_s().total_cmp(&b.bytes_per_s()))?;
    let pids: BTreeSet<u32> = rates.iter().map(|rate| rate.pid).collect();
    let path = display_path(topo, first);
    let has_path = first.class == FileClass::File && !first.file.path_tail.is_empty();
    let directory = path.rsplit_once('/').filter(|_| has_path).map(|(directory, _)| directory);
    Some(FileRow {
        device_id: first.device,
        device: device_name(Some(first.device), topo),
        class: first.class,
        id: first.file.id,
        directory: directory.map(|d| if d.is_empty() { "/".into() } else { d.to_owned() }),
        path,
        pid: busiest.pid,
        process: process_text(files, busiest.pid, pids.len() - 1),
        reads,
        writes,
        p99_us: percentile_us(&SparseHistogram::sum(rates.iter().map(|rate| &rate.histogram)), 0.99),
    })
}

/// `dd (4711)`, `dd (4711) +2`, `-`.
fn process_text(files: &FileActivity, pid: u32, others: usize) -> String {
    let name = match files.process_name(pid) {
        Some(name) => format!("{name} ({pid})"),
        None if pid > 0 => pid.to_string(),
        None => "-".into(),
    };
    if others > 0 { format!("{name} +{others}") } else { name }
}

/// Sums rates by a key and makes a row of each sum.
fn grouped<K: Ord>(
    files: &FileActivity,
    topo: Option<&Topology>,
    query: &FileQuery<'_>,
    key: impl Fn(&FileRate) -> Option<K>,
) -> Vec<(K, FileRow)> {
    let is_wanted = |rate: &&FileRate| {
        query.device.is_none_or(|id| id == rate.device)
            && query.pid.is_none_or(|pid| pid == rate.pid)
            && query.pids.is_none_or(|pids| pids.contains(&rate.pid))
    };
    let mut groups: BTreeMap<K, Vec<&FileRate>> = BTreeMap::new();
    for rate in files.rows.iter().filter(is_wanted) {
        if let Some(key) = key(rate) {
            groups.entry(key).or_default().push(rate);
        }
    }
    groups.into_iter().filter_map(|(key, rates)| Some((key, row_of(files, topo, &rates)?))).collect()
}

/// Files, and the I/O that belongs to no file.
pub(crate) fn file_rows(files: &FileActivity, topo: Option<&Topology>, query: &FileQuery<'_>) -> Vec<FileRow> {
    let rows = grouped(files, topo, query, |rate| Some((rate.device, rate.class, rate.file.id)));
    select(rows.into_iter().map(|(_, row)| row).collect(), query)
}

/// Directories with the files directly in them.
pub(crate) fn directory_rows(files: &FileActivity, topo: Option<&Topology>, query: &FileQuery<'_>) -> Vec<FileRow> {
    let rows = grouped(files, topo, query, |rate| {
        let tail = &rate.file.path_tail;
        let is_known = rate.class == FileClass::File && !tail.is_empty();
        let directory = tail.as_bytes().iter().rposition(|b| *b == b'/').map_or(&[][..], |at| &tail.as_bytes()[..at]);
        is_known.then_some((rate.device, rate.file.id.file_system, directory.to_vec()))
    });
    let directory =
        |row: FileRow| FileRow { path: row.directory.clone().unwrap_or_default(), id: FileId::default(), ..row };
    select(rows.into_iter().map(|(_, row)| directory(row)).collect(), query)
}

fn select(mut rows: Vec<FileRow>, query: &FileQuery<'_>) -> Vec<FileRow> {
    if !query.filter.is_empty() {
        let needle = query.filter.to_lowercase();
        let contains = |text: &str| text.to_lowercase().contains(&needle);
        rows.retain(|row| [&*row.path, &row.process, &row.device, row.class.name()].into_iter().any(contains));
    }
    match query.sort {
        None => rows.sort_by(|a, b| b.time_pct().total_cmp(&a.time_pct())),
        Some(column) => rows.sort_by(|a, b| match (a.sort_value(column), b.sort_value(column)) {
            (a, b) if FILE_COLUMNS.iter().any(|c| c.id == column && c.ascending) => a.compare(&b),
            (a, b) => b.compare(&a),
        }),
    }
    if query.reverse {
        rows.reverse();
    }
    rows
}

/// What the bytes are for, how much of the devices' own figures that is, and what is missing.
pub(crate) fn notes(files: &FileActivity, snapshot: &Snapshot) -> Vec<String> {
    let total: f64 = files.rows.iter().map(FileRate::bytes_per_s).sum();
    let share = |class: &FileClass| {
        let bytes: f64 = files.rows.iter().filter(|row| row.class == *class).map(FileRate::bytes_per_s).sum();
        (bytes > 0.0).then(|| format!("{} {:.1} %", class.name(), 100.0 * bytes / total))
    };
    let shares: Vec<String> = FileClass::VARIANTS.iter().filter_map(share).collect();
    let mut out = Vec::new();
    if !shares.is_empty() {
        out.push(format!("of the bytes: {}", shares.join(", ")));
    }
    out.extend(unattributed_text(files, snapshot, total));
    if files.dropped > 0 {
        out.push(format!("{} requests or files could not be followed: too many at once", files.dropped));
    }
    if files.hidden_rows > 0 {
        out.push(format!("{} rows with fewer bytes hidden", files.hidden_rows));
    }
    out.extend(files.unavailable.iter().cloned());
    out
}

/// How much of what the devices count is not in the rows, if that is 1 % or more. A first tick covers less time.
fn unattributed_text(files: &FileActivity, snapshot: &Snapshot, total: f64) -> Option<String> {
    if files.covered_secs < snapshot.interval_secs * 0.999 {
        return Some(format!("the first {:.1} s since tracing began", files.covered_secs));
    }
    let devices: BTreeSet<DevId> = files.rows.iter().map(|row| row.device).collect();
    let counted: f64 =
        devices.iter().filter_map(|id| snapshot.device(*id)).map(|d| (d.read_mb_per_s + d.write_mb_per_s) * MIB).sum();
    let missing = counted - total;
    (missing > counted * 0.01).then(|| {
        let pct = 100.0 * missing / counted;
        format!("{pct:.1} % of the devices' bytes are in no row: requests that began before tracing, or were dropped")
    })
}
