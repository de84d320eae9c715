//! A table of sanitized text and its written forms: plain text, Markdown, HTML, JSON.

use super::escape_html;
use crate::model::column::{Align, CellValue, ColumnSpec};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Cells that a cut last column keeps at least.
const MIN_LAST_COLUMN: usize = 24;

/// A table. All text in it is sanitized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// What it shows, and of when.
    pub(crate) title: String,
    pub(crate) headers: Vec<String>,
    /// Whether a column holds numbers, which are aligned to the right.
    pub(crate) is_numeric: Vec<bool>,
    pub(crate) rows: Vec<Vec<String>>,
    /// What is missing, and why.
    pub(crate) notes: Vec<String>,
}

impl Table {
    /// An empty table with these headers; `true` for numeric columns.
    pub fn new(title: impl Into<String>, headers: &[(&str, bool)]) -> Self {
        Self {
            title: title.into(),
            headers: headers.iter().map(|h| h.0.to_owned()).collect(),
            is_numeric: headers.iter().map(|h| h.1).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn with_columns<C, V>(title: impl Into<String>, columns: &[ColumnSpec<C, V>]) -> Self {
        let headers: Vec<_> = columns.iter().map(|c| (c.header, c.align == Align::Right)).collect();
        Self::new(title, &headers)
    }

    pub(crate) fn push_values<'v, C, V>(
        &mut self,
        columns: &[ColumnSpec<C, V>],
        value: impl Fn(&ColumnSpec<C, V>) -> CellValue<'v>,
    ) {
        let cell = |column: &ColumnSpec<C, V>| {
            let mut text = String::new();
            value(column).write(&mut text);
            text
        };
        self.rows.push(columns.iter().map(cell).collect());
    }

    /// The same table with the last column cut so that lines are at most `width` cells wide.
    pub fn fit_width(&self, width: usize) -> Table {
        let widths = self.column_widths();
        let others: usize = widths.iter().rev().skip(1).map(|w| w + 2).sum();
        let available = width.saturating_sub(others).max(MIN_LAST_COLUMN);
        let mut table = self.clone();
        for cell in table.rows.iter_mut().filter_map(|row| row.last_mut()) {
            if cell.width() > available {
                *cell = format!("{}…", crate::sanitize::fit_width(cell, available - 1).0);
            }
        }
        table
    }

    /// Plain text: a title line, aligned columns, notes in parentheses.
    pub fn to_text(&self) -> String {
        let widths = self.column_widths();
        let mut out = format!("{}\n", self.title);
        let headers = (!self.headers.is_empty()).then_some(&self.headers);
        for row in headers.into_iter().chain(&self.rows) {
            self.push_row(&mut out, row, &widths);
        }
        for note in &self.notes {
            out.push_str(&format!("({note})\n"));
        }
        out
    }

    /// A Markdown table with special characters escaped.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", escape_markdown(&self.title));
        if !self.headers.is_empty() {
            let escaped = |cells: &[String]| cells.iter().map(|c| escape_markdown(c)).collect::<Vec<_>>();
            let aligns = self.is_numeric.iter().map(|right| if *right { "--:".into() } else { ":--".into() }).collect();
            let lines = [escaped(&self.headers), aligns].into_iter().chain(self.rows.iter().map(|row| escaped(row)));
            lines.for_each(|cells| out.push_str(&format!("| {} |\n", cells.join(" | "))));
            out.push('\n');
        }
        for note in &self.notes {
            out.push_str(&format!("_{}_\n\n", escape_markdown(note)));
        }
        out
    }

    /// An HTML table followed by its notes.
    pub fn to_html(&self) -> String {
        let class = |i: usize| if self.is_numeric.get(i) == Some(&true) { " class=\"n\"" } else { "" };
        let row = |tag: &str, cells: &[String]| {
            let cells = cells.iter().enumerate();
            let cells = cells.map(|(i, cell)| format!("<{tag}{}>{}</{tag}>", class(i), escape_html(cell)));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let mut out = format!("<table>\n<caption>{}</caption>\n", escape_html(&self.title));
        if self.headers.iter().any(|header| !header.is_empty()) {
            out.push_str(&row("th", &self.headers));
        }
        out.extend(self.rows.iter().map(|cells| row("td", cells)));
        out.push_str("</table>\n");
        for note in &self.notes {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escape_html(note));
        }
        out
    }

    /// JSON: a row is an object keyed by column, or an array where column names repeat.
    pub(crate) fn to_json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(|row| self.row_json(row)).collect();
        json!({ "title": self.title, "columns": self.headers, "rows": rows, "notes": self.notes })
    }

    fn row_json(&self, row: &[String]) -> Value {
        let headers = &self.headers;
        let is_unique = |(i, header): (usize, &String)| !headers[..i].contains(header);
        match headers.len() >= row.len() && headers.iter().enumerate().all(is_unique) {
            true => {
                Value::Object(headers.iter().cloned().zip(row.iter().map(|cell| json!(cell))).collect::<Map<_, _>>())
            }
            false => json!(row),
        }
    }

    fn column_widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.headers.iter().map(|header| header.width()).collect();
        for (i, cell) in self.rows.iter().flat_map(|row| row.iter().enumerate()) {
            if i == widths.len() {
                widths.push(0);
            }
            widths[i] = widths[i].max(cell.width());
        }
        widths
    }

    fn push_row(&self, out: &mut String, cells: &[String], widths: &[usize]) {
        let start = out.len();
        for (i, cell) in cells.iter().enumerate() {
            let pad = " ".repeat(widths[i].saturating_sub(cell.width()));
            let separator = if i > 0 { "  " } else { "" };
            match self.is_numeric.get(i) {
                Some(true) => out.extend([separator, &pad, cell]),
                _ => out.extend([separator, cell, &pad]),
            }
        }
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
    }
}

/// A text that Markdown shows unchanged.
pub(crate) fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
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

    fn devices() -> Table {
        let mut table = Table::new("Devices", &[("Device", false), ("tps", true)]);
        table.rows.push(vec!["sda".into(), "1.00".into()]);
        table.rows.push(vec!["a|b".into(), "120.00".into()]);
        table.notes.push("1 hidden".into());
        table
    }

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        assert_eq!(devices().to_text(), "Devices\nDevice     tps\nsda       1.00\na|b     120.00\n(1 hidden)\n");
    }

    #[test]
    fn a_long_last_column_is_cut_with_an_ellipsis() {
        let mut table = Table::new("T", &[("PID", true), ("COMMAND", false)]);
        table.rows.push(vec!["12345".into(), "写".repeat(40)]);
        let line = table.fit_width(40).to_text().lines().nth(2).unwrap().to_owned();
        assert_eq!(line, format!("12345  {}…", "写".repeat(16)));
        assert_eq!(table.fit_width(500), table);
    }

    #[test]
    fn markdown_special_characters_are_escaped() {
        let markdown = devices().to_markdown();
        assert!(markdown.contains("| a\\|b | 120.00 |\n"), "{markdown}");
        assert!(markdown.contains("| :-- | --: |\n"));
    }

    #[test]
    fn json_cells_are_keyed_by_column_unless_names_repeat() {
        let mut table = devices();
        table.rows.truncate(1);
        let value = table.to_json();
        assert_eq!(value["rows"], json!([{ "Device": "sda", "tps": "1.00" }]));
        assert_eq!((&value["columns"], &value["notes"]), (&json!(["Device", "tps"]), &json!(["1 hidden"])));
        table.headers[1] = "Device".into();
        assert_eq!(table.to_json()["rows"], json!([["sda", "1.00"]]), "two columns of one name");
    }
}
