//! The report of an experiment: its data, and one file per format.

pub(crate) mod compare;
pub mod data;
pub(crate) mod graph;
pub(crate) mod groups;
pub(crate) mod markdown;
pub(crate) mod tables;
pub(crate) mod text;
pub mod verdict;
pub mod warnings;

pub use self::data::*;

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExperimentReportFormat {
    /// Plain text.
    Text,
    /// One JSON object with everything, including the full report of each round.
    Json,
    /// Markdown tables.
    Markdown,
}

impl ExperimentReport {
    /// The report in a format.
    pub fn render(&self, form: ExperimentReportFormat) -> String {
        match form {
            ExperimentReportFormat::Text => text::text_report(self, usize::MAX),
            ExperimentReportFormat::Markdown => markdown::markdown_report(self),
            // Plain data: there is nothing in it that has no JSON.
            ExperimentReportFormat::Json => serde_json::to_string(self).unwrap_or_default() + "\n",
        }
    }
}
