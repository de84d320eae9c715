//! The files that the requests of a device are for, by their share of its queue, while files are traced.

use super::device_users::{Requests, counted_devices};
use super::rule_context::RuleContext;
use crate::model::disk::DevId;
use crate::model::file_io::{FileClass, FileRate, list};
use std::collections::BTreeMap;

/// A file with a smaller share is not named ...
const MIN_SHARE: f64 = 0.2;
/// ... nor are more than these.
const MAX_NAMED: usize = 3;

/// Paths of the files with the largest shares of the device's queue over the last `secs` seconds; empty where files are
/// not traced. Journals and metadata are no files: they count only as what is left.
pub(super) fn main_files(ctx: &RuleContext<'_>, id: DevId, secs: f64, requests: Requests) -> Vec<String> {
    let mut queue: BTreeMap<_, (f64, &FileRate)> = BTreeMap::new();
    let devices = counted_devices(ctx, id, secs);
    for tick in ctx.window(secs) {
        let Some(files) = tick.files.ok() else { continue };
        for row in files.rows.iter().filter(|row| devices.contains(&row.device) && row.class == FileClass::File) {
            let reads = if requests == Requests::Writes { 0.0 } else { row.reads.in_flight };
            let writes = if requests == Requests::Reads { 0.0 } else { row.writes.in_flight };
            queue.entry(row.file.id).or_insert((0.0, row)).0 += (reads + writes) * tick.interval_secs;
        }
    }
    let total: f64 = queue.values().map(|(queue, _)| queue).sum();
    let mut largest: Vec<(f64, &FileRate)> = queue.into_values().filter(|(queue, _)| *queue > 0.0).collect();
    largest.retain(|(queue, _)| *queue >= MIN_SHARE * total);
    largest.sort_by(|a, b| b.0.total_cmp(&a.0));
    largest.truncate(MAX_NAMED);
    largest.into_iter().map(|(_, row)| list::display_path(ctx.system.topology.ok(), row)).collect()
}
