//! The upper pane: one row for each process and file, with the time it spends waiting for syncs.

use super::SyncsView;
use crate::export::{self, table::Table};
use crate::model::column::CellValue;
use crate::model::syncs::columns::{SYNC_COLUMNS, SyncColumnSpec, SyncRow};
use crate::model::syncs::list::{self, SyncQuery};
use crate::tui::view::{Context, PaneId, Shared};
use crate::tui::widgets::{
    CellBuffer, FittedColumns, Rect, draw_frame, draw_reason, draw_text, table, title_with_filter,
};

/// Cells the path keeps at least.
const MIN_PATH_WIDTH: u16 = 16;

impl SyncsView {
    fn query(&self) -> SyncQuery<'_> {
        let sort = self.sort_column.and_then(|i| SYNC_COLUMNS.get(i)).map(|c| c.id);
        SyncQuery { sort, reverse: self.reverse, filter: &self.filter }
    }

    pub(super) fn callers(&self, shared: &Shared) -> Vec<SyncRow> {
        let syncs = shared.snapshot().syncs.ok();
        syncs.map_or_else(Vec::new, |s| list::sync_rows(s, shared.system.topology.ok(), &self.query()))
    }

    pub(super) fn fitted_columns(column_offset: usize, width: u16) -> FittedColumns {
        table::fit_columns(SYNC_COLUMNS, width, MIN_PATH_WIDTH.max(width / 5), column_offset, |_| {
            table::Priority::Rank(0)
        })
    }

    pub(super) fn render_callers(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme(), cx.is_focused(PaneId::Syncs));
        let interval = cx.shared.interval_text();
        let inner = draw_frame(buf, area, &title_with_filter("Syncs", &self.filter), &interval, focused, theme);
        if inner.height == 0 {
            return;
        }
        let snapshot = cx.shared.snapshot();
        let Some(syncs) = snapshot.syncs.ok() else {
            let why = snapshot.syncs.unavailable_reason(snapshot.time.boot_ns);
            return draw_reason(buf, inner, &why.unwrap_or_default(), theme.warn);
        };
        let rows = self.callers(cx.shared);
        let fitted = Self::fitted_columns(self.column_offset, inner.width);
        let sorted = self.sort_column.map(|i| (i, !self.reverse));
        table::draw_header(buf, inner, SYNC_COLUMNS, &fitted, sorted, theme);
        let notes = list::notes(syncs);
        let note_rows = (notes.len() as u16).min(inner.height.saturating_sub(2) / 3).max(u16::from(inner.height > 3));
        let body = Rect { y: inner.y + 1, height: inner.height - 1 - note_rows, ..inner };
        for (note, y) in notes.iter().zip(body.bottom()..inner.bottom()) {
            draw_text(buf, inner.x, y, note, inner.width, theme.dim);
        }
        let mut scratch = String::new();
        for (row, y, selected) in self.scroll.visible(&rows, body) {
            let is_active = row.rate.calls_per_s > 0.0 || row.rate.wait_pct > 0.0;
            let style = if is_active { theme.text } else { theme.dim };
            let value = |c: &SyncColumnSpec| (c.value)(row);
            let style = |c: &SyncColumnSpec, v: &CellValue<'_>| table::cell_style(c, v, style, theme);
            table::draw_row(buf, body, y, SYNC_COLUMNS, &fitted, value, style, &mut scratch);
            if focused && selected {
                table::highlight_row(buf, body, y, theme);
            }
        }
        if rows.is_empty() && body.height > 0 {
            let text = if syncs.rows.is_empty() { "No syncs yet" } else { "no row matches (Esc)" };
            draw_text(buf, body.x, body.y, text, body.width, theme.dim);
        }
    }

    pub(super) fn callers_table(&self, cx: &Context) -> Table {
        let shared = cx.shared;
        let title = shared.table_title(&title_with_filter("Syncs", &self.filter));
        export::syncs::build_table(title, shared.snapshot(), shared.system.topology.ok(), &self.query())
    }
}
