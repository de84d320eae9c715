//! A report as Markdown: tables that any ticket renders, courses as lines of characters.

use super::graphs::Graph;
use super::{Block, cut};
use crate::export::sheet::escape;
use crate::text::sanitize;
use unicode_width::UnicodeWidthStr;

/// The steps of a course; nothing at all is a line on the floor.
const STEPS: [char; 9] = ['_', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The document.
pub fn markdown(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        match block {
            Block::Heading(rank, text) => {
                out.push_str(&format!("{} {}\n\n", "#".repeat(usize::from(*rank)), escape(&sanitize(text))));
            }
            Block::Text(text) => out.push_str(&format!("{}\n\n", escape(&sanitize(text)))),
            Block::List(items) => {
                for (word, text) in items {
                    let word = if word.is_empty() {
                        String::new()
                    } else {
                        format!("**{}** ", escape(&sanitize(word)))
                    };
                    out.push_str(&format!("- {word}{}\n", escape(&sanitize(text))));
                }
                out.push('\n');
            }
            Block::Table(sheet) => out.push_str(&cut(sheet).markdown()),
            Block::Lines(text) => lines(&mut out, text),
            Block::Graphs(all) => lines(&mut out, &graphs(all)),
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Lines as they are, in a fence that nothing in them ends.
fn lines(out: &mut String, text: &str) {
    let cleaned: Vec<String> = text.lines().map(sanitize).collect();
    let ticks = |line: &String| line.chars().take_while(|c| *c == '`').count();
    let longest = cleaned.iter().map(|l| ticks(&l.trim_start().to_owned())).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    out.push_str(&format!("{fence}text\n{}\n{fence}\n\n", cleaned.join("\n")));
}

fn graphs(all: &[Graph]) -> String {
    let wide = all.iter().map(|g| sanitize(&g.name).width()).max().unwrap_or(0);
    let mut out = String::new();
    for g in all {
        let (name, most) = (sanitize(&g.name), g.most());
        let pad = " ".repeat(wide - name.width());
        let course: String = g.points.iter().map(|p| step(*p, most)).collect();
        out.push_str(&format!(
            "{name}{pad}  {course}  now {}, most {}\n",
            figure(g.now()),
            figure(Some(most))
        ));
    }
    out
}

fn step(value: Option<f64>, most: f64) -> char {
    match value {
        None => '·',
        Some(v) if v <= 0.0 || most <= 0.0 => STEPS[0],
        Some(v) => STEPS[((v / most * 8.0).round() as usize).clamp(1, 8)],
    }
}

/// A value in a few characters; `-` where nothing was read.
pub fn figure(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(v) if v >= 100.0 || v == 0.0 => format!("{v:.0}"),
        Some(v) if v >= 1.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.2}"),
    }
}
