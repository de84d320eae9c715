//! The Writeback pane: dirty pages and their thresholds, swap traffic.

pub(super) use crate::export::memory::format_optional_bytes;
use crate::model::memory::WritebackRate;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::model::snapshot::Snapshot;
use crate::tui::view::{Context, PaneId, Shared};
use crate::tui::widgets::{
    Axes, CellBuffer, Levels, Rect, Style, area_below, draw_axes, draw_bar, draw_column, draw_columns,
    draw_sample_labels, draw_sample_markers, draw_text, draw_text_right, fill_area, round_up_bytes,
};
use crate::units::format_bytes;

pub(super) fn render(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let snap = cx.shared.snapshot();
    let (throttled, note) = snap.writeback.ok().map(|w| throttling_note(snap, w)).unwrap_or_default();
    let inner = cx.draw_frame(buf, PaneId::Writeback, area, "Writeback", &note);
    let line = |buf: &mut CellBuffer, at: u16, text: &str, is_alert: bool| {
        let style = if is_alert { cx.theme.warn } else { cx.theme.text };
        draw_column(buf, area_below(inner, at), [(text, style)]);
    };
    let Some(w) = snap.writeback.ok() else {
        let why = snap.writeback.unavailable_reason(cx.shared.system.now().boot_ns).unwrap_or_default();
        return line(buf, 0, &format!("- {why}"), true);
    };
    let [dirty, writeback] = [w.dirty_bytes, w.writeback_bytes].map(level);
    let [dirtied, written] = [w.dirtied_bytes_per_s, w.written_bytes_per_s].map(format_optional_bytes);
    let mut levels = format!("dirty {dirty:>5}  writeback {writeback:>5}  dirtied {dirtied}/s  written {written}/s");
    if levels.len() > usize::from(inner.width) {
        levels = format!("dirty {dirty} dirtied {dirtied}/s written {written}/s");
    }
    line(buf, 0, &levels, throttled);
    let swap = snap.swap.ok();
    let [used, total] = [swap.and_then(|s| s.used_bytes), swap.and_then(|s| s.total_bytes)].map(level);
    let rates = [swap.and_then(|s| s.in_bytes_per_s), swap.and_then(|s| s.out_bytes_per_s)];
    let [si, so] = rates.map(format_optional_bytes);
    let swap_line = format!("swap {used} of {total}  si {si}/s  so {so}/s");
    let is_swapping = rates[0].is_some_and(|n| n > 0.0);
    let below = area_below(inner, 1);
    match inner.height {
        0..=2 => {
            line(buf, 1, &swap_line, is_swapping);
            draw_beside(cx, w, [levels.len(), swap_line.len()], Rect { height: inner.height.min(2), ..inner }, buf);
        }
        3..=4 => {
            draw_thresholds(cx, Rect { height: below.height.min(2), ..below }, buf);
            line(buf, 3, &swap_line, is_swapping);
        }
        height => {
            draw_unwritten_history(cx, w, Rect { height: height - 2, ..below }, buf);
            line(buf, height - 1, &swap_line, is_swapping);
        }
    }
}

/// Draws dirty + writeback over time, scaled to the limit, at the right of two lines of text of these lengths, and the
/// limits below.
fn draw_beside(cx: &Context, w: &WritebackRate, texts: [usize; 2], area: Rect, buf: &mut CellBuffer) {
    let rest = |text: usize| {
        let used = (text + 2).min(usize::from(area.width)) as u16;
        Rect { x: area.x + used, width: area.width - used, height: 1, ..area }
    };
    let graph = rest(texts[0]);
    let value = |s: &Snapshot| s.writeback.ok().and_then(|w| w.unwritten_bytes()).map(|n| n as f64);
    let limit = w.dirty_threshold_bytes.map_or(1.0, |n| n as f64).max(1.0);
    let levels = Levels { warn: w.freerun_bytes.map_or(f64::INFINITY, |n| n as f64), crit: limit };
    let history = cx.shared.history_to_shown().map(|f| value(&f.snapshot));
    draw_columns(buf, graph, cx.shared.graph_values(history), limit, |n| levels.style(n, &cx.theme));
    let [slowed, limit] = [w.freerun_bytes, w.dirty_threshold_bytes].map(level);
    let below = Rect { y: area.y + 1, ..rest(texts[1]) };
    let text = format!("slowed above {slowed}, limit {limit}");
    if area.height > 1 && usize::from(below.width) >= text.len() {
        draw_text_right(buf, below.x, below.y, &text, below.width, cx.theme.dim);
    }
}

