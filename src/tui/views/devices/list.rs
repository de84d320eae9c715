//! The list: iostat's columns for disks, partitions and the devices stacked on them, as a tree.

use super::DevicesView;
use super::file_systems::draw_file_systems;
use super::latency::device_history;
use crate::doctor::finding::Severity;
use crate::export;
use crate::export::table::Table;
use crate::model::column::CellValue;
use crate::model::columns::device::{DeviceColumn, DeviceColumnSet, DeviceColumnSpec, DeviceRow};
use crate::model::device_list::{self, DeviceQuery, ListedDevice};
use crate::model::disk::{DevId, DiskRate};
use crate::model::topology::BlockDevice;
use crate::tui::column_priority::of_device_column;
use crate::tui::view::{Action, Context, PaneId, Shared};
use crate::tui::widgets::{
    CellBuffer, Levels, Rect, Style, Theme, area_below, draw_column, draw_columns, draw_reason, draw_text,
    draw_text_right, path_end, split_rows, table, title_with_filter,
};
use std::borrow::Cow;
use std::sync::Arc;
use unicode_width::UnicodeWidthStr;

/// Cells of a sparkline, at least and at most.
const MIN_SPARKLINE_WIDTH: u16 = 6;
const MAX_SPARKLINE_WIDTH: u16 = 30;
/// Cells that a name and the end of its mount point keep at the least beside a sparkline.
const MIN_LABEL_WIDTH: u16 = 18;
/// Cells of the end of a mount point, at the least.
const MIN_PATH_WIDTH: usize = 6;

impl DevicesView {
    /// Rows of the network file systems, the header included.
    pub fn network_line_count(shared: &Shared) -> u16 {
        shared.snapshot().netfs.ok().map_or(0, |list| if list.is_empty() { 0 } else { list.len() as u16 + 1 })
    }

    pub fn column_set(&self, width: u16) -> &[DeviceColumnSpec] {
        if !self.chosen.is_empty() && !self.extended {
            return &self.chosen;
        }
        let set = match (self.extended, width) {
            (true, _) => DeviceColumnSet::Extended,
            (false, 0..90) => DeviceColumnSet::Compact,
            (false, _) => DeviceColumnSet::Wide,
        };
        set.columns()
    }

    /// The columns that fit into a width.
    pub fn fitted_columns(&self, shared: &Shared, width: u16) -> (&[DeviceColumnSpec], table::FittedColumns) {
        let set = self.column_set(width);
        let sorted = self.sort_id();
        let is_traced = shared.snapshot().tracing.ok().is_some();
        let priority = |i: usize| match set[i].id {
            id if Some(id) == sorted => table::Priority::Kept,
            DeviceColumn::ReadP99 | DeviceColumn::WriteP99 | DeviceColumn::FlushP99 if !is_traced => {
                table::Priority::Hidden
            }
            id => of_device_column(id, self.extended && is_empty_column(shared, &set[i])),
        };
        // Names have room for a mount point and a sparkline.
        let least = match width {
            0..60 => 10,
            60..90 => 16,
            _ if self.extended => 16,
            _ => (width * 3 / 8).min(46),
        };
        (set, table::fit_columns(set, width, least, self.columns.offset, priority))
    }

    /// The interval, and why there are no percentiles.
    fn title_note(&self, shared: &Shared) -> String {
        let why = shared.snapshot().tracing.unavailable_reason(shared.system.now().boot_ns);
        let why = why.filter(|_| self.extended).map_or(String::new(), |why| format!(" · no p99: {why}"));
        shared.interval_text() + &why
    }

