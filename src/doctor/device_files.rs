//! The files that the requests of a device are for, by their share of its queue, while files are traced.

use super::device_sums::passes_on;
use super::device_users::{Requests, counted_devices};
use super::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::file_io::{FileClass, FileId, FileRate, list};
use crate::model::task_waits::WaitReason;
use crate::model::topology::DeviceKind;
use std::collections::BTreeMap;

/// A file with a smaller share is not named ...
const MIN_SHARE: f64 = 0.2;
/// ... nor are more than these.
const MAX_NAMED: usize = 3;

/// Files by the time of their requests in the queue, in seconds.
type QueueByFile = BTreeMap<FileId, (f64, FileRate)>;

/// Paths of the files with the largest shares of the device's queue over the last `secs` seconds; empty where files are
/// not traced. Journals and metadata are no files: they count only as what is left.
pub(super) fn main_files(ctx: &RuleContext<'_>, id: DevId, secs: f64, requests: Requests) -> Vec<String> {
    let (mut queue, mut unnamed) = (QueueByFile::new(), 0.0);
    let devices = counted_devices(ctx, id, secs);
    for tick in ctx.window(secs) {
        let Some(files) = tick.files.ok() else { continue };
        for row in files.rows.iter().filter(|row| devices.contains(&row.device)) {
            let reads = if requests == Requests::Writes { 0.0 } else { row.reads.in_flight };
            let writes = if requests == Requests::Reads { 0.0 } else { row.writes.in_flight };
            let time = (reads + writes) * tick.interval_secs;
            match row.class {
                FileClass::File => queue.entry(row.file.id).or_insert_with(|| (0.0, row.clone())).0 += time,
                FileClass::Device | FileClass::Unknown => unnamed += time,
                _ => {}
            }
        }
    }
    let named: f64 = queue.values().map(|(queue, _)| queue).sum();
    let (queue, total) = match named > 0.0 || requests != Requests::All || !is_mapped(ctx, &devices) {
        true => (queue, named),
        false => (waited_files(ctx, &devices, secs), unnamed),
    };
    let mut largest: Vec<(f64, FileRate)> = queue.into_values().filter(|(queue, _)| *queue > 0.0).collect();
    largest.retain(|(queue, _)| *queue >= MIN_SHARE * total);
    largest.sort_by(|a, b| b.0.total_cmp(&a.0));
    largest.truncate(MAX_NAMED);
    largest.into_iter().map(|(_, row)| list::display_path(ctx.system.topology.ok(), &row)).collect()
}

/// Whether device mapper or md lies on one of the devices: there direct I/O does not tell its file.
fn is_mapped(ctx: &RuleContext<'_>, devices: &[DevId]) -> bool {
    let Some(topology) = ctx.system.topology.ok() else { return false };
    let mapped = topology.devices.iter().filter(|d| d.kind != DeviceKind::Partition && passes_on(ctx, d.id));
    mapped.map(|d| ctx.device_chain(d.id)).any(|chain| devices.iter().any(|id| chain.contains(id)))
}

/// The files that tasks wait for in direct I/O, by the time of those whose last request went to one of the devices.
fn waited_files(ctx: &RuleContext<'_>, devices: &[DevId], secs: f64) -> QueueByFile {
    let mut queue = QueueByFile::new();
    for waits in ctx.window(secs).filter_map(|tick| tick.task_waits.ok()) {
        let is_direct = |reason| matches!(reason, WaitReason::DirectIo | WaitReason::SyncWrite);
        let rows = waits.rows.iter().filter(|row| is_direct(row.key.reason) && row.file.id.ino > 0);
        for row in rows.filter(|row| devices.contains(&row.key.device)) {
            let file = || FileRate {
                device: row.key.device,
                class: FileClass::File,
                file: row.file.clone(),
                ..FileRate::default()
            };
            queue.entry(row.file.id).or_insert_with(|| (0.0, file())).0 += row.secs;
        }
    }
    queue
}
