//! Graphs of the selected device: two quantities or two latency heat maps, chosen with `g`.

use super::DevicesView;
use super::latency::{self, LatencyPart, device_history};
use crate::model::disk::{DevId, DiskRate};
use crate::tui::view::Shared;
use crate::tui::widgets::{
    CellBuffer, Rect, Theme, draw_column_markers, draw_columns, draw_frame, draw_text, round_up_scale,
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

pub(super) fn quantity_history(
    shared: &Shared,
    id: DevId,
    value: fn(&DiskRate) -> f64,
) -> impl DoubleEndedIterator<Item = Option<f64>> {
    device_history(shared, id).map(move |d| d.map(value))
}

pub(super) fn draw_graph(
    shared: &Shared,
    theme: &Theme,
    area: Rect,
    buf: &mut CellBuffer,
    id: DevId,
    q: &GraphQuantity,
    second: bool,
) {
    if area.height < 2 || area.width < 20 {
        return;
    }
    let graph = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let shown = usize::from(area.width);
    let (mut last, mut max) = (None, 0.0f64);
    for value in quantity_history(shared, id, q.value).rev().take(shown) {
        last = last.or(value);
        max = max.max(value.unwrap_or(0.0));
    }
    let top = q.scale_max.unwrap_or_else(|| round_up_scale(max));
    let now = last.map_or("-".into(), |v| format!("{v:.2}"));
    let changed = shared.change_marks(shown);
    let legend = if changed.is_empty() { "" } else { "  ┊ knob changed" };
    let label = format!("{}  now {now}  max {max:.2}  scale 0..{top}{legend}", q.name);
    draw_text(buf, area.x, area.y, &label, area.width, theme.header);
    let style = if second { theme.graph_alt } else { theme.graph };
    draw_columns(buf, graph, quantity_history(shared, id, q.value), top, style);
    draw_column_markers(buf, graph, &changed, theme.changed);
}

impl DevicesView {
    pub(super) fn render_graphs(
        &self,
        shared: &Shared,
        theme: &Theme,
        area: Rect,
        buf: &mut CellBuffer,
        focused: bool,
    ) {
        let Some(id) = self.selected(shared) else {
            draw_frame(buf, area, "No device selected", "", focused, theme);
            return;
        };
        let name = shared.snapshot().device(id).map_or_else(|| id.to_string(), |r| crate::sanitize::sanitize(&*r.name));
        let inner = draw_frame(buf, area, &format!("{name}, recent past"), "g: another quantity", focused, theme);
        let half = inner.height / 2;
        let halves = [Rect { height: half, ..inner }, Rect { y: inner.y + half, height: inner.height - half, ..inner }];
        // Heat maps come after the pairs.
        let at = self.graph_index % (GRAPH_PAIRS.len() + HEATMAPS.len());
        if let Some(pair) = GRAPH_PAIRS.get(at) {
            draw_graph(shared, theme, halves[0], buf, id, &pair[0], false);
            draw_graph(shared, theme, halves[1], buf, id, &pair[1], true);
            return;
        }
        let part = HEATMAPS[at - GRAPH_PAIRS.len()];
        match latency::kinds_with_data(shared, id, part, inner.width)[..] {
            [] => {
                let mut why = Vec::new();
                latency::push_percentiles(shared, id, &mut why);
                for ((line, _), y) in why.iter().skip(1).zip(inner.y..inner.bottom()) {
                    draw_text(buf, inner.x, y, line, inner.width, theme.dim);
                }
            }
            [kind] => latency::draw_latency_heatmap(shared, theme, inner, buf, id, kind, part),
            // Flushes are few; the device's page shows them.
            [first, second, ..] => {
                latency::draw_latency_heatmap(shared, theme, halves[0], buf, id, first, part);
                latency::draw_latency_heatmap(shared, theme, halves[1], buf, id, second, part);
            }
        }
    }
}
