//! Graphs side by side: swap in and out, pressure on memory and I/O.

use super::writeback::{HistoryGraph, draw_history, format_optional_bytes, peak};
use crate::model::memory::SwapRate;
use crate::model::pressure::{PressureRaw, ResourcePressure};
use crate::model::snapshot::Snapshot;
use crate::tui::view::Context;
use crate::tui::widgets::{CellBuffer, Rect, Style, round_up_bytes};

/// Rows from which on there are graphs.
const MIN_ROWS: u16 = 3;

/// Whether the machine has swap; yes if that is not known.
pub(super) fn has_swap(snapshot: &Snapshot) -> bool {
    snapshot.swap.ok().and_then(|swap| swap.total_bytes) != Some(0)
}

/// The left and the right half of an area, with a blank column after each.
fn halves(area: Rect) -> [Rect; 2] {
    let half = area.width / 2;
    [area.x, area.x + half].map(|x| Rect { x, width: half.saturating_sub(1), ..area })
}

pub(in crate::tui::views) fn draw_swap_graphs(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let (shared, theme) = (cx.shared, &cx.theme);
    if area.height < MIN_ROWS {
        return;
    }
    type Get = fn(&SwapRate) -> Option<f64>;
    let graphs: [(&str, Get, Style); 2] =
        [("si", |s| s.in_bytes_per_s, theme.graph), ("so", |s| s.out_bytes_per_s, theme.graph_alt)];
    for ((name, get, style), part) in graphs.into_iter().zip(halves(area)) {
        // The rates of the first sample are means since boot.
        let value = move |s: &Snapshot| s.swap.ok().filter(|_| !s.is_since_boot).and_then(get);
        let max = peak(shared, part.width, value);
        let [now, most] = [value(shared.snapshot()), Some(max)].map(format_optional_bytes);
        let label = format!("{name} now {now}/s peak {most}/s");
        draw_history(cx, part, buf, &HistoryGraph::of_bytes(&label, round_up_bytes(max), style), value);
    }
}

/// Draws for which share of 10 s some task waited for memory, and for I/O.
pub(super) fn draw_pressure_graphs(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let theme = &cx.theme;
    if area.height < MIN_ROWS {
        return;
    }
    type Get = fn(&PressureRaw) -> ResourcePressure;
    let graphs: [(&str, Get, Style); 2] =
        [("memory stall", |p| p.memory, theme.graph), ("IO stall", |p| p.io, theme.graph_alt)];
    for ((name, get, style), part) in graphs.into_iter().zip(halves(area)) {
        let value = move |s: &Snapshot| s.pressure.ok().and_then(|p| get(p).some).map(|psi| psi.avg10);
        let now = value(cx.shared.snapshot()).map_or("-".into(), |pct| format!("{pct:.0}%"));
        let label = format!("{name} now {now} (10s)");
        let graph = HistoryGraph { label: &label, top: 100.0, style, value_label: |pct| format!("{pct:.0}%") };
        draw_history(cx, part, buf, &graph, value);
    }
}
