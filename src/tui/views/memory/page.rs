//! The page: figures, thresholds, graphs, and the tasks stalled by memory, in swap, or faulting.

use super::writeback::{draw_history, draw_thresholds, draw_unwritten_graph, format_optional_bytes, peak};
use crate::export::memory::{MemoryFact, format_millis, memory_facts};
use crate::model::memory_stalls::{ProcessStalls, RECLAIM, THROTTLE};
use crate::model::process::{ProcessColumn as Col, ProcessFilter, ProcessQuery, ProcessRow};
use crate::model::snapshot::Snapshot;
use crate::tui::view::{Context, PaneId};
use crate::tui::widgets::{
    CellBuffer, Rect, Style, Theme, area_below, draw_column, draw_text, draw_text_right, round_up_bytes,
};
use crate::units::format_bytes;

pub(super) fn render(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let shared = cx.shared;
    let inner = cx.draw_frame(buf, PaneId::Memory, area, "Memory", &shared.interval_text());
    let wide = inner.width >= 100;
    let left = if wide { inner.width * 2 / 5 } else { inner.width.min(46) };
    let facts_area = Rect { width: left, ..inner };
    let used = draw_facts(&memory_facts(shared.snapshot(), shared.system.now().boot_ns), &cx.theme, facts_area, buf);
    let right = Rect { x: inner.x + left + 1, width: inner.width.saturating_sub(left + 1), ..inner };
    if wide {
        let third = right.height / 3;
        // Without swap there is nothing to draw of it: the graph of dirty pages has its room.
        let swap = if has_swap(shared.snapshot()) { third } else { 0 };
        let unwritten = 2 * third - swap - if swap == 0 { third / 2 } else { 0 };
        let part = |i: u16, n: u16| Rect { y: right.y + i, height: n, ..right };
        draw_thresholds(cx, part(0, 2.min(right.height)), buf);
        draw_unwritten_graph(cx, part(2, unwritten.saturating_sub(1)), buf);
        draw_swap_graphs(cx, part(unwritten + 2, swap.saturating_sub(1)), buf);
        let above = unwritten + swap + 2;
        draw_tasks(cx, part(above, right.height.saturating_sub(above)), buf);
    } else if right.width >= 24 {
        let past = (right.height / 3).min(8);
        let above = Rect { height: right.height - past, ..right };
        draw_tasks(cx, above, buf);
        draw_unwritten_graph(cx, Rect { y: above.bottom(), height: past, ..right }, buf);
    } else if used < inner.height {
        draw_tasks(cx, area_below(inner, used), buf);
    }
}

/// Whether the machine has swap; yes if that is not known.
fn has_swap(snapshot: &Snapshot) -> bool {
    snapshot.swap.ok().and_then(|swap| swap.total_bytes) != Some(0)
}

