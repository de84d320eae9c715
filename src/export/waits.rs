//! The table of what tasks wait for.

use super::table::Table;
use crate::model::process::TaskKey;
use crate::model::snapshot::Snapshot;
use crate::model::task_waits::WaitReason;
use crate::model::task_waits::list::{self, WaitRow};
use crate::model::topology::Topology;
use crate::units::write_count;

/// Most rows of all processes.
const MAX_ROWS: usize = 40;

/// Headers of [`format_row`].
pub(crate) const HEADERS: [&str; 6] = ["time%", "total ms", "waits", "max ms", "device", "reason"];

/// The figures of a wait, as [`HEADERS`].
pub(crate) fn format_row(row: &WaitRow) -> [String; 6] {
    let mut count = String::new();
    write_count(&mut count, row.count as f64);
    [
        format!("{:.1}", row.pct),
        format!("{:.1}", row.total_ms),
        count,
        format!("{:.1}", row.longest_ms),
        row.device.clone().unwrap_or_else(|| "-".into()),
        row.reason.label().to_owned(),
    ]
}

/// The file, who is to blame, and the kernel function if it says more than the reason.
pub(crate) fn details(row: &WaitRow) -> String {
    let of_function = || match (row.reason, row.meaning) {
        (
            WaitReason::Sync
            | WaitReason::SyncWrite
            | WaitReason::Journal
            | WaitReason::Writeback
            | WaitReason::NetworkFs
            | WaitReason::Other,
            Some(meaning),
        ) => Some(format!("for {meaning}")),
        (WaitReason::Other | WaitReason::Lock, _) if !row.function.is_empty() => Some(format!("in {}", row.function)),
        _ => None,
    };
    let blame = row.blame.as_ref().map(|blame| blame.text());
    let parts: Vec<String> = [row.file.clone(), blame, of_function()].into_iter().flatten().collect();
    if parts.is_empty() { "-".into() } else { parts.join(", ") }
}

/// Waits of all processes, most time first; the notes say what is missing.
pub(crate) fn build_table(title: String, snapshot: &Snapshot, topology: Option<&Topology>) -> Table {
    let headers = HEADERS.map(|header| (header, !matches!(header, "device" | "reason")));
    let headers: Vec<(&str, bool)> = [("process", false)].into_iter().chain(headers).chain([("for", false)]).collect();
    let mut table = Table::new(title, &headers);
    let Some(waits) = snapshot.task_waits.ok() else {
        table.notes.extend(snapshot.task_waits.unavailable_reason(snapshot.time.boot_ns));
        return table;
    };
    let rows = list::wait_rows(snapshot, topology, None::<TaskKey>);
    for row in rows.iter().take(MAX_ROWS) {
        let name = format!("{} ({})", row.comm, row.pid);
        table.rows.push([name].into_iter().chain(format_row(row)).chain([details(row)]).collect());
    }
    table.notes = list::notes(waits, snapshot);
    if rows.len() > MAX_ROWS {
        table.notes.push(format!("{} rows with less time", rows.len() - MAX_ROWS));
    }
    table
}
