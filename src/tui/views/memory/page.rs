//! The page: figures, thresholds, graphs, and the tasks stalled by memory, writing, in swap, or faulting.

use super::graphs::{draw_pressure_graphs, draw_swap_graphs, has_swap};
use super::tasks::{draw_largest, draw_stalled_and_writing, draw_tasks};
use super::writeback::{draw_thresholds, draw_unwritten_graph};
use crate::export::memory::{MemoryFact, memory_facts};
use crate::tui::view::{Context, PaneId};
use crate::tui::widgets::{CellBuffer, Rect, Theme, area_below, draw_text, draw_text_right, split_rows};

/// Rows at the left, below the figures, from which on the lists of processes are there.
const MIN_LIST_ROWS: u16 = 7;
/// Rows of a graph at the least, with a blank one below.
const MIN_GRAPH_ROWS: u16 = 6;

type DrawGraphs = fn(&Context, Rect, &mut CellBuffer);

pub(super) fn render(cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let shared = cx.shared;
    let inner = cx.draw_frame(buf, PaneId::Memory, area, "Memory", &shared.interval_text());
    let wide = inner.width >= 100;
    let left = if wide { inner.width * 2 / 5 } else { inner.width.min(46) };
    let facts_area = Rect { width: left, ..inner };
    let used = draw_facts(&memory_facts(shared.snapshot(), shared.system.now().boot_ns), &cx.theme, facts_area, buf);
    let right = Rect { x: inner.x + left + 1, width: inner.width.saturating_sub(left + 1), ..inner };
    if wide {
        // The process table is not stored for past ticks.
        let below = area_below(facts_area, used + 1);
        let has_lists = below.height >= MIN_LIST_ROWS && shared.frozen_seq.is_none();
        if has_lists {
            draw_largest(cx, below, buf);
        }
        draw_graphs_and_tasks(cx, right, buf, has_lists);
    } else if right.width >= 24 {
        let past = (right.height / 3).min(8);
        let above = Rect { height: right.height - past, ..right };
        draw_tasks(cx, above, buf);
        draw_unwritten_graph(cx, Rect { y: above.bottom(), height: past, ..right }, buf);
    } else if used < inner.height {
        draw_tasks(cx, area_below(inner, used), buf);
    }
}

/// Draws the thresholds, the graphs, and the tasks that are stalled or write; with `has_lists` the other lists of tasks are
/// elsewhere.
fn draw_graphs_and_tasks(cx: &Context, area: Rect, buf: &mut CellBuffer, has_lists: bool) {
    draw_thresholds(cx, Rect { height: area.height.min(2), ..area }, buf);
    let rest = area_below(area, 2);
    let [graphs, tasks] = split_rows(rest, rest.height - rest.height / if has_lists { 4 } else { 3 });
    let mut bands: Vec<DrawGraphs> = vec![draw_unwritten_graph];
    if has_swap(cx.shared.snapshot()) {
        bands.push(draw_swap_graphs);
    }
    bands.push(draw_pressure_graphs);
    bands.truncate(usize::from(graphs.height / MIN_GRAPH_ROWS).max(1));
    let height = graphs.height / bands.len() as u16;
    for (draw, i) in bands.into_iter().zip(0..) {
        draw(cx, Rect { y: graphs.y + i * height, height: height.saturating_sub(1), ..graphs }, buf);
    }
    if has_lists { draw_stalled_and_writing(cx, tasks, buf) } else { draw_tasks(cx, tasks, buf) }
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
