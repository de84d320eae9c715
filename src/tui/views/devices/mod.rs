//! The Devices view: a table as iostat prints it, graphs of the selected device, and a page for each device.

mod detail;
mod file_systems;
mod flushes;
mod graphs;
mod latency;
mod list;
mod request_sizes;

pub(super) use self::flushes::draw_flushes;
pub(super) use self::graphs::{AWAIT, DEVICE_USE, GraphQuantity, draw_graph};
use super::detail::scroll_positions;
use crate::doctor::incident::Incident;
use crate::export::table::Table;
use crate::model::columns::device::{COLUMNS, DeviceColumn, DeviceColumnSet, DeviceColumnSpec};
use crate::model::columns::figures::DEVICE_FIGURES;
use crate::model::disk::DevId;
use crate::tui::view::{
    Action, ColumnChoice, ColumnInfo, Context, KeyContext, Outbox, PaneClick, PaneId, PaneSpec, Request, Shared,
    Target, View, ViewId,
};
use crate::tui::widgets::{CellBuffer, ColumnState, Rect, RowSearch, Scroll, split_rows};

const LIST_KEYS: &[KeyContext] = &[KeyContext::Devices, KeyContext::Columns, KeyContext::List, KeyContext::Scroll];

#[derive(Debug, Clone, Default)]
pub struct DevicesView {
    pub scroll: Scroll,
    /// The device that the user went to; `None`: the one that the worst finding is about is selected, else the first.
    pub selected_device: Option<DevId>,
    /// The default order is the tree.
    pub columns: ColumnState,
    pub extended: bool,
    /// The columns that were chosen; empty: as many as there is room for.
    pub chosen: Vec<DeviceColumnSpec>,
    pub only_active: bool,
    pub filter: String,
    /// The Overview lists idle devices, too, instead of their number.
    pub show_idle: bool,
    /// Rows shown and devices folded into one line; `None` while none are folded.
    pub(super) folded: Option<(usize, usize)>,
    pub graph_index: usize,
    /// The device whose page was opened last.
    pub page: Option<DevId>,
}

impl DevicesView {
    pub fn selected(&self, shared: &Shared) -> Option<DevId> {
        self.device_lines(shared).get(self.scroll.selected).map(|line| line.id)
    }

    pub fn select(&mut self, id: DevId, shared: &Shared) {
        if let Some(row) = self.device_lines(shared).iter().position(|line| line.id == id) {
            (self.scroll.selected, self.selected_device) = (row, Some(id));
        }
    }

    /// Keeps the same device selected wherever its row is now: the one that the user went to, else the one in trouble.
    fn follow_device(&mut self, shared: &Shared) {
        let in_trouble = || shared.findings.worst_incident().and_then(Incident::device);
        match self.selected_device.or_else(in_trouble) {
            Some(id) => {
                let row = self.device_lines(shared).iter().position(|line| line.id == id);
                self.scroll.selected = row.unwrap_or(self.scroll.selected);
            }
            None => self.scroll.selected = 0,
        }
    }

    /// Rows that the list would fill, network file systems included.
    pub fn wanted_rows(&self, shared: &Shared) -> u16 {
        let fold_line = self.folded.is_some_and(|(_, idle)| idle > 0);
        (self.line_count(shared) + usize::from(fold_line)).min(500) as u16 + Self::network_line_count(shared).min(20)
    }

    /// Whether this is the Overview, without room for graphs.
    fn is_without_graphs(cx: &Context) -> bool {
        cx.screen.view == ViewId::Overview && cx.layout.pane_area(PaneId::DeviceGraphs).is_none()
    }

    /// Shows the other set of columns, sorted by the same column if that has it, else in the default order.
    fn toggle_extended(&mut self) {
        let id = self.sort_id();
        self.extended = !self.extended;
        self.sort_by_id(id);
    }

    /// Sorts by a column if it is shown, else in the default order.
    fn sort_by_id(&mut self, id: Option<DeviceColumn>) {
        let at = id.and_then(|id| self.column_set(u16::MAX).iter().position(|c| c.id == id));
        self.columns.sort_by(at);
    }