    pub fn device_lines(&self, shared: &Shared) -> Vec<ListedDevice> {
        // A device that a finding is about stays on the Overview: an idle one may be a broken one.
        let findings = shared.findings.incidents.iter().filter(|incident| incident.severity > Severity::Note);
        let kept = findings.filter_map(|incident| incident.cause().devices.first().copied());
        let kept: Vec<_> = kept.filter(|_| self.folded.is_some()).collect();
        let query = DeviceQuery {
            kept: &kept,
            sort: self.sort_id(),
            reverse: self.columns.reverse,
            only_active: self.only_active || self.folded.is_some(),
            filter: &self.filter,
            containers: Some(shared.system.processes.container_names()),
        };
        device_list::list_devices(shared.snapshot(), shared.system.topology.ok(), &query)
    }

    fn list_title(&self) -> String {
        title_with_filter(if self.only_active { "Devices · active" } else { "Devices" }, &self.filter)
    }

    pub(super) fn render_list(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let (shared, theme) = (cx.shared, &cx.theme);
        let title = self.list_title() + &self.hidden_sort_note(shared, area.width.saturating_sub(2));
        let inner = cx.draw_frame(buf, PaneId::Devices, area, &title, &self.title_note(shared));
        if inner.height == 0 {
            return;
        }
        if let Some(why) = shared.snapshot().devices.unavailable_reason(shared.system.now().boot_ns) {
            draw_reason(buf, inner, &why, theme.warn);
            return;
        }
        let inner = draw_network(shared, theme, inner, buf);
        if inner.height == 0 {
            return;
        }
        let lines = self.device_lines(shared);
        let (set, fitted) = self.fitted_columns(shared, inner.width);
        let sorted = self
            .sort_id()
            .and_then(|id| set.iter().position(|c| c.id == id))
            .map(|i| (i, set[i].ascending == self.columns.reverse));
        table::draw_header(buf, inner, set, &fitted, sorted, theme);
        let body = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
        let idle = self.folded.map(|(_, idle)| idle).filter(|idle| *idle > 0);
        let rows = Rect { height: body.height - u16::from(idle.is_some()).min(body.height), ..body };
        self.draw_devices(cx, rows, buf, &lines);
        let used = (lines.len() as u16).min(rows.height);
        if let Some(idle) = idle.filter(|_| body.height > 0) {
            let key = shared.keymap.key_of(Action::ToggleActiveOnly);
            draw_text(buf, body.x, body.y + used, &format!("{idle} idle ({key} shows all)"), body.width, theme.dim);
        } else if lines.is_empty() {
            let has_devices = shared.snapshot().devices.ok().is_some_and(|rates| !rates.is_empty());
            let text = shared.no_match_text("device");
            let text = if has_devices { &text } else { "no block device has done any I/O" };
            draw_text(buf, body.x, body.y, text, body.width, theme.dim);
        }
        if self.filter.is_empty() {
            let used = used + u16::from(idle.is_some() || lines.is_empty());
            draw_file_systems(shared, area_below(body, used), buf, theme);
        }
    }

    /// Draws a row for each device on screen, below the row of headings.
    fn draw_devices(&self, cx: &Context, rows: Rect, buf: &mut CellBuffer, lines: &[ListedDevice]) {
        let (shared, theme) = (cx.shared, &cx.theme);
        let rates = shared.snapshot().devices.ok().map(Vec::as_slice).unwrap_or_default();
        let (set, fitted) = self.fitted_columns(shared, rows.width);
        let name_width = fitted.columns.first().map_or(0, |(_, _, width)| *width);
        let shown: Vec<_> = self.scroll.visible(lines, rows).collect();
        let labels: Vec<_> = shown.iter().map(|(line, ..)| fit_label(&line.label, label_room(name_width))).collect();
        let sparkline = sparkline_column(&labels, rows, &fitted);
        if sparkline.width > 0 {
            draw_text_right(buf, sparkline.x, rows.y - 1, "util", sparkline.width, theme.dim);
        }
        let (none, mut scratch) = (DiskRate::default(), String::new());
        for ((line, y, selected), label) in shown.into_iter().zip(&labels) {
            let row = DeviceRow { rate: line.rate_index.map_or(&none, |i| &rates[i]), label };
            if line.rate_index.is_none() {
                draw_text(buf, rows.x, y, &line.label, rows.width, theme.dim);
            } else {
                let value = |c: &DeviceColumnSpec| (c.value)(&row);
                let style = |c: &DeviceColumnSpec, v: &CellValue<'_>| cell_style(&row, c, v, theme);
                table::draw_row(buf, rows, y, set, &fitted, value, style, &mut scratch);
                draw_sparkline(shared, Rect { y, ..sparkline }, buf, line.id, theme);
                draw_stalled_label(buf, rows, y, row.rate, theme);
            }
            if selected && cx.is_focused(PaneId::Devices) {
                table::highlight_row(buf, rows, y, theme);
            }
        }
    }

