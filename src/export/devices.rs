//! Devices on paper: the columns of the screen, a line a device.

use super::table::Table;
use crate::model::column::{Align, ColumnSpec};
use crate::model::columns::device::{DeviceColumn, DeviceRow};
use crate::model::device_list::ListedDevice;
use crate::model::snapshot::Snapshot;

/// The table of `lines`, which [`crate::model::device_list::lines`] made of the same `snap`.
pub fn build_table(
    title: String,
    set: &[ColumnSpec<DeviceColumn>],
    snap: &Snapshot,
    lines: &[ListedDevice],
    now_boot_ns: u64,
) -> Table {
    let heads: Vec<_> = set.iter().map(|c| (c.header, c.align == Align::Right)).collect();
    let mut sheet = Table::new(title, &heads);
    let rates = snap.devices.ok().map(Vec::as_slice).unwrap_or_default();
    for line in lines {
        let Some(rate) = line.rate_index.map(|i| &rates[i]) else { continue };
        let row = DeviceRow { rate, label: &line.label };
        let cell = |c: &ColumnSpec<DeviceColumn>| {
            let mut s = String::new();
            row.value(c.id).write(&mut s);
            s
        };
        sheet.rows.push(set.iter().map(cell).collect());
        if rate.stalled {
            sheet.notes.push(format!("{} STALLED: {} in flight, none completed", line.label.trim(), rate.in_flight));
        }
    }
    sheet.notes.extend(snap.devices.unavailable_reason(now_boot_ns));
    sheet
}
