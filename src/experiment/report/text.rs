//! An experiment as text.

use super::super::spec::Arm;
use super::data::{ExperimentReport, Trial};
use super::tables::{self, ReportTable};
use super::{graph, verdict};
use crate::sanitize::sanitize;
use std::fmt::Write as _;

/// The whole report with tables and graphs of at most `width` columns, as far as possible.
pub(crate) fn text_report(r: &ExperimentReport, width: usize) -> String {
    let mut out = String::new();
    let (host, kernel) = (sanitize(&r.host), sanitize(&r.kernel));
    let _ = writeln!(out, "Experiment: {} on {host} (kernel {kernel}), {}", r.spec.plan.profile, r.time);
    if let Some(t) = r.target() {
        let device = t.device.as_deref().unwrap_or("none of its own");
        let _ = writeln!(out, "  in {}: {} on {} (device {device})", t.directory, t.filesystem, t.source);
    }
    for arm in [Arm::A, Arm::B] {
        let _ = writeln!(out, "  {}: {}", arm.name(), sanitize(tables::describe_arm(r, arm)));
    }
    let _ = writeln!(out, "  memory: {}", tables::describe_memory(r));
    let order: Vec<&str> = r.spec.arm_order().into_iter().map(Arm::name).collect();
    let _ = writeln!(out, "  {} rounds of each, order {}", r.spec.rounds, order.join(" "));
    let _ = writeln!(out, "  {}", crate::bench::report::text::describe_end(&r.end));
    for t in &r.trials {
        write_trial(&mut out, r, t, width);
    }
    for (n, w) in r.warnings.iter().enumerate() {
        let _ = writeln!(out, "{}! {}", if n == 0 { "\n" } else { "" }, sanitize(w));
    }
    let _ = writeln!(out, "\n{}", r.aftermath);
    out
}

fn write_trial(out: &mut String, r: &ExperimentReport, t: &Trial, width: usize) {
    let name = if t.is_control { "Negative control" } else { "Work of every round" };
    let _ = writeln!(out, "\n{name}: {}", t.plan.profile);
    for line in &t.work_description {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
    write_table(out, &tables::rounds_table(t), width);
    let Some(c) = &t.comparison else {
        let _ = writeln!(out, "\n{}", t.verdict.text);
        return;
    };
    for part in [tables::median_table(t), tables::latency_table(t)] {
        if !part.1.is_empty() {
            out.push('\n');
            write_table(out, &part, width);
        }
    }
    out.push('\n');
    for line in tables::describe_ratio(c) {
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out, "\n{}", t.verdict.text);
    if t.is_control {
        let _ = writeln!(out, "{}", verdict::control_meaning(t.verdict.outcome));
    }
    let graph = graph::draw_trial(r, t, width);
    if !graph.is_empty() {
        let _ = write!(out, "\n{graph}");
    }
}

/// Columns as wide as their cells, all but the first right-aligned; headers take two lines if they exceed `most`.
pub(crate) fn write_table(out: &mut String, (heads, rows): &ReportTable, most: usize) {
    let needed = |heads: &[Vec<String>]| -> Vec<usize> {
        let one = |c: usize| {
            let cells = heads.iter().chain(rows).filter_map(|r| r.get(c));
            cells.map(|t| t.chars().count()).max().unwrap_or(0)
        };
        (0..rows.first().or(heads.first()).map_or(0, Vec::len)).map(one).collect()
    };
    let mut heads = vec![heads.clone()];
    let mut widths = needed(&heads);
    if widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1) > most {
        let (upper, lower) =
            heads[0].iter().map(|h| h.rsplit_once(' ').unwrap_or(("", h))).unzip::<&str, &str, Vec<_>, Vec<_>>();
        heads = [upper, lower].map(|line| line.into_iter().map(str::to_owned).collect()).to_vec();
        widths = needed(&heads);
    }
    for row in heads.iter().chain(rows) {
        let cells = row.iter().zip(&widths).enumerate();
        let cells: Vec<String> =
            cells.map(|(c, (t, w))| if c == 0 { format!("{t:<w$}") } else { format!("{t:>w$}") }).collect();
        let _ = writeln!(out, "{}", sanitize(cells.join("  ").trim_end()));
    }
}
