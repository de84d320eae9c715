//! The formats of a benchmark's report, and the log files beside it.

use super::worker_job::write_file;
use crate::bench::report::{self, BenchReport};
use crate::export::bench_charts;
use crate::root::Root;
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BenchFormat {
    /// Plain text.
    Text,
    /// One JSON object with everything.
    Json,
    /// JSON in the structure of fio's output.
    Fio,
    /// The same with all latency buckets, as fio's json+.
    #[value(name = "fio+")]
    FioPlus,
    /// Markdown tables.
    Markdown,
    /// Comma-separated values, a line for each measurement and operation.
    Csv,
    /// Charts as SVG.
    Svg,
    /// Charts and text as one HTML page.
    Html,
    /// The text with its charts as an image.
    Png,
}

/// Where a report goes, and how.
#[derive(Debug, Args)]
pub(super) struct BenchOutput {
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    format: BenchFormat,
    /// Write to a new file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write fio's log files, too: PREFIX_bw.1.log, _iops, _lat, _clat, _slat, _clat_hist; a number for each measurement.
    #[arg(long, value_name = "PREFIX")]
    pub(super) fio_logs: Option<PathBuf>,
}

impl BenchOutput {
    /// Prints a report or writes it into its file, and its log files.
    pub(super) fn write(&self, root: &Root, report: &BenchReport) -> anyhow::Result<()> {
        let bytes = render_report(report, self.format)?;
        match &self.output {
            Some(path) => drop(write_file(root, path, bytes.into())?),
            None => std::io::stdout().write_all(&bytes)?,
        }
        self.fio_logs.as_ref().map_or(Ok(()), |prefix| write_fio_logs(root, report, prefix))
    }
}

fn write_fio_logs(root: &Root, report: &BenchReport, prefix: &Path) -> anyhow::Result<()> {
    for log in report::fio_log::fio_logs(report) {
        let mut path = prefix.as_os_str().to_owned();
        path.push(&log.name);
        write_file(root, Path::new(&path), log.text.into_bytes().into())?;
    }
    Ok(())
}

fn render_report(report: &BenchReport, format: BenchFormat) -> anyhow::Result<Vec<u8>> {
    let fio =
        |bins| serde_json::to_string_pretty(&report::fio_json::fio_document(report, bins)).map(|text| text + "\n");
    Ok(match format {
        BenchFormat::Text => report::text::text_report(report, report::text::USUAL_WIDTH).into(),
        BenchFormat::Markdown => report::markdown::markdown_report(report).into(),
        BenchFormat::Json => (serde_json::to_string(report)? + "\n").into(),
        BenchFormat::Fio => fio(false)?.into(),
        BenchFormat::FioPlus => fio(true)?.into(),
        BenchFormat::Csv => report::csv::csv_report(report).into(),
        BenchFormat::Svg => bench_charts::to_svg(report).into(),
        BenchFormat::Html => bench_charts::to_html(report).into(),
        BenchFormat::Png => bench_charts::to_png(report),
    })
}
