//! The Memory view: dirty pages and writeback, swap, pressure, and the processes stalled by them. It has no state.

mod graphs;
mod page;
mod tasks;
mod writeback;

pub(crate) use crate::export::memory::format_optional_bytes;
pub(super) use graphs::draw_swap_graphs;
pub(super) use writeback::draw_unwritten_graph;
pub(crate) use writeback::level;

use crate::export::memory::build_table;
use crate::export::table::Table;
use crate::model::columns::figures::MEMORY_FIGURES;
use crate::tui::view::{ColumnInfo, Context, KeyContext, PaneId, PaneSpec, View};
use crate::tui::widgets::{CellBuffer, Rect};

const KEYS: &[KeyContext] = &[KeyContext::Figures];

#[derive(Debug, Default)]
pub struct MemoryView;

impl View for MemoryView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[(PaneId::Memory, "memory", KEYS), (PaneId::Writeback, "writeback", KEYS)]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        match pane {
            PaneId::Memory => page::render(cx, area, buf),
            _ => writeback::render(cx, area, buf),
        }
    }

    fn columns(&self, _: PaneId, _: &Context) -> Vec<ColumnInfo> {
        ColumnInfo::of_figures(MEMORY_FIGURES).collect()
    }

    fn table(&self, _: PaneId, cx: &Context) -> Table {
        let shared = cx.shared;
        build_table(shared.table_title("Memory"), shared.snapshot(), shared.system.now().boot_ns)
    }
}
