//! The upper pane: one row for each process and file, with the time it spends waiting for syncs. The lower pane: slow syncs
//! one by one, those in flight first, so that a sync that hangs shows while it hangs.

use super::SyncsView;
use crate::export::{self, table::Table};
use crate::model::column::CellValue;
use crate::model::syncs::SlowSyncRow;
use crate::model::syncs::columns::{SLOW_SYNC_COLUMNS, SYNC_COLUMNS, SlowSyncColumn, SyncColumnSpec, SyncRow};
use crate::model::syncs::list::{self, SyncQuery};
use crate::tui::view::{Context, PaneId, Shared};
use crate::tui::views::devices::draw_flushes;
use crate::tui::widgets::{
    CellBuffer, FittedColumns, Rect, area_below, draw_reason, draw_text, reason_rows, table, title_with_filter,
};

/// Cells the path keeps at least, in each pane.
const MIN_PATH_WIDTH: u16 = 16;
const MIN_SLOW_PATH_WIDTH: u16 = 14;

impl SyncsView {
    fn query(&self) -> SyncQuery<'_> {
        let sort = self.columns.sorted.and_then(|i| SYNC_COLUMNS.get(i)).map(|c| c.id);
        SyncQuery { sort, reverse: self.columns.reverse, filter: &self.filter }
    }

    pub(super) fn callers(&self, shared: &Shared) -> Vec<SyncRow> {
        let syncs = shared.snapshot().syncs.ok();
        syncs.map_or_else(Vec::new, |s| list::sync_rows(s, shared.system.topology.ok(), &self.query()))
    }

    pub(super) fn fitted_columns(&self, width: u16) -> FittedColumns {
        table::fit_columns(SYNC_COLUMNS, width, MIN_PATH_WIDTH.max(width / 5), self.columns.offset, |i| {
            self.columns.priority(i)
        })
    }

    pub(super) fn render_callers(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme, cx.is_focused(PaneId::Syncs));
        let title = title_with_filter("Syncs", &self.filter);
        let inner = cx.draw_frame(buf, PaneId::Syncs, area, &title, &cx.shared.interval_text());
        if inner.height == 0 {
            return;
        }
        let snapshot = cx.shared.snapshot();
        let Some(syncs) = snapshot.syncs.ok() else {
            let why = snapshot.syncs.unavailable_reason(snapshot.time.boot_ns).unwrap_or_default();
            draw_reason(buf, inner, &why, theme.warn);
            return draw_flushes(cx, area_below(inner, reason_rows(&why, inner.width)), buf);
        };
        let rows = self.callers(cx.shared);
        let fitted = self.fitted_columns(inner.width);
        let sorted = self.columns.mark(SYNC_COLUMNS);
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
        let used = rows.len().clamp(1, body.height.max(1).into()) as u16;
        draw_flushes(cx, area_below(body, used), buf);
        if rows.is_empty() && body.height > 0 {
            let text = match syncs.rows.is_empty() {
                true => "No syncs yet".to_owned(),
                false => cx.shared.no_match_text("row"),
            };
            draw_text(buf, body.x, body.y, &text, body.width, theme.dim);
        }
    }

    pub(super) fn callers_table(&self, cx: &Context) -> Table {
        let shared = cx.shared;
        let title = shared.table_title(&title_with_filter("Syncs", &self.filter));
        export::syncs::build_table(title, shared.snapshot(), shared.system.topology.ok(), &self.query())
    }

    pub(super) fn slow_syncs(&self, shared: &Shared) -> Vec<SlowSyncRow> {
        let syncs = shared.snapshot().syncs.ok();
        syncs.map_or_else(Vec::new, |s| list::slow_sync_rows(s, shared.system.topology.ok(), &self.filter))
    }

    pub(super) fn fitted_slow_columns(width: u16) -> FittedColumns {
        // In a narrow pane errno goes before what the sync waited on.
        let keep = |i: usize| table::Priority::kept_if(SLOW_SYNC_COLUMNS[i].id == SlowSyncColumn::WaitedOn);
        table::fit_columns(SLOW_SYNC_COLUMNS, width, MIN_SLOW_PATH_WIDTH, 0, keep)
    }

    pub(super) fn render_slow_syncs(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme, cx.is_focused(PaneId::SlowSyncs));
        let snapshot = cx.shared.snapshot();
        let in_flight = snapshot.syncs.ok().map_or(0, |s| s.in_flight.len());
        let note = if in_flight > 0 { format!("{in_flight} in flight") } else { String::new() };
        let title = title_with_filter(format!("Slow syncs, from {} ms", self.threshold_ms), &self.filter);
        let inner = cx.draw_frame(buf, PaneId::SlowSyncs, area, &title, &note);
        if inner.height == 0 {
            return;
        }
        if snapshot.syncs.ok().is_none() {
            draw_text(buf, inner.x, inner.y, "- not traced", inner.width, theme.dim);
            return;
        }
        let rows = self.slow_syncs(cx.shared);
        let fitted = Self::fitted_slow_columns(inner.width);
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
        export::syncs::build_slow_table(&title, snapshot, topology, &self.filter, 0).unwrap_or_else(|| {
            let mut table = Table::new(title, &[]);
            table.notes.extend(snapshot.syncs.unavailable_reason(snapshot.time.boot_ns));
            table
        })
    }
}
