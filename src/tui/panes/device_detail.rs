//! One device: its recent past, its queue's settings, what it lies on and what lies on it.

use super::device_graphs::{PAIRS, draw};
use super::device_latency::{self, Part};
use super::device_requests;
use super::kernel_detail::{draw_lines, inside, stops};
use super::{Pane, PaneId, when};
use crate::export::table::Table;
use crate::model::columns::device::{DeviceColumn, DeviceRow};
use crate::model::disk::DevId;
use crate::text::sanitize;
use crate::tui::keys::Context;
use crate::tui::state::{App, Detail};
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::frame;
use crate::tui::widgets::theme::Theme;
use crate::units::format_bytes_long;
use ratatui::layout::Rect;

/// The pane.
pub const PANE: Pane = Pane {
    id: PaneId::DeviceDetail,
    contexts: &[Context::Detail, Context::DeviceDetail, Context::Scroll],
    render,
    stamp: |_| None,
    sheet,
    rows: |app| stops(text(app).len(), split(inside(app)).0.height),
};

fn id(app: &App) -> Option<DevId> {
    match &app.ui.detail {
        Some(Detail::Device(id)) => Some(*id),
        _ => None,
    }
}

fn name(app: &App, id: DevId) -> String {
    let topo = app.world.topology.ok().and_then(|t| t.get(id)).map(|d| d.name.clone());
    let rate = || app.snap().device(id).map(|r| r.name.to_string());
    sanitize(topo.or_else(rate).unwrap_or_else(|| id.to_string()))
}

fn text(app: &App) -> Vec<(String, bool)> {
    let Some(id) = id(app) else { return Vec::new() };
    let mut out = Vec::new();
    rates(app, id, &mut out);
    device_latency::table(app, id, &mut out);
    device_requests::table(app, id, &mut out);
    super::charge::of_device(app, id, &mut out);
    topology(app, id, &mut out);
    queue(app, id, &mut out);
    out
}

use DeviceColumn as C;

/// The columns of `iostat -x`, a line for each kind of operation.
const OPERATIONS: [(&str, [Option<DeviceColumn>; 6]); 4] = [
    (
        "read",
        [
            Some(C::Reads),
            Some(C::ReadMb),
            Some(C::ReadMerges),
            Some(C::ReadMergePct),
            Some(C::ReadAwait),
            Some(C::ReadSize),
        ],
    ),
    (
        "write",
        [
            Some(C::Writes),
            Some(C::WriteMb),
            Some(C::WriteMerges),
            Some(C::WriteMergePct),
            Some(C::WriteAwait),
            Some(C::WriteSize),
        ],
    ),
    (
        "discard",
        [Some(C::Discards), Some(C::DiscardMb), None, None, Some(C::DiscardAwait), Some(C::DiscardSize)],
    ),
    ("flush", [Some(C::Flushes), None, None, None, Some(C::FlushAwait), None]),
];

/// Rates of the interval on screen.
fn rates(app: &App, id: DevId, out: &mut Vec<(String, bool)>) {
    let Some(rate) = app.snap().device(id) else {
        out.push(("has done no I/O".into(), false));
        return;
    };
    if rate.stalled {
        out.push((
            format!("STALLED: {} requests in flight, none completed in the interval", rate.in_flight),
            true,
        ));
    }
    let row = DeviceRow { rate, label: "" };
    let cell = |col: DeviceColumn| {
        let mut cell = String::new();
        row.value(col).write(&mut cell);
        cell
    };
    let mut line = |name: &str, cells: [Option<String>; 6]| {
        let mut text = format!("{name:<8}");
        for cell in cells {
            text.push_str(&format!("{:>10}", cell.unwrap_or_default()));
        }
        out.push((text.trim_end().to_owned(), name.is_empty()));
    };
    line("", ["per s", "MB/s", "merged/s", "merged %", "await ms", "size KiB"].map(|s| Some(s.into())));
    for (name, cols) in OPERATIONS {
        line(name, cols.map(|c| c.map(cell)));
    }
    out.push((
        format!(
            "await {} ms, aqu-sz {}, %util {}, in flight {}",
            cell(DeviceColumn::Await),
            cell(DeviceColumn::Queue),
            cell(DeviceColumn::Util),
            cell(DeviceColumn::InFlight)
        ),
        false,
    ));
    out.push((
        format!("read {:.0} MB, written {:.0} MB since it appeared", rate.read_mb_total, rate.write_mb_total),
        false,
    ));
}

