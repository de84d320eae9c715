//! The page of a run under way: its progress, charts of its rates and latencies, and beside them device and page cache.

use crate::bench::report::text::format_latency;
use crate::tui::layout;
use crate::tui::panes::PaneId;
use crate::tui::state::App;
use crate::tui::views::bench::plan::format_device_rates;
use crate::tui::views::bench::rate_series::BenchRates;
use crate::tui::views::bench::run::TrackedBench;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, wrap};
use crate::tui::widgets::graph::{draw_bar, draw_columns, round_up_scale};
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use crate::units::{format_bytes, write_count};
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Names of the kinds of operations.
const OPERATION_NAMES: [&str; 3] = ["read", "write", "sync"];
/// Maximum number of notes visible.
const MAX_NOTES: usize = 2;

/// Value of a chart at a point; `None`: a gap.
type ChartValueFn = Box<dyn Fn(&BenchRates) -> Option<f64>>;

/// A chart: label, format of its values, colour, value at a point.
struct Chart {
    label: String,
    value: ChartValueFn,
    format: fn(f64) -> String,
    is_second_series: bool,
}

fn format_count(n: f64) -> String {
    let mut out = String::new();
    write_count(&mut out, n);
    out
}

fn format_rate(n: f64) -> String {
    format!("{}/s", format_bytes(n as u64))
}

/// What this run calls its third kind of operation; some workloads time something other than syncs.
fn operation_name(run: &TrackedBench, kind: usize) -> &'static str {
    match (kind, run.plan.profile.as_str()) {
        (2, "intrinsic") => "run",
        (2, "fork") => "fork",
        _ => OPERATION_NAMES[kind],
    }
}

/// The charts in pairs, the most important first: all rates, then latencies.
fn chart_pairs(run: &TrackedBench) -> Vec<[Option<Chart>; 2]> {
    let chart = |label: String, write, second, value: ChartValueFn| {
        Some(Chart { label, value, format: write, is_second_series: second })
    };
    let (mut rates, mut lats) = (Vec::new(), Vec::new());
    for kind in (0..3).filter(|k| run.rates.has_ops[*k]) {
        let (name, second) = (operation_name(run, kind), kind == 1);
        let per_s = if kind == 2 { format!("{name}s/s") } else { format!("{name} IOPS") };
        let moved = (kind < 2)
            .then(|| chart(format!("{name} bytes"), format_rate, second, Box::new(move |m| Some(m.bytes_per_s[kind]))));
        rates.push([chart(per_s, format_count, second, Box::new(move |m| Some(m.ops_per_s[kind]))), moved.flatten()]);
        let lat = |which: usize, word: &str| {
            let value = move |m: &BenchRates| m.latency_ns[kind][which].map(|ns| ns as f64);
            chart(format!("{name} {word}"), format_latency, second, Box::new(value))
        };
        lats.push([lat(0, "p50"), lat(1, "p99")]);
    }
    rates.into_iter().chain(lats).collect()
}

/// Draws the page.
pub fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool, run: &TrackedBench) {
    let title = format!("Run: {}", run.plan.profile);
    let note = if run.is_stopping { "x: kill" } else { "x: stop" };
    let inner = draw_frame(buf, area, &title, note, focused, theme);
    let (mut y, width) = (inner.y, inner.width);
    let mut line = |buf: &mut CellBuffer, text: &str, style: Style| {
        if y < inner.bottom() {
            draw_text(buf, inner.x, y, text, width, style);
            y += 1;
        }
    };
    line(buf, &phase_text(run), theme.title);
    let meter = Rect { y: inner.y + 1, height: 1, ..inner };
    line(buf, "", theme.text);
    if let Some(done) = run.progress.as_ref().and_then(|p| p.fraction_done).filter(|_| meter.y < inner.bottom()) {
        draw_bar(buf, meter, done, 1.0, &[], theme.graph, theme.dim);
    }
    if let Some(trouble) = run.blocked_text(app.shared.system.now().boot_ns) {
        wrap(&trouble, width.into()).iter().for_each(|l| line(buf, l, theme.crit));
    }
    operation_lines(run).iter().for_each(|l| line(buf, l, theme.text));
    for note in run.notes.iter().rev().take(MAX_NOTES) {
        line(buf, &format!("! {note}"), theme.warn);
    }
    let around = device_and_cache_lines(app);
    let below = (around.len() as u16).min(inner.bottom().saturating_sub(y));
    let room = Rect { y, height: inner.bottom().saturating_sub(y + below), ..inner };
    draw_charts(run, theme, room, buf);
    for (i, text) in around.iter().take(below.into()).enumerate() {
        draw_text(buf, inner.x, inner.bottom() - below + i as u16, text, width, theme.dim);
    }
}

