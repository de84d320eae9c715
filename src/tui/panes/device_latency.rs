//! How the times of a device's requests are spread: percentiles, and heat maps over time.

use super::device_graphs::series_of;
use crate::model::disk::DevId;
use crate::model::latency::{HeatmapBins, REQUEST_KINDS, RequestLatency, LatencySummary};
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::graph::marks;
use crate::tui::widgets::heat::{columns, heat};
use crate::tui::widgets::put::put;
use crate::tui::widgets::theme::Theme;
use crate::units::format_micros;
use ratatui::layout::Rect;

/// Which part of a request's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Queued and in service.
    Total,
    /// In service.
    Service,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Total => "queued and in service",
            Part::Service => "in service",
        }
    }

    fn of(self, kind: &RequestLatency) -> (&Option<LatencySummary>, &HeatmapBins) {
        match self {
            Part::Total => (&kind.total, &kind.heatmap),
            Part::Service => (&kind.service, &kind.service_heatmap),
        }
    }
}

/// The table of percentiles, or why there is none.
pub fn table(app: &App, id: DevId, out: &mut Vec<(String, bool)>) {
    let snap = app.snap();
    out.push((String::new(), false));
    let Some(latency) = snap.device(id).and_then(|d| d.latency.as_ref()) else {
        out.push(("Latency".into(), true));
        out.push((format!("  - {}", why_not(app, id)), false));
        return;
    };
    let heads = ["samples", "p50", "p90", "p99", "p99.9", "max"];
    let line = |name: &str, cells: [String; 6]| {
        let cells: String = cells.iter().map(|c| format!("{c:>9}")).collect();
        format!("{name:<16}{cells}")
    };
    out.push((line("Latency", heads.map(str::to_owned)), true));
    let before = out.len();
    for (kind, name) in latency.kinds.iter().zip(REQUEST_KINDS) {
        for part in [Part::Total, Part::Service] {
            let Some(s) = part.of(kind).0 else { continue };
            let cells = [s.p50, s.p90, s.p99, s.p999, s.max].map(format_micros);
            let [a, b, c, d, e] = cells;
            let what = if part == Part::Total { name.to_owned() } else { "  in service".into() };
            out.push((line(&what, [s.samples.to_string(), a, b, c, d, e]), false));
        }
    }
    if out.len() == before {
        out.push(("  no request was completed in the interval".into(), false));
    }
    let tracing = snap.tracing.ok();
    if let Some(n) = tracing.map(|t| t.dropped).filter(|n| *n > 0) {
        out.push((format!("  {n} requests could not be followed: too many were in flight"), false));
    }
}

fn why_not(app: &App, id: DevId) -> String {
    if let Some(why) = app.snap().tracing.unavailable_reason(app.world.now().boot_ns) {
        return why;
    }
    let dev = app.world.topology.ok().and_then(|t| t.get(id));
    if dev.is_some_and(|d| d.kind == crate::model::topology::DeviceKind::Partition) {
        return "measured for the whole device only, not for a partition".into();
    }
    let missing = app.snap().tracing.ok().and_then(|t| t.unavailable.first().cloned());
    missing.unwrap_or_else(|| "no request of this device has been seen".into())
}

/// Kinds of which the graphs, so many cells wide, would show something.
pub fn kinds(app: &App, id: DevId, part: Part, width: u16) -> Vec<usize> {
    let frames = || series_of(app, id).rev().take(columns(width)).flatten();
    let any = |kind: usize| {
        frames().filter_map(|d| d.latency.as_ref()).any(|l| !part.of(&l.kinds[kind]).1.bins().is_empty())
    };
    (0..REQUEST_KINDS.len()).filter(|kind| any(*kind)).collect()
}

/// The heat map of a kind, labelled.
pub fn draw(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, id: DevId, kind: usize, part: Part) {
    if area.height < 2 || area.width < 20 {
        return;
    }
    let now = app.snap().device(id).and_then(|d| d.latency.as_ref()).and_then(|l| *part.of(&l.kinds[kind]).0);
    let now = now.map_or("-".into(), |s| format!("p50 {}  p99 {}", format_micros(s.p50), format_micros(s.p99)));
    let label = format!("{} latency, {}  now {now}", REQUEST_KINDS[kind], part.name());
    put(buf, area.x, area.y, &label, area.width, theme.head);
    let graph = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let cells = series_of(app, id).map(|d| Some(part.of(&d?.latency.as_ref()?.kinds[kind]).1.bins()));
    let style = if kind == 0 { theme.graph } else { theme.graph2 };
    heat(buf, graph, cells, |step| format_micros(HeatmapBins::bin_start_us(step)), (style, theme.dim));
    marks(buf, graph, &app.change_marks(columns(area.width)), theme.changed);
}
