//! A report as one HTML file: nothing is fetched, nothing runs; courses are drawn in it.

use super::graphs::Graph;
use super::markdown::figure;
use super::{Block, cut};
use crate::export::sheet::Sheet;
use crate::text::sanitize;
use std::fmt::Write;

/// A course's size in pixels.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 48.0;

const STYLE: &str = "\
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

/// The document.
pub fn html(blocks: &[Block]) -> String {
    let title = blocks.iter().find_map(|b| match b {
        Block::Heading(1, text) => Some(escape(text)),
        _ => None,
    });
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n",
        title.unwrap_or_default()
    );
    for block in blocks {
        let _ = match block {
            Block::Heading(rank, text) => writeln!(out, "<h{rank}>{}</h{rank}>", escape(text)),
            Block::Text(text) => writeln!(out, "<p>{}</p>", escape(text)),
            Block::List(items) => {
                let item = |(word, text): &(String, String)| match word.is_empty() {
                    true => format!("<li>{}</li>\n", escape(text)),
                    false => format!("<li><b>{}</b> {}</li>\n", escape(word), escape(text)),
                };
                writeln!(out, "<ul>\n{}</ul>", items.iter().map(item).collect::<String>())
            }
            Block::Lines(text) => {
                let lines: Vec<String> = text.lines().map(escape).collect();
                writeln!(out, "<pre>{}</pre>", lines.join("\n"))
            }
            Block::Table(sheet) => {
                table(&mut out, &cut(sheet));
                Ok(())
            }
            Block::Graphs(all) => {
                all.iter().for_each(|g| graph(&mut out, g));
                Ok(())
            }
        };
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn table(out: &mut String, sheet: &Sheet) {
    let class = |i: usize| if sheet.right.get(i) == Some(&true) { " class=\"n\"" } else { "" };
    let row = |tag: &str, cells: &[String]| {
        let cells = cells.iter().enumerate();
        cells.map(|(i, cell)| format!("<{tag}{}>{}</{tag}>", class(i), escape(cell))).collect::<String>()
    };
    let _ = writeln!(out, "<table>\n<caption>{}</caption>", escape(&sheet.title));
    if sheet.heads.iter().any(|h| !h.is_empty()) {
        let _ = writeln!(out, "<tr>{}</tr>", row("th", &sheet.heads));
    }
    for cells in &sheet.rows {
        let _ = writeln!(out, "<tr>{}</tr>", row("td", cells));
    }
    out.push_str("</table>\n");
    for note in &sheet.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
}

/// A bar for each point, all in one path; nothing where nothing was read.
fn graph(out: &mut String, g: &Graph) {
    let most = g.most();
    let width = WIDTH / g.points.len().max(1) as f64;
    let mut path = String::new();
    for (i, value) in g.points.iter().enumerate() {
        let Some(value) = value.filter(|v| *v > 0.0 && most > 0.0) else { continue };
        // What is there is seen, however little.
        let height = (value / most * HEIGHT).max(1.0);
        let (x, y) = (i as f64 * width, HEIGHT - height);
        let _ = write!(path, "M{x:.1} {y:.1}h{width:.1}V{HEIGHT}h-{width:.1}z");
    }
    let _ = writeln!(
        out,
        "<figure><figcaption>{}: now {}, most {}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\"><path d=\"{path}\"/></svg></figure>",
        escape(&g.name),
        figure(g.now()),
        figure(Some(most))
    );
}

fn escape(text: &str) -> String {
    crate::export::shot::escape_xml(&sanitize(text))
}
