//! Areas of the panes. A pure function of the state, so that drawing and mouse agree.
//!
//! On a low screen the Overview drops panes in this order: graphs, kernel log, writeback, findings, devices; processes stay.

use super::state::App;
use crate::tui::view::{Context, PaneId, ScreenLayout, ViewId};
use crate::tui::views::findings::FindingsView;
use crate::tui::widgets::{Rect, area_below};

/// Smallest usable screen; below it only a message is drawn.
pub const MIN_SIZE: (u16, u16) = (40, 12);

/// Columns and rows of the body from which on the Overview has graphs of the selected device.
const GRAPHS_SIZE: (u16, u16) = (140, 40);

/// Rows of a large Overview for the file systems: a blank one, the headings, two of them.
const FILE_SYSTEM_ROWS: u16 = 4;

/// Rows that the graphs of a large Overview leave to the tasks, and have at the least.
const ROWS_OF_TASKS: u16 = 12;
const MIN_GRAPH_ROWS: u16 = 8;

/// Rows of the kernel log of an Overview that has little of it.
const MIN_LOG_ROWS: u16 = 5;

/// Rows from which on a replay has its timeline.
const TIMELINE_HEIGHT: u16 = 20;

/// Whether the screen is smaller than [`MIN_SIZE`].
pub fn is_too_small(size: (u16, u16)) -> bool {
    size.0 < MIN_SIZE.0 || size.1 < MIN_SIZE.1
}

impl App {
    /// Areas of header, timeline, panes and footer, and the focused pane.
    pub(super) fn arrange(&self) -> (ScreenLayout, PaneId) {
        let (w, h) = self.screen.size;
        let line = |y| Rect::new(0, y, w, 1);
        let replay = self.shared.replay.as_ref();
        let has_timeline = h >= TIMELINE_HEIGHT && replay.is_some_and(|replay| !replay.timeline.is_empty());
        let timeline = if has_timeline { line(1) } else { Rect::default() };
        let body = Rect::new(0, 1 + timeline.height, w, h.saturating_sub(2 + timeline.height));
        let mut panes = match self.screen.detail {
            Some(page) => vec![(page, body)],
            None => share_borders(body, |body| self.arrange_tab(body)),
        };
        let last = panes.len().saturating_sub(1);
        let focused = panes.get(self.screen.focus.min(last)).map_or(PaneId::Devices, |p| p.0);
        if self.screen.zoomed && self.screen.detail.is_none() {
            panes = vec![(focused, body)];
        }
        panes.retain(|(_, area)| !area.is_empty());
        let tabs = Rect { y: body.bottom().saturating_sub(1), height: body.height.min(1), ..body };
        (ScreenLayout { header: line(0), timeline, panes, tabs, footer: line(h.saturating_sub(1)) }, focused)
    }

    fn arrange_tab(&self, body: Rect) -> Vec<(PaneId, Rect)> {
        // There is no layout yet.
        let layout = ScreenLayout::default();
        let cx = Context::new(&self.shared, &self.screen, &layout, PaneId::Devices);
        match self.screen.view {
            ViewId::Overview => {
                let devices = self.views.devices.wanted_rows(&self.shared);
                let strip = FindingsView::summary_height(body, &self.shared);
                overview_layout(body, devices, strip, self.views.kernel_log.wanted_lines())
            }
            tab => self.views.of_tab(tab).map_or(Vec::new(), |view| view.layout(&cx, body)),
        }
    }

    /// The focused pane.
    pub fn focused_pane(&self) -> PaneId {
        self.arrange().1
    }
}

/// Arranges panes, each with a border of its own, in a body so much larger that neighbours can then share a line.
fn share_borders(body: Rect, arrange: impl Fn(Rect) -> Vec<(PaneId, Rect)>) -> Vec<(PaneId, Rect)> {
    let seams = |panes: &[(PaneId, Rect)], start: fn(&Rect) -> u16, first: u16| {
        let shown = panes.iter().filter(|(_, area)| !area.is_empty());
        let mut seams: Vec<u16> = shown.map(|(_, area)| start(area)).filter(|at| *at > first).collect();
        seams.sort_unstable();
        seams.dedup();
        seams
    };
    let seams = |panes: &[(PaneId, Rect)]| [seams(panes, |r| r.x, body.x), seams(panes, |r| r.y, body.y)];
    let [x, y] = seams(&arrange(body)).map(|seams| seams.len() as u16);
    let larger = Rect { width: body.width + x, height: body.height + y, ..body };
    let mut panes = arrange(larger);
    panes.retain(|(_, area)| !area.is_empty());
    let [x_seams, y_seams] = seams(&panes);
    // Everything moves towards the start by the number of seams before it, so that both sides of a seam overlap by a cell.
    let moved = |seams: &[u16], (from, to): (u16, u16), (end, larger_end): (u16, u16)| {
        let before = |at: u16| seams.iter().filter(|seam| **seam < at).count() as u16;
        let start = from - before(from + 1);
        // The size of the body may decide how many panes there are: the last ones take what is left.
        let end = if to == larger_end { end } else { (to - before(to)).min(end) };
        (start, end.saturating_sub(start))
    };
    for (_, area) in &mut panes {
        (area.x, area.width) = moved(&x_seams, (area.x, area.right()), (body.right(), larger.right()));
        (area.y, area.height) = moved(&y_seams, (area.y, area.bottom()), (body.bottom(), larger.bottom()));
    }
    panes
}