fn topology(app: &App, id: DevId, out: &mut Vec<(String, bool)>) {
    let Some(topo) = app.world.topology.ok() else {
        out.extend(
            app.world.topology.unavailable_reason(app.world.now().boot_ns).map(|why| (format!("- topology: {why}"), true)),
        );
        return;
    };
    let Some(dev) = topo.get(id) else { return };
    out.push((String::new(), false));
    out.push(("What it is".into(), true));
    let size = dev.size_bytes.map_or("-".into(), format_bytes_long);
    let model = dev.model.as_deref().map_or(String::new(), |m| format!(", {m}"));
    out.push((format!("  {} {}:{}, {size}{model}", dev.kind.name(), id.major, id.minor), false));
    if let Some(label) = &dev.label {
        out.push((format!("  {}", label.sanitized()), false));
    }
    if let Some(md) = &dev.md {
        let word = |s: &Option<String>| s.clone().map_or("-".into(), sanitize);
        let missing = md.degraded.map_or("-".into(), |n| n.to_string());
        out.push((
            format!(
                "  {} {}, {missing} missing, sync {}",
                word(&md.level),
                word(&md.state),
                word(&md.sync_action)
            ),
            false,
        ));
    }
    for link in topo.chain(id).iter().skip(1) {
        let indent = "  ".repeat(link.depth);
        out.push((format!("{indent}on {} ({})", sanitize(&link.device.name), link.device.kind.name()), false));
    }
    for holder in &dev.holders {
        out.push((format!("  under {}", name(app, *holder)), false));
    }
    for m in &dev.mounts {
        let hidden = if m.is_hidden { " (covered by a later mount)" } else { "" };
        out.push((
            format!(
                "  mounted {} ({}: {}){hidden}",
                m.mount_point.sanitized(),
                m.fs_type.sanitized(),
                m.options.sanitized()
            ),
            false,
        ));
        out.push((format!("    {}", m.super_options.sanitized()), false));
    }
    for swap in &dev.swaps {
        out.push((format!("  swap {}", swap.sanitized()), false));
    }
}

fn queue(app: &App, id: DevId, out: &mut Vec<(String, bool)>) {
    out.push((String::new(), false));
    out.push(("Queue".into(), true));
    let whole = app.world.topology.ok().and_then(|t| t.get(id)).and_then(|d| d.parent);
    let attrs = [Some(id), whole].into_iter().flatten().find_map(|id| app.world.queues.get(&name(app, id)));
    let Some(q) = attrs else {
        out.push((
            "  - not read (yet); it is read in a child process, because a hung device can block that".into(),
            false,
        ));
        return;
    };
    fn n<T: ToString>(v: &Option<T>) -> String {
        v.as_ref().map_or("-".into(), |v| sanitize(v.to_string()))
    }
    let lines = [
        format!("scheduler {} of {}", n(&q.scheduler), sanitize(q.schedulers.join(" "))),
        format!(
            "nr_requests {}  read_ahead_kb {}  wbt_lat_usec {}",
            n(&q.nr_requests),
            n(&q.read_ahead_kb),
            n(&q.wbt_lat_usec)
        ),
        format!("max_sectors_kb {} of {}", n(&q.max_sectors_kb), n(&q.max_hw_sectors_kb)),
        format!("block sizes: logical {} physical {}", n(&q.logical_block_size), n(&q.physical_block_size)),
        format!(
            "rotational {}  write cache {}",
            q.rotational.map_or("-", |r| if r { "yes" } else { "no" }),
            n(&q.write_cache)
        ),
    ];
    out.extend(lines.into_iter().map(|l| (format!("  {l}"), false)));
}

/// Text and graphs: beside each other where there is room, else the graphs below; a graph needs six lines
/// to say anything.
fn split(inner: Rect) -> (Rect, Rect) {
    if inner.width >= 130 {
        let w = inner.width / 2;
        return (Rect { width: w - 1, ..inner }, Rect { x: inner.x + w, width: inner.width - w, ..inner });
    }
    let graphs = if inner.height >= 30 { inner.height / 2 } else { 0 };
    let top = inner.height - graphs;
    (Rect { height: top, ..inner }, Rect { y: inner.y + top, height: graphs, ..inner })
}

fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool) {
    let Some(id) = id(app) else { return };
    let inner = frame(buf, area, &format!("Device {}", name(app, id)), &when(app), focused, theme);
    let (left, right) = split(inner);
    draw_lines(app, theme, left, buf, &text(app));
    // Heat maps first, then pairs of graphs as far as there is room; one at least, where there is room for two.
    let room = (right.height / 6).max(1);
    let mut heats = device_latency::kinds(app, id, Part::Total, right.width);
    heats.truncate(usize::from(room).saturating_sub(1).max(1));
    let parts = (PAIRS.len() as u16 + heats.len() as u16).min(room);
    let each = right.height / parts;
    for i in 0..parts {
        let at = Rect { y: right.y + i * each, height: each, ..right };
        if let Some(kind) = heats.get(usize::from(i)) {
            device_latency::draw(app, theme, at, buf, id, *kind, Part::Total);
            continue;
        }
        let pair = &PAIRS[(app.ui.devices.graph + usize::from(i) - heats.len()) % PAIRS.len()];
        let half = each / 2;
        let at = Rect { height: half, ..at };
        draw(app, theme, at, buf, id, &pair[0], false);
        draw(app, theme, Rect { y: at.y + half, height: each - half, ..right }, buf, id, &pair[1], true);
    }
}

fn sheet(app: &App) -> Table {
    let title = id(app).map_or(String::new(), |id| {
        format!("Device {} on {}, {}", name(app, id), app.world.host.name, app.stamp())
    });
    let mut sheet = Table::new(title, &[("", false)]);
    sheet.rows.extend(text(app).into_iter().map(|l| vec![l.0]));
    sheet
}
