//! Latency of a device's requests: percentiles, and heat maps over time.

use super::super::detail::DetailText;
use crate::model::disk::{DevId, DiskRate};
use crate::model::latency::{HeatmapBins, LatencySummary, REQUEST_KINDS, RequestLatency};
use crate::tui::view::{Context, Shared};
use crate::tui::widgets::{
    CellBuffer, Rect, area_below, draw_heatmap, draw_sample_markers, draw_text, draw_time_axis, heatmap_column_count,
};
use crate::units::format_micros;

/// From so many rows on a heat map has an axis of times.
const MIN_HEIGHT_WITH_TIMES: u16 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LatencyPart {
    Total,
    Service,
}

impl LatencyPart {
    fn label(self) -> &'static str {
        match self {
            LatencyPart::Total => "queued and in service",
            LatencyPart::Service => "in service",
        }
    }

    fn distribution(self, kind: &RequestLatency) -> (&Option<LatencySummary>, &HeatmapBins) {
        match self {
            LatencyPart::Total => (&kind.total, &kind.heatmap),
            LatencyPart::Service => (&kind.service, &kind.service_heatmap),
        }
    }
}

/// The rates of a device in the stored history, oldest first; `None` where it did not exist, and of the first sample, whose
/// rates are means since boot.
pub(super) fn device_history(shared: &Shared, id: DevId) -> impl DoubleEndedIterator<Item = Option<&DiskRate>> + Clone {
    shared.history_to_shown().map(move |f| f.snapshot.device(id).filter(|_| !f.snapshot.is_since_boot))
}

/// Appends the table of percentiles, or why there is none.
pub(super) fn push_percentiles(shared: &Shared, id: DevId, out: &mut DetailText) {
    let snap = shared.snapshot();
    let Some(latency) = snap.device(id).and_then(|d| d.latency.as_ref()) else {
        out.section("Latency");
        return out.line(format!("  - {}", unavailable_reason(shared, id)));
    };
    let line = |name: &str, cells: [String; 6]| {
        let cells: String = cells.iter().map(|c| format!("{c:>9}")).collect();
        format!("{name:<16}{cells}")
    };
    out.section(line("Latency", ["samples", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned)));
    let before = out.0.len();
    for (kind, name) in latency.kinds.iter().zip(REQUEST_KINDS) {
        for (part, name) in [(LatencyPart::Total, name), (LatencyPart::Service, "  in service")] {
            let Some(s) = part.distribution(kind).0 else { continue };
            let [a, b, c, d, e] = [s.p50, s.p90, s.p99, s.p999, s.max].map(format_micros);
            out.line(line(name, [s.samples.to_string(), a, b, c, d, e]));
        }
    }
    if out.0.len() == before {
        let is_unmeasured = latency.kinds.iter().any(|kind| kind.is_unmeasured);
        out.line(if is_unmeasured { "  - not measured" } else { "  no request was completed in the interval" });
    }
    let Some(tracing) = snap.tracing.ok() else { return };
    tracing.unavailable.iter().for_each(|why| out.line(format!("  {why}")));
    if tracing.dropped > 0 {
        out.line(format!("  {} requests could not be followed: too many were in flight", tracing.dropped));
    }
}

fn unavailable_reason(shared: &Shared, id: DevId) -> String {
    if let Some(why) = shared.snapshot().tracing.unavailable_reason(shared.system.now().boot_ns) {
        return why;
    }
    let dev = shared.system.topology.ok().and_then(|t| t.get(id));
    if dev.is_some_and(|d| d.kind == crate::model::topology::DeviceKind::Partition) {
        return "measured for the whole device only, not for a partition".into();
    }
    let missing = shared.snapshot().tracing.ok().and_then(|t| t.unavailable.first().cloned());
    missing.unwrap_or_else(|| "no request of this device has been seen".into())
}

/// Kinds of requests that a heat map of this width has data of.
pub(super) fn kinds_with_data(shared: &Shared, id: DevId, part: LatencyPart, width: u16) -> Vec<usize> {
    let samples = shared.graph_samples(heatmap_column_count(width));
    let frames = || device_history(shared, id).rev().take(samples).flatten();
    let any = |kind: usize| {
        frames().filter_map(|d| d.latency.as_ref()).any(|l| !part.distribution(&l.kinds[kind]).1.bins().is_empty())
    };
    (0..REQUEST_KINDS.len()).filter(|kind| any(*kind)).collect()
}

pub(super) fn draw_latency_heatmap(
    cx: &Context,
    area: Rect,
    buf: &mut CellBuffer,
    id: DevId,
    kind: usize,
    part: LatencyPart,
) {
    let (shared, theme) = (cx.shared, &cx.theme);
    if area.height < 2 || area.width < 20 {
        return;
    }
    let latency = shared.snapshot().device(id).and_then(|d| d.latency.as_ref());
    let now = latency.and_then(|l| *part.distribution(&l.kinds[kind]).0);
    let now = now.map_or("-".into(), |s| format!("p50 {}  p99 {}", format_micros(s.p50), format_micros(s.p99)));
    let label = format!("{} latency, {}  now {now}", REQUEST_KINDS[kind], part.label());
    draw_text(buf, area.x, area.y, &label, area.width, theme.header);
    let mut graph = area_below(area, 1);
    if graph.height >= MIN_HEIGHT_WITH_TIMES {
        graph.height -= 1;
        let below = Rect { x: area.right() - heatmap_column_count(area.width), y: graph.bottom(), height: 1, ..area };
        let below = Rect { width: area.right() - below.x, ..below };
        draw_time_axis(buf, below, shared.symbols.samples_per_cell(), &|back| shared.sample_age(back), theme);
    }
    let cells = device_history(shared, id).map(|d| Some(part.distribution(&d?.latency.as_ref()?.kinds[kind]).1.bins()));
    draw_heatmap(buf, graph, shared.graph_values(cells), |step| format_micros(HeatmapBins::bin_start_us(step)), theme);
    let samples = shared.graph_samples(heatmap_column_count(area.width));
    draw_sample_markers(buf, graph, &shared.graph_marks(samples), theme.changed);
}
