//! The upper pane: the groups as a tree.

use super::GroupsView;
use crate::export::{self, table::Table};
use crate::model::column::CellValue;
use crate::model::control_groups::columns::{CONTROL_GROUP_COLUMNS, ControlGroupColumnSpec, ControlGroupRow};
use crate::model::control_groups::list::{self, ControlGroupQuery};
use crate::tui::view::{Context, PaneId, Shared};
use crate::tui::widgets::{CellBuffer, FittedColumns, Rect, draw_reason, draw_text, table, title_with_filter};

/// Cells the name keeps at least.
const MIN_NAME_WIDTH: u16 = 24;

impl GroupsView {
    fn query(&self) -> ControlGroupQuery<'_> {
        let sort = self.columns.sorted.and_then(|i| CONTROL_GROUP_COLUMNS.get(i)).map(|c| c.id);
        ControlGroupQuery { sort, reverse: self.columns.reverse, filter: &self.filter }
    }

    pub(super) fn rows(&self, shared: &Shared) -> Vec<ControlGroupRow> {
        list::tree_rows(&shared.system, &self.query())
    }

    pub(super) fn fitted_columns(&self, width: u16) -> FittedColumns {
        table::fit_columns(CONTROL_GROUP_COLUMNS, width, MIN_NAME_WIDTH.max(width / 4), self.columns.offset, |i| {
            self.columns.priority(i)
        })
    }

    pub(super) fn render_list(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, pane) = (&cx.theme, PaneId::ControlGroups);
        let title = title_with_filter("Control groups", &self.filter);
        let inner = cx.draw_frame(buf, pane, area, &title, &cx.shared.interval_text());
        if inner.height == 0 {
            return;
        }
        let snapshot = cx.shared.snapshot();
        let Some(groups) = snapshot.control_groups.ok() else {
            let why = match cx.shared.replay {
                Some(_) => Some("recordings hold no control groups".into()),
                None => snapshot.control_groups.unavailable_reason(snapshot.time.boot_ns),
            };
            return draw_reason(buf, inner, &why.unwrap_or_default(), theme.warn);
        };
        let rows = self.rows(cx.shared);
        let fitted = self.fitted_columns(inner.width);
        table::draw_header(buf, inner, CONTROL_GROUP_COLUMNS, &fitted, self.columns.mark(CONTROL_GROUP_COLUMNS), theme);
        let notes = list::notes(groups);
        let note_rows = (notes.len() as u16).min(inner.height.saturating_sub(2) / 3);
        let body = Rect { y: inner.y + 1, height: inner.height - 1 - note_rows, ..inner };
        for (note, y) in notes.iter().zip(body.bottom()..inner.bottom()) {
            draw_text(buf, inner.x, y, note, inner.width, theme.dim);
        }
        let mut scratch = String::new();
        for (row, y, selected) in self.scroll.visible(&rows, body) {
            let value = |c: &ControlGroupColumnSpec| (c.value)(row);
            let style = |c: &ControlGroupColumnSpec, v: &CellValue<'_>| table::cell_style(c, v, theme.text, theme);
            table::draw_row(buf, body, y, CONTROL_GROUP_COLUMNS, &fitted, value, style, &mut scratch);
            if cx.is_focused(pane) && selected {
                table::highlight_row(buf, body, y, theme);
            }
        }
        if rows.is_empty() && body.height > 0 {
            let text = match groups.groups.is_empty() {
                true => "no control groups".to_owned(),
                false => cx.shared.no_match_text("row"),
            };
            draw_text(buf, body.x, body.y, &text, body.width, theme.dim);
        }
    }

    pub(super) fn list_table(&self, cx: &Context) -> Table {
        let title = cx.shared.table_title(&title_with_filter("Control groups", &self.filter));
        export::control_groups::build_table(title, &cx.shared.system, &self.query())
    }
}
