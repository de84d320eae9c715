//! The upper pane: files, and I/O that belongs to no file. The lower pane: directories with the files in them.

use super::FilesView;
use crate::export::{self, table::Table};
use crate::model::column::CellValue;
use crate::model::file_io::FileRow;
use crate::model::file_io::columns::{FILE_COLUMNS, FileColumn, FileColumnSpec};
use crate::model::file_io::list::{self, FileQuery};
use crate::tui::view::{Context, PaneId, Shared};
use crate::tui::widgets::{CellBuffer, FittedColumns, Rect, draw_reason, draw_text, table, title_with_filter};

/// Cells the path keeps at least.
const MIN_PATH_WIDTH: u16 = 24;
/// With more than this for the path, names of processes and devices are shown whole, up to these widths.
const ROOMY_PATH_WIDTH: u16 = 48;
const WIDENED: [(FileColumn, u16); 2] = [(FileColumn::Process, 28), (FileColumn::Device, 12)];

impl FilesView {
    fn query(&self) -> FileQuery<'_> {
        let sort = self.columns.sorted.and_then(|i| FILE_COLUMNS.get(i)).map(|c| c.id);
        FileQuery { sort, reverse: self.columns.reverse, filter: &self.filter, ..FileQuery::default() }
    }

    pub(super) fn rows(&self, pane: PaneId, shared: &Shared) -> Vec<FileRow> {
        let Some(files) = shared.snapshot().files.ok() else { return Vec::new() };
        let (topology, query) = (shared.system.topology.ok(), self.query());
        match pane {
            PaneId::Files => list::file_rows(files, topology, &query),
            _ => list::directory_rows(files, topology, &query),
        }
    }

    pub(super) fn fitted_columns(&self, width: u16) -> FittedColumns {
        let least = MIN_PATH_WIDTH.max(width / 4);
        let mut fitted =
            table::fit_columns(FILE_COLUMNS, width, least, self.columns.offset, |i| self.columns.priority(i));
        for (id, most) in WIDENED {
            if let Some(column) = FILE_COLUMNS.iter().position(|c| c.id == id) {
                fitted.widen(column, most, ROOMY_PATH_WIDTH);
            }
        }
        fitted
    }

    pub(super) fn render_rows(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (theme, focused) = (&cx.theme, cx.is_focused(pane));
        let is_files = pane == PaneId::Files;
        let title = title_with_filter(if is_files { "Files at the devices" } else { "Directories" }, &self.filter);
        let interval = cx.shared.interval_text();
        let inner = cx.draw_frame(buf, pane, area, &title, if is_files { &interval } else { "" });
        if inner.height == 0 {
            return;
        }
        let snapshot = cx.shared.snapshot();
        let Some(files) = snapshot.files.ok() else {
            let why = snapshot.files.unavailable_reason(snapshot.time.boot_ns).filter(|_| is_files);
            return draw_reason(buf, inner, &why.unwrap_or_default(), theme.warn);
        };
        let rows = self.rows(pane, cx.shared);
        let fitted = self.fitted_columns(inner.width);
        let sorted = self.columns.mark(FILE_COLUMNS);
        table::draw_header(buf, inner, FILE_COLUMNS, &fitted, sorted, theme);
        let notes = if is_files { list::notes(files, snapshot) } else { Vec::new() };
        let note_rows = (notes.len() as u16).min(inner.height.saturating_sub(2) / 3);
        let body = Rect { y: inner.y + 1, height: inner.height - 1 - note_rows, ..inner };
        for (note, y) in notes.iter().zip(body.bottom()..inner.bottom()) {
            draw_text(buf, inner.x, y, note, inner.width, theme.dim);
        }
        let scroll = if is_files { &self.scroll } else { &self.directory_scroll };
        let mut scratch = String::new();
        for (row, y, selected) in scroll.visible(&rows, body) {
            let value = |c: &FileColumnSpec| (c.value)(row);
            let style = |c: &FileColumnSpec, v: &CellValue<'_>| table::cell_style(c, v, theme.text, theme);
            table::draw_row(buf, body, y, FILE_COLUMNS, &fitted, value, style, &mut scratch);
            if focused && selected {
                table::highlight_row(buf, body, y, theme);
            }
        }
        if rows.is_empty() && body.height > 0 {
            let text = match files.rows.is_empty() {
                true => "No I/O in the interval".to_owned(),
                false => cx.shared.no_match_text("row"),
            };
            draw_text(buf, body.x, body.y, &text, body.width, theme.dim);
        }
    }

    pub(super) fn build_table(&self, pane: PaneId, cx: &Context) -> Table {
        let (shared, snapshot) = (cx.shared, cx.shared.snapshot());
        let topology = shared.system.topology.ok();
        let title = |name| shared.table_title(&title_with_filter(name, &self.filter));
        match pane {
            PaneId::Files => export::files::build_table(title("Files"), snapshot, topology, &self.query()),
            _ => {
                let directories = title("Directories");
                let table =
                    export::files::build_directory_table(directories.clone(), snapshot, topology, &self.query());
                table.unwrap_or_else(|| Table::new(directories, &[]))
            }
        }
    }
}
