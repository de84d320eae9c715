//! The lower pane: slow syncs one by one, those in flight first, so that a sync that hangs shows while it hangs.

use super::SyncsView;
use crate::export::{self, table::Table};
use crate::model::syncs::columns::{SLOW_SYNC_COLUMNS, SlowSyncColumn};
use crate::model::syncs::{SlowSyncRow, list};
use crate::tui::view::{Context, PaneId, Shared};
use crate::tui::widgets::{CellBuffer, Rect, draw_frame, draw_text, table, title_with_filter};

/// Cells the path keeps at least.
const MIN_PATH_WIDTH: u16 = 14;

impl SyncsView {
    pub(super) fn slow_syncs(&self, shared: &Shared) -> Vec<SlowSyncRow> {
        let syncs = shared.snapshot().syncs.ok();
        syncs.map_or_else(Vec::new, |s| list::slow_sync_rows(s, shared.system.topology.ok(), &self.filter))
    }

    pub(super) fn render_slow_syncs(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme(), cx.is_focused(PaneId::SlowSyncs));
        let snapshot = cx.shared.snapshot();
        let in_flight = snapshot.syncs.ok().map_or(0, |s| s.in_flight.len());
        let note = if in_flight > 0 { format!("{in_flight} in flight") } else { String::new() };
        let title = title_with_filter(format!("Slow syncs, from {} ms", self.threshold_ms), &self.filter);
        let inner = draw_frame(buf, area, &title, &note, focused, theme);
        if inner.height == 0 || snapshot.syncs.ok().is_none() {
            return;
        }
        let rows = self.slow_syncs(cx.shared);
        // In a narrow pane errno goes before what the sync waited on.
        let keep = |i: usize| table::Priority::kept_if(SLOW_SYNC_COLUMNS[i].id == SlowSyncColumn::WaitedOn);
        let fitted = table::fit_columns(SLOW_SYNC_COLUMNS, inner.width, MIN_PATH_WIDTH, 0, keep);
        table::draw_header(buf, inner, SLOW_SYNC_COLUMNS, &fitted, None, theme);
        let body = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
        let mut scratch = String::new();
        for (row, y, selected) in self.slow_scroll.visible(&rows, body) {
            let ended_at = cx.shared.format_time_of_day(snapshot.time.wall_ns_at(row.started_ns + row.duration_ns));
            let style = |column: SlowSyncColumn| match column {
                SlowSyncColumn::EndedAt | SlowSyncColumn::Duration if row.is_in_flight => theme.crit,
                _ => theme.text,
            };
            table::draw_row(
                buf,
                body,
                y,
                SLOW_SYNC_COLUMNS,
                &fitted,
                |c| (c.value)(row, &ended_at),
                |c, v| table::cell_style(c, v, style(c.id), theme),
                &mut scratch,
            );
            if focused && selected {
                table::highlight_row(buf, body, y, theme);
            }
        }
        if rows.is_empty() {
            draw_text(buf, body.x, body.y, "none", body.width, theme.dim);
        }
    }

    pub(super) fn slow_syncs_table(&self, cx: &Context) -> Table {
        let (shared, snapshot) = (cx.shared, cx.shared.snapshot());
        let title = shared.table_title("Slow syncs");
        let topology = shared.system.topology.ok();
        export::syncs::build_slow_table(&title, snapshot, topology, &self.filter).unwrap_or_else(|| {
            let mut table = Table::new(title, &[]);
            table.notes.extend(snapshot.syncs.unavailable_reason(snapshot.time.boot_ns));
            table
        })
    }
}
