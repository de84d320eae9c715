//! A run under way: messages of its child process, what hangs, figures, and charts of its rates and latencies.

use super::BenchForm;
use super::charts::{self, TimeChart, format_count};
use super::form::format_device_rates;
use crate::bench::message::BenchMessage;
use crate::bench::report::text::format_latency;
use crate::sanitize::sanitize;
use crate::tui::view::{Context, PaneId};
use crate::tui::views::runs::{Run, RunEnding, RunStatus};
use crate::tui::widgets::{
    CellBuffer, Rect, StyledLine, TextStyle, draw_column, round_up_bytes, round_up_scale, split_rows,
};
use crate::units::format_bytes;

/// Time without a completed request after which a run is shown as blocked, ms.
const BLOCKED_AFTER_MS: u64 = 2000;
const MAX_CHART_HEIGHT: u16 = 11;

impl RunStatus for BenchForm {
    fn receive(run: &mut Run<Self>, message: BenchMessage) {
        match message {
            BenchMessage::Progress(progress) => run.progress.push(*progress),
            BenchMessage::Note(note) => run.add_note(note),
            BenchMessage::Refused(refusal) => run.ending = Some(RunEnding::Refused(refusal.to_string())),
            BenchMessage::Failed(why) => run.ending = Some(RunEnding::Failed(why)),
            BenchMessage::Report(report) => run.ending = Some(RunEnding::Report(report)),
        }
    }

    fn status_text(run: &Run<Self>) -> String {
        let name = &run.profile;
        let Some(p) = &run.progress.last else { return format!("bench {name} starting") };
        if run.is_stopping {
            return format!("bench {name} stopping");
        }
        if p.idle_ms >= BLOCKED_AFTER_MS {
            return format!("bench {name} BLOCKED {} s", p.idle_ms / 1000);
        }
        let what = if p.measurement_index.is_none() { " preparing" } else { "" };
        let done = p.fraction_done.map_or(String::new(), |d| format!(" {:.0} %", d * 100.0));
        format!("bench {name}{what}{done}")
    }

    /// Says what hangs: the requests, or the child process itself.
    fn blocked_text(run: &Run<Self>, now_ns: u64) -> Option<String> {
        let process = run.process_text();
        let unheard = now_ns.saturating_sub(run.last_message_ns) / 1_000_000;
        // The child sends four messages a second; one may be a tick old when this is evaluated.
        if unheard > BLOCKED_AFTER_MS + 3000 {
            return Some(format!(
                "no message from the benchmark process{process} for {} s: it is blocked in the kernel or gets no CPU time",
                unheard / 1000
            ));
        }
        let idle = run.progress.last.as_ref().map_or(0, |p| p.idle_ms);
        (idle >= 1000).then(|| {
            format!(
                "BLOCKED: no request completed for {} s{process}; gives up after {} s. Frozen file system, dead server, \
                 hung device?",
                idle / 1000,
                run.plan.stall_limit_ms / 1000
            )
        })
    }

    fn phase_text(run: &Run<Self>) -> String {
        let Some(p) = &run.progress.last else { return "starting the benchmark process".into() };
        let number = p.measurement_index.map_or(String::new(), |n| format!("{}. ", n + 1));
        let done = p.fraction_done.map_or(String::new(), |d| format!(", {:.0} %", d * 100.0));
        let how = match (run.is_stopping, p.is_ramping, p.measurement_index) {
            (true, ..) => "; stopping, the result follows",
            (_, true, _) => "; ramp-up, not counted",
            (_, _, None) => "; preparation, not counted",
            _ => "",
        };
        format!("{number}{}{done}{how}", sanitize(&p.phase))
    }

    fn fraction_done(run: &Run<Self>) -> Option<f64> {
        run.progress.last.as_ref()?.fraction_done
    }

    /// The newest rates and latencies, a line for each kind of operation.
    fn figure_lines(run: &Run<Self>, _: usize) -> Vec<StyledLine> {
        let (Some(rates), Some(last)) = (run.progress.points.newest(), &run.progress.last) else { return Vec::new() };
        let latency = |ns: Option<f64>| ns.map_or("-".into(), format_latency);
        let line = |kind: usize| {
            let [ops, bytes, p50, p99] = rates[kind];
            format!(
                "{:<5} {:>6}/s{}  p50 {:>7}  p99 {:>7}  {} done",
                operation_name(run, kind),
                ops.map_or(String::new(), format_count),
                bytes.map_or(String::new(), |n| format!(" {:>9}", format_rate(n))),
                latency(p50),
                latency(p99),
                last.op_counts[kind]
            )
        };
        (0..3).filter(|kind| run.progress.has_ops[*kind]).map(|kind| (line(kind), TextStyle::Plain)).collect()
    }