    /// ` · by infl` while the list is sorted by a column that has no room.
    fn hidden_sort_note(&self, shared: &Shared, width: u16) -> String {
        let Some(id) = self.sort_id() else { return String::new() };
        let (set, fitted) = self.fitted_columns(shared, width);
        let is_shown = fitted.columns.iter().any(|(i, ..)| set[*i].id == id);
        let spec = self.column_set(u16::MAX).iter().find(|c| c.id == id).filter(|_| !is_shown);
        spec.map_or(String::new(), |spec| format!(" · by {}", spec.header))
    }

    /// Number of rows, without building them: the layout asks several times a frame.
    pub fn line_count(&self, shared: &Shared) -> usize {
        if let Some((shown, _)) = self.folded {
            return shown;
        }
        if !self.filter.is_empty() {
            return self.device_lines(shared).len();
        }
        let rates = shared.snapshot().devices.ok().map(Vec::as_slice).unwrap_or_default();
        if self.only_active {
            return rates.iter().filter(|r| r.is_active()).count();
        }
        // The tree also lists mounted devices that never did any I/O.
        let topology = shared.system.topology.ok().filter(|_| self.columns.sorted.is_none());
        let (idle, vacant) = topology.map_or((0, 0), |topo| {
            let used = |dev: &&BlockDevice| !dev.mounts.is_empty() || !dev.swaps.is_empty();
            let idle = topo.devices.iter().filter(used).filter(|dev| !rates.iter().any(|r| r.id == dev.id)).count();
            let is_vacant = |rate: &&Arc<DiskRate>| topo.get(rate.id).is_some_and(BlockDevice::is_vacant);
            (idle, rates.iter().filter(is_vacant).count())
        });
        rates.len() + idle - vacant
    }

    pub(super) fn sort_id(&self) -> Option<DeviceColumn> {
        Some(self.column_set(u16::MAX).get(self.columns.sorted?)?.id)
    }

    pub(super) fn list_table(&self, shared: &Shared) -> Table {
        let title = shared.table_title(&self.list_title());
        let set = if self.extended { DeviceColumnSet::Extended } else { DeviceColumnSet::Default };
        let (set, now) = (set.columns(), shared.system.now().boot_ns);
        export::devices::build_table(title, set, shared.snapshot(), &self.device_lines(shared), now)
    }
}

/// Whether a column was 0 or `-` for every device lately: a glance back keeps it from coming and going with each sample.
fn is_empty_column(shared: &Shared, column: &DeviceColumnSpec) -> bool {
    const TICKS: usize = 8;
    const DEVICES: usize = 40;
    let rates = |snapshot: &crate::model::snapshot::Snapshot| {
        let rates = snapshot.devices.ok().map(Vec::as_slice).unwrap_or_default();
        let mut shown = rates.iter().take(DEVICES);
        column.width > 0 && shown.all(|rate| !(column.value)(&DeviceRow { rate, label: "" }).is_positive())
    };
    rates(shared.snapshot()) && shared.history_to_shown().rev().take(TICKS).all(|frame| rates(&frame.snapshot))
}

