//! The table of network file systems.

use super::table::Table;
use crate::model::column::CellValue;
use crate::model::snapshot::Snapshot;

const HEADERS: [(&str, bool); 9] = [
    ("Mount", false),
    ("Kind", false),
    ("Server", false),
    ("MB_read/s", true),
    ("MB_wrtn/s", true),
    ("rtt ms", true),
    ("retrans/s", true),
    ("Via", false),
    ("link %", true),
];

/// One row a mount; `None` without network file systems.
pub fn build_table(title: String, snapshot: &Snapshot, now_boot_ns: u64) -> Option<Table> {
    let mut table = Table::new(title, &HEADERS);
    let number = |n: Option<f64>, decimals| {
        let mut text = String::new();
        CellValue::fixed(n, decimals).write(&mut text);
        text
    };
    for mount in snapshot.netfs.ok().into_iter().flatten() {
        table.rows.push(vec![
            mount.mount.clone(),
            mount.kind.name().into(),
            mount.server.clone(),
            number(mount.read_mb_per_s, 2),
            number(mount.write_mb_per_s, 2),
            number(mount.rtt_ms, 2),
            number(mount.retransmits_per_s, 2),
            mount.interface.clone().unwrap_or_else(|| "-".into()),
            number(mount.link_used_pct, 1),
        ]);
    }
    table.notes.extend(snapshot.netfs.unavailable_reason(now_boot_ns));
    (!table.rows.is_empty() || !table.notes.is_empty()).then_some(table)
}
