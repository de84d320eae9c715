//! A report as Markdown: one table row per measurement and direction.

use super::data::{BenchReport, Measurement};
use crate::sanitize::sanitize;
use std::fmt::Write as _;

/// `text` inside a table cell.
pub(crate) fn escape_cell(text: &str) -> String {
    sanitize(text).replace('|', "\\|")
}

pub(crate) fn markdown_report(r: &BenchReport) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "## {} on {}, {}\n", escape_cell(&r.plan.profile), escape_cell(&r.host), r.time);
    if let Some(t) = &r.target {
        let [directory, filesystem, source, kernel] =
            [&t.directory, &t.filesystem, &t.source, &r.kernel].map(|text| escape_cell(text));
        let _ = writeln!(out, "`{directory}` on {filesystem} ({source}), kernel {kernel}\n");
    }
    let _ = writeln!(out, "Ended: {}\n", escape_cell(&super::format::describe_end(&r.end)));
    let _ = writeln!(out, "| {} |\n|---|---{}|", COLUMN_HEADERS.join(" | "), "|--:".repeat(COLUMN_HEADERS.len() - 2));
    for row in r.measurements.iter().flat_map(table_cells) {
        let _ = writeln!(out, "| {} |", row.map(|c| escape_cell(&c)).join(" | "));
    }
    if super::data::is_sweep(r) {
        let _ = write!(out, "\n```\n{}```\n", super::sweep::draw_charts(r));
        for finding in super::sweep::findings(r) {
            let _ = writeln!(out, "\n{}", escape_cell(&finding));
        }
    }
    let figures: Vec<_> = r.measurements.iter().flat_map(|p| p.metrics.iter().map(move |f| (p, f))).collect();
    if !figures.is_empty() {
        out.push_str("\n| part | figure | value |\n|---|---|--:|\n");
        for (p, f) in figures {
            let value = super::format::format_value(f.value, &f.unit);
            let _ = writeln!(out, "| {} | {} | {value} |", escape_cell(&p.label), escape_cell(&f.name));
        }
    }
    if let Some(sentence) = &r.conclusion {
        let paragraph = |line: &str| match line.strip_prefix("  ") {
            Some(code) => format!("    {}", sanitize(code)),
            None => escape_cell(line),
        };
        let _ = writeln!(out, "\n{}", sentence.lines().map(paragraph).collect::<Vec<_>>().join("\n\n"));
    }
    if let Some(p) = &r.reference {
        let _ = writeln!(out, "\n{}", escape_cell(&p.sentence));
    }
    if !r.warnings.is_empty() {
        out.push('\n');
    }
    for w in &r.warnings {
        let _ = writeln!(out, "- {}", escape_cell(w));
    }
    out
}

pub(crate) const COLUMN_HEADERS: [&str; 9] =
    ["part", "what", "IOPS", "MiB/s", "mean µs", "p50 µs", "p99 µs", "p99.9 µs", "max µs"];

/// A measurement as table rows, one for each kind of operation; labels are not sanitized.
pub(crate) fn table_cells(p: &Measurement) -> Vec<[String; 9]> {
    let us = |ns: Option<u64>| ns.map_or("-".into(), |n| format!("{:.0}", n as f64 / 1e3));
    let row = |row: super::data::OperationRow| {
        [
            p.label.clone(),
            row.operation.to_owned(),
            format!("{:.0}", p.rate_of(row.ios)),
            format!("{:.1}", p.rate_of(row.bytes) / super::format::MIB),
            format!("{:.0}", row.lat.mean_ns / 1e3),
            us(row.lat.percentile(50.0)),
            us(row.lat.percentile(99.0)),
            us(row.lat.percentile(99.9)),
            format!("{:.0}", row.lat.max_ns as f64 / 1e3),
        ]
    };
    super::data::operation_rows(p).into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn hostile_names_are_escaped() {
        assert_eq!(super::escape_cell("a|b\n\x1b[2J"), "a\\|b\\n\\x1b[2J");
    }
}