    /// Shows the columns of these headings, the name first; none: as many as there is room for.
    pub fn choose_columns<T: AsRef<str>>(&mut self, headers: &[T]) {
        let id = self.sort_id();
        let name = DeviceColumn::Name.spec();
        let columns = headers.iter().filter_map(|header| DeviceColumn::by_header(header.as_ref()).copied());
        let columns = std::iter::once(*name).chain(columns.filter(|c| c.id != DeviceColumn::Name));
        self.chosen = if headers.is_empty() { Vec::new() } else { columns.collect() };
        self.extended &= self.chosen.is_empty();
        self.sort_by_id(id);
    }

    /// Sorts by the clicked column; a second click reverses the order, a click on the name restores the tree.
    fn click_header(&mut self, click: PaneClick, shared: &Shared) {
        let (set, fitted) = self.fitted_columns(shared, click.inner.width);
        let Some(column) = fitted.column_at(click.x - click.inner.x) else { return };
        let id = set[column].id;
        match self.column_set(u16::MAX).iter().position(|c| c.id == id) {
            Some(0) => self.columns.sort_by(None),
            column => self.columns.click(column),
        }
    }
}

impl View for DevicesView {
    fn panes(&self) -> &'static [PaneSpec] {
        &[
            (PaneId::Devices, "devices", LIST_KEYS),
            (PaneId::DeviceGraphs, "device-graphs", LIST_KEYS),
            (
                PaneId::DeviceDetail,
                "device",
                &[KeyContext::Detail, KeyContext::DeviceDetail, KeyContext::Figures, KeyContext::Scroll],
            ),
        ]
    }

    /// The list above, the graphs below; a low screen has no graphs.
    fn layout(&self, cx: &Context, body: Rect) -> Vec<(PaneId, Rect)> {
        let graphs = if body.height >= 16 { (body.height / 3).clamp(7, 16) } else { 0 };
        let list = (body.height - graphs).min((self.wanted_rows(cx.shared) + 3).max(6));
        let graphs = if graphs > 0 { (body.height - list).min(30) } else { 0 };
        let [list, graphs] = split_rows(body, body.height - graphs);
        vec![(PaneId::Devices, list), (PaneId::DeviceGraphs, graphs)]
    }

    fn render(&self, pane: PaneId, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        match pane {
            PaneId::Devices => self.render_list(cx, area, buf),
            PaneId::DeviceGraphs => self.render_graphs(cx, area, buf),
            _ => self.render_detail(cx, area, buf),
        }
    }

    fn table(&self, pane: PaneId, cx: &Context) -> Table {
        match pane {
            PaneId::DeviceDetail => self.detail_table(cx),
            _ => self.list_table(cx.shared),
        }
    }

    fn row_count(&self, pane: PaneId, cx: &Context) -> usize {
        let [text, _] = Self::split_text_and_graphs(cx.inner_area(pane));
        scroll_positions(self.detail_lines(cx).len(), text.height)
    }

    fn move_selection(&mut self, _: PaneId, by: isize, cx: &Context) -> bool {
        self.scroll.move_selection(by, self.device_lines(cx.shared).len());
        self.selected_device = self.selected(cx.shared);
        true
    }

    fn on_action(&mut self, pane: PaneId, action: Action, cx: &Context, out: &mut Outbox) -> bool {
        match action {
            Action::Open if pane != PaneId::DeviceDetail => {
                if let Some(id) = self.selected(cx.shared) {
                    out.navigate(Target::Device(id));
                }
            }
            Action::SortLeft => self.columns.move_sorted(-1, self.column_set(u16::MAX).len()),
            Action::SortRight => self.columns.move_sorted(1, self.column_set(u16::MAX).len()),
            Action::ColumnsLeft => self.columns.scroll(-1, self.column_set(cx.screen.size.0).len()),
            Action::ColumnsRight => self.columns.scroll(1, self.column_set(cx.screen.size.0).len()),
            Action::ReverseSort => self.columns.reverse = !self.columns.reverse,
            Action::ToggleActiveOnly if cx.screen.view == ViewId::Overview && !self.only_active => {
                self.show_idle = !self.show_idle;
            }
            Action::ToggleActiveOnly => self.only_active = !self.only_active,
            Action::ToggleExtendedColumns => self.toggle_extended(),
            // The Overview has graphs only where there is room.
            Action::NextGraph if pane == PaneId::Devices && Self::is_without_graphs(cx) => {
                out.navigate(Target::Tab(ViewId::Devices));
            }
            Action::NextGraph => self.graph_index += 1,
            _ => return false,
        }
        true
    }

    fn on_target(&mut self, target: &Target, _: &Context, out: &mut Outbox) -> bool {
        match *target {
            Target::Device(id) => self.page = Some(id),
            Target::DeviceGraph(id, graph) => (self.page, self.graph_index) = (Some(id), graph),
            _ => return false,
        }
        out.request(Request::OpenPage(PaneId::DeviceDetail));
        true
    }

    fn refresh(&mut self, cx: &Context, _: &mut Outbox) {
        self.folded = None;
        if cx.screen.view == ViewId::Overview && !self.show_idle && !self.only_active && self.filter.is_empty() {
            let all = self.line_count(cx.shared);
            self.folded = Some((0, 0));
            let shown = self.device_lines(cx.shared).len();
            self.folded = Some((shown, all.saturating_sub(shown)));
        }
        if matches!(cx.screen.view, ViewId::Overview | ViewId::Devices) {
            self.follow_device(cx.shared);
        }
    }

    fn on_click(&mut self, click: PaneClick, cx: &Context, _: &mut Outbox) {
        if click.pane != PaneId::Devices {
            return;
        }
        if click.y == click.inner.y {
            return self.click_header(click, cx.shared);
        }
        self.scroll.click(self.device_lines(cx.shared).len(), click.inner, click.y);
        self.selected_device = self.selected(cx.shared);
    }

    fn filter(&self, _: PaneId) -> &str {
        &self.filter
    }

    fn set_filter(&mut self, _: PaneId, text: &str, _: &Context) {
        text.clone_into(&mut self.filter);
    }

    fn columns(&self, pane: PaneId, _: &Context) -> Vec<ColumnInfo> {
        match pane {
            PaneId::Devices => {
                ColumnInfo::of_table(self.column_set(u16::MAX), self.columns.sorted, DeviceColumn::source)
            }
            _ => {
                let columns = DeviceColumnSet::Extended.columns().iter().skip(1);
                let columns = columns.map(|column| ColumnInfo::new(column, column.id.source()));
                columns.chain(ColumnInfo::of_figures(DEVICE_FIGURES)).collect()
            }
        }
    }

    fn column_choices(&self, _: PaneId, _: &Context) -> Vec<ColumnChoice> {
        ColumnChoice::list(self.column_set(u16::MAX), COLUMNS.iter())
    }

    fn set_columns(&mut self, _: PaneId, headers: &[&str], _: &Context) {
        self.choose_columns(headers);
    }

    fn column_at(&self, click: PaneClick, cx: &Context) -> Option<usize> {
        if click.pane != PaneId::Devices {
            return None;
        }
        let (set, fitted) = self.fitted_columns(cx.shared, click.inner.width);
        let id = set[fitted.column_at(click.x - click.inner.x)?].id;
        self.column_set(u16::MAX).iter().position(|column| column.id == id)
    }

    fn sort_by(&mut self, _: PaneId, column: Option<usize>, _: &Context) {
        self.columns.sort_by(column);
    }

    fn find_row(&mut self, _: PaneId, search: &RowSearch, cx: &Context) -> bool {
        let lines = self.device_lines(cx.shared);
        let found = search.select(lines.iter().map(|line| search.matches(&line.label)), &mut self.scroll.selected);
        if found {
            self.selected_device = lines.get(self.scroll.selected).map(|line| line.id);
        }
        found
    }
}
