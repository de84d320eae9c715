//! A report as one HTML file without scripts or external resources; graphs are inline SVG. Light and dark follow the
//! reader's system.

use super::graphs::{Charts, Graph};
use super::markdown::format_value;
use super::{ReportBlock, Verdict, fit_commands};
use crate::doctor::finding::Severity;
use crate::sanitize::sanitize;
use std::fmt::Write;

/// Size of a chart with its axes, and the plot in it: left, top, width, height.
const CHART: (f64, f64) = (640.0, 104.0);
const PLOT: (f64, f64, f64, f64) = (48.0, 8.0, 584.0, 76.0);

const CSS: &str = "\
:root{color-scheme:light dark;--line:#8886;--ink:#2c6fbb;--critical:#c22;--warn:#a60;--note:#567}\n\
@media(prefers-color-scheme:dark){:root{--ink:#6ea8fe;--critical:#ff6b6b;--warn:#ffb84d;--note:#9ab}}\n\
body{font:15px/1.45 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em}\n\
table{border-collapse:collapse;margin:0 0 1.2em;font:13px/1.4 ui-monospace,DejaVu Sans Mono,monospace}\n\
caption{text-align:left;font-weight:bold;padding:.3em 0}\n\
th,td{border:1px solid var(--line);padding:.15em .6em;text-align:left;vertical-align:top;white-space:pre-wrap}\n\
.n{text-align:right}\n\
pre{overflow:auto;border:1px solid var(--line);padding:.6em;font:13px/1.4 ui-monospace,DejaVu Sans Mono,monospace}\n\
.critical{--level:var(--critical)}.warn{--level:var(--warn)}.note{--level:var(--note)}.none{--level:#383}\n\
.verdict{border-left:6px solid var(--level);padding:.5em 1em;margin:0 0 1.2em;font-size:17px}\n\
.verdict strong,h3[class]{color:var(--level)}.verdict ul{margin:.3em 0 0;padding-left:1.2em}\n\
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(26em,1fr));gap:.8em 1.5em}\n\
figure{margin:0}figcaption{font-size:13px}figure svg{width:100%;height:auto}\n\
svg text{font:11px system-ui,sans-serif;fill:currentColor;opacity:.75}svg line{stroke:var(--line)}\n\
.plot{fill:var(--ink)}svg rect{fill:var(--level);opacity:.18}p.note{font-style:italic}\n";

/// The whole document.
pub fn to_html(blocks: &[ReportBlock]) -> String {
    let title = blocks.iter().find_map(|b| match b {
        ReportBlock::Heading(1, text) => Some(escape(text)),
        _ => None,
    });
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>\n{CSS}</style>\n\
         </head>\n<body>\n",
        title.unwrap_or_default()
    );
    blocks.iter().for_each(|block| push_block(&mut out, block));
    out.push_str("</body>\n</html>\n");
    out
}

fn push_block(out: &mut String, block: &ReportBlock) {
    let _ = match block {
        ReportBlock::Heading(rank, text) => writeln!(out, "<h{rank}>{}</h{rank}>", escape(text)),
        ReportBlock::Paragraph(text) => writeln!(out, "<p>{}</p>", escape(text)),
        ReportBlock::Verdict(verdict) => {
            push_verdict(out, verdict);
            Ok(())
        }
        ReportBlock::Finding(severity, title) => {
            writeln!(out, "<h3 class=\"{}\">{}</h3>", severity.name(), escape(title))
        }
        ReportBlock::List(items) => {
            let item = |(label, text): &(String, String)| match label.is_empty() {
                true => format!("<li>{}</li>\n", escape(text)),
                false => format!("<li><b>{}</b> {}</li>\n", escape(label), escape(text)),
            };
            writeln!(out, "<ul>\n{}</ul>", items.iter().map(item).collect::<String>())
        }
        ReportBlock::Preformatted(text) => {
            let lines: Vec<String> = text.lines().map(escape).collect();
            writeln!(out, "<pre>{}</pre>", lines.join("\n"))
        }
        ReportBlock::Table(table) => {
            out.push_str(&fit_commands(table).to_html());
            Ok(())
        }
        ReportBlock::Charts(charts) => {
            push_charts(out, charts);
            Ok(())
        }
    };
}

fn push_verdict(out: &mut String, verdict: &Verdict) {
    let class = verdict.severity.map_or("none", Severity::name);
    let _ = write!(out, "<div class=\"verdict {class}\"><strong>{}</strong>", escape(&verdict.summary));
    if !verdict.titles.is_empty() {
        let titles = verdict.titles.iter().map(|title| format!("<li>{}</li>", escape(title)));
        let _ = write!(out, "<ul>{}</ul>", titles.collect::<String>());
    }
    out.push_str("</div>\n");
}

