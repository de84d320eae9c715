//! A finished experiment: plain data, and one file per way to write it down.

pub mod compare;
pub mod data;
pub mod graph;
pub mod markdown;
pub mod tables;
pub mod text;
pub mod verdict;
pub mod warnings;

pub use self::data::*;

/// How a report is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentReportFormat {
    /// For people.
    Text,
    /// Tables for a ticket.
    Markdown,
    /// One object with everything, the rounds' whole reports too.
    Json,
}

impl ExperimentReport {
    /// The whole of it in a form.
    pub fn render(&self, form: ExperimentReportFormat) -> String {
        match form {
            ExperimentReportFormat::Text => text::text_report(self),
            ExperimentReportFormat::Markdown => markdown::markdown_report(self),
            // Plain data: there is nothing in it that has no JSON.
            ExperimentReportFormat::Json => serde_json::to_string(self).unwrap_or_default() + "\n",
        }
    }
}
