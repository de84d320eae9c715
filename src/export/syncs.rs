//! The tables of syncs: waits by process and file, and slow syncs.

use super::table::Table;
use crate::model::snapshot::Snapshot;
use crate::model::syncs::columns::{SLOW_SYNC_COLUMNS, SYNC_COLUMNS};
use crate::model::syncs::list::{self, SyncQuery};
use crate::model::topology::Topology;
use crate::units::format_rfc3339_in;

/// Waits by process and file. The notes say what is missing.
pub(crate) fn build_table(
    title: String,
    snapshot: &Snapshot,
    topology: Option<&Topology>,
    query: &SyncQuery<'_>,
) -> Table {
    let mut table = Table::with_columns(title, SYNC_COLUMNS);
    let Some(syncs) = snapshot.syncs.ok() else {
        table.notes.extend(snapshot.syncs.unavailable_reason(snapshot.time.boot_ns));
        return table;
    };
    for row in list::sync_rows(syncs, topology, query) {
        table.push_values(SYNC_COLUMNS, |column| (column.value)(&row));
    }
    table.notes = list::notes(syncs);
    table
}

/// Slow syncs, with times in the time zone `utc_offset_secs` east of UTC; `None` where syncs are not traced, which the
/// other table explains.
pub(crate) fn build_slow_table(
    title: &str,
    snapshot: &Snapshot,
    topology: Option<&Topology>,
    filter: &str,
    utc_offset_secs: i64,
) -> Option<Table> {
    let syncs = snapshot.syncs.ok()?;
    let threshold_ms = syncs.threshold_ns as f64 / 1e6;
    let mut table = Table::with_columns(format!("{title} (from {threshold_ms} ms)"), SLOW_SYNC_COLUMNS);
    for row in list::slow_sync_rows(syncs, topology, filter) {
        let end = format_rfc3339_in(snapshot.time.wall_ns_at(row.started_ns + row.duration_ns), utc_offset_secs);
        table.push_values(SLOW_SYNC_COLUMNS, |column| (column.value)(&row, &end));
    }
    Some(table)
}
