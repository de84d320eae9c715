//! The page of a device: rates, latencies, who does its I/O, topology, queue settings, graphs.

use super::super::detail::{DetailText, detail_table, draw_detail_lines};
use super::DevicesView;
use super::graphs::{GRAPH_PAIRS, draw_graph_pair};
use super::latency::{self, LatencyPart};
use super::request_sizes;
use crate::export::table::Table;
use crate::model::columns::device::{DeviceColumn, DeviceRow};
use crate::model::disk::DevId;
use crate::model::file_io::list::FileQuery;
use crate::sanitize::sanitize;
use crate::tui::view::{Context, PaneId, Shared};
use crate::tui::widgets::{CellBuffer, Rect, split_columns, split_rows};
use crate::units::format_bytes_long;

fn device_name(shared: &Shared, id: DevId) -> String {
    let topo = shared.system.topology.ok().and_then(|t| t.get(id)).map(|d| d.name.clone());
    let rate = || shared.snapshot().device(id).map(|r| r.name.to_string());
    sanitize(topo.or_else(rate).unwrap_or_else(|| id.to_string()))
}

impl DevicesView {
    /// Splits the page into text and graphs: side by side on a wide screen, else the graphs below if it is high enough.
    pub(super) fn split_text_and_graphs(inner: Rect) -> [Rect; 2] {
        if inner.width >= 130 {
            let [left, right] = split_columns(inner, inner.width / 2);
            return [Rect { width: left.width - 1, ..left }, right];
        }
        split_rows(inner, inner.height - if inner.height >= 30 { inner.height / 2 } else { 0 })
    }

    pub(super) fn detail_lines(&self, cx: &Context) -> Vec<(String, bool)> {
        let Some(id) = self.page else { return Vec::new() };
        let mut out = DetailText::default();
        push_rates(cx.shared, id, &mut out);
        latency::push_percentiles(cx.shared, id, &mut out);
        request_sizes::push_request_sizes(cx.shared, id, &mut out);
        super::super::io_accounting::push_device_io(cx.shared, id, &mut out);
        let files = FileQuery { device: Some(id), ..FileQuery::default() };
        super::super::file_lists::push_files(cx.shared, &files, true, &mut out);
        push_topology(cx.shared, id, &mut out);
        push_queue_settings(cx.shared, id, &mut out);
        out.0
    }

    pub(super) fn render_detail(&self, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let Some(id) = self.page else { return };
        let title = format!("Device {}", device_name(cx.shared, id));
        let inner = cx.draw_frame(buf, PaneId::DeviceDetail, area, &title, &cx.shared.interval_text());
        let [left, right] = Self::split_text_and_graphs(inner);
        draw_detail_lines(cx, left, buf, &self.detail_lines(cx));
        // Heat maps first, then pairs of graphs. Each needs six rows; at least one pair is drawn if there is room for two.
        let room = (right.height / 6).max(1);
        let mut heats = latency::kinds_with_data(cx.shared, id, LatencyPart::Total, right.width);
        heats.truncate(usize::from(room).saturating_sub(1).max(1));
        let parts = (GRAPH_PAIRS.len() as u16 + heats.len() as u16).min(room);
        let height = right.height / parts;
        for i in 0..parts {
            let at = Rect { y: right.y + i * height, height, ..right };
            match heats.get(usize::from(i)) {
                Some(kind) => latency::draw_latency_heatmap(cx, at, buf, id, *kind, LatencyPart::Total),
                None => draw_graph_pair(cx, at, buf, id, self.graph_index + usize::from(i) - heats.len()),
            }
        }
    }

    pub(super) fn detail_table(&self, cx: &Context) -> Table {
        let name = self.page.map_or(String::new(), |id| device_name(cx.shared, id));
        detail_table(&format!("Device {name}"), cx, self.detail_lines(cx))
    }
}