fn push_charts(out: &mut String, charts: &Charts) {
    out.push_str("<div class=\"charts\">\n");
    charts.graphs.iter().for_each(|graph| push_chart(out, charts, graph));
    out.push_str("</div>\n");
    if !charts.marks.is_empty() {
        out.push_str("<p class=\"note\">Coloured bands: while a finding was there; point at one for its title.</p>\n");
    }
}

/// A graph with its axes: one bar a point, all in one path, none where nothing was read; the findings behind it.
fn push_chart(out: &mut String, charts: &Charts, graph: &Graph) {
    let (left, top, width, height) = PLOT;
    let (bottom, right, top_value) = (top + height, left + width, axis_end(graph.max()));
    let (name, [now, max]) = (escape(&graph.name), [graph.latest(), Some(graph.max())].map(format_value));
    let _ = write!(
        out,
        "<figure><figcaption>{name}: now {now}, max {max}</figcaption><svg viewBox=\"0 0 {} {}\">",
        CHART.0, CHART.1
    );
    for mark in &charts.marks {
        let [from, to] = mark.span.map(|at| left + at * width);
        let _ = write!(
            out,
            "<rect class=\"{}\" x=\"{from:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{height}\"><title>{}</title></rect>",
            mark.severity.name(),
            // A short one is seen, too.
            (to - from).max(2.0),
            escape(&mark.title)
        );
    }
    let _ = write!(out, "<path class=\"plot\" d=\"{}\"/>", bar_path(graph, top_value));
    for (share, value) in [(0.0, 0.0), (0.5, top_value / 2.0), (1.0, top_value)] {
        let y = bottom - share * height;
        let _ = write!(
            out,
            "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 4.0,
            y + 4.0,
            format_value(Some(value))
        );
    }
    let [first, last] = charts.times.each_ref().map(|time| escape(time));
    let y = CHART.1 - 6.0;
    let _ = writeln!(
        out,
        "<text x=\"{left}\" y=\"{y}\">{first}</text><text x=\"{right}\" y=\"{y}\" text-anchor=\"end\">{last}</text>\
         </svg></figure>"
    );
}

fn bar_path(graph: &Graph, top_value: f64) -> String {
    let (left, top, width, height) = PLOT;
    let step = width / graph.points.len().max(1) as f64;
    let mut path = String::new();
    for (i, value) in graph.points.iter().enumerate() {
        let Some(value) = value.filter(|v| *v > 0.0 && top_value > 0.0) else { continue };
        // Small values are at least one pixel high.
        let bar = (value / top_value * height).clamp(1.0, height);
        let (x, bottom) = (left + i as f64 * step, top + height);
        let _ = write!(path, "M{x:.1} {:.1}h{step:.1}V{bottom}h-{step:.1}z", bottom - bar);
    }
    path
}

/// The end of an axis from 0 that shows `max`: 1, 2 or 5 times a power of ten. What is a little above is cut: a device is busy
/// for 100.3 % where the clocks of kernel and sampler differ.
fn axis_end(max: f64) -> f64 {
    if !(max > 0.0 && max.is_finite()) {
        return 1.0;
    }
    let power = 10f64.powf(max.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|end| *end * 1.02 >= max).unwrap_or(max)
}

fn escape(text: &str) -> String {
    crate::export::escape_html(&sanitize(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_values() {
        for (max, end) in [
            (0.0, 1.0),
            (0.03, 0.05),
            (1.0, 1.0),
            (1.1, 2.0),
            (417.0, 500.0),
            (999.0, 1000.0),
            (100.3, 100.0),
            (102.5, 200.0),
        ] {
            assert!((axis_end(max) - end).abs() < 1e-9, "{max}: {}", axis_end(max));
        }
    }

    #[test]
    fn findings_are_marked_in_every_chart() {
        let graph = |name: &str| Graph { name: name.into(), points: vec![Some(1.0), None, Some(4.0), Some(0.0)] };
        let mark = super::super::graphs::FindingMark {
            severity: Severity::Critical,
            title: "<vda> hangs".into(),
            span: [0.5, 1.0],
        };
        let times = ["10:00:00".into(), "10:00:04".into()];
        let charts = Charts { graphs: vec![graph("a"), graph("b")], times, marks: vec![mark] };
        let page = to_html(&[ReportBlock::Charts(charts)]);
        let rect = "<rect class=\"critical\" x=\"340.0\" y=\"8\" width=\"292.0\" height=\"76\">\
                    <title>&lt;vda&gt; hangs</title></rect>";
        assert_eq!(page.matches(rect).count(), 2, "{page}");
        // The axis ends at 5: a bar of 4 is 60.8 high; neither the gap nor 0 has a bar.
        assert_eq!(page.matches("M48.0 68.8h146.0V84h-146.0zM340.0 23.2h146.0V84h-146.0z\"").count(), 2, "{page}");
        assert!(page.contains(">10:00:00</text>") && page.contains("end\">10:00:04</text>"));
    }
}
