//! Flushes that reach the devices, which are what syncs end in. The kernel counts them without tracing.

use super::graphs::{GraphQuantity, draw_graph, quantity};
use super::latency::device_history;
use crate::model::disk::{DevId, DiskRate};
use crate::model::topology::DeviceKind;
use crate::tui::view::{Context, Shared};
use crate::tui::widgets::{CellBuffer, Rect, area_below, draw_text, split_columns};
use std::sync::Arc;

/// Rows of the graphs of one device, at least and at most, its name included.
const MIN_DEVICE_ROWS: u16 = 6;
const MAX_DEVICE_ROWS: u16 = 18;
/// Rows from which on something can be drawn: a blank one, the heading, one device.
const MIN_FLUSH_ROWS: u16 = 2 + MIN_DEVICE_ROWS;

const FLUSHES: GraphQuantity = quantity("flushes/s", "/s", |rate| rate.flushes_per_s.unwrap_or(0.0));
const FLUSH_AWAIT: GraphQuantity = quantity("f_await ms", " ms", |rate| rate.flush_await_ms.unwrap_or(0.0));

/// Draws the rate of flushes and their await in the recent past, for the devices with most of them.
pub(in crate::tui::views) fn draw_flushes(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    if area.height < MIN_FLUSH_ROWS {
        return;
    }
    let area = area_below(area, 1);
    let devices = flushed_devices(cx.shared);
    let heading = match (devices.is_empty(), are_flushes_counted(cx.shared)) {
        (false, _) => "Flushes of devices, in which syncs end",
        (true, true) => "Flushes of devices, in which syncs end: none in the recent past",
        (true, false) => "Flushes of devices: not counted by this kernel (Linux 5.5 does)",
    };
    draw_text(buf, area.x, area.y, heading, area.width, cx.theme.header);
    let mut rest = area_below(area, 1);
    let shown = devices.len().min(usize::from(rest.height / MIN_DEVICE_ROWS));
    for (i, (id, name)) in devices.into_iter().take(shown).enumerate() {
        let height = (rest.height / (shown - i) as u16).min(MAX_DEVICE_ROWS);
        let part = Rect { height, ..rest };
        draw_text(buf, part.x, part.y, &name, part.width, cx.theme.text);
        let [left, right] = split_columns(area_below(part, 1), part.width / 2);
        let right = Rect { x: right.x + 1, width: right.width.saturating_sub(1), ..right };
        draw_graph(cx, left, buf, id, &FLUSHES, cx.theme.graph);
        draw_graph(cx, right, buf, id, &FLUSH_AWAIT, cx.theme.graph_alt);
        rest = area_below(rest, height);
    }
}

fn rates(shared: &Shared) -> &[Arc<DiskRate>] {
    shared.snapshot().devices.ok().map(Vec::as_slice).unwrap_or_default()
}

fn are_flushes_counted(shared: &Shared) -> bool {
    rates(shared).is_empty() || rates(shared).iter().any(|rate| rate.flushes_per_s.is_some())
}

/// Devices, not partitions, that were flushed in the samples on screen, the one with most flushes first, with their names.
fn flushed_devices(shared: &Shared) -> Vec<(DevId, String)> {
    let topology = shared.system.topology.ok();
    let is_partition = |id: DevId| topology.and_then(|t| t.get(id)).is_some_and(|d| d.kind == DeviceKind::Partition);
    let flushes = |id: DevId| device_history(shared, id).flatten().filter_map(|rate| rate.flushes_per_s).sum::<f64>();
    let devices = rates(shared).iter().filter(|rate| !is_partition(rate.id));
    let mut out: Vec<(f64, DevId, String)> =
        devices.map(|rate| (flushes(rate.id), rate.id, crate::sanitize::sanitize(&*rate.name))).collect();
    out.retain(|device| device.0 > 0.0);
    out.sort_by(|a, b| b.0.total_cmp(&a.0));
    out.into_iter().map(|(_, id, name)| (id, name)).collect()
}
