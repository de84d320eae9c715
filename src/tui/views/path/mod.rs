//! The page of `:path DIR`: what a directory lies on. Its content is in [`DetailPage::Path`].
//!
//! [`DetailPage::Path`]: crate::tui::screen::DetailPage::Path

mod page;

use super::detail::scroll_positions;
use crate::export::table::Table;
use crate::tui::keymap::KeyContext;
use crate::tui::view::{Context, PaneId, PaneSpec, View};
use crate::tui::widgets::cell_buffer::CellBuffer;
use ratatui::layout::Rect;

/// The page.
#[derive(Debug, Default)]
pub struct PathView;

impl View for PathView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[PaneSpec { id: PaneId::PathDetail, contexts: &[KeyContext::Detail, KeyContext::Scroll] }]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        page::render(cx, &cx.theme(), area, buf, cx.is_focused(pane));
    }

    fn table(&self, _: PaneId, cx: &Context) -> Table {
        page::build_table(cx)
    }

    fn row_count(&self, pane: PaneId, cx: &Context) -> usize {
        scroll_positions(page::detail_lines(cx).len(), cx.inner_area(pane).height)
    }
}
