//! A report as Markdown for tickets; graphs are sparklines.

use super::graphs::{Charts, Graph};
use super::{ReportBlock, fit_commands};
use crate::export::table::escape_markdown;
use crate::sanitize::sanitize;
use unicode_width::UnicodeWidthStr;

/// The characters of a sparkline, from 0 to the maximum.
const SPARKLINE_STEPS: [char; 9] = ['_', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The whole document.
pub fn to_markdown(blocks: &[ReportBlock]) -> String {
    let mut out = String::new();
    for block in blocks {
        match block {
            ReportBlock::Heading(rank, text) => {
                out.push_str(&format!("{} {}\n\n", "#".repeat(usize::from(*rank)), escape_markdown(&sanitize(text))));
            }
            ReportBlock::Paragraph(text) => out.push_str(&format!("{}\n\n", escape_markdown(&sanitize(text)))),
            ReportBlock::List(items) => {
                for (label, text) in items {
                    let label = if label.is_empty() {
                        String::new()
                    } else {
                        format!("**{}** ", escape_markdown(&sanitize(label)))
                    };
                    out.push_str(&format!("- {label}{}\n", escape_markdown(&sanitize(text))));
                }
                out.push('\n');
            }
            ReportBlock::Table(table) => out.push_str(&fit_commands(table).to_markdown()),
            ReportBlock::Preformatted(text) => push_code_block(&mut out, text),
            ReportBlock::Verdict(verdict) => {
                out.push_str(&format!("**{}**\n\n", escape_markdown(&sanitize(&verdict.summary))));
                let titles = verdict.titles.iter().map(|title| format!("- {}\n", escape_markdown(&sanitize(title))));
                out.extend(titles);
                if !verdict.titles.is_empty() {
                    out.push('\n');
                }
            }
            ReportBlock::Finding(_, title) => {
                out.push_str(&format!("### {}\n\n", escape_markdown(&sanitize(title))));
            }
            ReportBlock::Charts(charts) => push_code_block(&mut out, &chart_lines(charts)),
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Adds a code block whose fence is longer than any in the text.
fn push_code_block(out: &mut String, text: &str) {
    let lines: Vec<String> = text.lines().map(sanitize).collect();
    let ticks = |line: &String| line.chars().take_while(|c| *c == '`').count();
    let longest = lines.iter().map(|l| ticks(&l.trim_start().to_owned())).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    out.push_str(&format!("{fence}text\n{}\n{fence}\n\n", lines.join("\n")));
}

/// The graphs as sparklines below the times of their ends.
fn chart_lines(charts: &Charts) -> String {
    let [first, last] = charts.times.each_ref().map(sanitize);
    format!("{first} to {last}\n{}", sparklines(&charts.graphs))
}

fn sparklines(all: &[Graph]) -> String {
    let width = all.iter().map(|g| sanitize(&g.name).width()).max().unwrap_or(0);
    let mut out = String::new();
    for g in all {
        let (name, max) = (sanitize(&g.name), g.max());
        let pad = " ".repeat(width - name.width());
        let sparkline: String = g.points.iter().map(|p| sparkline_char(*p, max)).collect();
        let [now, max] = [g.latest(), Some(max)].map(format_value);
        out.push_str(&format!("{name}{pad}  {sparkline}  now {now}, max {max}\n"));
    }
    out
}

fn sparkline_char(value: Option<f64>, max: f64) -> char {
    match value {
        None => '·',
        Some(v) if v <= 0.0 || max <= 0.0 => SPARKLINE_STEPS[0],
        Some(v) => SPARKLINE_STEPS[((v / max * 8.0).round() as usize).clamp(1, 8)],
    }
}

/// A value with two to three digits; `-` if it was not read.
pub(crate) fn format_value(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(v) if v >= 100.0 || v == 0.0 => format!("{v:.0}"),
        Some(v) if v >= 1.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.2}"),
    }
}
