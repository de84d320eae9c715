//! Network file systems on paper.

use super::table::Table;
use crate::model::column::CellValue;
use crate::model::snapshot::Snapshot;

/// The table; `None` where there is no network file system to speak of.
pub fn build_table(title: String, snap: &Snapshot, now_boot_ns: u64) -> Option<Table> {
    let heads = [
        ("Mount", false),
        ("Kind", false),
        ("Server", false),
        ("MB_read/s", true),
        ("MB_wrtn/s", true),
        ("rtt ms", true),
        ("retrans/s", true),
        ("Via", false),
        ("wire %", true),
    ];
    let mut sheet = Table::new(title, &heads);
    let number = |n: Option<f64>, decimals| {
        let mut s = String::new();
        CellValue::fixed(n, decimals).write(&mut s);
        s
    };
    for fs in snap.netfs.ok().into_iter().flatten() {
        sheet.rows.push(vec![
            fs.mount.clone(),
            fs.kind.name().into(),
            fs.server.clone(),
            number(fs.read_mb_per_s, 2),
            number(fs.write_mb_per_s, 2),
            number(fs.rtt_ms, 2),
            number(fs.retransmits_per_s, 2),
            fs.interface.clone().unwrap_or_else(|| "-".into()),
            number(fs.link_used_pct, 1),
        ]);
    }
    sheet.notes.extend(snap.netfs.unavailable_reason(now_boot_ns));
    (!sheet.rows.is_empty() || !sheet.notes.is_empty()).then_some(sheet)
}
