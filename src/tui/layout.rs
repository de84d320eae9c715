//! Areas of the panes. A pure function of the state, so that drawing and mouse agree.
//!
//! On a low screen the Overview drops panes in this order: kernel log, writeback, findings, devices; processes stay.

use super::action::ViewId;
use super::state::{App, DetailPage};
pub use super::view::ScreenLayout;
use super::view::{Context, PaneId};
use ratatui::layout::Rect;

/// Smallest usable screen; below it only a message is drawn.
pub const MIN_SIZE: (u16, u16) = (40, 12);

/// Whether the screen is smaller than [`MIN_SIZE`].
pub fn is_too_small(size: (u16, u16)) -> bool {
    size.0 < MIN_SIZE.0 || size.1 < MIN_SIZE.1
}

/// The panes on screen, in focus order.
pub fn visible_panes(app: &App) -> Vec<PaneId> {
    match (&app.screen.detail, app.screen.view) {
        (Some(DetailPage::Device(_)), _) => vec![PaneId::DeviceDetail],
        (Some(DetailPage::Process(_)), _) => vec![PaneId::ProcessDetail],
        (Some(DetailPage::KernelLog(_)), _) => vec![PaneId::KernelLogDetail],
        (Some(DetailPage::Path(_)), _) => vec![PaneId::PathDetail],
        (None, ViewId::Overview) => {
            // Which panes there are does not depend on how many devices there are.
            let body = body_area(app.screen.size);
            let all = overview_layout(body, 0, app.shared.findings.incidents().len());
            all.into_iter().filter(|(_, r)| !r.is_empty()).map(|(id, _)| id).collect()
        }
        (None, ViewId::Tune) if !app.views.experiments.is_open => crate::tui::views::tune::render::visible_panes(app),
        (None, tab) => converted_tab(app, tab).into_iter().map(|(id, _)| id).collect(),
    }
}

/// Areas of header, panes and footer.
pub fn compute_layout(app: &App) -> ScreenLayout {
    let (w, h) = app.screen.size;
    let row = |y, height| Rect::new(0, y, w, height);
    let body = body_area(app.screen.size);
    let list = visible_panes(app);
    let mut panes = if app.screen.zoomed && app.screen.detail.is_none() {
        vec![(app.focused_pane(), body)]
    } else {
        match list[..] {
            [PaneId::Processes, ..] if app.screen.view == ViewId::Overview => {
                overview_layout(body, app.views.devices.wanted_rows(&app.shared), app.shared.findings.incidents().len())
            }
            [PaneId::TuneKnobs, ..] => crate::tui::views::tune::render::tune_layout(body, &list),
            _ if app.screen.detail.is_none() && app.views.of_tab(app.screen.view).is_some() => {
                converted_tab(app, app.screen.view)
            }
            _ => list.iter().map(|id| (*id, body)).collect(),
        }
    };
    panes.retain(|(_, r)| r.height > 0 && r.width > 0);
    ScreenLayout { header: row(0, 1), panes, footer: row(h.saturating_sub(1), 1) }
}

/// The layout of a tab by its view; the context has no layout yet.
fn converted_tab(app: &App, tab: ViewId) -> Vec<(PaneId, Rect)> {
    let layout = ScreenLayout::default();
    let cx = Context { shared: &app.shared, screen: &app.screen, layout: &layout, focused: PaneId::Devices };
    app.views.of_tab(tab).map_or(Vec::new(), |view| view.layout(&cx, body_area(app.screen.size)))
}

/// The area between header and footer.
fn body_area((w, h): (u16, u16)) -> Rect {
    Rect::new(0, 1, w, h.saturating_sub(2))
}

fn overview_layout(body: Rect, devices: u16, stories: usize) -> Vec<(PaneId, Rect)> {
    let strip = super::views::findings::summary_height(body.height, stories);
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

/// `area` without its first `top` rows.
fn area_below(area: Rect, top: u16) -> Rect {
    let top = top.min(area.height);
    Rect { y: area.y + top, height: area.height - top, ..area }
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
