//! The page of an experiment under way: the current round, measurements of the finished rounds, and the dirty pages of
//! both arms on one scale.

use crate::bench::description::progress_line;
use crate::bench::workloads::primary_metric::{self, PrimaryMetric};
use crate::experiment::message::RoundPhase;
use crate::experiment::report::graph::{DirtyPagesCurve, LEGEND, draw_arms};
use crate::experiment::report::{tables, text, verdict};
use crate::experiment::spec::Arm;
use crate::sanitize::sanitize;
use crate::tui::state::App;
use crate::tui::views::experiments::form::shell_join;
use crate::tui::views::experiments::run::TrackedExperiment;
use crate::tui::widgets::cell_buffer::CellBuffer;
use crate::tui::widgets::dialog::{draw_frame, wrap};
use crate::tui::widgets::graph::draw_bar;
use crate::tui::widgets::styled_lines::{StyledLine, TextStyle, wrap_lines};
use crate::tui::widgets::text::draw_text;
use crate::tui::widgets::theme::Theme;
use crate::units::format_bytes_long;
use ratatui::layout::Rect;

/// Maximum number of notes visible.
const MAX_NOTES: usize = 2;
/// Minimum rows for the graphs: two headings, axis, legend, and a few rows for each arm.
const MIN_GRAPH_ROWS: u16 = 3;

/// Draws the page.
pub fn render(app: &App, theme: &Theme, area: Rect, buf: &mut CellBuffer, focused: bool, run: &TrackedExperiment) {
    let title = format!("Experiment: {}", run.spec.plan.profile);
    let note = if run.is_stopping { "x: kill" } else { "x: stop" };
    let inner = draw_frame(buf, area, &title, note, focused, theme);
    let mut lines: Vec<StyledLine> = vec![(phase_text(run), TextStyle::Strong), (String::new(), TextStyle::Plain)];
    if let Some(trouble) = run.blocked_text(app.shared.system.now().boot_ns) {
        lines.extend(wrap(&trouble, inner.width.into()).into_iter().map(|l| (l, TextStyle::Crit)));
    }
    lines.extend(wrap_lines(round_lines(run), inner.width.into()));
    lines.extend(run.notes.iter().rev().take(MAX_NOTES).map(|n| (format!("! {n}"), TextStyle::Warn)));
    let graphs = 2 * (MIN_GRAPH_ROWS + 1) + 2;
    let table = rounds_table(run, inner.width.into());
    let room = usize::from(inner.height.saturating_sub(graphs));
    match lines.len() + table.len() <= room {
        true => lines.extend(table),
        false => lines.extend(rounds_by_arm(run)),
    }
    let used = (lines.len() as u16).min(inner.height);
    crate::tui::widgets::styled_lines::draw_lines(theme, Rect { height: used, ..inner }, buf, &lines, 0);
    if inner.height > 1 {
        draw_bar(
            buf,
            Rect { y: inner.y + 1, height: 1, ..inner },
            run.fraction_done(),
            1.0,
            &[],
            theme.graph,
            theme.dim,
        );
    }
    draw_graphs(run, theme, Rect { y: inner.y + used, height: inner.height - used, ..inner }, buf);
}

/// The current round and arm, and its phase.
fn phase_text(run: &TrackedExperiment) -> String {
    let Some(p) = &run.progress else { return "starting the experiment process".into() };
    let what = if p.is_control { " (control)" } else { "" };
    let ending = if run.is_stopping { "; stopping, the report follows" } else { "" };
    format!("round {} of {}{what}, {}: {}{ending}", p.round, p.total_rounds, p.arm.name(), p.phase.description())
}

