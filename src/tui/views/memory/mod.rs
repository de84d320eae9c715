//! The Memory view: dirty pages and writeback, swap, pressure, and the processes stalled by them. It has no state.

mod page;
mod writeback;

pub(crate) use crate::export::memory::format_optional_bytes;

use crate::export::table::Table;
use crate::tui::view::{Context, PaneId, PaneSpec, View};
use crate::tui::widgets::{CellBuffer, Rect};

#[derive(Debug, Default)]
pub struct MemoryView;

impl View for MemoryView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[PaneSpec { id: PaneId::Memory, contexts: &[] }, PaneSpec { id: PaneId::Writeback, contexts: &[] }]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (cx.theme(), cx.is_focused(pane));
        match pane {
            PaneId::Memory => page::render(cx.shared, &theme, area, buf, focused),
            _ => writeback::render(cx.shared, &theme, area, buf, focused),
        }
    }

    fn table(&self, _: PaneId, cx: &Context) -> Table {
        page::build_table(cx.shared)
    }
}
