//! Devices: iostat's columns on a tree of disks, partitions and what lies on them.

use super::{Pane, PaneId, when};
use crate::export;
use crate::export::table::Table;
use crate::model::column::ColumnSpec;
use crate::model::columns::device::{DeviceColumn, DeviceRow, EXTENDED, DEFAULT, COMPACT};
use crate::model::device_list::{self, ListedDevice, DeviceQuery};
use crate::model::disk::DiskRate;
use crate::model::topology::BlockDevice;
use crate::tui::keys::Context;
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::{frame, reason};
use crate::tui::widgets::put::put;
use crate::tui::widgets::table;
use crate::tui::widgets::theme::Theme;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::Devices,
    contexts: &[Context::Devices, Context::List, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: |app| lines(app).len(),
};

/// The columns shown now, for a pane of that width.
pub fn columns(app: &App, width: u16) -> &'static [ColumnSpec<DeviceColumn>] {
    match (app.ui.devices.extended, width) {
        (true, _) => EXTENDED,
        (false, 0..90) => COMPACT,
        (false, _) => DEFAULT,
    }
}

/// The columns that fit into that width. What tells a slow device from a busy one goes last.
pub fn fitted(app: &App, width: u16) -> (&'static [ColumnSpec<DeviceColumn>], table::Fitted) {
    let set = columns(app, width);
    let keep = |i: usize| matches!(set[i].id, DeviceColumn::Tps | DeviceColumn::Await | DeviceColumn::Util);
    (set, table::fit(set, width, if width < 60 { 10 } else { 16 }, app.ui.devices.shift, keep))
}

/// The lines shown now.
pub fn lines(app: &App) -> Vec<ListedDevice> {
    let d = &app.ui.devices;
    let set = columns(app, u16::MAX);
    let query = DeviceQuery {
        sort: d.sort.and_then(|i| set.get(i)).map(|c| c.id),
        reverse: d.reverse,
        only_active: d.only_active,
        filter: &d.filter,
    };
    device_list::list_devices(app.snap(), app.world.topology.ok(), &query)
}

fn title(app: &App) -> String {
    let d = &app.ui.devices;
    let mut title = String::from("Devices");
    if d.only_active {
        title.push_str(" · active");
    }
    if !d.filter.is_empty() {
        title.push_str(&format!(" · filter \"{}\"", crate::text::sanitize(&d.filter)));
    }
    title
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let inner = frame(buf, area, &title(app), &when(app), focused, theme);
    if inner.height == 0 {
        return;
    }
    if let Some(why) = app.snap().devices.unavailable_reason(app.world.now().boot_ns) {
        reason(buf, inner, &why, theme.warn);
        return;
    }
    let inner = network(app, theme, inner, buf);
    if inner.height == 0 {
        return;
    }
    let rates = app.snap().devices.ok().map(Vec::as_slice).unwrap_or_default();
    let lines = lines(app);
    let (set, fitted) = fitted(app, inner.width);
    let sorted =
        app.ui.devices.sort.and_then(|i| position(app, set, i)).map(|i| (i, !app.ui.devices.reverse));
    table::heads(buf, inner, set, &fitted, sorted, theme);
    let body = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
    let mut scroll = app.ui.devices.scroll;
    scroll.follow(lines.len(), usize::from(body.height));
    let none = DiskRate::default();
    let mut scratch = String::new();
    for (n, (i, line)) in
        lines.iter().enumerate().skip(scroll.offset).take(usize::from(body.height)).enumerate()
    {
        let y = body.y + n as u16;
        let row = DeviceRow { rate: line.rate_index.map_or(&none, |i| &rates[i]), label: &line.label };
        if line.rate_index.is_none() {
            put(buf, body.x, y, &line.label, body.width, theme.dim);
        } else {
            let value = |c| row.value(c);
            table::row(buf, body, y, set, &fitted, value, |c| style(&row, c, theme), &mut scratch);
            stalled_mark(buf, body, y, row.rate, theme);
        }
        if focused && i == scroll.selected {
            table::select(buf, body, y, theme);
        }
    }
    if lines.is_empty() {
        let text =
            if rates.is_empty() { "no block device has done any I/O" } else { "no device matches (Esc)" };
        put(buf, body.x, body.y, text, body.width, theme.dim);
    }
}

