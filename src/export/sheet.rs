//! A table of clean text, and its two written forms.

use unicode_width::UnicodeWidthStr;

/// Cells a cut column keeps at least.
const LEAST: usize = 24;

/// A table ready to be written. All text in it is cleaned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sheet {
    /// What it shows, and of when.
    pub title: String,
    /// Column heads.
    pub heads: Vec<String>,
    /// Whether a column holds numbers.
    pub right: Vec<bool>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
    /// What a reader must know: gaps and their reasons.
    pub notes: Vec<String>,
}

impl Sheet {
    /// An empty table with these heads; `true` for columns of numbers.
    pub fn new(title: impl Into<String>, heads: &[(&str, bool)]) -> Self {
        Self {
            title: title.into(),
            heads: heads.iter().map(|h| h.0.to_owned()).collect(),
            right: heads.iter().map(|h| h.1).collect(),
            ..Self::default()
        }
    }

    /// The same with a last column of words cut where a line of text would be longer than `cells`.
    pub fn within(&self, cells: usize) -> Sheet {
        let widths = self.widths();
        let before: usize = widths.iter().rev().skip(1).map(|w| w + 2).sum();
        let room = cells.saturating_sub(before).max(LEAST);
        let mut cut = self.clone();
        for cell in cut.rows.iter_mut().filter_map(|row| row.last_mut()) {
            if cell.width() > room {
                *cell = format!("{}…", crate::text::fit_width(cell, room - 1).0);
            }
        }
        cut
    }

    /// Plain text: a title line, aligned columns, notes.
    pub fn text(&self) -> String {
        let widths = self.widths();
        let mut out = format!("{}\n", self.title);
        if !self.heads.is_empty() {
            self.line(&mut out, &self.heads, &widths);
        }
        for row in &self.rows {
            self.line(&mut out, row, &widths);
        }
        for note in &self.notes {
            out.push_str(&format!("({note})\n"));
        }
        out
    }

    /// A Markdown table; pipes and backslashes in cells are escaped, so that nothing breaks out.
    pub fn markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", escape(&self.title));
        if !self.heads.is_empty() {
            let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
            out.push_str(&line(self.heads.iter().map(|h| escape(h)).collect()));
            out.push_str(&line(
                self.right.iter().map(|r| if *r { "--:".into() } else { ":--".into() }).collect(),
            ));
            for row in &self.rows {
                out.push_str(&line(row.iter().map(|c| escape(c)).collect()));
            }
            out.push('\n');
        }
        for note in &self.notes {
            out.push_str(&format!("_{}_\n\n", escape(note)));
        }
        out
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.heads.iter().map(|h| h.width()).collect();
        for row in &self.rows {
            for (i, cell) in row.iter().enumerate() {
                match widths.get_mut(i) {
                    Some(w) => *w = (*w).max(cell.width()),
                    None => widths.push(cell.width()),
                }
            }
        }
        widths
    }

    fn line(&self, out: &mut String, cells: &[String], widths: &[usize]) {
        let start = out.len();
        for (i, cell) in cells.iter().enumerate() {
            let pad = widths[i].saturating_sub(cell.width());
            if i > 0 {
                out.push_str("  ");
            }
            if self.right.get(i).copied().unwrap_or(false) {
                out.extend(std::iter::repeat_n(' ', pad));
                out.push_str(cell);
            } else {
                out.push_str(cell);
                out.extend(std::iter::repeat_n(' ', pad));
            }
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }
}

/// A cell or line as Markdown shows it unchanged.
pub fn escape(cell: &str) -> String {
    let mut out = String::with_capacity(cell.len());
    for c in cell.chars() {
        if matches!(c, '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '#' | '~' | '&') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut s = Sheet::new("Devices", &[("Device", false), ("tps", true)]);
        s.rows.push(vec!["sda".into(), "1.00".into()]);
        s.rows.push(vec!["a|b".into(), "120.00".into()]);
        s.notes.push("1 hidden".into());
        s
    }

    #[test]
    fn columns_line_up_without_trailing_blanks() {
        assert_eq!(sheet().text(), "Devices\nDevice     tps\nsda       1.00\na|b     120.00\n(1 hidden)\n");
    }

    #[test]
    fn a_long_last_column_is_cut_and_says_so() {
        let mut s = Sheet::new("T", &[("PID", true), ("COMMAND", false)]);
        s.rows.push(vec!["12345".into(), "写".repeat(40)]);
        let line = s.within(40).text().lines().nth(2).unwrap().to_owned();
        assert_eq!(line, format!("12345  {}…", "写".repeat(16)));
        assert_eq!(s.within(500), s);
    }

    #[test]
    fn cells_cannot_break_out_of_a_markdown_table() {
        let md = sheet().markdown();
        assert!(md.contains("| a\\|b | 120.00 |\n"), "{md}");
        assert!(md.contains("| :-- | --: |\n"));
    }
}
