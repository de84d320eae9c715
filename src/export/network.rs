//! The table of network file systems.

use super::table::Table;
use crate::model::column::CellValue::{self, Text};
use crate::model::column::ColumnSpec;
use crate::model::network::NetFsRate;
use crate::model::snapshot::Snapshot;

type NetworkColumn = ColumnSpec<(), for<'a> fn(&'a NetFsRate) -> CellValue<'a>>;

static COLUMNS: &[NetworkColumn] = &[
    ColumnSpec::left((), "Mount", 0, |mount| Text(&mount.mount), ""),
    ColumnSpec::left((), "Kind", 0, |mount| Text(mount.kind.name()), ""),
    ColumnSpec::left((), "Server", 0, |mount| Text(&mount.server), ""),
    ColumnSpec::right((), "MB_read/s", 0, |mount| CellValue::fixed(mount.read_mb_per_s, 2), ""),
    ColumnSpec::right((), "MB_wrtn/s", 0, |mount| CellValue::fixed(mount.write_mb_per_s, 2), ""),
    ColumnSpec::right((), "rtt ms", 0, |mount| CellValue::fixed(mount.rtt_ms, 2), ""),
    ColumnSpec::right((), "retrans/s", 0, |mount| CellValue::fixed(mount.retransmits_per_s, 2), ""),
    ColumnSpec::left((), "Via", 0, |mount| CellValue::text(mount.interface.as_deref()), ""),
    ColumnSpec::right((), "link %", 0, |mount| CellValue::fixed(mount.link_used_pct, 1), ""),
];

/// One row a mount; `None` without network file systems.
pub(crate) fn build_table(title: String, snapshot: &Snapshot, now_boot_ns: u64) -> Option<Table> {
    let mut table = Table::with_columns(title, COLUMNS);
    for mount in snapshot.netfs.ok().into_iter().flatten() {
        table.push_values(COLUMNS, |column| (column.value)(mount));
    }
    table.notes.extend(snapshot.netfs.unavailable_reason(now_boot_ns));
    (!table.rows.is_empty() || !table.notes.is_empty()).then_some(table)
}