/// How many lines there are, without making them: asked several times a frame.
pub fn line_count(app: &App) -> usize {
    let d = &app.ui.devices;
    if !d.filter.is_empty() {
        return lines(app).len();
    }
    let rates = app.snap().devices.ok().map(Vec::as_slice).unwrap_or_default();
    if d.only_active {
        return rates.iter().filter(|r| r.is_active()).count();
    }
    // The tree also has devices that never did anything but are mounted.
    let idle = app.world.topology.ok().filter(|_| d.sort.is_none()).map_or(0, |topo| {
        let used = |dev: &&BlockDevice| !dev.mounts.is_empty() || !dev.swaps.is_empty();
        topo.devices.iter().filter(used).filter(|dev| !rates.iter().any(|r| r.id == dev.id)).count()
    });
    rates.len() + idle
}

/// Lines the network file systems take, heads included.
pub fn network_lines(app: &App) -> u16 {
    app.snap().netfs.ok().map_or(0, |list| if list.is_empty() { 0 } else { list.len() as u16 + 1 })
}

/// Network file systems below the devices, at most a third of the pane; returns what is left above them.
fn network(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas) -> Rect {
    let rows = network_lines(app).min(area.height / 3);
    let sheet = if rows < 2 { None } else { export::network::build_table(String::new(), app.snap(), 0) };
    let Some(sheet) = sheet else { return area };
    let top = Rect { height: area.height - rows, ..area };
    let text = sheet.to_text();
    for (i, line) in text.lines().skip(1).take(usize::from(rows)).enumerate() {
        let style = if i == 0 { theme.head } else { theme.text };
        put(buf, area.x, top.bottom() + i as u16, line, area.width, style);
    }
    top
}

/// The place, in the set shown, of column `i` of the set sorted by.
fn position(app: &App, shown: &[ColumnSpec<DeviceColumn>], i: usize) -> Option<usize> {
    let id = columns(app, u16::MAX).get(i)?.id;
    shown.iter().position(|c| c.id == id)
}

/// The word that no column has: nothing completes while requests wait.
fn stalled_mark(buf: &mut Canvas, body: Rect, y: u16, rate: &DiskRate, theme: &Theme) {
    if rate.stalled {
        let text = format!(" STALLED {} in flight ", rate.in_flight);
        let width = (text.len() as u16).min(body.width);
        put(buf, body.right() - width, y, &text, width, theme.crit);
    }
}

fn style(row: &DeviceRow<'_>, col: DeviceColumn, theme: &Theme) -> Style {
    let r = row.rate;
    match col {
        DeviceColumn::Util if r.util_pct >= 95.0 => theme.crit,
        DeviceColumn::Util if r.util_pct >= 70.0 => theme.warn,
        DeviceColumn::Await | DeviceColumn::ReadAwait | DeviceColumn::WriteAwait if slow(row, col) => theme.warn,
        DeviceColumn::Name => theme.text,
        _ if r.is_active() => theme.text,
        _ => theme.dim,
    }
}

/// 100 ms is slow on anything that is not a tape.
fn slow(row: &DeviceRow<'_>, col: DeviceColumn) -> bool {
    let ms = match col {
        DeviceColumn::ReadAwait => row.rate.read_await_ms,
        DeviceColumn::WriteAwait => row.rate.write_await_ms,
        _ => row.rate.await_ms,
    };
    ms >= 100.0
}

fn sheet(app: &App) -> Table {
    let title = format!("{} on {}, {}", title(app), app.world.host.name, app.stamp());
    let (set, now) = (columns(app, u16::MAX), app.world.now().boot_ns);
    export::devices::build_table(title, set, app.snap(), &lines(app), now)
}
