//! Where each pane goes. Pure, so that drawing and the mouse agree.
//!
//! Panes fold away in this order when there is no room: on the Overview first the kernel log, then
//! writeback, then the findings, then devices; the processes stay.

use super::action::View;
use super::panes::PaneId;
use super::state::{App, Detail};
use ratatui::layout::Rect;

/// Smaller than this and only a line of text is shown.
pub const LEAST: (u16, u16) = (40, 12);

/// The screen's parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arranged {
    /// The line at the top.
    pub header: Rect,
    /// The panes, in focus order.
    pub panes: Vec<(PaneId, Rect)>,
    /// The line at the bottom.
    pub footer: Rect,
}

/// Whether the screen is too small for anything but saying so.
pub fn too_small(size: (u16, u16)) -> bool {
    size.0 < LEAST.0 || size.1 < LEAST.1
}

/// The panes on screen, in focus order.
pub fn panes(app: &App) -> Vec<PaneId> {
    match (&app.ui.detail, app.ui.view) {
        (Some(Detail::Device(_)), _) => vec![PaneId::DeviceDetail],
        (Some(Detail::Process(_)), _) => vec![PaneId::ProcessDetail],
        (Some(Detail::Kernel(_)), _) => vec![PaneId::KernelDetail],
        (Some(Detail::Path(_)), _) => vec![PaneId::PathDetail],
        (None, View::Overview) => {
            // Which panes there are does not depend on how many devices there are.
            let body = body(app.ui.size);
            let all = overview(body, 0, app.findings.incidents().len());
            all.into_iter().filter(|(_, r)| !r.is_empty()).map(|(id, _)| id).collect()
        }
        (None, View::Devices) => vec![PaneId::Devices, PaneId::DeviceGraphs],
        (None, View::Processes) => vec![PaneId::Processes],
        (None, View::Memory) => vec![PaneId::Memory],
        (None, View::Kernel) => vec![PaneId::Kernel],
        (None, View::Bench) => super::bench::place::PANES.to_vec(),
        (None, View::Tune) if app.ui.experiment.open => super::experiment::place::PANES.to_vec(),
        (None, View::Tune) => super::panes::tune::placed(app),
        (None, View::Syncs) => vec![PaneId::Syncs, PaneId::SlowSyncs],
        (None, View::Findings) => vec![PaneId::Findings, PaneId::FindingPage],
    }
}

/// Everything's place on a screen of the app's size.
pub fn arrange(app: &App) -> Arranged {
    let (w, h) = app.ui.size;
    let row = |y, height| Rect::new(0, y, w, height);
    let body = body(app.ui.size);
    let list = panes(app);
    let mut panes = if app.ui.zoomed && app.ui.detail.is_none() {
        vec![(app.focused(), body)]
    } else {
        match list[..] {
            [PaneId::Processes, ..] if app.ui.view == View::Overview => {
                overview(body, device_rows(app), app.findings.incidents().len())
            }
            [PaneId::Findings, ..] => super::panes::findings::places(body, app.findings.incidents().len()),
            [PaneId::Tune, ..] => super::panes::tune::places(body, &list),
            [PaneId::ExperimentList, ..] => super::experiment::place::arrange(body, app.ui.focus),
            [PaneId::BenchList, ..] => super::bench::place::arrange(body, app.ui.focus),
            [PaneId::Syncs, ..] => syncs(body),
            [PaneId::Devices, PaneId::DeviceGraphs] => devices(body, device_rows(app)),
            _ => list.iter().map(|id| (*id, body)).collect(),
        }
    };
    panes.retain(|(_, r)| r.height > 0 && r.width > 0);
    Arranged { header: row(0, 1), panes, footer: row(h.saturating_sub(1), 1) }
}

/// What lies between the line at the top and the one at the bottom.
fn body((w, h): (u16, u16)) -> Rect {
    Rect::new(0, 1, w, h.saturating_sub(2))
}

/// Rows the device list would fill.
fn device_rows(app: &App) -> u16 {
    let devices = super::panes::devices::line_count(app).min(500) as u16;
    devices + super::panes::devices::network_lines(app).min(20)
}

