//! Graphs of the selected device: two quantities or two latency heat maps, chosen with `g`.

use super::super::detail::DetailText;
use super::DevicesView;
use super::latency::{self, LatencyPart, device_history};
use crate::model::disk::{DevId, DiskRate};
use crate::tui::view::Shared;
use crate::tui::widgets::{
    CellBuffer, Rect, Style, Theme, area_below, draw_column, draw_column_markers, draw_columns, draw_frame, draw_text,
    round_up_scale,
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
pub(super) fn draw_graph_pair(
    shared: &Shared,
    theme: &Theme,
    area: Rect,
    buf: &mut CellBuffer,
    id: DevId,
    index: usize,
) {
    let pair = &GRAPH_PAIRS[index % GRAPH_PAIRS.len()];
    for ((quantity, area), style) in pair.iter().zip(halves(area)).zip([theme.graph, theme.graph_alt]) {
        draw_graph(shared, theme, area, buf, id, quantity, style);
    }
}

fn halves(area: Rect) -> [Rect; 2] {
    let half = area.height / 2;
    [Rect { height: half, ..area }, area_below(area, half)]
}

/// Draws a graph with its label.
fn draw_graph(
    shared: &Shared,
    theme: &Theme,
    area: Rect,
    buf: &mut CellBuffer,
    id: DevId,
    q: &GraphQuantity,
    style: Style,
) {
    if area.height < 2 || area.width < 20 {
        return;
    }
    let graph = area_below(area, 1);
    let values = || device_history(shared, id).map(|d| d.map(q.value));
    let shown = || values().rev().take(usize::from(area.width)).flatten();
    let max = shown().fold(0.0, f64::max);
    let top = q.scale_max.unwrap_or_else(|| round_up_scale(max));
    let now = shown().next().map_or("-".into(), |v| format!("{v:.2}"));
    let changed = shared.change_marks(usize::from(area.width));
    let legend = if changed.is_empty() { "" } else { "  ┊ knob changed" };
    let label = format!("{}  now {now}  max {max:.2}  scale 0..{top}{legend}", q.name);
    draw_text(buf, area.x, area.y, &label, area.width, theme.header);
    draw_columns(buf, graph, values(), top, style);
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
        // Heat maps come after the pairs.
        let at = self.graph_index % (GRAPH_PAIRS.len() + HEATMAPS.len());
        if at < GRAPH_PAIRS.len() {
            return draw_graph_pair(shared, theme, inner, buf, id, at);
        }
        let part = HEATMAPS[at - GRAPH_PAIRS.len()];
        match latency::kinds_with_data(shared, id, part, inner.width)[..] {
            [] => {
                let mut why = DetailText::default();
                latency::push_percentiles(shared, id, &mut why);
                draw_column(buf, inner, why.0.iter().skip(1).map(|(line, _)| (line, theme.dim)));
            }
            [kind] => latency::draw_latency_heatmap(shared, theme, inner, buf, id, kind, part),
            // Flushes are few; the device's page shows them.
            [first, second, ..] => {
                for (kind, half) in [first, second].into_iter().zip(halves(inner)) {
                    latency::draw_latency_heatmap(shared, theme, half, buf, id, kind, part);
                }
            }
        }
    }
}
