//! A table of clean text, and its two written forms.

use unicode_width::UnicodeWidthStr;

/// Cells a cut column keeps at least.
const MIN_LAST_COLUMN: usize = 24;

/// A table ready to be written. All text in it is cleaned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows, and of when.
    pub title: String,
    /// Column heads.
    pub headers: Vec<String>,
    /// Whether a column holds numbers.
    pub is_numeric: Vec<bool>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
    /// What a reader must know: gaps and their reasons.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table with these heads; `true` for columns of numbers.
    pub fn new(title: impl Into<String>, heads: &[(&str, bool)]) -> Self {
        Self {
            title: title.into(),
            headers: heads.iter().map(|h| h.0.to_owned()).collect(),
            is_numeric: heads.iter().map(|h| h.1).collect(),
            ..Self::default()
        }
    }

    /// The same with a last column of words cut where a line of text would be longer than `cells`.
    pub fn fit_width(&self, cells: usize) -> Table {
        let widths = self.column_widths();
        let before: usize = widths.iter().rev().skip(1).map(|w| w + 2).sum();
        let room = cells.saturating_sub(before).max(MIN_LAST_COLUMN);
        let mut cut = self.clone();
        for cell in cut.rows.iter_mut().filter_map(|row| row.last_mut()) {
            if cell.width() > room {
                *cell = format!("{}…", crate::sanitize::fit_width(cell, room - 1).0);
            }
        }
        cut
    }

    /// Plain text: a title line, aligned columns, notes.
    pub fn to_text(&self) -> String {
        let widths = self.column_widths();
        let mut out = format!("{}\n", self.title);
        if !self.headers.is_empty() {
            self.push_row(&mut out, &self.headers, &widths);
        }
        for row in &self.rows {
            self.push_row(&mut out, row, &widths);
        }
        for note in &self.notes {
            out.push_str(&format!("({note})\n"));
        }
        out
    }

    /// A Markdown table; pipes and backslashes in cells are escaped, so that nothing breaks out.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", escape_markdown(&self.title));
        if !self.headers.is_empty() {
            let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
            out.push_str(&line(self.headers.iter().map(|h| escape_markdown(h)).collect()));
            out.push_str(&line(self.is_numeric.iter().map(|r| if *r { "--:".into() } else { ":--".into() }).collect()));
            for row in &self.rows {
                out.push_str(&line(row.iter().map(|c| escape_markdown(c)).collect()));
            }
            out.push('\n');
        }
        for note in &self.notes {
            out.push_str(&format!("_{}_\n\n", escape_markdown(note)));
        }
        out
    }

    fn column_widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.headers.iter().map(|h| h.width()).collect();
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

    fn push_row(&self, out: &mut String, cells: &[String], widths: &[usize]) {
        let start = out.len();
        for (i, cell) in cells.iter().enumerate() {
            let pad = widths[i].saturating_sub(cell.width());
            if i > 0 {
                out.push_str("  ");
            }
            if self.is_numeric.get(i).copied().unwrap_or(false) {
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
pub fn escape_markdown(cell: &str) -> String {
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

    fn sheet() -> Table {
        let mut s = Table::new("Devices", &[("Device", false), ("tps", true)]);
        s.rows.push(vec!["sda".into(), "1.00".into()]);
        s.rows.push(vec!["a|b".into(), "120.00".into()]);
        s.notes.push("1 hidden".into());
        s
    }

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        assert_eq!(sheet().to_text(), "Devices\nDevice     tps\nsda       1.00\na|b     120.00\n(1 hidden)\n");
    }

    #[test]
    fn a_long_last_column_is_cut_with_an_ellipsis() {
        let mut s = Table::new("T", &[("PID", true), ("COMMAND", false)]);
        s.rows.push(vec!["12345".into(), "写".repeat(40)]);
        let line = s.fit_width(40).to_text().lines().nth(2).unwrap().to_owned();
        assert_eq!(line, format!("12345  {}…", "写".repeat(16)));
        assert_eq!(s.fit_width(500), s);
    }

    #[test]
    fn markdown_special_characters_are_escaped() {
        let md = sheet().to_markdown();
        assert!(md.contains("| a\\|b | 120.00 |\n"), "{md}");
        assert!(md.contains("| :-- | --: |\n"));
    }
}
