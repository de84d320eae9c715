//! The rows of the table of waits: named, and with who is to blame.

use super::{TaskWaits, WaitRate, WaitReason};
use crate::model::disk::DevId;
use crate::model::file_io::list::mount_of;
use crate::model::file_path;
use crate::model::process::TaskKey;
use crate::model::snapshot::Snapshot;
use crate::model::syncs::list::device_name;
use crate::model::topology::Topology;
use crate::model::wait_channel;
use crate::sanitize::sanitize;

/// A process with a smaller share of a device's queue is not named as being ahead.
const MIN_AHEAD: f64 = 0.2;

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WaitRow {
    pub(crate) pid: u32,
    pub(crate) comm: String,
    pub(crate) reason: WaitReason,
    /// Share of the interval in percent; threads are added up.
    pub(crate) pct: f64,
    pub(crate) total_ms: f64,
    pub(crate) count: u64,
    pub(crate) longest_ms: f64,
    /// Path for display; `None` if the file is unknown or there is none.
    pub(crate) file: Option<String>,
    /// Name; `None` if it is unknown.
    pub(crate) device: Option<String>,
    /// Who holds what is waited for, or whose requests were ahead.
    pub(crate) blame: Option<Blame>,
    /// The kernel function, sanitized, and what it means if that is known.
    pub(crate) function: String,
    pub(crate) meaning: Option<&'static str>,
}

/// Who makes a process wait.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blame {
    pub(crate) pid: u32,
    pub(crate) comm: String,
    /// Share of the device's queue; `None` for the holder of a lock.
    pub(crate) queue_share: Option<f64>,
}

impl Blame {
    /// `held by dd (12)`, `behind dd (12) 80%`.
    pub(crate) fn text(&self) -> String {
        let Self { pid, comm, queue_share } = self;
        match queue_share {
            None => format!("held by {comm} ({pid})"),
            Some(share) => format!("behind {comm} ({pid}) {:.0}%", 100.0 * share),
        }
    }
}

/// Waits, most time first; of one process if `task` is given.
pub(crate) fn wait_rows(snapshot: &Snapshot, topo: Option<&Topology>, task: Option<TaskKey>) -> Vec<WaitRow> {
    let Some(waits) = snapshot.task_waits.ok() else { return Vec::new() };
    let is_wanted =
        |row: &&WaitRate| task.is_none_or(|task| (row.key.pid, row.key.starttime) == (task.pid, task.starttime));
    waits.rows.iter().filter(is_wanted).map(|row| wait_row(waits, row, snapshot, topo)).collect()
}

/// The file that a task waited for most, for display; `None` if waits are not traced, or of no file.
pub(crate) fn longest_file(snapshot: &Snapshot, topo: Option<&Topology>, task: TaskKey) -> Option<String> {
    let rows = &snapshot.task_waits.ok()?.rows;
    let of_task = rows.iter().filter(|row| (row.key.pid, row.key.starttime) == (task.pid, task.starttime));
    file_text(of_task.max_by(|a, b| a.secs.total_cmp(&b.secs))?, topo)
}

fn wait_row(waits: &TaskWaits, row: &WaitRate, snapshot: &Snapshot, topo: Option<&Topology>) -> WaitRow {
    let name = |pid| waits.process_name(pid).unwrap_or("?").to_owned();
    let key = &row.key;
    let device = device_of(row, topo);
    let held = (key.holder > 0).then(|| Blame { pid: key.holder, comm: name(key.holder), queue_share: None });
    let is_of_device = !matches!(
        key.reason,
        WaitReason::Lock | WaitReason::Frozen | WaitReason::NetworkFs | WaitReason::Reclaim | WaitReason::Other
    );
    let ahead = || device.filter(|_| is_of_device).and_then(|id| most_ahead(snapshot, topo, id, key.pid));
    WaitRow {
        pid: key.pid,
        comm: name(key.pid),
        reason: key.reason,
        pct: waits.percent(row),
        total_ms: row.secs * 1e3,
        count: row.count,
        longest_ms: row.longest_ms,
        file: file_text(row, topo),
        device: device.map(|id| device_name(Some(id), topo)),
        blame: held.or_else(ahead),
        function: sanitize(&*key.function),
        meaning: wait_channel::find(&key.function).map(|channel| channel.meaning),
    }
}

