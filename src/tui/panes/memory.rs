//! Memory: dirty pages and writeback, swap and who is in it, pressure.

use super::writeback::{graph, limits, format_optional_bytes, stall_signs};
use super::{Pane, PaneId, when};
use crate::export::memory::{MemoryFact, memory_facts, format_millis};
use crate::export::{self, table::Table};
use crate::model::process::{ProcessColumn as Col, ProcessFilter, ProcessRow, ProcessQuery};
use crate::model::memory_stalls::{ProcessStalls, RECLAIM, THROTTLE};
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::frame;
use crate::tui::widgets::graph::{columns, marks, nice_max, signs};
use crate::tui::widgets::put::{put, put_right};
use crate::tui::widgets::theme::Theme;
use crate::units::format_bytes;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane =
    Pane { id: PaneId::Memory, contexts: &[], render, stamp: |_| None, sheet, rows: |_| 0 };

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let inner = frame(buf, area, "Memory", &when(app), focused, theme);
    let wide = inner.width >= 100;
    let left = if wide { inner.width * 2 / 5 } else { inner.width.min(46) };
    let facts_area = Rect { width: left, ..inner };
    let used = draw_facts(&memory_facts(app.snap(), app.world.now().boot_ns), theme, facts_area, buf);
    let right = Rect { x: inner.x + left + 1, width: inner.width.saturating_sub(left + 1), ..inner };
    if wide {
        let third = right.height / 3;
        let part = |i: u16, n: u16| Rect { y: right.y + i, height: n, ..right };
        limits(app, theme, part(0, 2.min(right.height)), buf);
        graph(app, theme, part(2, third.saturating_sub(1)), buf);
        swap_graphs(app, theme, part(third + 2, third.saturating_sub(1)), buf);
        tasks(app, theme, part(2 * third + 2, right.height.saturating_sub(2 * third + 2)), buf);
    } else if right.width >= 24 {
        let past = (right.height / 3).min(8);
        let above = Rect { height: right.height - past, ..right };
        tasks(app, theme, above, buf);
        graph(app, theme, Rect { y: above.bottom(), height: past, ..right }, buf);
    } else if used < inner.height {
        tasks(app, theme, Rect { y: inner.y + used, height: inner.height - used, ..inner }, buf);
    }
}

