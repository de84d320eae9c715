//! Syncs on paper: who waits for which file, and the slow ones.

use super::table::Table;
use crate::model::column::{Align, ColumnSpec};
use crate::model::columns::syncs::{SLOW_SYNC_COLUMNS, SYNC_COLUMNS};
use crate::model::snapshot::Snapshot;
use crate::model::syncs::list::{self, SyncQuery};
use crate::model::topology::Topology;
use crate::units::format_rfc3339;

fn empty_table<C>(title: String, columns: &[ColumnSpec<C>]) -> Table {
    let heads: Vec<_> = columns.iter().map(|c| (c.header, c.align == Align::Right)).collect();
    Table::new(title, &heads)
}

/// Who waits for which file. What is not seen, and why there is nothing, are its notes.
pub fn build_table(title: String, snap: &Snapshot, topo: Option<&Topology>, query: &SyncQuery<'_>) -> Table {
    let mut sheet = empty_table(title, SYNC_COLUMNS);
    let Some(syncs) = snap.syncs.ok() else {
        sheet.notes.extend(snap.syncs.unavailable_reason(snap.time.boot_ns));
        return sheet;
    };
    for line in list::sync_rows(syncs, topo, query) {
        let cell = |c: &ColumnSpec<_>| {
            let mut out = String::new();
            line.value(c.id).write(&mut out);
            out
        };
        sheet.rows.push(SYNC_COLUMNS.iter().map(cell).collect());
    }
    sheet.notes = list::notes(syncs);
    sheet
}

/// The slow ones; `None` where syncs were not traced: the other table says why.
pub fn build_slow_table(title: &str, snap: &Snapshot, topo: Option<&Topology>, filter: &str) -> Option<Table> {
    let syncs = snap.syncs.ok()?;
    let ms = syncs.threshold_ns as f64 / 1e6;
    let mut sheet = empty_table(format!("{title} (from {ms} ms)"), SLOW_SYNC_COLUMNS);
    for line in list::slow_sync_rows(syncs, topo, filter) {
        let ended = format_rfc3339(snap.time.wall_ns_at(line.started_ns + line.duration_ns));
        let cell = |c: &ColumnSpec<_>| {
            let mut out = String::new();
            line.value(c.id, &ended).write(&mut out);
            out
        };
        sheet.rows.push(SLOW_SYNC_COLUMNS.iter().map(cell).collect());
    }
    Some(sheet)
}