fn draw_facts(groups: &[(&'static str, Vec<MemoryFact>)], theme: &Theme, area: Rect, buf: &mut CellBuffer) -> u16 {
    let mut rows = area.top()..area.bottom();
    for (title, list) in groups {
        let Some(y) = rows.next() else { break };
        draw_text(buf, area.x, y, title, area.width, theme.header);
        for ((name, value, warn), y) in list.iter().zip(rows.by_ref()) {
            let style = if *warn { theme.warn } else { theme.text };
            if name == "-" {
                draw_text(buf, area.x + 1, y, &format!("- {value}"), area.width.saturating_sub(1), style);
            } else {
                let used = draw_text(buf, area.x + 1, y, name, area.width.saturating_sub(1), theme.text);
                let from = area.x + 2 + used;
                draw_text_right(buf, from, y, value, area.right().saturating_sub(from), style);
            }
        }
    }
    area.height - rows.len() as u16
}

/// Width of the name of a stalled process where there is room, and of the figures beside it.
const STALL_NAME_WIDTH: u16 = 22;
const STALL_FIGURES_WIDTH: u16 = 23;
/// Width of the figures without the longest stalls, which have no room in a narrow area.
const NARROW_FIGURES_WIDTH: u16 = 13;
/// With less room for the name the area is narrow.
const MIN_STALL_NAME_WIDTH: u16 = 14;

/// Draws the processes stalled by memory, the longest first, as far as there is room. Returns the rows used.
fn draw_stalled_tasks(cx: &Context, area: Rect, buf: &mut CellBuffer) -> u16 {
    let (shared, theme) = (cx.shared, &cx.theme);
    let is_narrow = area.width < STALL_FIGURES_WIDTH + 1 + MIN_STALL_NAME_WIDTH;
    let figures_width = if is_narrow { NARROW_FIGURES_WIDTH } else { STALL_FIGURES_WIDTH };
    let (mut y, width) = (area.y, area.width.saturating_sub(figures_width + 1).min(STALL_NAME_WIDTH));
    let mut line = |name: &str, figures: &str, style| {
        if y < area.bottom() {
            draw_text(buf, area.x, y, name, if figures.is_empty() { area.width } else { width }, style);
            draw_text(buf, area.x + width + 1, y, figures, area.width.saturating_sub(width + 1), style);
            y += 1;
        }
    };
    let figures = |[a, b, c, d]: [&str; 4]| match is_narrow {
        true => format!("{a:>5} {c:>7}"),
        false => format!("{a:>5} {b:>4} {c:>7} {d:>4}"),
    };
    line("Stalled, ms/s", &figures(["dirty", "max", "reclaim", "max"]), theme.header);
    let snap = shared.snapshot();
    let Some(stalls) = snap.memory_stalls.ok() else {
        let why = snap.memory_stalls.unavailable_reason(shared.system.now().boot_ns).unwrap_or_default();
        line(&format!(" - {why}"), "", theme.dim);
        return y - area.y;
    };
    let cell = |kind: usize, task: &ProcessStalls, n: f64| match (stalls.totals[kind], task.rates[kind].count) {
        (None, _) => "-".into(),
        (_, 0) => String::new(),
        _ => format_millis(n),
    };
    for task in &stalls.processes {
        let [t, r] = task.rates;
        let device = task.device().and_then(|id| shared.system.topology.ok()?.get(id)).map(|d| d.display_name());
        let on = device.or((!task.bdi.is_empty()).then(|| task.bdi.as_str().into()));
        let on = on.filter(|_| t.count > 0 && !is_narrow).map_or(String::new(), |on| format!(" on {on}"));
        let cells = [
            cell(THROTTLE, task, t.ms_per_s),
            cell(THROTTLE, task, t.max_ms),
            cell(RECLAIM, task, r.ms_per_s),
            cell(RECLAIM, task, r.max_ms),
        ];
        let figures = figures(cells.each_ref().map(String::as_str));
        let name = if width < STALL_NAME_WIDTH { task.comm.clone() } else { task.label() };
        line(&name, &format!("{figures}{on}"), theme.warn);
    }
    if stalls.processes.is_empty() {
        line(" none", "", theme.dim);
    }
    for why in &stalls.unavailable {
        line(&format!(" - {why}"), "", theme.dim);
    }
    y - area.y
}

fn draw_swap_graphs(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let (shared, theme) = (cx.shared, &cx.theme);
    if area.height < 3 {
        return;
    }
    let half = area.width / 2;
    type Get = fn(&crate::model::memory::SwapRate) -> Option<f64>;
    let graphs: [(&str, Get, Style); 2] =
        [("si", |s| s.in_bytes_per_s, theme.graph), ("so", |s| s.out_bytes_per_s, theme.graph_alt)];
    for ((name, get, style), x) in graphs.into_iter().zip([area.x, area.x + half]) {
        // The rates of the first sample are means since boot.
        let value = move |s: &Snapshot| s.swap.ok().filter(|_| !s.is_since_boot).and_then(get);
        let part = Rect { x, width: half.saturating_sub(1), ..area };
        let max = peak(shared, part.width, value);
        let [now, most] = [value(shared.snapshot()), Some(max)].map(format_optional_bytes);
        let label = format!("{name} now {now}/s peak {most}/s");
        draw_history(cx, part, buf, (&label, round_up_bytes(max), style), value);
    }
}

/// Draws the stalled processes, the largest in swap, and those with the most major faults: a third of the area each.
fn draw_tasks(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let (shared, theme) = (cx.shared, &cx.theme);
    if area.height < 3 {
        return;
    }
    let used = draw_stalled_tasks(cx, Rect { height: (area.height / 3).max(2), ..area }, buf);
    let area = area_below(area, used);
    // The process table is not stored for past ticks.
    if area.height < 3 || shared.frozen_seq.is_some() {
        return;
    }
    let rows = usize::from(area.height.saturating_sub(2) / 2).max(1);
    let mut lines: Vec<(String, Style)> = Vec::new();
    let mut list = |head: &str, sort_by: Col, cell: &dyn Fn(&ProcessRow<'_>) -> Option<String>| {
        lines.push((head.into(), theme.header));
        let query = ProcessQuery { sort_by, filter: ProcessFilter::default(), height: rows, ..Default::default() };
        let before = lines.len();
        for at in shared.system.processes.window(&query).rows {
            let row = shared.system.processes.row(at);
            lines.extend(cell(&row).map(|text| (format!("{text:>14} {:>7} {}", row.pid(), row.comm()), theme.text)));
        }
        if lines.len() == before {
            lines.push((" none".into(), theme.dim));
        }
    };
    let used = shared.snapshot().swap.ok().and_then(|s| s.used_bytes).unwrap_or(0);
    list("Largest in swap", Col::Swap, &|r| {
        let n = r.raw.swap_bytes.filter(|n| *n > 0)?;
        let share = if used > 0 { format!(" {:>3.0}%", n as f64 * 100.0 / used as f64) } else { String::new() };
        Some(format!("{}{share}", format_bytes(n)))
    });
    list("Faulting (major faults/s)", Col::MajorFaults, &|r| {
        r.rates().major_faults_per_s.filter(|n| *n > 0.0).map(|n| format!("{n:.1}"))
    });
    draw_column(buf, area, lines);
}
