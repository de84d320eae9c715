//! The page of a device: rates, latencies, who does its I/O, topology, queue settings, graphs.

use super::super::detail::{detail_table, draw_detail_lines};
use super::DevicesView;
use super::graphs::{GRAPH_PAIRS, draw_graph};
use super::latency::{self, LatencyPart};
use super::request_sizes;
use crate::export::table::Table;
use crate::model::columns::device::{DeviceColumn, DeviceRow};
use crate::model::disk::DevId;
use crate::sanitize::sanitize;
use crate::tui::view::{Context, Shared};
use crate::tui::widgets::{CellBuffer, Rect, Theme, draw_frame};
use crate::units::format_bytes_long;

fn device_name(shared: &Shared, id: DevId) -> String {
    let topo = shared.system.topology.ok().and_then(|t| t.get(id)).map(|d| d.name.clone());
    let rate = || shared.snapshot().device(id).map(|r| r.name.to_string());
    sanitize(topo.or_else(rate).unwrap_or_else(|| id.to_string()))
}

impl DevicesView {
    /// Splits the page into text and graphs: side by side on a wide screen, else the graphs below if it is high enough.
    pub(super) fn split_text_and_graphs(inner: Rect) -> (Rect, Rect) {
        if inner.width >= 130 {
            let w = inner.width / 2;
            return (Rect { width: w - 1, ..inner }, Rect { x: inner.x + w, width: inner.width - w, ..inner });
        }
        let graphs = if inner.height >= 30 { inner.height / 2 } else { 0 };
        let top = inner.height - graphs;
        (Rect { height: top, ..inner }, Rect { y: inner.y + top, height: graphs, ..inner })
    }

    pub(super) fn detail_lines(&self, cx: &Context) -> Vec<(String, bool)> {
        let Some(id) = self.page else { return Vec::new() };
        let mut out = Vec::new();
        push_rates(cx.shared, id, &mut out);
        latency::push_percentiles(cx.shared, id, &mut out);
        request_sizes::push_request_sizes(cx.shared, id, &mut out);
        super::super::io_accounting::push_device_io(cx.shared, id, &mut out);
        push_topology(cx.shared, id, &mut out);
        push_queue_settings(cx.shared, id, &mut out);
        out
    }

    pub(super) fn render_detail(&self, cx: &Context, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool) {
        let Some(id) = self.page else { return };
        let inner = draw_frame(
            buf,
            area,
            &format!("Device {}", device_name(cx.shared, id)),
            &cx.shared.interval_text(),
            focused,
            theme,
        );
        let (left, right) = Self::split_text_and_graphs(inner);
        draw_detail_lines(cx, theme, left, buf, &self.detail_lines(cx));
        // Heat maps first, then pairs of graphs. Each needs six rows; at least one pair is drawn if there is room for two.
        let room = (right.height / 6).max(1);
        let mut heats = latency::kinds_with_data(cx.shared, id, LatencyPart::Total, right.width);
        heats.truncate(usize::from(room).saturating_sub(1).max(1));
        let parts = (GRAPH_PAIRS.len() as u16 + heats.len() as u16).min(room);
        let each = right.height / parts;
        for i in 0..parts {
            let at = Rect { y: right.y + i * each, height: each, ..right };
            if let Some(kind) = heats.get(usize::from(i)) {
                latency::draw_latency_heatmap(cx.shared, theme, at, buf, id, *kind, LatencyPart::Total);
                continue;
            }
            let pair = &GRAPH_PAIRS[(self.graph_index + usize::from(i) - heats.len()) % GRAPH_PAIRS.len()];
            let half = each / 2;
            let at = Rect { height: half, ..at };
            draw_graph(cx.shared, theme, at, buf, id, &pair[0], false);
            draw_graph(
                cx.shared,
                theme,
                Rect { y: at.y + half, height: each - half, ..right },
                buf,
                id,
                &pair[1],
                true,
            );
        }
    }

    pub(super) fn detail_table(&self, cx: &Context) -> Table {
        let name = self.page.map_or(String::new(), |id| device_name(cx.shared, id));
        detail_table(&format!("Device {name}"), cx, self.detail_lines(cx))
    }
}

use DeviceColumn as C;

/// The columns of `iostat -x`, one line for each kind of operation.
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
    ("discard", [Some(C::Discards), Some(C::DiscardMb), None, None, Some(C::DiscardAwait), Some(C::DiscardSize)]),
    ("flush", [Some(C::Flushes), None, None, None, Some(C::FlushAwait), None]),
];

/// Appends the rates of the interval on screen.
fn push_rates(shared: &Shared, id: DevId, out: &mut Vec<(String, bool)>) {
    let Some(rate) = shared.snapshot().device(id) else {
        out.push(("has done no I/O".into(), false));
        return;
    };
    if rate.stalled {
        out.push((format!("STALLED: {} requests in flight, none completed in the interval", rate.in_flight), true));
    }
    let row = DeviceRow { rate, label: "" };
    let cell = |col: DeviceColumn| {
        let mut cell = String::new();
        col.value(&row).write(&mut cell);
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

fn push_topology(shared: &Shared, id: DevId, out: &mut Vec<(String, bool)>) {
    let Some(topo) = shared.system.topology.ok() else {
        out.extend(
            shared
                .system
                .topology
                .unavailable_reason(shared.system.now().boot_ns)
                .map(|why| (format!("- topology: {why}"), true)),
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
            format!("  {} {}, {missing} missing, sync {}", word(&md.level), word(&md.state), word(&md.sync_action)),
            false,
        ));
    }
    for link in topo.chain(id).iter().skip(1) {
        let indent = "  ".repeat(link.depth);
        out.push((format!("{indent}on {} ({})", sanitize(&link.device.name), link.device.kind.name()), false));
    }
    for holder in &dev.holders {
        out.push((format!("  under {}", device_name(shared, *holder)), false));
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

fn push_queue_settings(shared: &Shared, id: DevId, out: &mut Vec<(String, bool)>) {
    out.push((String::new(), false));
    out.push(("Queue".into(), true));
    let whole = shared.system.topology.ok().and_then(|t| t.get(id)).and_then(|d| d.parent);
    let attrs =
        [Some(id), whole].into_iter().flatten().find_map(|id| shared.system.queues.get(&device_name(shared, id)));
    let Some(q) = attrs else {
        out.push((
            "  - not read (yet); it is read in a child process, because a hung device can block that".into(),
            false,
        ));
        return;
    };
    fn format_value<T: ToString>(v: &Option<T>) -> String {
        v.as_ref().map_or("-".into(), |v| sanitize(v.to_string()))
    }
    let lines = [
        format!("scheduler {} of {}", format_value(&q.scheduler), sanitize(q.schedulers.join(" "))),
        format!(
            "nr_requests {}  read_ahead_kb {}  wbt_lat_usec {}",
            format_value(&q.nr_requests),
            format_value(&q.read_ahead_kb),
            format_value(&q.wbt_lat_usec)
        ),
        format!("max_sectors_kb {} of {}", format_value(&q.max_sectors_kb), format_value(&q.max_hw_sectors_kb)),
        format!(
            "block sizes: logical {} physical {}",
            format_value(&q.logical_block_size),
            format_value(&q.physical_block_size)
        ),
        format!(
            "rotational {}  write cache {}",
            q.rotational.map_or("-", |r| if r { "yes" } else { "no" }),
            format_value(&q.write_cache)
        ),
    ];
    out.extend(lines.into_iter().map(|l| (format!("  {l}"), false)));
}
