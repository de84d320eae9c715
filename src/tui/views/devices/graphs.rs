//! Graphs of the selected device: two quantities or two latency heat maps, chosen with `g`.

use super::super::detail::DetailText;
use super::DevicesView;
use super::latency::{self, LatencyPart, device_history};
use crate::model::disk::{DevId, DiskRate};
use crate::tui::view::{Context, PaneId};
use crate::tui::widgets::{
    CellBuffer, Rect, Style, area_below, draw_column, draw_columns, draw_sample_markers, draw_text, round_up_scale,
    split_rows,
};

#[derive(Clone, Copy)]
pub(super) struct GraphQuantity {
    /// Name and unit.
    pub name: &'static str,
    pub value: fn(&DiskRate) -> f64,
    /// Top of the scale; `None`: the largest value, rounded up.
    pub scale_max: Option<f64>,
}

const fn quantity(name: &'static str, value: fn(&DiskRate) -> f64) -> GraphQuantity {
    GraphQuantity { name, value, scale_max: None }
}

/// Pairs of quantities, drawn one above the other.
pub(super) const GRAPH_PAIRS: &[[GraphQuantity; 2]] = &[
    [quantity("MB read/s", |r| r.read_mb_per_s), quantity("MB written/s", |r| r.write_mb_per_s)],
    [quantity("reads/s", |r| r.reads_per_s), quantity("writes/s", |r| r.writes_per_s)],
    [quantity("r_await ms", |r| r.read_await_ms), quantity("w_await ms", |r| r.write_await_ms)],
    [
        quantity("aqu-sz", |r| r.queue_size),
        GraphQuantity { name: "%util", value: |r| r.util_pct, scale_max: Some(100.0) },
    ],
];

/// Heat maps, chosen after the last pair.
const HEATMAPS: [LatencyPart; 2] = [LatencyPart::Total, LatencyPart::Service];

/// Draws the pair of that index, one graph above the other.
pub(super) fn draw_graph_pair(cx: &Context, area: Rect, buf: &mut CellBuffer, id: DevId, index: usize) {
    let pair = &GRAPH_PAIRS[index % GRAPH_PAIRS.len()];
    for ((quantity, area), style) in
        pair.iter().zip(split_rows(area, area.height / 2)).zip([cx.theme.graph, cx.theme.graph_alt])
    {
        draw_graph(cx, area, buf, id, quantity, style);
    }
}

fn draw_graph(cx: &Context, area: Rect, buf: &mut CellBuffer, id: DevId, q: &GraphQuantity, style: Style) {
    if area.height < 2 || area.width < 20 {
        return;
    }
    let graph = area_below(area, 1);
    let values = || device_history(cx.shared, id).map(|d| d.map(q.value));
    let shown = || values().rev().take(cx.shared.graph_samples(area.width)).flatten();
    let max = shown().fold(0.0, f64::max);
    let top = q.scale_max.unwrap_or_else(|| round_up_scale(max));
    let now = shown().next().map_or("-".into(), |v| format!("{v:.2}"));
    let changed = cx.shared.change_marks(cx.shared.graph_samples(area.width));
    let legend = if changed.is_empty() { "" } else { "  ┊ knob changed" };
    let label = format!("{}  now {now}  max {max:.2}  scale 0..{top}{legend}", q.name);
    draw_text(buf, area.x, area.y, &label, area.width, cx.theme.header);
    draw_columns(buf, graph, values(), top, |_| style);
    draw_sample_markers(buf, graph, &changed, cx.theme.changed);
}

impl DevicesView {
    pub(super) fn render_graphs(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let Some(id) = self.selected(cx.shared) else {
            cx.draw_frame(buf, PaneId::DeviceGraphs, area, "No device selected", "");
            return;
        };
        let shared = cx.shared;
        let name = shared.snapshot().device(id).map_or_else(|| id.to_string(), |r| crate::sanitize::sanitize(&*r.name));
        let title = format!("{name}, recent past");
        let inner = cx.draw_frame(buf, PaneId::DeviceGraphs, area, &title, "g: another quantity");
        // Heat maps come after the pairs.
        let at = self.graph_index % (GRAPH_PAIRS.len() + HEATMAPS.len());
        if at < GRAPH_PAIRS.len() {
            return draw_graph_pair(cx, inner, buf, id, at);
        }
        let part = HEATMAPS[at - GRAPH_PAIRS.len()];
        match latency::kinds_with_data(shared, id, part, inner.width)[..] {
            [] => {
                let mut why = DetailText::default();
                latency::push_percentiles(shared, id, &mut why);
                draw_column(buf, inner, why.0.iter().skip(1).map(|(line, _)| (line, cx.theme.dim)));
            }
            [kind] => latency::draw_latency_heatmap(cx, inner, buf, id, kind, part),
            // Flushes are few; the device's page shows them.
            [first, second, ..] => {
                for (kind, half) in [first, second].into_iter().zip(split_rows(inner, inner.height / 2)) {
                    latency::draw_latency_heatmap(cx, half, buf, id, kind, part);
                }
            }
        }
    }
}