/// Draws dirty + writeback over time, scaled to the limit, and the thresholds as lines across it.
fn draw_unwritten_history(cx: &Context, w: &WritebackRate, area: Rect, buf: &mut CellBuffer) {
    let (shared, theme) = (cx.shared, &cx.theme);
    let value = |s: &Snapshot| s.writeback.ok().and_then(|w| w.unwritten_bytes()).map(|n| n as f64);
    let limit = w.dirty_threshold_bytes.unwrap_or(0) as f64;
    // More than twice the limit was there before the limit was lowered; the lines would be one.
    let peak = peak(shared, area.width, value);
    let max = if limit > 0.0 { peak.clamp(limit * 1.02, limit * 2.0) } else { peak.max(1.0) };
    let lines = [
        ("limit", w.dirty_threshold_bytes),
        ("slowed above", w.freerun_bytes),
        ("background", w.background_threshold_bytes),
    ];
    let mut labels = vec![String::new(); area.height.into()];
    for (name, bytes) in lines.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))) {
        let up = (bytes as f64 / max * f64::from(area.height)) as usize;
        if let Some(label) = labels.iter_mut().nth_back(up) {
            let gap = if label.is_empty() { "" } else { ", " };
            *label += &format!("{gap}{name} {}", format_bytes(bytes));
        }
    }
    let labels = || (area.y..).zip(&labels).filter(|(_, label)| !label.is_empty());
    for (y, _) in labels() {
        fill_area(buf, Rect { y, height: 1, ..area }, "┄", theme.dim);
    }
    let [slowed, limit] = [w.freerun_bytes, w.dirty_threshold_bytes].map(|n| n.map_or(f64::INFINITY, |n| n as f64));
    let levels = Levels { warn: slowed, crit: limit };
    let values = shared.graph_values(shared.history_to_shown().map(|f| value(&f.snapshot)));
    draw_columns(buf, area, values, max, |n| levels.style(n, theme));
    draw_sample_markers(buf, area, &shared.graph_marks(shared.graph_samples(area.width)), theme.changed);
    for (y, label) in labels() {
        draw_text(buf, area.x, y, &format!("{label} "), area.width, theme.text);
    }
}

pub(crate) fn level(bytes: Option<u64>) -> String {
    bytes.map_or("-".into(), format_bytes)
}

/// Whether writers are throttled, and the note that says so. Uses the traced pauses where available, else the thresholds.
fn throttling_note(snap: &Snapshot, w: &WritebackRate) -> (bool, String) {
    let above = w.unwritten_bytes().zip(w.freerun_bytes).is_some_and(|(n, limit)| n > limit);
    let stalls = snap.memory_stalls.ok().filter(|s| s.totals[THROTTLE].is_some());
    let throttled = stalls.map_or(above, |s| s.has_stalls(THROTTLE));
    let note = match stalls.and_then(|s| s.processes_by_kind(THROTTLE).first().map(|t| t.comm.clone())) {
        Some(who) => format!("THROTTLED {who}"),
        None => "WRITERS THROTTLED".into(),
    };
    (throttled, if throttled { note } else { String::new() })
}

/// Draws the bar of dirty + writeback against the thresholds, and its legend.
pub(super) fn draw_thresholds(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let theme = &cx.theme;
    let Some(w) = cx.shared.snapshot().writeback.ok() else { return };
    let (Some(max), Some(dirty)) = (w.dirty_threshold_bytes, w.dirty_bytes) else { return };
    if area.height >= 2 {
        let used = dirty.saturating_add(w.writeback_bytes.unwrap_or(0));
        let mark = |n: Option<u64>| n.unwrap_or(u64::MAX) as f64;
        let marks = [(mark(w.background_threshold_bytes), "b"), (mark(w.freerun_bytes), "s"), (max as f64, "┃")];
        draw_bar(buf, Rect { height: 1, ..area }, used as f64, max as f64 * 1.02, &marks, theme.graph, theme.header);
    }
    if area.height > 0 {
        let [background, slowed] = [w.background_threshold_bytes, w.freerun_bytes].map(level);
        let text = format!("b background {background}  s slowed {slowed}  ┃ limit {}", format_bytes(max));
        draw_text(buf, area.x, area.bottom() - 1, &text, area.width, theme.dim);
    }
}

