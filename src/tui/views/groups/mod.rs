//! The control groups, in place of the processes: a tree with I/O, pressure, memory and limits, and a page of the
//! selected group with its devices and files.

mod list;
mod page;

use crate::export::table::Table;
use crate::model::control_groups::columns::{CONTROL_GROUP_COLUMNS, SOURCE};
use crate::tui::view::{
    Action, ColumnInfo, Context, Effect, KeyContext, Outbox, PaneClick, PaneId, PaneSpec, Request, Target, View,
    ViewId, change_columns,
};
use crate::tui::widgets::{CellBuffer, ColumnState, Rect, RowSearch, Scroll, split_rows};

const KEYS: &[KeyContext] = &[KeyContext::Groups, KeyContext::Columns, KeyContext::List, KeyContext::Scroll];
const PAGE_KEYS: &[KeyContext] = &[KeyContext::Groups];

#[derive(Debug, Clone, Default)]
pub struct GroupsView {
    /// Shown in place of the processes.
    pub is_open: bool,
    pub scroll: Scroll,
    /// The default order is most bytes first.
    pub columns: ColumnState,
    pub filter: String,
    /// What was last sent to the collector.
    pub is_requested: bool,
}

impl GroupsView {
    /// Shows the processes of the selected group.
    fn open_processes(&mut self, cx: &Context, out: &mut Outbox) {
        let rows = self.rows(cx.shared);
        let Some(row) = rows.get(self.scroll.selected) else { return out.error("no group selected") };
        self.is_open = false;
        // A space would end the condition.
        let path = row.rate.path().split_whitespace().next().unwrap_or_default();
        out.navigate(Target::Processes(format!("cgroup={path}")));
    }
}

impl View for GroupsView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[(PaneId::ControlGroups, "groups", KEYS), (PaneId::ControlGroupPage, "group", PAGE_KEYS)]
    }

    fn layout(&self, _: &Context, body: Rect) -> Vec<(PaneId, Rect)> {
        let [list, page] = split_rows(body, body.height - body.height * 2 / 5);
        vec![(PaneId::ControlGroups, list), (PaneId::ControlGroupPage, page)]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        match pane {
            PaneId::ControlGroups => self.render_list(cx, area, buf),
            _ => self.render_page(cx, area, buf),
        }
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        match pane {
            PaneId::ControlGroups => self.list_table(cx),
            _ => self.page_table(cx),
        }
    }

    fn move_selection(&mut self, _: PaneId, by: isize, cx: &Context) -> bool {
        let len = self.rows(cx.shared).len();
        self.scroll.move_selection(by, len);
        true
    }

    fn on_action(&mut self, _: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        match action {
            Action::Open => self.open_processes(cx, out),
            Action::ToggleGroups => self.is_open = false,
            _ => return change_columns(&mut self.columns, action, CONTROL_GROUP_COLUMNS.len()),
        }
        true
    }

    /// A click on a column's header sorts by it, a second one reverses the order; a click on a row selects it.
    fn on_click(&mut self, click: PaneClick, cx: &Context, _: &mut Outbox) {
        if click.pane != PaneId::ControlGroups {
            return;
        }
        if click.y == click.inner.y {
            let fitted = self.fitted_columns(click.inner.width);
            if let Some(column) = fitted.column_at(click.x - click.inner.x) {
                self.columns.click(Some(column));
            }
            return;
        }
        let len = self.rows(cx.shared).len();
        self.scroll.click(len, click.inner, click.y);
    }

    fn on_target(&mut self, target: &Target, cx: &Context, out: &mut Outbox) -> bool {
        match target {
            Target::Groups => {
                self.is_open = true;
                out.request(Request::ShowPane(PaneId::ControlGroups));
            }
            // The key of the tab that is shown: back to the processes. So are processes that something points to.
            Target::Tab(tab) => self.is_open &= cx.screen.view != *tab,
            Target::Task(_) | Target::Processes(_) => self.is_open = false,
            _ => {}
        }
        *target == Target::Groups
    }

    /// Groups are read only while they are on screen.
    fn refresh(&mut self, cx: &Context, out: &mut Outbox) {
        let is_wanted = self.is_open && cx.is_settled_on(ViewId::Processes);
        if is_wanted != self.is_requested {
            self.is_requested = is_wanted;
            out.push(Effect::ReadGroups(is_wanted));
        }
    }

    fn filter(&self, _: PaneId) -> &str {
        &self.filter
    }

    fn set_filter(&mut self, _: PaneId, text: &str, _: &Context) {
        text.clone_into(&mut self.filter);
    }

    fn columns(&self, pane: PaneId, _: &Context) -> Vec<ColumnInfo> {
        match pane {
            PaneId::ControlGroups => ColumnInfo::of_table(CONTROL_GROUP_COLUMNS, self.columns.sorted, |_| &SOURCE),
            _ => Vec::new(),
        }
    }

    fn column_at(&self, click: PaneClick, _: &Context) -> Option<usize> {
        self.fitted_columns(click.inner.width).column_at(click.x - click.inner.x)
    }

    fn sort_by(&mut self, _: PaneId, column: Option<usize>, _: &Context) {
        self.columns.sort_by(column);
    }

    fn find_row(&mut self, _: PaneId, search: &RowSearch, cx: &Context) -> bool {
        let rows = self.rows(cx.shared);
        let found: Vec<bool> =
            rows.iter().map(|row| search.matches(&row.label) || search.matches(row.rate.path())).collect();
        search.select(found.into_iter(), &mut self.scroll.selected)
    }
}
