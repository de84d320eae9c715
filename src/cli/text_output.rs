//! Sanitized lines and tables for standard output: names of mount points and devices are untrusted.

use super::exit::print_text;
use crate::sanitize::{sanitize_into, wrap};

#[derive(Debug, Default)]
pub(super) struct TextOutput(String);

impl TextOutput {
    pub(super) fn push_line(&mut self, text: impl AsRef<str>) {
        sanitize_into(&mut self.0, text.as_ref().as_bytes());
        self.0.push('\n');
    }

    pub(super) fn push_blank(&mut self) {
        self.0.push('\n');
    }

    pub(super) fn push_table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        let head: Vec<String> = heads.iter().map(|h| h.to_string()).collect();
        let all: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
        let width = |c: usize| all.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        for row in all {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(t, w)| format!("{t:<w$}")).collect();
            self.push_line(cells.join("  ").trim_end());
        }
    }

    /// Appends a paragraph wrapped at 100 cells.
    pub(super) fn push_paragraph(&mut self, text: &str) {
        wrap(text, 100).iter().for_each(|line| self.push_line(line));
    }

    pub(super) fn print(self) -> anyhow::Result<u8> {
        print_text(&self.0)
    }
}
