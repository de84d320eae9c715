//! Memory: dirty pages and writeback, swap and who is in it, pressure.

use super::writeback::{graph, limits, short};
use super::{Pane, PaneId, when};
use crate::export::sheet::Sheet;
use crate::model::process::{Column as Col, Filter, ProcRow, Query};
use crate::tui::state::App;
use crate::tui::widgets::dialog::frame;
use crate::tui::widgets::graph::{columns, nice_max};
use crate::tui::widgets::put::{put, put_right};
use crate::tui::widgets::theme::Theme;
use crate::units::bytes;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane { id: PaneId::Memory, contexts: &[], render, sheet, rows: |_| 0 };

/// A quantity and its value, with whether it deserves attention.
type Fact = (String, String, bool);

/// Everything the pane says in numbers; screen and paper read the same list.
fn facts(app: &App) -> Vec<(&'static str, Vec<Fact>)> {
    let snap = app.snap();
    let now = app.world.now().boot_ns;
    let level = |n: Option<u64>| n.map_or("-".into(), bytes);
    let fact = |name: &str, value: String, warn: bool| (name.to_owned(), value, warn);
    let mut groups = Vec::new();
    let missing = |why: Option<String>| vec![fact("-", why.unwrap_or_default(), true)];
    groups.push((
        "Dirty pages",
        match snap.writeback.ok() {
            None => missing(snap.writeback.why(now)),
            Some(w) => {
                let total = w.dirty_bytes.zip(w.writeback_bytes).map(|(d, b)| d + b);
                let over = |limit: Option<u64>| total.zip(limit).is_some_and(|(t, l)| t > l);
                vec![
                    fact("dirty", level(w.dirty_bytes), false),
                    fact("writeback", level(w.writeback_bytes), false),
                    fact(
                        "background from",
                        level(w.background_threshold_bytes),
                        over(w.background_threshold_bytes),
                    ),
                    fact("throttled from", level(w.freerun_bytes), over(w.freerun_bytes)),
                    fact("limit", level(w.dirty_threshold_bytes), over(w.dirty_threshold_bytes)),
                    fact("dirtied/s", short(w.dirtied_bytes_per_s), false),
                    fact("written/s", short(w.written_bytes_per_s), false),
                ]
            }
        },
    ));
    groups.push((
        "Swap",
        match snap.swap.ok() {
            None => missing(snap.swap.why(now)),
            Some(s) => {
                let moving = |n: Option<f64>| n.is_some_and(|n| n > 0.0);
                let mut list = vec![
                    fact("used", format!("{} of {}", level(s.used_bytes), level(s.total_bytes)), false),
                    fact("si/s", short(s.in_bytes_per_s), moving(s.in_bytes_per_s)),
                    fact("so/s", short(s.out_bytes_per_s), moving(s.out_bytes_per_s)),
                    fact(
                        "major faults/s",
                        snap.major_faults_per_s.map_or("-".into(), |n| format!("{n:.0}")),
                        false,
                    ),
                ];
                for area in snap.swaps.ok().into_iter().flatten() {
                    let text = format!(
                        "{} of {} prio {}",
                        bytes(area.used_bytes),
                        bytes(area.size_bytes),
                        area.priority
                    );
                    list.push(fact(&crate::text::clean(&area.name), text, false));
                }
                list
            }
        },
    ));
    groups.push((
        "Pressure some/full %",
        match snap.pressure.ok() {
            None => missing(snap.pressure.why(now)),
            Some(p) => [("cpu", p.cpu), ("memory", p.memory), ("io", p.io)]
                .into_iter()
                .map(|(name, p)| {
                    let part = |s: Option<crate::model::pressure::Stall>| {
                        s.map_or("-".into(), |s| format!("{:.1} {:.1} {:.1}", s.avg10, s.avg60, s.avg300))
                    };
                    let high = p.full.is_some_and(|s| s.avg10 >= 10.0) && name != "cpu";
                    fact(name, format!("{} / {}", part(p.some), part(p.full)), high)
                })
                .collect(),
        },
    ));
    groups.push((
        "Memory",
        match snap.mem.ok() {
            None => missing(snap.mem.why(now)),
            Some(m) => vec![
                fact("total", bytes(m.total), false),
                fact("available", level(m.available), m.available.is_some_and(|a| a < m.total / 20)),
                fact("free", bytes(m.free), false),
                fact("page cache", bytes(m.cached + m.buffers), false),
                fact("anonymous", level(m.anon), false),
                fact("shared", level(m.shmem), false),
            ],
        },
    ));
    groups
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Buffer, focused: bool) {
    let inner = frame(buf, area, "Memory", &when(app), focused, theme);
    let wide = inner.width >= 100;
    let left = if wide { inner.width * 2 / 5 } else { inner.width.min(46) };
    let facts_area = Rect { width: left, ..inner };
    let used = draw_facts(&facts(app), theme, facts_area, buf);
    let right = Rect { x: inner.x + left + 1, width: inner.width.saturating_sub(left + 1), ..inner };
    if wide {
        let third = right.height / 3;
        let part = |i: u16, n: u16| Rect { y: right.y + i, height: n, ..right };
        limits(app, theme, part(0, 2.min(right.height)), buf);
        graph(app, theme, part(2, third.saturating_sub(1)), buf);
        swap_graphs(app, theme, part(third + 2, third.saturating_sub(1)), buf);
        tasks(app, theme, part(2 * third + 2, right.height.saturating_sub(2 * third + 2)), buf);
    } else if right.width >= 24 {
        tasks(app, theme, right, buf);
    } else if used < inner.height {
        tasks(app, theme, Rect { y: inner.y + used, height: inner.height - used, ..inner }, buf);
    }
}

