//! The devices table.

use super::table::Table;
use crate::model::columns::device::{DeviceColumnSpec, DeviceRow};
use crate::model::device_list::ListedDevice;
use crate::model::snapshot::Snapshot;

/// One row for each of the `devices`, listed from the same `snapshot`.
pub(crate) fn build_table(
    title: String,
    columns: &[DeviceColumnSpec],
    snapshot: &Snapshot,
    devices: &[ListedDevice],
    now_boot_ns: u64,
) -> Table {
    let mut table = Table::with_columns(title, columns);
    let rates = snapshot.devices.ok().map(Vec::as_slice).unwrap_or_default();
    for device in devices {
        let Some(rate) = device.rate_index.map(|i| &rates[i]) else { continue };
        let row = DeviceRow { rate, label: &device.label };
        table.push_values(columns, |column| (column.value)(&row));
        if rate.stalled {
            table.notes.push(format!("{} STALLED: {} in flight, none completed", device.label.trim(), rate.in_flight));
        }
    }
    table.notes.extend(snapshot.devices.unavailable_reason(now_boot_ns));
    table
}
