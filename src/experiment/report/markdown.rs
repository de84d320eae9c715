//! An experiment as Markdown, for notes and tickets.

use super::super::spec::Arm;
use super::data::ExperimentReport;
use super::tables::{self, ReportTable};
use super::{graph, verdict};
use crate::bench::report::markdown::escape_cell;
use std::fmt::Write as _;

pub(crate) fn markdown_report(r: &ExperimentReport) -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "## Experiment: {} on {}, {}\n", escape_cell(&r.spec.plan.profile), escape_cell(&r.host), r.time);
    if let Some(t) = r.target() {
        let [directory, filesystem, source, kernel] =
            [&t.directory, &t.filesystem, &t.source, &r.kernel].map(|text| escape_cell(text));
        let _ = writeln!(out, "- `{directory}` on {filesystem} ({source}), kernel {kernel}");
    }
    for arm in [Arm::A, Arm::B] {
        let _ = writeln!(out, "- {}: {}", arm.name(), escape_cell(&tables::describe_arm(r, arm)));
    }
    let _ = writeln!(out, "- Memory: {}", tables::describe_memory(r));
    let order: Vec<&str> = r.spec.arm_order().into_iter().map(Arm::name).collect();
    let _ = writeln!(out, "- {} rounds of each, order {}", r.spec.rounds, order.join(" "));
    let _ = writeln!(out, "- Ended: {}", escape_cell(&crate::bench::report::text::describe_end(&r.end)));
    for t in &r.trials {
        let _ = writeln!(out, "\n### {}{}\n", if t.is_control { "Negative control: " } else { "" }, t.plan.profile);
        let _ = writeln!(out, "**{}**\n", escape_cell(&t.verdict.text));
        if t.is_control {
            let _ = writeln!(out, "{}\n", verdict::control_meaning(t.verdict.outcome));
        }
        for line in &t.work_description {
            let _ = writeln!(out, "- {}", escape_cell(line));
        }
        for part in [tables::rounds_table(t), tables::median_table(t), tables::latency_table(t)] {
            write_table(&mut out, &part);
        }
        if let Some(c) = &t.comparison {
            let _ = writeln!(out, "\n{}", tables::describe_ratio(c).join(". "));
        }
        let graph = graph::draw_trial(r, t, usize::MAX);
        if !graph.is_empty() {
            let _ = writeln!(out, "\n```\n{graph}```");
        }
    }
    if !r.warnings.is_empty() {
        out.push('\n');
    }
    for w in &r.warnings {
        let _ = writeln!(out, "- {}", escape_cell(w));
    }
    let _ = writeln!(out, "\n{}", escape_cell(&r.aftermath));
    out
}

fn write_table(out: &mut String, (heads, rows): &ReportTable) {
    if rows.is_empty() {
        return;
    }
    let line = |cells: &[String]| cells.iter().map(|c| escape_cell(c)).collect::<Vec<_>>().join(" | ");
    let _ = writeln!(out, "\n| {} |\n|---|{}", line(heads), "--:|".repeat(heads.len() - 1));
    for row in rows {
        let _ = writeln!(out, "| {} |", line(row));
    }
}
