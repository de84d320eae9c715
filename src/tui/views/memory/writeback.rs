//! The Writeback pane: dirty pages and their thresholds, swap traffic.

pub(super) use crate::export::memory::format_optional_bytes;
use crate::model::memory::WritebackRate;
use crate::model::memory_stalls::{RECLAIM, THROTTLE};
use crate::model::snapshot::Snapshot;
use crate::tui::view::Shared;
use crate::tui::widgets::{
    CellBuffer, Rect, Theme, draw_bar, draw_column_labels, draw_column_markers, draw_columns, draw_frame, draw_text,
};
use crate::units::format_bytes;

pub(super) fn render(shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
    let snap = shared.snapshot();
    let (throttled, note) = snap.writeback.ok().map(|w| throttling_note(snap, w)).unwrap_or_default();
    let inner = draw_frame(buf, area, "Writeback", &note, focused, theme);
    let mut y = inner.y;
    let mut line = |buf: &mut CellBuffer, text: &str, warn: bool| {
        if y < inner.bottom() {
            draw_text(buf, inner.x, y, text, inner.width, if warn { theme.warn } else { theme.text });
        }
        y += 1;
    };
    let Some(w) = snap.writeback.ok() else {
        line(
            buf,
            &format!("- {}", snap.writeback.unavailable_reason(shared.system.now().boot_ns).unwrap_or_default()),
            true,
        );
        return;
    };
    let level = |n: Option<u64>| n.map_or("-".into(), format_bytes);
    line(
        buf,
        &format!(
            "dirty {:>5}  writeback {:>5}  dirtied {}/s  written {}/s",
            level(w.dirty_bytes),
            level(w.writeback_bytes),
            format_optional_bytes(w.dirtied_bytes_per_s),
            format_optional_bytes(w.written_bytes_per_s),
        ),
        throttled,
    );
    let swap = snap.swap.ok();
    let swap_line = format!(
        "swap  used {} of {}  si {}/s  so {}/s",
        level(swap.and_then(|s| s.used_bytes)),
        level(swap.and_then(|s| s.total_bytes)),
        format_optional_bytes(swap.and_then(|s| s.in_bytes_per_s)),
        format_optional_bytes(swap.and_then(|s| s.out_bytes_per_s)),
    );
    let swapping = swap.is_some_and(|s| s.in_bytes_per_s.is_some_and(|n| n > 0.0));
    if inner.height <= 2 {
        line(buf, &swap_line, swapping);
        return;
    }
    draw_thresholds(shared, theme, Rect { y, height: 2.min(inner.bottom().saturating_sub(y)), ..inner }, buf);
    y += 2;
    if y < inner.bottom() {
        draw_text(buf, inner.x, y, &swap_line, inner.width, if swapping { theme.warn } else { theme.text });
    }
    y += 1;
    let rest = Rect { y, height: inner.bottom().saturating_sub(y), ..inner };
    draw_unwritten_graph(shared, theme, rest, buf);
}

/// Whether writers are throttled, and the note that says so. Uses the traced pauses where available, else the thresholds.
fn throttling_note(snap: &Snapshot, w: &WritebackRate) -> (bool, String) {
    let above = w.dirty_bytes.zip(w.writeback_bytes).zip(w.freerun_bytes).is_some_and(|((d, b), f)| d + b > f);
    let stalls = snap.memory_stalls.ok().filter(|s| s.totals[THROTTLE].is_some());
    let throttled = stalls.map_or(above, |s| s.has_stalls(THROTTLE));
    let note = match stalls.and_then(|s| s.processes_by_kind(THROTTLE).first().map(|t| t.comm.clone())) {
        Some(who) => format!("THROTTLED {who}"),
        None => "WRITERS THROTTLED".into(),
    };
    (throttled, if throttled { note } else { String::new() })
}

/// Draws the bar of dirty + writeback against the thresholds, and its legend.
pub(super) fn draw_thresholds(shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    let Some(w) = shared.snapshot().writeback.ok() else { return };
    let (Some(max), Some(dirty)) = (w.dirty_threshold_bytes, w.dirty_bytes) else { return };
    let level = |n: Option<u64>| n.map_or("-".into(), format_bytes);
    if area.height >= 2 {
        let used = dirty + w.writeback_bytes.unwrap_or(0);
        let mark = |n: Option<u64>| n.unwrap_or(u64::MAX) as f64;
        let marks = [(mark(w.background_threshold_bytes), "b"), (mark(w.freerun_bytes), "s"), (max as f64, "┃")];
        draw_bar(buf, Rect { height: 1, ..area }, used as f64, max as f64 * 1.02, &marks, theme.graph, theme.header);
    }
    if area.height > 0 {
        let text = format!(
            "b background {}  s slowed {}  ┃ limit {}",
            level(w.background_threshold_bytes),
            level(w.freerun_bytes),
            format_bytes(max)
        );
        draw_text(buf, area.x, area.bottom() - 1, &text, area.width, theme.dim);
    }
}

/// Draws dirty + writeback over time, scaled to the peak.
pub(super) fn draw_unwritten_graph(shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    if area.height < 2 {
        return;
    }
    let value = |f: &crate::model::history::HistoryFrame| {
        f.snapshot.writeback.ok().and_then(|w| w.unwritten_bytes()).map(|n| n as f64)
    };
    let max = shared.history_to_shown().rev().take(usize::from(area.width)).filter_map(value).fold(0.0, f64::max);
    let changed = shared.change_marks(usize::from(area.width));
    let legend = if changed.is_empty() { "" } else { "┊ changed  " };
    let stalls = stall_labels(shared, usize::from(area.width));
    let signs_of = [("t", "throttled"), ("r", "reclaim"), ("x", "throttled + reclaim")];
    let seen = |sign: &str| stalls.iter().any(|s| s.1 == sign);
    let held: String = signs_of.iter().filter(|s| seen(s.0)).map(|(sign, what)| format!("  {sign} {what}")).collect();
    let label = format!("{legend}dirty + writeback, peak {}{held}", format_optional_bytes(Some(max)));
    draw_text(buf, area.x, area.y, &label, area.width, theme.dim);
    let graph = Rect { y: area.y + 1, height: area.height - 1, ..area };
    draw_columns(buf, graph, shared.history_to_shown().map(value), max.max(1.0), theme.graph);
    draw_column_markers(buf, graph, &changed, theme.changed);
    if graph.height > 1 {
        draw_column_labels(buf, graph, &stalls, theme.warn);
    }
}

/// Columns of a graph of this width, counted from the right edge, in which a process was stalled by memory, with their
/// labels: `t` throttled, `r` reclaim, `x` both.
pub(super) fn stall_labels(shared: &Shared, width: usize) -> Vec<(usize, &'static str)> {
    let ticks = shared.history_to_shown().rev().take(width).enumerate();
    let sign = |(at, frame): (usize, &crate::model::history::HistoryFrame)| {
        let stalls = frame.snapshot.memory_stalls.ok()?;
        let sign = match (stalls.has_stalls(THROTTLE), stalls.has_stalls(RECLAIM)) {
            (true, true) => "x",
            (true, false) => "t",
            (false, true) => "r",
            (false, false) => return None,
        };
        Some((at, sign))
    };
    ticks.filter_map(sign).collect()
}
