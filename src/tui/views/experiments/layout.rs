//! Layout of the experiments: list and page side by side where a report fits beside the list, else stacked, with most of
//! the height for the focused one.

use crate::tui::panes::PaneId;
use ratatui::layout::Rect;

/// Panes in focus order.
pub const PANES: [PaneId; 2] = [PaneId::ExperimentList, PaneId::ExperimentPage];

/// Places both panes in `body`; `focus` is the index of the focused one.
pub fn arrange_panes(body: Rect, focus: usize) -> Vec<(PaneId, Rect)> {
    let (list, page) = if body.width >= 110 {
        let width = (body.width / 4).clamp(28, 44);
        (Rect { width, ..body }, Rect { x: body.x + width, width: body.width - width, ..body })
    } else {
        let height = if focus == 1 { 3 } else { (body.height * 2 / 5).max(5) }.min(body.height);
        (Rect { height, ..body }, Rect { y: body.y + height, height: body.height - height, ..body })
    };
    PANES.into_iter().zip([list, page]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panes_fill_every_size_without_overlap() {
        for (w, h) in [(40, 10), (80, 22), (109, 38), (110, 38), (200, 48), (300, 90)] {
            for focus in 0..2 {
                let body = Rect::new(0, 1, w, h);
                let panes = arrange_panes(body, focus);
                assert_eq!(panes.iter().map(|(_, r)| r.area()).sum::<u32>(), body.area());
                assert!(!panes[0].1.intersects(panes[1].1), "{panes:?}");
                assert!(panes.iter().all(|(_, r)| r.height >= 3 && r.intersection(body) == *r));
            }
        }
    }
}
