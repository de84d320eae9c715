//! A report as one HTML file without scripts or external resources; graphs are inline SVG.

use super::graphs::Graph;
use super::markdown::format_value;
use super::{ReportBlock, fit_commands};
use crate::sanitize::sanitize;
use std::fmt::Write;

/// Size of a graph in pixels.
const GRAPH_WIDTH: f64 = 600.0;
const GRAPH_HEIGHT: f64 = 48.0;

const CSS: &str = "\
:root{color-scheme:light dark;--line:#8886;--ink:#2c7be5}\n\
body{font:15px/1.45 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em}\n\
table{border-collapse:collapse;margin:0 0 1.2em;font:13px/1.4 ui-monospace,DejaVu Sans Mono,monospace}\n\
caption{text-align:left;font-weight:bold;padding:.3em 0}\n\
th,td{border:1px solid var(--line);padding:.15em .6em;text-align:left;vertical-align:top;white-space:pre-wrap}\n\
.n{text-align:right}\n\
pre{overflow:auto;border:1px solid var(--line);padding:.6em;font:13px/1.4 ui-monospace,DejaVu Sans Mono,monospace}\n\
figure{margin:0 0 .8em}figcaption{font-size:13px}\n\
figure svg{width:100%;max-width:600px;height:48px;border-bottom:1px solid var(--line)}\n\
path{fill:var(--ink)}.note{font-style:italic}\n";

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
    for block in blocks {
        let _ = match block {
            ReportBlock::Heading(rank, text) => writeln!(out, "<h{rank}>{}</h{rank}>", escape(text)),
            ReportBlock::Paragraph(text) => writeln!(out, "<p>{}</p>", escape(text)),
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
            ReportBlock::Graphs(all) => {
                all.iter().for_each(|g| push_graph(&mut out, g));
                Ok(())
            }
        };
    }
    out.push_str("</body>\n</html>\n");
    out
}

/// One bar a point, all in one path; none where nothing was read.
fn push_graph(out: &mut String, g: &Graph) {
    let max = g.max();
    let width = GRAPH_WIDTH / g.points.len().max(1) as f64;
    let mut path = String::new();
    for (i, value) in g.points.iter().enumerate() {
        let Some(value) = value.filter(|v| *v > 0.0 && max > 0.0) else { continue };
        // Small values are at least one pixel high.
        let height = (value / max * GRAPH_HEIGHT).max(1.0);
        let (x, y) = (i as f64 * width, GRAPH_HEIGHT - height);
        let _ = write!(path, "M{x:.1} {y:.1}h{width:.1}V{GRAPH_HEIGHT}h-{width:.1}z");
    }
    let (name, [now, max]) = (escape(&g.name), [g.latest(), Some(max)].map(format_value));
    let _ = writeln!(
        out,
        "<figure><figcaption>{name}: now {now}, max {max}</figcaption>\
         <svg viewBox=\"0 0 {GRAPH_WIDTH} {GRAPH_HEIGHT}\" preserveAspectRatio=\"none\"><path d=\"{path}\"/></svg></figure>"
    );
}

fn escape(text: &str) -> String {
    crate::export::escape_html(&sanitize(text))
}
