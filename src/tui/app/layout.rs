//! Areas of the panes. A pure function of the state, so that drawing and mouse agree.
//!
//! On a low screen the Overview drops panes in this order: kernel log, writeback, findings, devices; processes stay.

use super::state::App;
use crate::tui::view::{Context, PaneId, ScreenLayout, ViewId};
use crate::tui::views::findings::FindingsView;
use crate::tui::widgets::{Rect, area_below};

/// Smallest usable screen; below it only a message is drawn.
pub const MIN_SIZE: (u16, u16) = (40, 12);

/// Whether the screen is smaller than [`MIN_SIZE`].
pub fn is_too_small(size: (u16, u16)) -> bool {
    size.0 < MIN_SIZE.0 || size.1 < MIN_SIZE.1
}

impl App {
    /// Areas of header, panes and footer, and the focused pane.
    pub(super) fn arrange(&self) -> (ScreenLayout, PaneId) {
        let (w, h) = self.screen.size;
        let line = |y| Rect::new(0, y, w, 1);
        let body = Rect::new(0, 1, w, h.saturating_sub(2));
        let mut panes = match self.screen.detail {
            Some(page) => vec![(page, body)],
            None => self.arrange_tab(body),
        };
        panes.retain(|(_, area)| !area.is_empty());
        let last = panes.len().saturating_sub(1);
        let focused = panes.get(self.screen.focus.min(last)).map_or(PaneId::Devices, |p| p.0);
        if self.screen.zoomed && self.screen.detail.is_none() {
            panes = vec![(focused, body)];
            panes.retain(|(_, area)| !area.is_empty());
        }
        (ScreenLayout { header: line(0), panes, footer: line(h.saturating_sub(1)) }, focused)
    }

    fn arrange_tab(&self, body: Rect) -> Vec<(PaneId, Rect)> {
        // There is no layout yet.
        let layout = ScreenLayout::default();
        let cx = Context { shared: &self.shared, screen: &self.screen, layout: &layout, focused: PaneId::Devices };
        match self.screen.view {
            ViewId::Overview => {
                let devices = self.views.devices.wanted_rows(&self.shared);
                overview_layout(body, devices, self.shared.findings.incidents().len())
            }
            tab => self.views.of_tab(tab).map_or(Vec::new(), |view| view.layout(&cx, body)),
        }
    }

    /// The focused pane.
    pub fn focused_pane(&self) -> PaneId {
        self.arrange().1
    }
}

fn overview_layout(body: Rect, devices: u16, stories: usize) -> Vec<(PaneId, Rect)> {
    let strip = FindingsView::summary_height(body.height, stories);
    let above = Rect { height: body.height - strip, ..body };
    let mut out = overview_upper_layout(above, devices);
    out.push((PaneId::FindingsSummary, area_below(body, above.height)));
    out
}

/// The Overview above the findings.
fn overview_upper_layout(body: Rect, devices: u16) -> Vec<(PaneId, Rect)> {
    if body.width >= 110 && body.height >= 18 {
        let left = body.width * 3 / 5;
        let [l, r] = [Rect { width: left, ..body }, Rect { x: body.x + left, width: body.width - left, ..body }];
        let top = (devices + 3).clamp(5, body.height * 2 / 5);
        let side = 11.min(body.height / 2);
        return vec![
            (PaneId::Processes, area_below(l, top)),
            (PaneId::Devices, Rect { height: top, ..l }),
            (PaneId::Writeback, Rect { height: side, ..r }),
            (PaneId::KernelLog, area_below(r, side)),
        ];
    }
    let h = body.height;
    let kernel = if h >= 20 { (h / 5).clamp(4, 12) } else { 0 };
    let writeback = if h >= 15 { 4 } else { 0 };
    let top = if h >= 12 { (devices + 3).clamp(4, (h / 3).max(5)) } else { 0 };
    let at = |y, height| Rect { y: body.y + y, height, ..body };
    vec![
        (PaneId::Processes, at(top + writeback, h - top - writeback - kernel)),
        (PaneId::Devices, at(0, top)),
        (PaneId::Writeback, at(top, writeback)),
        (PaneId::KernelLog, at(h - kernel, kernel)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_covers(body: Rect, panes: &[(PaneId, Rect)]) {
        let sum: u32 = panes.iter().map(|(_, r)| r.area()).sum();
        assert_eq!(sum, body.area(), "panes fill the body without overlap: {panes:?}");
        for (_, r) in panes {
            assert_eq!(r.intersection(body), *r);
        }
    }

    #[test]
    fn overview_covers_the_body_at_every_size_and_keeps_processes() {
        for (w, h) in [(40, 10), (80, 22), (120, 38), (200, 48), (300, 100), (109, 14), (60, 19)] {
            for n in [0, 3, 40, 500] {
                let body = Rect::new(0, 1, w, h);
                for stories in [0, 1, 9] {
                    let panes = overview_layout(body, n, stories);
                    assert_covers(body, &panes);
                    assert!(panes[0].1.height >= 4, "{w}x{h}: {panes:?}");
                }
            }
        }
    }
}
