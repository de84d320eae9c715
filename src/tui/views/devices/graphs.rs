//! Graphs of the selected device: two quantities or two latency heat maps, chosen with `g`.

use super::super::detail::DetailText;
use super::DevicesView;
use super::latency::{self, LatencyPart, device_history};
use crate::model::disk::{DevId, DiskRate};
use crate::tui::view::{Action, Context, PaneId};
use crate::tui::widgets::{
    Axes, CellBuffer, Rect, Style, area_below, axis_number, draw_axes, draw_column, draw_columns, draw_sample_markers,
    draw_text, round_up_scale, split_columns, split_rows,
};

#[derive(Clone, Copy)]
pub(in crate::tui::views) struct GraphQuantity {
    /// Name and unit.
    pub name: &'static str,
    pub value: fn(&DiskRate) -> f64,
    /// The unit at the axis.
    pub unit: &'static str,
    /// Top of the scale; `None`: the largest value, rounded up.
    pub scale_max: Option<f64>,
}

pub(super) const fn quantity(name: &'static str, unit: &'static str, value: fn(&DiskRate) -> f64) -> GraphQuantity {
    GraphQuantity { name, value, unit, scale_max: None }
}

/// How long requests wait and are served.
pub(in crate::tui::views) const AWAIT: GraphQuantity = quantity("await ms", " ms", |r| r.await_ms);
/// The share of the time in which a device had requests.
pub(in crate::tui::views) const DEVICE_USE: GraphQuantity =
    GraphQuantity { name: "%util", unit: "%", value: |r| r.util_pct, scale_max: Some(100.0) };

/// Pairs of quantities, drawn one above the other.
pub(super) const GRAPH_PAIRS: &[[GraphQuantity; 2]] = &[
    [quantity("MB read/s", " MB/s", |r| r.read_mb_per_s), quantity("MB written/s", " MB/s", |r| r.write_mb_per_s)],
    [quantity("reads/s", "/s", |r| r.reads_per_s), quantity("writes/s", "/s", |r| r.writes_per_s)],
    [quantity("r_await ms", " ms", |r| r.read_await_ms), quantity("w_await ms", " ms", |r| r.write_await_ms)],
    [quantity("aqu-sz", "", |r| r.queue_size), DEVICE_USE],
];

/// From this width on graphs and heat maps are side by side.
const SIDE_BY_SIDE_WIDTH: u16 = 116;

/// Heat maps, chosen after the last pair.
const HEATMAPS: [LatencyPart; 2] = [LatencyPart::Total, LatencyPart::Service];

/// Draws the pair of that index, one graph above the other. One that is 0 throughout, such as the reads of a device that is
/// only written to, leaves its room to the other.
pub(super) fn draw_graph_pair(cx: &Context, area: Rect, buf: &mut CellBuffer, id: DevId, index: usize) {
    let pair = &GRAPH_PAIRS[index % GRAPH_PAIRS.len()];
    let samples = cx.shared.graph_samples(area.width);
    let is_idle = |q: &GraphQuantity| {
        device_history(cx.shared, id).rev().take(samples).flatten().all(|rate| (q.value)(rate) <= 0.0)
    };
    let upper = match pair.each_ref().map(is_idle) {
        [true, false] => 1,
        [false, true] => area.height.saturating_sub(1),
        _ => area.height / 2,
    };
    for ((quantity, area), style) in pair.iter().zip(split_rows(area, upper)).zip([cx.theme.graph, cx.theme.graph_alt])
    {
        if area.height == 1 {
            draw_text(buf, area.x, area.y, &format!("{}  none in this time", quantity.name), area.width, cx.theme.dim);
        }
        draw_graph(cx, area, buf, id, quantity, style);
    }
}

/// Draws the recent past of one quantity of a device, with its axes.
pub(in crate::tui::views) fn draw_graph(
    cx: &Context,
    area: Rect,
    buf: &mut CellBuffer,
    id: DevId,
    q: &GraphQuantity,
    style: Style,
) {
    if area.height < 2 || area.width < 20 {
        return;
    }
    let values = || device_history(cx.shared, id).map(|d| d.map(q.value));
    let shown = || values().rev().take(cx.shared.graph_samples(area.width)).flatten();
    let max = shown().fold(0.0, f64::max);
    let top = q.scale_max.unwrap_or_else(|| round_up_scale(max));
    let now = shown().next().map_or("-".into(), |v| format!("{v:.2}"));
    let changed = cx.shared.graph_marks(cx.shared.graph_samples(area.width));
    let legend = if changed.is_empty() { "" } else { "  ┊ knob changed" };
    let label = format!("{}  now {now}  max {max:.2}{legend}", q.name);
    draw_text(buf, area.x, area.y, &label, area.width, cx.theme.header);
    let value = |n: f64| axis_number(n) + q.unit;
    let axes = Axes { top, value: &value, time: &|back| cx.shared.sample_age(back) };
    let graph = draw_axes(buf, area_below(area, 1), &axes, &cx.theme);
    draw_columns(buf, graph, cx.shared.graph_values(values()), top, |_| style);
    draw_sample_markers(buf, graph, &changed, cx.theme.changed);
}

impl DevicesView {
    pub(super) fn render_graphs(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        // While all devices are idle and folded, none is selected: then the disk that has done most is shown.
        let most_used = || {
            let devices = cx.shared.snapshot().devices.ok()?.iter();
            let total = |rate: &DiskRate| rate.read_mb_total + rate.write_mb_total;
            devices.max_by(|a, b| total(a).total_cmp(&total(b))).map(|rate| rate.id)
        };
        let Some(id) = self.selected(cx.shared).or_else(|| most_used().filter(|_| self.filter.is_empty())) else {
            cx.draw_frame(buf, PaneId::DeviceGraphs, area, "No device selected", "");
            return;
        };
        let shared = cx.shared;
        let name = shared.snapshot().device(id).map_or_else(|| id.to_string(), |r| crate::sanitize::sanitize(&*r.name));
        let title = format!("{name}, recent past");
        let note = format!("{}: another quantity", shared.keymap.key_of(Action::NextGraph));
        let inner = cx.draw_frame(buf, PaneId::DeviceGraphs, area, &title, &note);
        if inner.width < SIDE_BY_SIDE_WIDTH {
            // Heat maps come after the pairs.
            let at = self.graph_index % (GRAPH_PAIRS.len() + HEATMAPS.len());
            return match at.checked_sub(GRAPH_PAIRS.len()) {
                None => draw_graph_pair(cx, inner, buf, id, at),
                Some(at) => draw_heatmaps(cx, inner, buf, id, HEATMAPS[at]),
            };
        }
        let [left, right] = split_columns(inner, inner.width / 2);
        draw_graph_pair(cx, left, buf, id, self.graph_index);
        let right = Rect { x: right.x + 2, width: right.width.saturating_sub(2), ..right };
        let round = self.graph_index / GRAPH_PAIRS.len();
        draw_heatmaps(cx, right, buf, id, HEATMAPS[round % HEATMAPS.len()]);
    }
}

/// Draws the heat maps of reads and writes, or why there are none.
fn draw_heatmaps(cx: &Context, inner: Rect, buf: &mut CellBuffer, id: DevId, part: LatencyPart) {
    let shared = cx.shared;
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
