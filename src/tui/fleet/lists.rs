//! The rows of the lists: filtered, sorted and drawn.

use super::screen::{FleetScreen, FleetTab};
use crate::fleet::columns::{
    FLEET_DEVICE_COLUMNS, FleetDeviceColumnSpec, FleetDeviceRow, HOST_COLUMNS, HostColumnSpec, HostRow,
};
use crate::fleet::rank::{Urgency, urgency};
use crate::model::column::CellValue;
use crate::tui::widgets::{CellBuffer, Rect, draw_reason, draw_text, highlight_row, table, title_with_filter};
use std::cmp::Ordering;

/// Cells that the finding keeps at least.
const MIN_FINDING_WIDTH: u16 = 24;
/// Cells that the state of a device keeps at least.
const MIN_STATE_WIDTH: u16 = 12;

fn contains(text: &str, needle: &str) -> bool {
    text.to_lowercase().contains(needle)
}

impl FleetScreen {
    /// The hosts that pass the filter, in the order chosen.
    pub(super) fn host_rows(&self) -> Vec<HostRow<'_>> {
        let needle = self.hosts.filter.to_lowercase();
        let row = |host| HostRow::new(host, self.state.host_age(host, self.now), |secs| self.time_of_day(secs));
        let mut rows: Vec<HostRow<'_>> = self.state.hosts.iter().map(row).collect();
        rows.retain(|row| {
            (needle.is_empty() || contains(&row.host.name, &needle) || contains(&row.finding, &needle))
                && (!self.hosts.only_active || urgency(row.host) > Urgency::Unknown)
        });
        let columns = &self.hosts.columns;
        if let Some(column) = columns.sorted.and_then(|at| HOST_COLUMNS.get(at)) {
            rows.sort_by(|a, b| {
                let order = (column.value)(a).compare(&(column.value)(b));
                directed(order, column.ascending, columns.reverse)
            });
        } else if columns.reverse {
            rows.reverse();
        }
        rows
    }

    /// The devices that pass the filter: by default those of a model together, the slowest first.
    pub(super) fn device_rows(&self) -> Vec<FleetDeviceRow<'_>> {
        let needle = self.devices.filter.to_lowercase();
        let mut rows: Vec<FleetDeviceRow<'_>> = self.state.devices.iter().map(FleetDeviceRow::new).collect();
        rows.retain(|row| {
            let device = row.device;
            let texts = [&*device.host_name, &device.device, device.class_name(), &row.state];
            let is_active = device.requests_per_sec.is_some_and(|rate| rate > 0.0) || !row.state.is_empty();
            (needle.is_empty() || texts.iter().any(|text| contains(text, &needle)))
                && (!self.devices.only_active || is_active)
        });
        let columns = &self.devices.columns;
        rows.sort_by(|a, b| match columns.sorted.and_then(|at| FLEET_DEVICE_COLUMNS.get(at)) {
            Some(column) => directed((column.value)(a).compare(&(column.value)(b)), column.ascending, columns.reverse),
            None => FleetDeviceRow::compare_in_class(a, b),
        });
        rows
    }

    /// Number of rows of the list on screen.
    pub(super) fn row_count(&self) -> usize {
        if self.tab == FleetTab::Devices { self.device_rows().len() } else { self.host_rows().len() }
    }

    /// Number of columns of the list on screen.
    pub(super) fn column_count(&self) -> usize {
        if self.tab == FleetTab::Devices { FLEET_DEVICE_COLUMNS.len() } else { HOST_COLUMNS.len() }
    }

    /// Whether each row of the list on screen has the text.
    pub(super) fn rows_with(&self, needle: &str) -> Vec<bool> {
        match self.tab {
            FleetTab::Devices => {
                let has = |row: FleetDeviceRow<'_>| {
                    let device = row.device;
                    [&*device.host_name, &device.device, device.class_name()].iter().any(|text| contains(text, needle))
                };
                self.device_rows().into_iter().map(has).collect()
            }
            _ => {
                let has = |row: HostRow<'_>| contains(&row.host.name, needle) || contains(&row.finding, needle);
                self.host_rows().into_iter().map(has).collect()
            }
        }
    }

    pub(super) fn draw_hosts(&self, area: Rect, buf: &mut CellBuffer) {
        let theme = &self.themes.theme();
        let rows = self.host_rows();
        let note = format!("{} of {}", rows.len(), self.state.hosts.len());
        let title = title_with_filter("Hosts, the worst first", &self.hosts.filter);
        let inner = self.draw_pane(area, &title, &note, buf);
        if rows.is_empty() {
            return draw_reason(buf, inner, &self.empty_text(), theme.dim);
        }
        let columns = &self.hosts.columns;
        let keep = |i: usize| columns.priority(i);
        let fitted = table::fit_columns(HOST_COLUMNS, inner.width, MIN_FINDING_WIDTH, columns.offset, keep);
        table::draw_header(buf, inner, HOST_COLUMNS, &fitted, columns.mark(HOST_COLUMNS), theme);
        let body = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
        let is_outdated = self.state.outage.is_some();
        let mut scratch = String::new();
        for (row, y, selected) in self.hosts.scroll.visible(&rows, body) {
            let is_old = is_outdated || row.is_old();
            let normal = if is_old { theme.dim } else { theme.text };
            let severity = match urgency(row.host) {
                Urgency::Critical => theme.crit,
                Urgency::Silent | Urgency::Warn => theme.warn,
                _ => normal,
            };
            let style = |c: &HostColumnSpec, v: &CellValue<'_>| match c.id {
                crate::fleet::columns::HostColumn::Finding => severity,
                crate::fleet::columns::HostColumn::Age => table::cell_style(c, v, normal, theme),
                // An old figure must not look like one of now.
                _ if is_old => theme.dim,
                _ => table::cell_style(c, v, normal, theme),
            };
            let value = |c: &HostColumnSpec| (c.value)(row);
            table::draw_row(buf, body, y, HOST_COLUMNS, &fitted, value, style, &mut scratch);
            if selected {
                highlight_row(buf, body, y, theme);
            }
        }
    }

    pub(super) fn draw_devices(&self, area: Rect, buf: &mut CellBuffer) {
        let theme = &self.themes.theme();
        let rows = self.device_rows();
        let title = title_with_filter("Devices, those of a model beside each other", &self.devices.filter);
        let note = format!("{} of {}", rows.len(), self.state.devices.len());
        let inner = self.draw_pane(area, &title, &note, buf);
        if rows.is_empty() {
            return draw_reason(buf, inner, &self.empty_text(), theme.dim);
        }
        let columns = &self.devices.columns;
        let keep = |i: usize| columns.priority(i);
        let fitted = table::fit_columns(FLEET_DEVICE_COLUMNS, inner.width, MIN_STATE_WIDTH, columns.offset, keep);
        let sorted = columns.mark(FLEET_DEVICE_COLUMNS);
        table::draw_header(buf, inner, FLEET_DEVICE_COLUMNS, &fitted, sorted, theme);
        let body = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
        let is_old = self.state.outage.is_some();
        let mut scratch = String::new();
        for (row, y, selected) in self.devices.scroll.visible(&rows, body) {
            let normal = match () {
                () if is_old => theme.dim,
                () if row.device.is_stalled => theme.crit,
                () if row.device.verdict.is_some() => theme.warn,
                () => theme.text,
            };
            let value = |c: &FleetDeviceColumnSpec| (c.value)(row);
            table::draw_row(buf, body, y, FLEET_DEVICE_COLUMNS, &fitted, value, |_, _| normal, &mut scratch);
            if selected {
                highlight_row(buf, body, y, theme);
            }
        }
    }

    /// Why a list is empty.
    pub(super) fn empty_text(&self) -> String {
        let list = self.list();
        if !list.filter.is_empty() || list.only_active && !self.state.hosts.is_empty() {
            return format!("nothing matches ({})", self.key(crate::tui::action::Action::Back));
        }
        match (&self.state.outage, self.state.answered_at) {
            (Some(_), _) => "not known: there is no answer yet".into(),
            (None, None) => format!("asking {}", self.source_name),
            (None, Some(_)) if self.state.is_recorded => "no recording in this directory has this time".into(),
            (None, Some(_)) => format!(
                "no series {}; does Prometheus scrape `iotop-plus export`, and did it at this time?",
                self.scope.selector(crate::fleet::plan::SAMPLE_TIME, "")
            ),
        }
    }

    /// Draws an empty pane; returns the inside.
    pub(super) fn draw_pane(&self, area: Rect, title: &str, note: &str, buf: &mut CellBuffer) -> Rect {
        crate::tui::widgets::draw_frame(buf, area, title, note, true, &self.themes.theme())
    }

    /// Draws a line of text.
    pub(super) fn draw_line(&self, area: Rect, text: &str, style: ratatui::style::Style, buf: &mut CellBuffer) {
        draw_text(buf, area.x, area.y, text, area.width, style);
    }
}

fn directed(order: Ordering, is_ascending: bool, is_reversed: bool) -> Ordering {
    if is_ascending == is_reversed { order.reverse() } else { order }
}
