//! A table of clean text, and its two written forms.

use unicode_width::UnicodeWidthStr;

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

fn escape(cell: &str) -> String {
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
    fn cells_cannot_break_out_of_a_markdown_table() {
        let md = sheet().markdown();
        assert!(md.contains("| a\\|b | 120.00 |\n"), "{md}");
        assert!(md.contains("| :-- | --: |\n"));
    }
}