fn draw_facts(groups: &[(&'static str, Vec<Fact>)], theme: &Theme, area: Rect, buf: &mut Buffer) -> u16 {
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

fn swap_graphs(app: &App, theme: &Theme, area: Rect, buf: &mut Buffer) {
    if area.height < 3 {
        return;
    }
    let half = area.width / 2;
    type Get = fn(&crate::model::memory::SwapRate) -> Option<f64>;
    let both: [(&str, Get); 2] = [("si", |s| s.in_bytes_per_s), ("so", |s| s.out_bytes_per_s)];
    for (i, (name, get)) in both.into_iter().enumerate() {
        let value = move |f: &crate::model::history::Frame<_>| f.snap.swap.ok().and_then(get);
        let part = Rect { x: area.x + half * i as u16, width: half.saturating_sub(1), ..area };
        let max = app.past().rev().take(usize::from(part.width)).filter_map(value).fold(0.0, f64::max);
        let now = app.snap().swap.ok().and_then(get);
        put(
            buf,
            part.x,
            part.y,
            &format!("{name} now {}/s most {}/s", short(now), short(Some(max))),
            part.width,
            theme.dim,
        );
        let graph = Rect { y: part.y + 1, height: part.height - 1, ..part };
        let style = if i == 0 { theme.graph } else { theme.graph2 };
        columns(buf, graph, app.past().map(value), nice_max(max), style);
    }
}

/// Largest swappers, then who is faulting.
fn tasks(app: &App, theme: &Theme, area: Rect, buf: &mut Buffer) {
    if area.height < 3 || app.ui.frozen.is_some() {
        return;
    }
    let rows = usize::from(area.height.saturating_sub(2) / 2).max(1);
    let mut y = area.y;
    let mut list = |buf: &mut Buffer, head: &str, by: Col, cell: &dyn Fn(&ProcRow<'_>) -> Option<String>| {
        if y >= area.bottom() {
            return;
        }
        put(buf, area.x, y, head, area.width, theme.head);
        y += 1;
        let query = Query { by, filter: Filter::default(), height: rows, ..Default::default() };
        let mut any = false;
        for at in app.world.procs.window(&query).rows {
            let row = app.world.procs.row(at);
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
        Some(format!("{}{share}", bytes(n)))
    });
    list(buf, "Faulting (major faults/s)", Col::MajorFaults, &|r| {
        r.major_faults_per_s.filter(|n| *n > 0.0).map(|n| format!("{n:.1}"))
    });
}

/// The facts as a table; Writeback's paper too.
pub fn sheet(app: &App) -> Sheet {
    let mut sheet = Sheet::new(
        format!("Memory on {}, {}", app.world.host.name, app.stamp()),
        &[("Group", false), ("Quantity", false), ("Value", true)],
    );
    for (group, list) in facts(app) {
        for (name, value, _) in list {
            sheet.rows.push(vec![group.to_owned(), name, value]);
        }
    }
    sheet
}
