//! Lines and tables to standard output, cleaned: mount points and devices have other people's names.

use crate::sanitize::sanitize_into;
use std::io::Write;

/// What is going to be printed.
#[derive(Debug, Default)]
pub struct TextOutput(String);

impl TextOutput {
    /// One line.
    pub fn push_line(&mut self, text: impl AsRef<str>) {
        sanitize_into(&mut self.0, text.as_ref().as_bytes());
        self.0.push('\n');
    }

    /// An empty line.
    pub fn push_blank(&mut self) {
        self.0.push('\n');
    }

    /// Rows below their heads, columns as wide as they need; the last one is not padded.
    pub fn push_table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        let head: Vec<String> = heads.iter().map(|h| h.to_string()).collect();
        let all: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
        let width = |c: usize| all.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        for row in all {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(t, w)| format!("{t:<w$}")).collect();
            self.push_line(cells.join("  ").trim_end());
        }
    }

    /// A paragraph, folded at so many characters.
    pub fn push_paragraph(&mut self, text: &str, width: usize) {
        let mut line = String::new();
        for word in text.split_ascii_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                self.push_line(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.push_line(line);
        }
    }

    /// Prints it all.
    pub fn print(self) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(self.0.as_bytes())?;
        Ok(out.flush()?)
    }
}
