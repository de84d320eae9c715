//! The page of an experiment under way: which round of which arm, the figures of the rounds so far, and the dirty
//! pages of both arms, one above the other on one scale.

use super::super::bench::{Tone, Toned, folded};
use crate::bench::outline::told;
use crate::bench::workloads::headline::{self, Metric};
use crate::experiment::message::Phase;
use crate::experiment::report::graph::{Curve, LEGEND, pair};
use crate::experiment::report::{sheet, text, verdict};
use crate::experiment::spec::Arm;
use crate::text::sanitize;
use crate::tui::experiment::form::joined;
use crate::tui::experiment::run::Run;
use crate::tui::state::App;
use crate::tui::widgets::canvas::Canvas;
use crate::tui::widgets::dialog::{frame, wrap};
use crate::tui::widgets::graph::bar;
use crate::tui::widgets::put::put;
use crate::tui::widgets::theme::Theme;
use crate::units::format_bytes_long;
use ratatui::layout::Rect;

/// Notes shown at once.
const NOTES: usize = 2;
/// Rows the graphs of both arms have at least: two heads, the axis, the legend, and so much of each arm.
const LEAST: u16 = 3;

/// Draws it.
pub fn render(app: &App, theme: &Theme, area: Rect, buf: &mut Canvas, focused: bool, run: &Run) {
    let title = format!("Experiment: {}", run.spec.plan.profile);
    let note = if run.stopping { "x: kill it" } else { "x: end it" };
    let inner = frame(buf, area, &title, note, focused, theme);
    let mut lines: Vec<Toned> = vec![(phase(run), Tone::Strong), (String::new(), Tone::Plain)];
    if let Some(trouble) = run.trouble(app.world.now().boot_ns) {
        lines.extend(wrap(&trouble, inner.width.into()).into_iter().map(|l| (l, Tone::Crit)));
    }
    lines.extend(folded(running(run), inner.width.into()));
    lines.extend(run.notes.iter().rev().take(NOTES).map(|n| (format!("! {n}"), Tone::Warn)));
    let graphs = 2 * (LEAST + 1) + 2;
    let table = table(run, inner.width.into());
    let room = usize::from(inner.height.saturating_sub(graphs));
    match lines.len() + table.len() <= room {
        true => lines.extend(table),
        false => lines.extend(short(run)),
    }
    let used = (lines.len() as u16).min(inner.height);
    super::super::bench::draw(theme, Rect { height: used, ..inner }, buf, &lines, 0);
    if inner.height > 1 {
        bar(buf, Rect { y: inner.y + 1, height: 1, ..inner }, run.done(), 1.0, &[], theme.graph, theme.dim);
    }
    draw_graphs(run, theme, Rect { y: inner.y + used, height: inner.height - used, ..inner }, buf);
}

/// Which round of which arm, and what goes on in it.
fn phase(run: &Run) -> String {
    let Some(p) = &run.progress else { return "starting the conducting process".into() };
    let what = if p.control { " (control)" } else { "" };
    let ending = if run.stopping { "; ending, the report follows" } else { "" };
    format!("round {} of {}{what}, {}: {}{ending}", p.round, p.of, p.arm.name(), p.phase.words())
}

/// What the arms set, and what the round under way does just now.
fn running(run: &Run) -> Vec<Toned> {
    let set = |arm: Arm| match run.spec.words(arm) {
        [] => "as things stand".into(),
        words => sanitize(joined(words)),
    };
    let mut out = vec![(format!("A {}; B {}", set(Arm::A), set(Arm::B)), Tone::Dim)];
    let Some(p) = run.progress.as_ref().filter(|p| p.phase == Phase::Work) else { return out };
    if let Some(bench) = &p.bench {
        let dirty = p.point.map_or(String::new(), |d| {
            format!("  dirty {}, being written {}", format_bytes_long(d.dirty), format_bytes_long(d.writeback))
        });
        out.push((sanitize(format!("{}{dirty}", told(bench))), Tone::Plain));
    }
    out
}

fn metric(run: &Run) -> Option<Metric> {
    let control = run.progress.as_ref().is_some_and(|p| p.control);
    let plan = if control { run.spec.control_plan() } else { None };
    headline::metric(&plan.as_ref().unwrap_or(&run.spec.plan).profile)
}

/// The rounds that are over.
fn table(run: &Run, width: usize) -> Vec<Toned> {
    let Some(metric) = metric(run).filter(|_| !run.so_far().is_empty()) else { return Vec::new() };
    let mut out = String::new();
    text::table(&mut out, &sheet::rounds_of(&metric, run.so_far()), width);
    let mut lines: Vec<Toned> = vec![(String::new(), Tone::Plain)];
    lines.extend(
        out.lines().enumerate().map(|(i, l)| (l.to_owned(), if i == 0 { Tone::Strong } else { Tone::Plain })),
    );
    lines.push((String::new(), Tone::Plain));
    lines
}

/// The same in a line for each arm, the newest first so that it is seen whatever the width.
fn short(run: &Run) -> Vec<Toned> {
    let Some(metric) = metric(run) else { return Vec::new() };
    let of = |arm: Arm| {
        let rounds = run.so_far().iter().rev().filter(|r| r.arm == arm);
        let values = rounds.map(|r| r.value.map_or("-".into(), |v| verdict::value(&metric, v)));
        let values: Vec<String> = values.collect();
        let shown = if values.is_empty() { "no round yet".into() } else { values.join(", ") };
        (format!("{} {}: {shown}", arm.name(), metric.name), Tone::Plain)
    };
    vec![of(Arm::A), of(Arm::B)]
}

fn draw_graphs(run: &Run, theme: &Theme, area: Rect, buf: &mut Canvas) {
    let rows = (area.height.saturating_sub(4) / 2).min(10);
    let curve = |arm: Arm| {
        let (points, about) = run.newest(arm).unwrap_or((&[], "no round yet".into()));
        let threshold = run.thresholds[arm.index()].background;
        Curve { points: points.iter().collect(), threshold, about }
    };
    let lines = pair(&[curve(Arm::A), curve(Arm::B)], area.width.into(), rows.into());
    if lines.is_empty() {
        return;
    }
    put(buf, area.x, area.y, LEGEND, area.width, theme.dim);
    let half = usize::from(rows) + 1;
    for ((i, line), y) in lines.iter().enumerate().zip(area.y + 1..area.bottom()) {
        let style = match i {
            _ if i == 0 || i == half => theme.head,
            _ if i < half => theme.graph,
            _ if i < 2 * half => theme.graph2,
            _ => theme.dim,
        };
        put(buf, area.x, y, line, area.width, style);
    }
}

/// It in a few lines, to keep.
pub fn summary(run: &Run) -> Vec<Toned> {
    let mut out = vec![(phase(run), Tone::Plain)];
    out.extend(running(run));
    out.extend(short(run));
    out.extend(run.notes.iter().map(|n| (n.clone(), Tone::Plain)));
    out
}
