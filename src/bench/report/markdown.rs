//! A report as Markdown: one table row per part and direction, for notes and tickets.

use super::{Part, Report};
use crate::text::sanitize;
use std::fmt::Write as _;

/// `text` inside a table cell.
pub fn cell(text: &str) -> String {
    sanitize(text).replace('|', "\\|")
}

/// The whole report.
pub fn report(r: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "## {} on {}, {}\n", cell(&r.plan.profile), cell(&r.host), r.time);
    if let Some(t) = &r.target {
        let _ = writeln!(
            out,
            "`{}` on {} ({}), kernel {}\n",
            cell(&t.directory),
            cell(&t.filesystem),
            cell(&t.source),
            cell(&r.kernel)
        );
    }
    let _ = writeln!(out, "Ended: {}\n", cell(&super::text::end(&r.end)));
    let _ = writeln!(out, "| {} |\n|---|---{}|", HEADS.join(" | "), "|--:".repeat(HEADS.len() - 2));
    for p in &r.parts {
        rows(&mut out, p);
    }
    if super::sweep::is_one(r) {
        let _ = write!(out, "\n```\n{}```\n", super::sweep::charts(r));
        for finding in super::sweep::findings(r) {
            let _ = writeln!(out, "\n{}", cell(&finding));
        }
    }
    let figures: Vec<_> = r.parts.iter().flat_map(|p| p.figures.iter().map(move |f| (p, f))).collect();
    if !figures.is_empty() {
        out.push_str("\n| part | figure | value |\n|---|---|--:|\n");
        for (p, f) in figures {
            let _ = writeln!(
                out,
                "| {} | {} | {} |",
                cell(&p.label),
                cell(&f.name),
                super::text::figure(f.value, &f.unit)
            );
        }
    }
    for sentence in super::scale::sentences(r) {
        let _ = writeln!(out, "\n{}", cell(&sentence));
    }
    if let Some(p) = &r.ruler {
        let _ = writeln!(out, "\n{}", cell(&p.sentence));
    }
    if !r.warnings.is_empty() {
        out.push('\n');
    }
    for w in &r.warnings {
        let _ = writeln!(out, "- {}", cell(w));
    }
    out
}

fn rows(out: &mut String, p: &Part) {
    for row in cells(p) {
        let _ = writeln!(out, "| {} |", row.map(|c| cell(&c)).join(" | "));
    }
}

/// Heads of the columns of [`cells`].
pub const HEADS: [&str; 9] =
    ["part", "what", "IOPS", "MiB/s", "mean µs", "p50 µs", "p99 µs", "p99.9 µs", "max µs"];

/// A part as rows of a table, one for each kind of operation it has; labels are raw.
pub fn cells(p: &Part) -> Vec<[String; 9]> {
    let us = |ns: Option<u64>| ns.map_or("-".into(), |n| format!("{:.0}", n as f64 / 1e3));
    let row = |row: super::Row| {
        [
            p.label.clone(),
            row.what.to_owned(),
            format!("{:.0}", p.per_s(row.ios)),
            format!("{:.1}", p.per_s(row.bytes) / 1_048_576.0),
            format!("{:.0}", row.lat.mean_ns / 1e3),
            us(row.lat.percentile(50.0)),
            us(row.lat.percentile(99.0)),
            us(row.lat.percentile(99.9)),
            format!("{:.0}", row.lat.max_ns as f64 / 1e3),
        ]
    };
    super::rows(p).into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn hostile_names_stay_in_their_cell() {
        assert_eq!(super::cell("a|b\n\x1b[2J"), "a\\|b\\n\\x1b[2J");
    }
}