/// Draws dirty + writeback over time, scaled to the peak.
pub(in crate::tui::views) fn draw_unwritten_graph(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let shared = cx.shared;
    if area.height < 2 {
        return;
    }
    let value = |s: &Snapshot| s.writeback.ok().and_then(|w| w.unwritten_bytes()).map(|n| n as f64);
    let max = peak(shared, area.width, value);
    let changed = shared.change_marks(shared.graph_samples(area.width));
    let legend = if changed.is_empty() { "" } else { "┊ changed  " };
    let stalls = stall_labels(shared, shared.graph_samples(area.width));
    let signs_of = [("t", "throttled"), ("r", "reclaim"), ("x", "throttled + reclaim")];
    let seen = |sign: &str| stalls.iter().any(|s| s.1 == sign);
    let held: String = signs_of.iter().filter(|s| seen(s.0)).map(|(sign, what)| format!("  {sign} {what}")).collect();
    let label = format!("{legend}dirty + writeback, peak {}{held}", format_optional_bytes(Some(max)));
    draw_history(cx, area, buf, &HistoryGraph::of_bytes(&label, round_up_bytes(max), cx.theme.graph), value);
}

/// The largest value among the ticks that a graph of this width shows.
pub(super) fn peak(shared: &Shared, width: u16, value: impl Fn(&Snapshot) -> Option<f64>) -> f64 {
    shared
        .history_to_shown()
        .rev()
        .take(shared.graph_samples(width))
        .filter_map(|f| value(&f.snapshot))
        .fold(0.0, f64::max)
}

/// What a graph of the recent past says and how it looks.
pub(super) struct HistoryGraph<'a> {
    pub label: &'a str,
    /// Top of the scale.
    pub top: f64,
    pub style: Style,
    /// A value at the axis.
    pub value_label: fn(f64) -> String,
}

impl<'a> HistoryGraph<'a> {
    pub(super) fn of_bytes(label: &'a str, top: f64, style: Style) -> Self {
        Self { label, top, style, value_label: |n| format_optional_bytes(Some(n)) }
    }
}

/// Draws a graph below its label, with marks where knobs changed and processes were stalled.
pub(super) fn draw_history(
    cx: &Context,
    area: Rect,
    buf: &mut CellBuffer,
    of: &HistoryGraph<'_>,
    value: impl Fn(&Snapshot) -> Option<f64>,
) {
    let (shared, theme) = (cx.shared, &cx.theme);
    draw_text(buf, area.x, area.y, of.label, area.width, theme.dim);
    let axes = Axes { top: of.top, value: &of.value_label, time: &|back| shared.sample_age(back) };
    let graph = draw_axes(buf, area_below(area, 1), &axes, theme);
    let width = shared.graph_samples(graph.width);
    let values = shared.graph_values(shared.history_to_shown().map(|f| value(&f.snapshot)));
    draw_columns(buf, graph, values, of.top, |_| of.style);
    draw_sample_markers(buf, graph, &shared.graph_marks(width), theme.changed);
    if graph.height > 1 {
        draw_sample_labels(buf, graph, &stall_labels(shared, width), theme.warn);
    }
}

/// Places of a graph of this width, counted from the right edge, in which a process was stalled by memory, with their
/// labels: `t` throttled, `r` reclaim, `x` both.
pub(super) fn stall_labels(shared: &Shared, width: usize) -> Vec<(usize, &'static str)> {
    let open = shared.open_graph_places();
    let ticks = shared.history_to_shown().rev().take(width).enumerate();
    let sign = |(at, frame): (usize, &crate::model::history::HistoryFrame)| {
        let stalls = frame.snapshot.memory_stalls.ok()?;
        let sign = match (stalls.has_stalls(THROTTLE), stalls.has_stalls(RECLAIM)) {
            (true, true) => "x",
            (true, false) => "t",
            (false, true) => "r",
            (false, false) => return None,
        };
        Some((at + open, sign))
    };
    ticks.filter_map(sign).collect()
}