/// Cells of a label in a column of names: beside a sparkline, where enough of it is left.
fn label_room(name_width: u16) -> u16 {
    let beside_sparkline = name_width.saturating_sub(MIN_SPARKLINE_WIDTH + 2);
    if beside_sparkline >= MIN_LABEL_WIDTH { beside_sparkline } else { name_width }
}

/// Where the sparklines are: at the right of the names, as wide as the longest label on screen leaves room for.
fn sparkline_column(labels: &[Cow<'_, str>], body: Rect, fitted: &table::FittedColumns) -> Rect {
    let Some((0, x, name_width)) = fitted.columns.first().copied() else { return Rect::default() };
    let longest = labels.iter().map(|label| UnicodeWidthStr::width(&**label)).max().unwrap_or(0);
    let room = name_width.saturating_sub(longest.min(usize::from(u16::MAX)) as u16 + 2).min(MAX_SPARKLINE_WIDTH);
    let width = if room < MIN_SPARKLINE_WIDTH { 0 } else { room };
    Rect { x: body.x + x + name_width - width, y: 0, width, height: 1 }
}

/// A label in so many cells: a mount point keeps its end, which tells it from others, and loses the type of its file system.
fn fit_label(label: &str, width: u16) -> Cow<'_, str> {
    let width = usize::from(width);
    let parts = label.find("  /").map(|at| label.split_at(at + 2));
    let Some((name, place)) = parts.filter(|_| UnicodeWidthStr::width(label) > width) else {
        return Cow::Borrowed(label);
    };
    let path = place.rsplit_once(" (").map_or(place, |(path, _)| path);
    let room = width.saturating_sub(UnicodeWidthStr::width(name));
    if room < MIN_PATH_WIDTH {
        return Cow::Borrowed(label);
    }
    let is_whole = UnicodeWidthStr::width(path) <= room;
    Cow::Owned(if is_whole { format!("{name}{path}") } else { format!("{name}…{}", path_end(path, room - 1)) })
}

/// Draws the network file systems in the lower third of the pane at most; returns the area above them.
fn draw_network(shared: &Shared, theme: &Theme, area: Rect, buf: &mut CellBuffer) -> Rect {
    let rows = DevicesView::network_line_count(shared).min(area.height / 3);
    let sheet = if rows < 2 { None } else { export::network::build_table(String::new(), shared.snapshot(), 0) };
    let Some(sheet) = sheet else { return area };
    let [top, below] = split_rows(area, area.height - rows);
    let text = sheet.to_text();
    let styles = std::iter::once(theme.header).chain(std::iter::repeat(theme.text));
    draw_column(buf, below, text.lines().skip(1).zip(styles));
    top
}

/// Draws %util of the recent past in a row, the newest sample at the right.
fn draw_sparkline(shared: &Shared, area: Rect, buf: &mut CellBuffer, id: DevId, theme: &Theme) {
    let util = device_history(shared, id).map(|rate| rate.map(|rate| rate.util_pct));
    let column = DeviceColumn::Util.spec();
    let levels = Levels { warn: column.warn_from, crit: column.crit_from };
    draw_columns(buf, area, shared.graph_values(util), 100.0, |pct| levels.style(pct, theme));
}

/// Marks a stalled device: requests are in flight and none completes.
fn draw_stalled_label(buf: &mut CellBuffer, body: Rect, y: u16, rate: &DiskRate, theme: &Theme) {
    if rate.stalled {
        let text = format!(" STALLED {} in flight ", rate.in_flight);
        let width = (text.len() as u16).min(body.width);
        draw_text(buf, body.right() - width, y, &text, width, theme.crit);
    }
}

fn cell_style(row: &DeviceRow<'_>, column: &DeviceColumnSpec, value: &CellValue<'_>, theme: &Theme) -> Style {
    let is_dim = column.id != DeviceColumn::Name && (!row.rate.is_active() || value.is_zero());
    table::cell_style(column, value, if is_dim { theme.dim } else { theme.text }, theme)
}