/// What is wrong at the top, then disks beside dirty pages, processes, and the kernel log over the full width.
/// The first has `strip` rows; the log needs no more than its lines.
fn overview_layout(body: Rect, devices: u16, strip: u16, log_lines: usize) -> Vec<(PaneId, Rect)> {
    let rest = area_below(body, strip);
    let h = rest.height;
    let is_wide = body.width >= 110 && body.height >= 18;
    let has_graphs = is_wide && body.width >= GRAPHS_SIZE.0 && body.height >= GRAPHS_SIZE.1;
    let kernel = match h {
        // The graphs show more than old lines of the log.
        _ if has_graphs => (h / 5).clamp(6, 12),
        _ if is_wide => (h / 4).clamp(4, 12),
        20.. => (h / 5).clamp(4, 12),
        _ => 0,
    };
    let wanted = (log_lines.min(100) as u16 + 2).max(MIN_LOG_ROWS);
    let (kernel, spared) = (kernel.min(wanted), kernel.saturating_sub(wanted));
    let top = match h {
        // Below the devices how full the file systems are.
        _ if has_graphs => (devices + 3 + FILE_SYSTEM_ROWS).clamp(10, 11.max(h * 3 / 10)),
        _ if is_wide => (devices + 3).clamp(7, 11.max(h / 3)),
        12.. => (devices + 3).clamp(4, (h / 3).max(5)),
        _ => 0,
    };
    // What the log does not need is theirs.
    let for_graphs =
        (h * 3 / 10 + spared).min(h.saturating_sub(kernel + top + ROWS_OF_TASKS)).clamp(MIN_GRAPH_ROWS, 18);
    let graphs = if has_graphs { for_graphs } else { 0 };
    let writeback = if !is_wide && h >= 15 { 4 } else { 0 };
    let at = |y, height| Rect { y: rest.y + y, height, ..rest };
    let left = if is_wide { rest.width * 3 / 5 + 4 } else { rest.width };
    let devices_area = Rect { width: left, ..at(0, top) };
    let writeback_area = match is_wide {
        true => Rect { x: rest.x + left, width: rest.width - left, ..at(0, top) },
        false => at(top, writeback),
    };
    vec![
        (PaneId::Processes, at(top + writeback + graphs, h - top - writeback - graphs - kernel)),
        (PaneId::Devices, devices_area),
        (PaneId::Writeback, writeback_area),
        (PaneId::DeviceGraphs, at(top + writeback, graphs)),
        (PaneId::KernelLog, at(h - kernel, kernel)),
        (PaneId::FindingsSummary, Rect { height: strip, ..body }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::widgets::{split_columns, split_rows};

    fn assert_covers(body: Rect, panes: &[(PaneId, Rect)]) {
        let sum: u32 = panes.iter().map(|(_, r)| r.area()).sum();
        assert_eq!(sum, body.area(), "panes fill the body without overlap: {panes:?}");
        for (_, r) in panes {
            assert_eq!(r.intersection(body), *r);
        }
    }

    #[test]
    fn neighbours_share_their_borders() {
        let arrange = |body: Rect| {
            let [top, bottom] = split_rows(body, 5);
            let [left, right] = split_columns(top, 12);
            vec![(PaneId::Processes, bottom), (PaneId::Devices, left), (PaneId::Writeback, right)]
        };
        let panes = share_borders(Rect::new(0, 1, 30, 20), arrange);
        let expected = [Rect::new(0, 5, 30, 16), Rect::new(0, 1, 12, 5), Rect::new(11, 1, 19, 5)];
        assert_eq!(panes.iter().map(|p| p.1).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_pane_that_appears_in_the_larger_body_leaves_no_gap() {
        let arrange = |body: Rect| {
            let rows = if body.height > 10 { 3 } else { 5 };
            let count = if body.height > 10 { 3 } else { 2 };
            let part = |i: u16| Rect { y: body.y + i * rows, height: rows, ..body };
            let last = |i: u16| Rect { height: body.bottom() - part(i).y, ..part(i) };
            (0..count).map(|i| (PaneId::Devices, if i + 1 == count { last(i) } else { part(i) })).collect()
        };
        let panes = share_borders(Rect::new(0, 1, 30, 10), arrange);
        assert_eq!(panes.len(), 3);
        assert!(panes.windows(2).all(|p| p[0].1.bottom() == p[1].1.y + 1), "{panes:?}");
        assert_eq!((panes[0].1.y, panes[2].1.bottom()), (1, 11));
    }

    #[test]
    fn a_large_overview_has_graphs_and_still_room_for_tasks() {
        let height_of = |size: (u16, u16), pane: PaneId| {
            let panes = overview_layout(Rect::new(0, 1, size.0, size.1), 3, 4, 99);
            panes.iter().find(|(id, _)| *id == pane).map_or(0, |(_, area)| area.height)
        };
        for size in [(160, 43), (200, 48)] {
            assert!(height_of(size, PaneId::DeviceGraphs) >= 8, "{size:?}");
            assert!(height_of(size, PaneId::Processes) >= 10, "{size:?}");
            let panes = overview_layout(Rect::new(0, 1, size.0, size.1), 30, 8, 99);
            assert!(panes[0].1.height >= 9, "many devices and findings: {panes:?}");
        }
        assert_eq!(height_of((120, 38), PaneId::DeviceGraphs), 0);
        assert_eq!(height_of((80, 22), PaneId::DeviceGraphs), 0);
    }

    #[test]
    fn overview_covers_the_body_at_every_size_and_keeps_processes() {
        for (w, h) in [(40, 10), (80, 22), (120, 38), (200, 48), (300, 100), (109, 14), (60, 19)] {
            for n in [0, 3, 40, 500] {
                let body = Rect::new(0, 1, w, h);
                for strip in [0, 3, 4, 8].map(|rows| if h < 15 { 0 } else { rows }) {
                    let panes = overview_layout(body, n, strip, n.into());
                    assert_covers(body, &panes);
                    assert!(panes[0].1.height >= 4, "{w}x{h}: {panes:?}");
                }
            }
        }
    }
}