/// Appends the rates of the interval on screen: the columns of `iostat -x`, a line for each kind of operation.
fn push_rates(shared: &Shared, id: DevId, out: &mut DetailText) {
    use DeviceColumn::*;
    let Some(rate) = shared.snapshot().device(id) else { return out.line("has done no I/O") };
    if rate.stalled {
        out.strong(format!("STALLED: {} requests in flight, none completed in the interval", rate.in_flight));
    }
    let row = DeviceRow { rate, label: "" };
    let cell = |column: DeviceColumn| {
        let mut cell = String::new();
        column.value(&row).write(&mut cell);
        cell
    };
    let line = |name: &str, cells: [String; 6]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>10}")).collect();
        format!("{name:<8}{cells}").trim_end().to_owned()
    };
    out.strong(line("", ["per s", "MB/s", "merged/s", "merged %", "await ms", "size KiB"].map(String::from)));
    let operations = [
        ("read", [Reads, ReadMb, ReadMerges, ReadMergePct, ReadAwait, ReadSize].map(Some)),
        ("write", [Writes, WriteMb, WriteMerges, WriteMergePct, WriteAwait, WriteSize].map(Some)),
        ("discard", [Some(Discards), Some(DiscardMb), None, None, Some(DiscardAwait), Some(DiscardSize)]),
        ("flush", [Some(Flushes), None, None, None, Some(FlushAwait), None]),
    ];
    for (name, columns) in operations {
        out.line(line(name, columns.map(|column| column.map(cell).unwrap_or_default())));
    }
    let [wait, queue, util, in_flight] = [Await, Queue, Util, InFlight].map(cell);
    out.line(format!("await {wait} ms, aqu-sz {queue}, %util {util}, in flight {in_flight}"));
    out.line(format!("read {:.0} MB, written {:.0} MB since it appeared", rate.read_mb_total, rate.write_mb_total));
}

fn push_topology(shared: &Shared, id: DevId, out: &mut DetailText) {
    let Some(topo) = shared.system.topology.ok() else {
        if let Some(why) = shared.system.topology.unavailable_reason(shared.system.now().boot_ns) {
            out.strong(format!("- topology: {why}"));
        }
        return;
    };
    let Some(dev) = topo.get(id) else { return };
    out.section("What it is");
    let size = dev.size_bytes.map_or("-".into(), format_bytes_long);
    let model = dev.model.as_deref().map_or(String::new(), |m| format!(", {m}"));
    out.line(format!("  {} {}:{}, {size}{model}", dev.kind.name(), id.major, id.minor));
    if let Some(label) = &dev.label {
        out.line(format!("  {}", label.sanitized()));
    }
    if let Some(md) = &dev.md {
        let [level, state, sync] = [&md.level, &md.state, &md.sync_action].map(shown);
        out.line(format!("  {level} {state}, {} missing, sync {sync}", shown(&md.degraded)));
    }
    for link in topo.chain(id).iter().skip(1) {
        let indent = "  ".repeat(link.depth);
        out.line(format!("{indent}on {} ({})", sanitize(&link.device.name), link.device.kind.name()));
    }
    for holder in &dev.holders {
        out.line(format!("  under {}", device_name(shared, *holder)));
    }
    if let Some(volume) =
        shared.system.processes.container_names().volume_name(dev.mounts.iter().map(|m| &m.mount_point))
    {
        out.line(format!("  volume {volume}"));
    }
    for m in &dev.mounts {
        let [point, fs_type, options] = [&m.mount_point, &m.fs_type, &m.options].map(|text| text.sanitized());
        let hidden = if m.is_hidden { " (covered by a later mount)" } else { "" };
        let mounted = if m.is_bind { "bind mount" } else { "mounted" };
        out.line(format!("  {mounted} {point} ({fs_type}: {options}){hidden}"));
        out.line(format!("    {}", m.super_options.sanitized()));
    }
    for swap in &dev.swaps {
        out.line(format!("  swap {}", swap.sanitized()));
    }
}

/// A value that may be unknown.
fn shown<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map_or("-".into(), |v| sanitize(v.to_string()))
}

fn push_queue_settings(shared: &Shared, id: DevId, out: &mut DetailText) {
    out.section("Queue");
    let whole = shared.system.topology.ok().and_then(|t| t.get(id)).and_then(|d| d.parent);
    let attrs =
        [Some(id), whole].into_iter().flatten().find_map(|id| shared.system.queues.get(&device_name(shared, id)));
    let Some(q) = attrs else {
        return out.line("  - not read (yet); it is read in a child process, because a hung device can block that");
    };
    out.line(format!("  scheduler {} of {}", shown(&q.scheduler), sanitize(q.schedulers.join(" "))));
    let [requests, ahead, wbt] = [shown(&q.nr_requests), shown(&q.read_ahead_kb), shown(&q.wbt_lat_usec)];
    out.line(format!("  nr_requests {requests}  read_ahead_kb {ahead}  wbt_lat_usec {wbt}"));
    out.line(format!("  max_sectors_kb {} of {}", shown(&q.max_sectors_kb), shown(&q.max_hw_sectors_kb)));
    let [logical, physical] = [&q.logical_block_size, &q.physical_block_size].map(shown);
    out.line(format!("  block sizes: logical {logical} physical {physical}"));
    let rotational = q.rotational.map_or("-", |r| if r { "yes" } else { "no" });
    out.line(format!("  rotational {rotational}  write cache {}", shown(&q.write_cache)));
}