/// The device of the last request, else that of the file system.
fn device_of(row: &WaitRate, topo: Option<&Topology>) -> Option<DevId> {
    if row.key.device != DevId::default() {
        return Some(row.key.device);
    }
    topo?.file_system_devices(row.key.file.file_system).first().copied()
}

/// The path of the file; of a whole file system where it is mounted.
fn file_text(row: &WaitRate, topo: Option<&Topology>) -> Option<String> {
    let id = row.key.file;
    if id.file_system == DevId::default() {
        return None;
    }
    let mount = mount_of(topo, id.file_system, row.key.device);
    let at = |mount: String| if mount.is_empty() { "/".to_owned() } else { mount };
    if id.ino == 0 {
        return Some(mount.map_or_else(|| format!("{}:{}", id.file_system.major, id.file_system.minor), at));
    }
    if row.file.path_tail.is_empty() {
        return Some(format!("{}/… inode {}", mount.unwrap_or_else(|| "…".into()), id.ino));
    }
    Some(file_path::join(mount.as_deref(), &row.file.path_tail, row.file.is_full_path))
}

/// The other process with the largest share of the queue of a device, or of the disks below it.
fn most_ahead(snapshot: &Snapshot, topo: Option<&Topology>, device: DevId, victim: u32) -> Option<Blame> {
    let attribution = snapshot.io_attribution.ok()?;
    let mut disks: Vec<DevId> =
        topo.map_or(Vec::new(), |topo| topo.physical_disks(device).map(|disk| disk.id).collect());
    if disks.is_empty() {
        disks.push(device);
    }
    let in_flight = |io: &crate::model::io_accounting::OwnerIo<u32>| -> f64 {
        let rates = disks.iter().filter_map(|id| io.on_device(*id));
        rates.map(|rates| rates.reads_in_flight + rates.writes_in_flight).sum()
    };
    let total: f64 = attribution.processes.iter().map(in_flight).sum();
    let others = attribution.processes.iter().filter(|io| io.owner != victim);
    let first = others.max_by(|a, b| in_flight(a).total_cmp(&in_flight(b)))?;
    let share = in_flight(first) / total.max(1e-9);
    let comm = attribution.process_name(first.owner).map_or_else(|| "?".into(), |name| sanitize(&**name));
    (share >= MIN_AHEAD).then_some(Blame { pid: first.owner, comm, queue_share: Some(share) })
}

/// What is missing from the rows.
pub(crate) fn notes(waits: &TaskWaits, snapshot: &Snapshot) -> Vec<String> {
    let mut out = Vec::new();
    if waits.covered_secs < snapshot.interval_secs * 0.9 {
        out.push(format!("the first {:.1} s since tracing of waits began", waits.covered_secs));
    }
    if waits.dropped > 0 {
        out.push(format!("{} waits could not be followed: too many at once", waits.dropped));
    }
    if waits.hidden_rows > 0 {
        out.push(format!("{} rows with less time hidden", waits.hidden_rows));
    }
    out.extend(waits.unavailable.iter().cloned());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::file_io::FileId;
    use crate::model::task_waits::WaitKey;
    use crate::model::topology::{BlockDevice, MountRef};

    #[test]
    fn a_wait_without_a_request_is_for_the_device_of_the_file_system() {
        let (disk, btrfs) = (DevId { major: 8, minor: 1 }, DevId { major: 0, minor: 44 });
        let mount = MountRef { file_system: btrfs, ..MountRef::default() };
        let topology = Topology { devices: vec![BlockDevice { id: disk, mounts: vec![mount], ..Default::default() }] };
        let device = |request, file_system| {
            let file = FileId { file_system, ..FileId::default() };
            let key = WaitKey { device: request, file, ..WaitKey::default() };
            device_of(&WaitRate { key, ..WaitRate::default() }, Some(&topology))
        };
        let none = DevId::default();
        assert_eq!([device(none, disk), device(none, btrfs)], [Some(disk); 2]);
        assert_eq!((device(none, none), device(none, DevId { major: 0, minor: 45 })), (None, None));
        let other = DevId { major: 8, minor: 2 };
        assert_eq!(device(other, btrfs), Some(other));
    }
}