    /// Charts, and below them device and page cache where their own panes do not fit.
    fn draw_graphs(run: &Run<Self>, cx: &Context, area: Rect, buf: &mut CellBuffer) {
        let around = device_and_cache_lines(cx);
        let [charts, below] = split_rows(area, area.height.saturating_sub(around.len() as u16));
        draw_charts(run, cx, charts, buf);
        draw_column(buf, below, around.iter().map(|text| (text, cx.theme.dim)));
    }
}

fn format_rate(n: f64) -> String {
    format!("{}/s", format_bytes(n as u64))
}

/// What this run calls a kind of operation; some workloads time something other than syncs.
fn operation_name(run: &Run<BenchForm>, kind: usize) -> &'static str {
    match (kind, run.profile.as_str()) {
        (2, "intrinsic") => "run",
        (2, "fork") => "fork",
        _ => ["read", "write", "sync"][kind],
    }
}

/// Device and page cache, where their own panes do not fit.
fn device_and_cache_lines(cx: &Context) -> Vec<String> {
    let is_hidden = |id| cx.layout.pane_area(id).is_none();
    let snapshot = cx.shared.snapshot();
    let mut out = Vec::new();
    if is_hidden(PaneId::Devices) {
        let device = cx.shared.target.device().and_then(|id| snapshot.device(id));
        out.extend(device.map(format_device_rates));
    }
    if is_hidden(PaneId::Writeback) {
        out.extend(snapshot.writeback.ok().map(|w| {
            let levels = [w.dirty_bytes, w.writeback_bytes, w.dirty_threshold_bytes];
            let [dirty, writeback, limit] = levels.map(|n| n.map_or("-".into(), format_bytes));
            format!("page cache: dirty {dirty}, writeback {writeback}, limit {limit}")
        }));
    }
    out
}

/// What a chart is called, the format of its values, and the top of its scale for the largest one.
type ChartQuantity = (&'static str, fn(f64) -> String, fn(f64) -> f64);

/// The quantities of [`OperationRates`](super::figures::OperationRates).
const QUANTITIES: [ChartQuantity; 4] = [
    ("IOPS", format_count, round_up_scale),
    ("bytes", format_rate, round_up_bytes),
    ("p50", charts::format_latency, round_up_scale),
    ("p99", charts::format_latency, round_up_scale),
];

/// Draws two charts per row, in as many rows as fit a label and a row of columns; rates come before latencies.
fn draw_charts(run: &Run<BenchForm>, cx: &Context, area: Rect, buf: &mut CellBuffer) {
    let kinds = || (0..3).filter(|kind| run.progress.has_ops[*kind]);
    let rates = kinds().map(|kind| (kind, if kind < 2 { 0..2 } else { 0..1 }));
    let mut rows: Vec<_> = rates.chain(kinds().map(|kind| (kind, 2..4))).collect();
    rows.truncate(usize::from(area.height / 2));
    let Some(height) = area.height.checked_div(rows.len() as u16) else { return };
    let height = height.min(MAX_CHART_HEIGHT);
    for ((kind, quantities), y) in rows.into_iter().zip((area.y..).step_by(height.into())) {
        let width = if quantities.len() == 2 { area.width.saturating_sub(2) / 2 } else { area.width };
        for (quantity, x) in quantities.zip([area.x, area.x + width + 2]) {
            draw_chart(run, cx, Rect { x, y, width, height }, buf, (kind, quantity));
        }
    }
}

fn draw_chart(run: &Run<BenchForm>, cx: &Context, area: Rect, buf: &mut CellBuffer, (kind, quantity): (usize, usize)) {
    let theme = &cx.theme;
    let values: Vec<_> = run
        .progress
        .downsample(cx.shared.graph_samples(area.width))
        .iter()
        .map(|rates| rates[kind][quantity])
        .collect();
    let max = values.iter().flatten().copied().fold(0.0, f64::max);
    let secs = run.progress.elapsed_ms as f64 / 1e3;
    let (name, (what, format, round_up)) = (operation_name(run, kind), QUANTITIES[quantity]);
    let what = if (kind, quantity) == (2, 0) { format!("{name}s/s") } else { format!("{name} {what}") };
    // The newest value is in the lines above.
    let title = format!("{what}, at most {}", format(max));
    let style = if kind == 1 { theme.graph_alt } else { theme.graph };
    TimeChart { title: &title, values: &values, format, round_up, secs }.draw(buf, area, style, theme);
}
