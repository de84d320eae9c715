//! The tasks stalled by memory, and lists of those that write, are large, in swap, or faulting.

use crate::export::memory::format_millis;
use crate::export::processes::hidden_tasks_note;
use crate::model::memory_stalls::{ProcessStalls, RECLAIM, THROTTLE};
use crate::model::process::{ProcessColumn as Col, ProcessFilter, ProcessQuery, ProcessRow};
use crate::tui::view::{Context, Shared};
use crate::tui::widgets::{
    CellBuffer, Rect, Style, Theme, area_below, draw_column, draw_text, split_columns, split_rows,
};
use crate::units::format_bytes;

/// From this width on the stalled tasks and those that write are side by side.
const SIDE_BY_SIDE_WIDTH: u16 = 90;
/// Share of a list of tasks at the right, of five.
const WRITING_FIFTHS: u16 = 2;

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

/// A list of tasks: its heading, the column that sorts it, and a cell for each task that belongs there.
struct TaskList<'a> {
    heading: &'static str,
    sort_by: Col,
    cell: &'a dyn Fn(&ProcessRow<'_>) -> Option<String>,
    /// Which tasks could not be judged, and why.
    not_known: Option<String>,
}

impl TaskList<'_> {
    /// So many tasks at most: the cell, and the task's number and name.
    fn tasks(&self, shared: &Shared, rows: usize) -> Vec<(String, String)> {
        let (sort_by, filter) = (self.sort_by, ProcessFilter::default());
        let query = ProcessQuery { sort_by, filter, height: rows, ..Default::default() };
        let tasks = shared.system.processes.window(&query).rows.into_iter().filter_map(|at| {
            let row = shared.system.processes.row(at);
            Some(((self.cell)(&row)?, format!("{:>7} {}", row.pid(), row.comm())))
        });
        tasks.collect()
    }

    /// The heading and the tasks, their cells as wide as that.
    fn lines(&self, tasks: &[(String, String)], cell_width: usize, theme: &Theme) -> Vec<(String, Style)> {
        let mut out = vec![(self.heading.to_owned(), theme.header)];
        out.extend(tasks.iter().map(|(cell, task)| (format!(" {cell:>cell_width$} {task}"), theme.text)));
        match &self.not_known {
            Some(why) => out.push((format!(" - {why}"), theme.dim)),
            None if out.len() == 1 => out.push((" none".into(), theme.dim)),
            None => {}
        }
        out
    }
}

/// Draws lists one below the other, each with an equal share of the rows.
fn draw_lists(cx: &Context, area: Rect, buf: &mut CellBuffer, lists: &[TaskList<'_>]) {
    let headings = lists.len().min(usize::from(area.height)) as u16;
    let rows = usize::from((area.height - headings) / headings.max(1)).max(1);
    let tasks: Vec<_> = lists.iter().map(|list| list.tasks(cx.shared, rows)).collect();
    let cell_width = tasks.iter().flatten().map(|(cell, _)| cell.len()).max().unwrap_or(0);
    let lines = lists.iter().zip(&tasks).flat_map(|(list, tasks)| list.lines(tasks, cell_width, &cx.theme));
    draw_column(buf, area, lines);
}

/// Bytes in swap, with their share of what is in swap.
fn swap_cell(shared: &Shared, row: &ProcessRow<'_>) -> Option<String> {
    let used = shared.snapshot().swap.ok().and_then(|s| s.used_bytes).unwrap_or(0);
    let n = row.raw.swap_bytes.filter(|n| *n > 0)?;
    let share = if used > 0 { format!(" {:>3.0}%", n as f64 * 100.0 / used as f64) } else { String::new() };
    Some(format!("{}{share}", format_bytes(n)))
}

fn faults_cell(row: &ProcessRow<'_>) -> Option<String> {
    row.rates().major_faults_per_s.filter(|n| *n > 0.0).map(|n| format!("{n:.1}"))
}

const FAULTING: TaskList<'_> =
    TaskList { heading: "Faulting (major faults/s)", sort_by: Col::MajorFaults, cell: &faults_cell, not_known: None };

/// Draws the stalled processes, the largest in swap, and those with the most major faults: a third of the area each.
pub(super) fn draw_tasks(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    if area.height < 3 {
        return;
    }
    let used = draw_stalled_tasks(cx, Rect { height: (area.height / 3).max(2), ..area }, buf);
    let area = area_below(area, used);
    // The process table is not stored for past ticks.
    if area.height < 3 || cx.shared.frozen_seq.is_some() {
        return;
    }
    let swapped = |row: &ProcessRow<'_>| swap_cell(cx.shared, row);
    let lists =
        [TaskList { heading: "Largest in swap", sort_by: Col::Swap, cell: &swapped, not_known: None }, FAULTING];
    draw_lists(cx, area, buf, &lists);
}

/// Draws the largest processes in memory and in swap, and those with the most major faults.
pub(super) fn draw_largest(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let swapped = |row: &ProcessRow<'_>| swap_cell(cx.shared, row);
    let resident = |row: &ProcessRow<'_>| Some(format_bytes(row.raw.rss_bytes)).filter(|_| row.raw.rss_bytes > 0);
    let lists = [
        TaskList { heading: "Largest in memory", sort_by: Col::Rss, cell: &resident, not_known: None },
        TaskList { heading: "Largest in swap", sort_by: Col::Swap, cell: &swapped, not_known: None },
        FAULTING,
    ];
    let has_swap = super::graphs::has_swap(cx.shared.snapshot());
    let [memory, swap, faults] = lists;
    let lists = if has_swap { vec![memory, swap, faults] } else { vec![memory, faults] };
    draw_lists(cx, area, buf, &lists);
}

/// Draws the stalled processes and those that write most, side by side where there is room.
pub(super) fn draw_stalled_and_writing(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    if area.height < 3 {
        return;
    }
    let [stalled, writing] = match area.width >= SIDE_BY_SIDE_WIDTH {
        true => split_columns(area, area.width - area.width * WRITING_FIFTHS / 5),
        false => split_rows(area, area.height / 2),
    };
    draw_stalled_tasks(cx, stalled, buf);
    let written = |row: &ProcessRow<'_>| {
        let rate = row.rates().write_bytes_per_s.filter(|n| *n >= 1.0)?;
        Some(format!("{}/s", format_bytes(rate as u64)))
    };
    let not_known = hidden_tasks_note(&cx.shared.system.processes);
    let list = TaskList { heading: "Writing (dirtied or direct)", sort_by: Col::Write, cell: &written, not_known };
    draw_lists(cx, writing, buf, &[list]);
}
