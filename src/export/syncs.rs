//! Syncs on paper: who waits for which file, and the slow ones.

use super::sheet::Sheet;
use crate::model::column::{Align, Column};
use crate::model::columns::syncs::{SLOW, SYNCS};
use crate::model::snapshot::Snapshot;
use crate::model::syncs::list::{self, SyncQuery};
use crate::model::topology::Topology;
use crate::units::format_rfc3339;

fn empty<C>(title: String, columns: &[Column<C>]) -> Sheet {
    let heads: Vec<_> = columns.iter().map(|c| (c.head, c.align == Align::Right)).collect();
    Sheet::new(title, &heads)
}

/// Who waits for which file. What is not seen, and why there is nothing, are its notes.
pub fn sheet(title: String, snap: &Snapshot, topo: Option<&Topology>, query: &SyncQuery<'_>) -> Sheet {
    let mut sheet = empty(title, SYNCS);
    let Some(syncs) = snap.syncs.ok() else {
        sheet.notes.extend(snap.syncs.why(snap.at.boot_ns));
        return sheet;
    };
    for line in list::lines(syncs, topo, query) {
        let cell = |c: &Column<_>| {
            let mut out = String::new();
            line.value(c.id).write(&mut out);
            out
        };
        sheet.rows.push(SYNCS.iter().map(cell).collect());
    }
    sheet.notes = list::notes(syncs);
    sheet
}

/// The slow ones; `None` where syncs were not traced: the other table says why.
pub fn slow(title: &str, snap: &Snapshot, topo: Option<&Topology>, filter: &str) -> Option<Sheet> {
    let syncs = snap.syncs.ok()?;
    let ms = syncs.threshold_ns as f64 / 1e6;
    let mut sheet = empty(format!("{title} (from {ms} ms)"), SLOW);
    for line in list::slow(syncs, topo, filter) {
        let ended = format_rfc3339(snap.at.wall_at(line.began_ns + line.took_ns));
        let cell = |c: &Column<_>| {
            let mut out = String::new();
            line.value(c.id, &ended).write(&mut out);
            out
        };
        sheet.rows.push(SLOW.iter().map(cell).collect());
    }
    Some(sheet)
}