fn draw_facts(groups: &[(&'static str, Vec<MemoryFact>)], theme: &Theme, area: Rect, buf: &mut Canvas) -> u16 {
    let mut y = area.y;
    for (title, list) in groups {
        if y >= area.bottom() {
            break;
        }
        put(buf, area.x, y, title, area.width, theme.head);
        y += 1;
        for (name, value, warn) in list {
            if y >= area.bottom() {
                break;
            }
            let style = if *warn { theme.warn } else { theme.text };
            if name == "-" {
                put(buf, area.x + 1, y, &format!("- {value}"), area.width.saturating_sub(1), style);
            } else {
                let used = put(buf, area.x + 1, y, name, area.width.saturating_sub(1), theme.text);
                let from = area.x + 2 + used;
                put_right(buf, from, y, value, (area.x + area.width).saturating_sub(from), style);
            }
            y += 1;
        }
    }
    y - area.y
}

/// Cells of the name of who is held up, where there is room, and of the figures beside it.
const HELD_NAME: u16 = 22;
const HELD_FIGURES: u16 = 19;

/// Who is held up by memory, the most first; as many lines as there is room for. Returns the lines used.
fn held_up(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas) -> u16 {
    let (mut y, width) = (area.y, area.width.saturating_sub(HELD_FIGURES + 1).min(HELD_NAME));
    let mut line = |name: &str, figures: &str, style| {
        if y < area.bottom() {
            put(buf, area.x, y, name, if figures.is_empty() { area.width } else { width }, style);
            put(buf, area.x + width + 1, y, figures, area.width.saturating_sub(width + 1), style);
            y += 1;
        }
    };
    let figures = |[a, b, c, d]: [&str; 4]| format!("{a:>4} {b:>4} {c:>4} {d:>4}");
    line("Held up, ms/s", &figures(["thr", "most", "recl", "most"]), theme.head);
    let snap = app.snap();
    let Some(stalls) = snap.memory_stalls.ok() else {
        let why = snap.memory_stalls.unavailable_reason(app.world.now().boot_ns).unwrap_or_default();
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
        let device = task.device().and_then(|id| app.world.topology.ok()?.get(id)).map(|d| d.display_name());
        let on = device.or((!task.bdi.is_empty()).then(|| task.bdi.as_str().into()));
        let on = on.filter(|_| t.count > 0).map_or(String::new(), |on| format!(" on {on}"));
        let cells = [
            cell(THROTTLE, task, t.ms_per_s),
            cell(THROTTLE, task, t.max_ms),
            cell(RECLAIM, task, r.ms_per_s),
            cell(RECLAIM, task, r.max_ms),
        ];
        let figures = figures(cells.each_ref().map(String::as_str));
        let name = if width < HELD_NAME { task.comm.clone() } else { task.label() };
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

fn swap_graphs(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas) {
    if area.height < 3 {
        return;
    }
    let half = area.width / 2;
    type Get = fn(&crate::model::memory::SwapRate) -> Option<f64>;
    let both: [(&str, Get); 2] = [("si", |s| s.in_bytes_per_s), ("so", |s| s.out_bytes_per_s)];
    for (i, (name, get)) in both.into_iter().enumerate() {
        let value = move |f: &crate::model::history::HistoryFrame<_>| f.snapshot.swap.ok().and_then(get);
        let part = Rect { x: area.x + half * i as u16, width: half.saturating_sub(1), ..area };
        let max = app.past().rev().take(usize::from(part.width)).filter_map(value).fold(0.0, f64::max);
        let now = app.snap().swap.ok().and_then(get);
        put(
            buf,
            part.x,
            part.y,
            &format!("{name} now {}/s most {}/s", format_optional_bytes(now), format_optional_bytes(Some(max))),
            part.width,
            theme.dim,
        );
        let graph = Rect { y: part.y + 1, height: part.height - 1, ..part };
        let style = if i == 0 { theme.graph } else { theme.graph2 };
        columns(buf, graph, app.past().map(value), nice_max(max), style);
        marks(buf, graph, &app.change_marks(usize::from(graph.width)), theme.changed);
        if graph.height > 1 {
            signs(buf, graph, &stall_signs(app, usize::from(graph.width)), theme.warn);
        }
    }
}

/// Who is held up, the largest swappers, who is faulting: a third of the room each.
fn tasks(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas) {
    if area.height < 3 {
        return;
    }
    let used = held_up(app, theme, Rect { height: (area.height / 3).max(2), ..area }, buf);
    let area = Rect { y: area.y + used, height: area.height - used, ..area };
    // The table has no past.
    if area.height < 3 || app.ui.frozen.is_some() {
        return;
    }
    let rows = usize::from(area.height.saturating_sub(2) / 2).max(1);
    let mut y = area.y;
    let mut list = |buf: &mut Canvas, head: &str, by: Col, cell: &dyn Fn(&ProcessRow<'_>) -> Option<String>| {
        if y >= area.bottom() {
            return;
        }
        put(buf, area.x, y, head, area.width, theme.head);
        y += 1;
        let query = ProcessQuery { sort_by: by, filter: ProcessFilter::default(), height: rows, ..Default::default() };
        let mut any = false;
        for at in app.world.processes.window(&query).rows {
            let row = app.world.processes.row(at);
            let Some(text) = cell(&row) else { continue };
            if y < area.bottom() {
                let name = format!("{text:>14} {:>7} {}", row.pid, row.comm);
                put(buf, area.x, y, &name, area.width, theme.text);
                y += 1;
                any = true;
            }
        }
        if !any && y < area.bottom() {
            put(buf, area.x + 1, y, "none", area.width, theme.dim);
            y += 1;
        }
    };
    let used = app.snap().swap.ok().and_then(|s| s.used_bytes).unwrap_or(0);
    list(buf, "Largest in swap", Col::Swap, &|r| {
        let n = r.swap_bytes.filter(|n| *n > 0)?;
        let share =
            if used > 0 { format!(" {:>3.0}%", n as f64 * 100.0 / used as f64) } else { String::new() };
        Some(format!("{}{share}", format_bytes(n)))
    });
    list(buf, "Faulting (major faults/s)", Col::MajorFaults, &|r| {
        r.major_faults_per_s.filter(|n| *n > 0.0).map(|n| format!("{n:.1}"))
    });
}

/// The facts as a table; Writeback's paper too.
pub fn sheet(app: &App) -> Table {
    let title = format!("Memory on {}, {}", app.world.host.name, app.stamp());
    export::memory::build_table(title, app.snap(), app.world.now().boot_ns)
}