/// What the arms set, and the progress of the current round.
fn round_lines(run: &TrackedExperiment) -> Vec<StyledLine> {
    let set = |arm: Arm| match run.spec.assignments(arm) {
        [] => "the current values".into(),
        words => sanitize(shell_join(words)),
    };
    let mut out = vec![(format!("A {}; B {}", set(Arm::A), set(Arm::B)), TextStyle::Dim)];
    let Some(p) = run.progress.as_ref().filter(|p| p.phase == RoundPhase::Work) else { return out };
    if let Some(bench) = &p.bench {
        let dirty = p.dirty_point.map_or(String::new(), |d| {
            format!("  dirty {}, writeback {}", format_bytes_long(d.dirty_bytes), format_bytes_long(d.writeback_bytes))
        });
        out.push((sanitize(format!("{}{dirty}", progress_line(bench))), TextStyle::Plain));
    }
    out
}

fn primary_metric(run: &TrackedExperiment) -> Option<PrimaryMetric> {
    let control = run.progress.as_ref().is_some_and(|p| p.is_control);
    let plan = if control { run.spec.control_plan() } else { None };
    primary_metric::primary_metric(&plan.as_ref().unwrap_or(&run.spec.plan).profile)
}

/// A table of the finished rounds.
fn rounds_table(run: &TrackedExperiment, width: usize) -> Vec<StyledLine> {
    let Some(metric) = primary_metric(run).filter(|_| !run.finished_rounds().is_empty()) else {
        return Vec::new();
    };
    let mut out = String::new();
    text::write_table(&mut out, &tables::rounds_table_of(&metric, run.finished_rounds()), width);
    let mut lines: Vec<StyledLine> = vec![(String::new(), TextStyle::Plain)];
    lines.extend(
        out.lines().enumerate().map(|(i, l)| (l.to_owned(), if i == 0 { TextStyle::Strong } else { TextStyle::Plain })),
    );
    lines.push((String::new(), TextStyle::Plain));
    lines
}

/// The same as a line for each arm, newest round first, so that it is visible at any width.
fn rounds_by_arm(run: &TrackedExperiment) -> Vec<StyledLine> {
    let Some(metric) = primary_metric(run) else { return Vec::new() };
    let of = |arm: Arm| {
        let rounds = run.finished_rounds().iter().rev().filter(|r| r.arm == arm);
        let values = rounds.map(|r| r.value.map_or("-".into(), |v| verdict::format_metric(&metric, v)));
        let values: Vec<String> = values.collect();
        let shown = if values.is_empty() { "no round yet".into() } else { values.join(", ") };
        (format!("{} {}: {shown}", arm.name(), metric.name), TextStyle::Plain)
    };
    vec![of(Arm::A), of(Arm::B)]
}

fn draw_graphs(run: &TrackedExperiment, theme: &Theme, area: Rect, buf: &mut CellBuffer) {
    let rows = (area.height.saturating_sub(4) / 2).min(10);
    let curve = |arm: Arm| {
        let (points, about) = run.latest_points(arm).unwrap_or((&[], "no round yet".into()));
        let threshold = run.thresholds[arm.index()].background;
        DirtyPagesCurve { points: points.iter().collect(), threshold, caption: about }
    };
    let lines = draw_arms(&[curve(Arm::A), curve(Arm::B)], area.width.into(), rows.into());
    if lines.is_empty() {
        return;
    }
    draw_text(buf, area.x, area.y, LEGEND, area.width, theme.dim);
    let half = usize::from(rows) + 1;
    for ((i, line), y) in lines.iter().enumerate().zip(area.y + 1..area.bottom()) {
        let style = match i {
            _ if i == 0 || i == half => theme.header,
            _ if i < half => theme.graph,
            _ if i < 2 * half => theme.graph_alt,
            _ => theme.dim,
        };
        draw_text(buf, area.x, y, line, area.width, style);
    }
}

/// Summary of the experiment for export.
pub fn summary_lines(run: &TrackedExperiment) -> Vec<StyledLine> {
    let mut out = vec![(phase_text(run), TextStyle::Plain)];
    out.extend(round_lines(run));
    out.extend(rounds_by_arm(run));
    out.extend(run.notes.iter().map(|n| (n.clone(), TextStyle::Plain)));
    out
}
