//! The Files view: which file and directory the I/O at the devices is for.

mod lists;

use crate::export::table::Table;
use crate::model::file_io::columns::{FILE_COLUMNS, SOURCE};
use crate::tui::view::{
    Action, ColumnInfo, Context, Effect, KeyContext, Outbox, PaneClick, PaneId, PaneSpec, Target, View, ViewId,
    change_columns,
};
use crate::tui::widgets::{CellBuffer, ColumnState, Rect, RowSearch, Scroll, split_rows};

const KEYS: &[KeyContext] = &[KeyContext::Columns, KeyContext::List, KeyContext::Scroll];

#[derive(Debug, Clone, Default)]
pub struct FilesView {
    pub scroll: Scroll,
    pub directory_scroll: Scroll,
    /// Of both lists. The default order is most time first.
    pub columns: ColumnState,
    pub filter: String,
    /// What was last sent to the collector.
    pub is_requested: bool,
}

impl FilesView {
    fn scroll_mut(&mut self, pane: PaneId) -> &mut Scroll {
        if pane == PaneId::Files { &mut self.scroll } else { &mut self.directory_scroll }
    }

    fn open_process(&self, pane: PaneId, cx: &Context, out: &mut Outbox) {
        let selected = if pane == PaneId::Files { self.scroll.selected } else { self.directory_scroll.selected };
        let rows = self.rows(pane, cx.shared);
        let Some(row) = rows.get(selected) else { return };
        match cx.shared.system.processes.find_live(row.pid) {
            Some(process) => out.navigate(Target::Task(process.key())),
            None if row.pid == 0 => out.error("its process is unknown"),
            None => out.error(format!("process {} has exited, or has not been scanned yet", row.pid)),
        }
    }
}

impl View for FilesView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[(PaneId::Files, "files", KEYS), (PaneId::Directories, "directories", KEYS)]
    }

    fn layout(&self, _: &Context, body: Rect) -> Vec<(PaneId, Rect)> {
        let [files, directories] = split_rows(body, body.height - body.height * 2 / 5);
        vec![(PaneId::Files, files), (PaneId::Directories, directories)]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        self.render_rows(pane, cx, area, buf);
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        self.build_table(pane, cx)
    }

    fn move_selection(&mut self, pane: PaneId, by: isize, cx: &Context) -> bool {
        let len = self.rows(pane, cx.shared).len();
        self.scroll_mut(pane).move_selection(by, len);
        true
    }

    fn on_action(&mut self, pane: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        match action {
            Action::Open => self.open_process(pane, cx, out),
            _ => return change_columns(&mut self.columns, action, FILE_COLUMNS.len()),
        }
        true
    }

    /// A click on a column's header sorts by it, a second one reverses the order; a click on a row selects it.
    fn on_click(&mut self, click: PaneClick, cx: &Context, _: &mut Outbox) {
        if click.y == click.inner.y {
            let fitted = self.fitted_columns(click.inner.width);
            if let Some(column) = fitted.column_at(click.x - click.inner.x) {
                self.columns.click(Some(column));
            }
            return;
        }
        let len = self.rows(click.pane, cx.shared).len();
        self.scroll_mut(click.pane).click(len, click.inner, click.y);
    }

    /// Files are traced only while they are on screen: in this view, and on the pages of a task, of a
    /// device and of a control group.
    fn refresh(&mut self, cx: &Context, out: &mut Outbox) {
        let is_page = matches!(cx.screen.detail, Some(PaneId::ProcessDetail | PaneId::DeviceDetail));
        let is_group = cx.layout.pane_area(PaneId::ControlGroupPage).is_some();
        let is_wanted = cx.is_settled_on(ViewId::Files) || is_page || is_group;
        if is_wanted != self.is_requested {
            self.is_requested = is_wanted;
            out.push(Effect::TraceFiles(is_wanted));
        }
    }

    fn filter(&self, _: PaneId) -> &str {
        &self.filter
    }

    fn set_filter(&mut self, _: PaneId, text: &str, _: &Context) {
        text.clone_into(&mut self.filter);
    }

    fn columns(&self, _: PaneId, _: &Context) -> Vec<ColumnInfo> {
        ColumnInfo::of_table(FILE_COLUMNS, self.columns.sorted, |_| &SOURCE)
    }

    fn column_at(&self, click: PaneClick, _: &Context) -> Option<usize> {
        self.fitted_columns(click.inner.width).column_at(click.x - click.inner.x)
    }

    fn sort_by(&mut self, _: PaneId, column: Option<usize>, _: &Context) {
        self.columns.sort_by(column);
    }

    fn find_row(&mut self, pane: PaneId, search: &RowSearch, cx: &Context) -> bool {
        let rows = self.rows(pane, cx.shared);
        let matches = |texts: [&str; 3]| texts.iter().any(|text| search.matches(text));
        let found: Vec<bool> = rows.iter().map(|row| matches([&row.path, &row.process, &row.device])).collect();
        search.select(found.into_iter(), &mut self.scroll_mut(pane).selected)
    }
}
