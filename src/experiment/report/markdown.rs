//! An experiment as Markdown, for notes and tickets.

use super::super::spec::Arm;
use super::sheet::{self, Table};
use super::{Report, graph, verdict};
use crate::bench::report::markdown::cell;
use std::fmt::Write as _;

/// The whole report.
pub fn report(r: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "## Experiment: {} on {}, {}\n", cell(&r.spec.plan.profile), cell(&r.host), r.time);
    if let Some(t) = r.target() {
        let _ = writeln!(
            out,
            "- `{}` on {} ({}), kernel {}",
            cell(&t.directory),
            cell(&t.filesystem),
            cell(&t.source),
            cell(&r.kernel)
        );
    }
    for arm in [Arm::A, Arm::B] {
        let _ = writeln!(out, "- {}: {}", arm.name(), cell(&sheet::arm(r, arm)));
    }
    let _ = writeln!(out, "- Memory: {}", sheet::memory(r));
    let order: Vec<&str> = r.spec.order().into_iter().map(Arm::name).collect();
    let _ = writeln!(out, "- {} rounds of each, order {}", r.spec.rounds, order.join(" "));
    let _ = writeln!(out, "- Ended: {}", cell(&crate::bench::report::text::end(&r.end)));
    for t in &r.trials {
        let _ =
            writeln!(out, "\n### {}{}\n", if t.control { "Negative control: " } else { "" }, t.plan.profile);
        let _ = writeln!(out, "**{}**\n", cell(&t.verdict.text));
        if t.control {
            let _ = writeln!(out, "{}\n", verdict::of_control(t.verdict.outcome));
        }
        for line in &t.work {
            let _ = writeln!(out, "- {}", cell(line));
        }
        for part in [sheet::rounds(t), sheet::medians(t), sheet::latencies(t)] {
            table(&mut out, &part);
        }
        if let Some(c) = &t.comparison {
            let _ = writeln!(out, "\n{}", sheet::ratio(c).join(". "));
        }
        let graph = graph::both(r, t, usize::MAX);
        if !graph.is_empty() {
            let _ = writeln!(out, "\n```\n{graph}```");
        }
    }
    if !r.warnings.is_empty() {
        out.push('\n');
    }
    for w in &r.warnings {
        let _ = writeln!(out, "- {}", cell(w));
    }
    let _ = writeln!(out, "\n{}", cell(&r.after));
    out
}

fn table(out: &mut String, (heads, rows): &Table) {
    if rows.is_empty() {
        return;
    }
    let line = |cells: &[String]| cells.iter().map(|c| cell(c)).collect::<Vec<_>>().join(" | ");
    let _ = writeln!(out, "\n| {} |\n|---|{}", line(heads), "--:|".repeat(heads.len() - 1));
    for row in rows {
        let _ = writeln!(out, "| {} |", line(row));
    }
}
