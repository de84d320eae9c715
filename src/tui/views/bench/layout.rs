//! Layout of the Bench view: the list of profiles and results, the page beside it, and devices and writeback below.
//!
//! As the window shrinks, writeback is left out first, then devices; then list and page are stacked, and the focused one
//! gets most of the height.

use crate::tui::panes::PaneId;
use ratatui::layout::Rect;

/// Panes in focus order.
pub const PANES: [PaneId; 4] = [PaneId::BenchResults, PaneId::BenchPage, PaneId::Devices, PaneId::Writeback];

/// Places the panes in `body`; `focus` is the index of the focused one. A pane that is left out has no area.
pub fn arrange_panes(body: Rect, focus: usize) -> Vec<(PaneId, Rect)> {
    let below = if body.height >= 30 { (body.height / 4).clamp(8, 12) } else { 0 };
    let top = Rect { height: body.height - below, ..body };
    let strip = Rect { y: body.y + top.height, height: below, ..body };
    let (list, page) = if body.width >= 70 {
        let width = (body.width / 4).clamp(26, 44);
        (Rect { width, ..top }, Rect { x: top.x + width, width: top.width - width, ..top })
    } else {
        let height = if focus == 1 { 3.min(top.height) } else { top.height * 3 / 5 };
        (Rect { height, ..top }, Rect { y: top.y + height, height: top.height - height, ..top })
    };
    let side = if body.width >= 110 { body.width * 2 / 5 } else { 0 };
    let devices = Rect { width: strip.width - side, ..strip };
    let writeback = Rect { x: strip.x + devices.width, width: side, ..strip };
    PANES.into_iter().zip([list, page, devices, writeback]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panes_fill_every_size_without_overlap() {
        for (w, h) in [(40, 10), (60, 40), (69, 22), (70, 22), (80, 22), (109, 38), (120, 38), (200, 48), (300, 90)] {
            for focus in 0..4 {
                let body = Rect::new(0, 1, w, h);
                let panes = arrange_panes(body, focus);
                let sum: u32 = panes.iter().map(|(_, r)| r.area()).sum();
                assert_eq!(sum, body.area(), "{w}x{h}: {panes:?}");
                assert!(panes.iter().all(|(_, r)| r.area() == 0 || r.intersection(body) == *r));
                assert!(panes[..2].iter().all(|(_, r)| r.height >= 3 && r.width >= 26), "{w}x{h}: {panes:?}");
                // Panes that are left out come last, so that indices stay valid.
                let folded = panes.iter().position(|(_, r)| r.area() == 0).unwrap_or(4);
                assert!(panes[folded..].iter().all(|(_, r)| r.area() == 0));
            }
        }
    }
}
