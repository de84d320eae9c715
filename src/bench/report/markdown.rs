//! A report as Markdown: one table row per part and direction, for notes and tickets.

use super::{Part, Report};
use crate::text::clean;
use std::fmt::Write as _;

/// `text` inside a table cell.
pub fn cell(text: &str) -> String {
    clean(text).replace('|', "\\|")
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
    out.push_str("| part | what | IOPS | MiB/s | mean µs | p50 µs | p99 µs | p99.9 µs | max µs |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n");
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
    for row in super::rows(p) {
        let (lat, us) =
            (row.lat, |ns: Option<u64>| ns.map_or("-".into(), |n| format!("{:.0}", n as f64 / 1e3)));
        let _ = writeln!(
            out,
            "| {} | {} | {:.0} | {:.1} | {:.0} | {} | {} | {} | {:.0} |",
            cell(&p.label),
            cell(row.what),
            p.per_s(row.ios),
            p.per_s(row.bytes) / 1_048_576.0,
            lat.mean_ns / 1e3,
            us(lat.percentile(50.0)),
            us(lat.percentile(99.0)),
            us(lat.percentile(99.9)),
            lat.max_ns as f64 / 1e3
        );
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn hostile_names_stay_in_their_cell() {
        assert_eq!(super::cell("a|b\n\x1b[2J"), "a\\|b\\n\\x1b[2J");
    }
}
