//! The page of a run under way: how far it is, charts of what it does, and beside them what the device and
//! the page cache do meanwhile.

use super::plan::device_line;
use crate::bench::report::text::us;
use crate::tui::bench::course::Moment;
use crate::tui::bench::run::Run;
use crate::tui::layout;
use crate::tui::panes::PaneId;
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::{frame, wrap};
use crate::tui::widgets::graph::{bar, columns, nice_max};
use crate::tui::widgets::put::put;
use crate::tui::widgets::theme::Theme;
use crate::units::{format_bytes, write_count};
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Names of the kinds of operations.
const KINDS: [&str; 3] = ["read", "write", "sync"];
/// Notes shown at once.
const NOTES: usize = 2;

/// What a chart shows of a moment; `None`: a gap.
type Value = Box<dyn Fn(&Moment) -> Option<f64>>;

/// A chart: what it shows, how its newest value is written, and its value at a moment.
struct Chart {
    label: String,
    value: Value,
    write: fn(f64) -> String,
    second: bool,
}

fn count(n: f64) -> String {
    let mut out = String::new();
    write_count(&mut out, n);
    out
}

fn rate(n: f64) -> String {
    format!("{}/s", format_bytes(n as u64))
}

/// What syncs are called in this run: some workloads time something else.
fn kind_name(run: &Run, kind: usize) -> &'static str {
    match (kind, run.plan.profile.as_str()) {
        (2, "intrinsic") => "run",
        (2, "fork") => "fork",
        _ => KINDS[kind],
    }
}

/// The charts in pairs, the most telling first: rates of every kind, then its latencies.
fn charts(run: &Run) -> Vec<[Option<Chart>; 2]> {
    let chart = |label: String, write, second, value: Value| Some(Chart { label, value, write, second });
    let (mut rates, mut lats) = (Vec::new(), Vec::new());
    for kind in (0..3).filter(|k| run.course.seen[*k]) {
        let (name, second) = (kind_name(run, kind), kind == 1);
        let per_s = if kind == 2 { format!("{name}s/s") } else { format!("{name} IOPS") };
        let moved = (kind < 2).then(|| {
            chart(format!("{name} bytes"), rate, second, Box::new(move |m| Some(m.bytes_per_s[kind])))
        });
        rates.push([chart(per_s, count, second, Box::new(move |m| Some(m.per_s[kind]))), moved.flatten()]);
        let lat = |which: usize, word: &str| {
            let value = move |m: &Moment| m.lat[kind][which].map(|ns| ns as f64);
            chart(format!("{name} {word}"), us, second, Box::new(value))
        };
        lats.push([lat(0, "p50"), lat(1, "p99")]);
    }
    rates.into_iter().chain(lats).collect()
}

/// Draws the page.
pub fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool, run: &Run) {
    let title = format!("Run: {}", run.plan.profile);
    let note = if run.stopping { "x: kill it" } else { "x: end it" };
    let inner = frame(buf, area, &title, note, focused, theme);
    let (mut y, width) = (inner.y, inner.width);
    let mut line = |buf: &mut Canvas, text: &str, style: Style| {
        if y < inner.bottom() {
            put(buf, inner.x, y, text, width, style);
            y += 1;
        }
    };
    line(buf, &phase(run), theme.title);
    let meter = Rect { y: inner.y + 1, height: 1, ..inner };
    line(buf, "", theme.text);
    if let Some(done) = run.progress.as_ref().and_then(|p| p.done).filter(|_| meter.y < inner.bottom()) {
        bar(buf, meter, done, 1.0, &[], theme.graph, theme.dim);
    }
    if let Some(trouble) = run.trouble(app.world.now().boot_ns) {
        wrap(&trouble, width.into()).iter().for_each(|l| line(buf, l, theme.crit));
    }
    figures(run).iter().for_each(|l| line(buf, l, theme.text));
    for note in run.notes.iter().rev().take(NOTES) {
        line(buf, &format!("! {note}"), theme.warn);
    }
    let around = surroundings(app);
    let below = (around.len() as u16).min(inner.bottom().saturating_sub(y));
    let room = Rect { y, height: inner.bottom().saturating_sub(y + below), ..inner };
    draw_charts(run, theme, room, buf);
    for (i, text) in around.iter().take(below.into()).enumerate() {
        put(buf, inner.x, inner.bottom() - below + i as u16, text, width, theme.dim);
    }
}

/// What is being done, and how far it is.
fn phase(run: &Run) -> String {
    let Some(p) = &run.progress else { return "starting the measuring process".into() };
    let number = p.part.map_or(String::new(), |n| format!("{}. ", n + 1));
    let done = p.done.map_or(String::new(), |d| format!(", {:.0} %", d * 100.0));
    let how = match (run.stopping, p.ramping, p.part) {
        (true, ..) => "; ending, its figures follow",
        (_, true, _) => "; ramp-up, not counted",
        (_, _, None) => "; preparation, not counted",
        _ => "",
    };
    format!("{number}{}{done}{how}", crate::text::sanitize(&p.phase))
}

/// The run in a few lines, to keep.
pub fn summary(run: &Run) -> Vec<String> {
    let mut out = vec![phase(run)];
    out.extend(figures(run));
    out.extend(run.notes.iter().cloned());
    out
}

/// The newest figures, a line for each kind of operation.
fn figures(run: &Run) -> Vec<String> {
    let Some(m) = run.course.last() else { return Vec::new() };
    let counts = run.progress.as_ref().map_or([0; 3], |p| p.counts);
    let lat = |ns: Option<u64>| ns.map_or("-".into(), |ns| us(ns as f64));
    (0..3)
        .filter(|k| run.course.seen[*k])
        .map(|k| {
            let bytes = if k < 2 { format!(" {:>9}", rate(m.bytes_per_s[k])) } else { String::new() };
            format!(
                "{:<5} {:>6}/s{bytes}  p50 {:>7}  p99 {:>7}  {} done",
                kind_name(run, k),
                count(m.per_s[k]),
                lat(m.lat[k][0]),
                lat(m.lat[k][1]),
                counts[k]
            )
        })
        .collect()
}

/// The device and the page cache, where their own panes have no room.
fn surroundings(app: &App) -> Vec<String> {
    let arranged = layout::arrange(app);
    let shown = |id| arranged.area(id).is_some();
    let mut out = Vec::new();
    if !shown(PaneId::Devices)
        && let Some(rate) = app.ui.bench.device().and_then(|id| app.snap().device(id))
    {
        out.push(device_line(rate));
    }
    if !shown(PaneId::Writeback)
        && let Some(w) = app.snap().writeback.ok()
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

/// Two charts a row, as many rows as have at least a label and a row of columns.
fn draw_charts(run: &Run, theme: &Theme, area: Rect, buf: &mut Canvas) {
    let mut rows = charts(run);
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

fn draw_chart(run: &Run, theme: &Theme, area: Rect, buf: &mut Canvas, chart: &Chart) {
    let all = run.course.within(area.width.into());
    let values: Vec<Option<f64>> = all.iter().map(|m| (chart.value)(m)).collect();
    let max = values.iter().flatten().copied().fold(0.0, f64::max);
    // The newest value stands above, in the figures.
    let label = format!("{}, at most {}", chart.label, (chart.write)(max));
    put(buf, area.x, area.y, &label, area.width, theme.head);
    let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let style = if chart.second { theme.graph2 } else { theme.graph };
    columns(buf, below, values.into_iter(), nice_max(max), style);
}