/// What is being measured, and how far it is.
fn phase_text(run: &TrackedBench) -> String {
    let Some(p) = &run.progress else { return "starting the benchmark process".into() };
    let number = p.measurement_index.map_or(String::new(), |n| format!("{}. ", n + 1));
    let done = p.fraction_done.map_or(String::new(), |d| format!(", {:.0} %", d * 100.0));
    let how = match (run.is_stopping, p.is_ramping, p.measurement_index) {
        (true, ..) => "; stopping, the result follows",
        (_, true, _) => "; ramp-up, not counted",
        (_, _, None) => "; preparation, not counted",
        _ => "",
    };
    format!("{number}{}{done}{how}", crate::sanitize::sanitize(&p.phase))
}

/// Summary of the run for export.
pub fn summary_lines(run: &TrackedBench) -> Vec<String> {
    let mut out = vec![phase_text(run)];
    out.extend(operation_lines(run));
    out.extend(run.notes.iter().cloned());
    out
}

/// The newest rates and latencies, a line for each kind of operation.
fn operation_lines(run: &TrackedBench) -> Vec<String> {
    let Some(m) = run.rates.last() else { return Vec::new() };
    let counts = run.progress.as_ref().map_or([0; 3], |p| p.op_counts);
    let lat = |ns: Option<u64>| ns.map_or("-".into(), |ns| format_latency(ns as f64));
    (0..3)
        .filter(|k| run.rates.has_ops[*k])
        .map(|k| {
            let bytes = if k < 2 { format!(" {:>9}", format_rate(m.bytes_per_s[k])) } else { String::new() };
            format!(
                "{:<5} {:>6}/s{bytes}  p50 {:>7}  p99 {:>7}  {} done",
                operation_name(run, k),
                format_count(m.ops_per_s[k]),
                lat(m.latency_ns[k][0]),
                lat(m.latency_ns[k][1]),
                counts[k]
            )
        })
        .collect()
}

/// Device and page cache, where their own panes do not fit.
fn device_and_cache_lines(app: &App) -> Vec<String> {
    let arranged = layout::compute_layout(app);
    let shown = |id| arranged.pane_area(id).is_some();
    let mut out = Vec::new();
    if !shown(PaneId::Devices)
        && let Some(rate) = app.views.bench.target_device().and_then(|id| app.shared.snapshot().device(id))
    {
        out.push(format_device_rates(rate));
    }
    if !shown(PaneId::Writeback)
        && let Some(w) = app.shared.snapshot().writeback.ok()
    {
        let level = |n: Option<u64>| n.map_or("-".into(), format_bytes);
        out.push(format!(
            "page cache: dirty {}, writeback {}, limit {}",
            level(w.dirty_bytes),
            level(w.writeback_bytes),
            level(w.dirty_threshold_bytes)
        ));
    }
    out
}

/// Draws two charts per row, in as many rows as fit a label and a row of columns.
fn draw_charts(run: &TrackedBench, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    let mut rows = chart_pairs(run);
    rows.truncate(usize::from(area.height / 2));
    let Some(height) = area.height.checked_div(rows.len() as u16) else { return };
    let height = height.min(8);
    for (i, pair) in rows.iter().enumerate() {
        let wide = if pair[1].is_some() { area.width.saturating_sub(2) / 2 } else { area.width };
        for (j, chart) in pair.iter().flatten().enumerate() {
            let x = area.x + j as u16 * (wide + 2);
            let at = Rect { x, y: area.y + i as u16 * height, width: wide, height };
            draw_chart(run, theme, at, buf, chart);
        }
    }
}

fn draw_chart(run: &TrackedBench, theme: &Theme, area: Rect, buf: &mut CellBuffer, chart: &Chart) {
    let all = run.rates.downsample(area.width.into());
    let values: Vec<Option<f64>> = all.iter().map(|m| (chart.value)(m)).collect();
    let max = values.iter().flatten().copied().fold(0.0, f64::max);
    // The newest value is in the summary lines above.
    let label = format!("{}, at most {}", chart.label, (chart.format)(max));
    draw_text(buf, area.x, area.y, &label, area.width, theme.header);
    let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let style = if chart.is_second_series { theme.graph_alt } else { theme.graph };
    draw_columns(buf, below, values.into_iter(), round_up_scale(max), style);
}