fn overview(body: Rect, devices: u16, stories: usize) -> Vec<(PaneId, Rect)> {
    let strip = super::panes::findings::strip::height(body.height, stories);
    let above = Rect { height: body.height - strip, ..body };
    let mut out = upper(above, devices);
    out.push((PaneId::FindingsStrip, below(body, above.height)));
    out
}

/// The Overview above the findings.
fn upper(body: Rect, devices: u16) -> Vec<(PaneId, Rect)> {
    if body.width >= 110 && body.height >= 18 {
        let left = body.width * 3 / 5;
        let [l, r] =
            [Rect { width: left, ..body }, Rect { x: body.x + left, width: body.width - left, ..body }];
        let top = (devices + 3).clamp(5, body.height * 2 / 5);
        let side = 11.min(body.height / 2);
        return vec![
            (PaneId::Processes, below(l, top)),
            (PaneId::Devices, Rect { height: top, ..l }),
            (PaneId::Writeback, Rect { height: side, ..r }),
            (PaneId::Kernel, below(r, side)),
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
        (PaneId::Kernel, at(h - kernel, kernel)),
    ]
}

fn devices(body: Rect, devices: u16) -> Vec<(PaneId, Rect)> {
    let graphs = if body.height >= 16 { (body.height / 3).clamp(7, 16) } else { 0 };
    let list = (body.height - graphs).min((devices + 3).max(6));
    let graphs = if graphs > 0 { (body.height - list).min(20) } else { 0 };
    let list = body.height - graphs;
    vec![(PaneId::Devices, Rect { height: list, ..body }), (PaneId::DeviceGraphs, below(body, list))]
}

/// Who waits above, the slow ones below.
fn syncs(body: Rect) -> Vec<(PaneId, Rect)> {
    let top = body.height - body.height * 2 / 5;
    vec![(PaneId::Syncs, Rect { height: top, ..body }), (PaneId::SlowSyncs, below(body, top))]
}

/// What is left of `area` below its first `top` rows.
fn below(area: Rect, top: u16) -> Rect {
    let top = top.min(area.height);
    Rect { y: area.y + top, height: area.height - top, ..area }
}

impl Arranged {
    /// The pane at a cell, with its index in focus order.
    pub fn pane_at(&self, x: u16, y: u16) -> Option<(usize, PaneId, Rect)> {
        let inside = |r: &Rect| x >= r.left() && x < r.right() && y >= r.top() && y < r.bottom();
        let at = self.panes.iter().position(|(_, r)| inside(r))?;
        Some((at, self.panes[at].0, self.panes[at].1))
    }

    /// Where a pane is, if it is on screen.
    pub fn area(&self, id: PaneId) -> Option<Rect> {
        self.panes.iter().find(|(p, _)| *p == id).map(|p| p.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(body: Rect, panes: &[(PaneId, Rect)]) {
        let sum: u32 = panes.iter().map(|(_, r)| r.area()).sum();
        assert_eq!(sum, body.area(), "panes fill the body without overlap: {panes:?}");
        for (_, r) in panes {
            assert_eq!(r.intersection(body), *r);
        }
    }

    #[test]
    fn the_overview_fills_every_size_and_keeps_the_processes() {
        for (w, h) in [(40, 10), (80, 22), (120, 38), (200, 48), (300, 100), (109, 14), (60, 19)] {
            for n in [0, 3, 40, 500] {
                let body = Rect::new(0, 1, w, h);
                for stories in [0, 1, 9] {
                    let panes = overview(body, n, stories);
                    covers(body, &panes);
                    assert!(panes[0].1.height >= 4, "{w}x{h}: {panes:?}");
                }
            }
        }
    }

    #[test]
    fn the_devices_view_fills_every_size() {
        for h in [10, 22, 38, 48] {
            for n in [0, 3, 40] {
                let body = Rect::new(0, 1, 80, h);
                covers(body, &devices(body, n));
                covers(body, &syncs(body));
            }
        }
    }
}
