//! The command line of `snapshot`, and what pictures of a recording share with it.

use super::parse_seconds;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus snapshot -d 5 --format json | jq .devices\n  \
                        iotop-plus snapshot -n 30 --format png -o screen.png\n  \
                        iotop-plus snapshot --format markdown --pane devices --pane memory")]
pub struct SnapshotArgs {
    /// Seconds a sample covers, 0.1 to 3600.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = parse_seconds)]
    pub delay: f64,
    /// Samples; each covers the delay, the first one too.
    #[arg(short = 'n', long = "count", value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Only this pane; may be given several times, once for a picture.
    #[arg(long, value_name = "PANE", value_enum)]
    pub pane: Vec<PaneName>,
    /// How it is written.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_enum)]
    pub format: SnapshotFormat,
    /// Write to this file instead of standard output; an existing file is not replaced.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// For pictures.
    #[command(flatten)]
    pub picture: ScreenshotArgs,
}

/// What a picture shows.
#[derive(Debug, Args)]
pub struct ScreenshotArgs {
    /// Pictures: this view of the full screen; without it the first one.
    #[arg(long, value_name = "VIEW", value_enum, conflicts_with = "pane")]
    pub view: Option<ViewName>,
    /// Pictures: columns and rows, 40x12 to 500x200; without it 120x40.
    #[arg(long, value_name = "COLSxROWS", value_parser = parse_screen_size)]
    pub size: Option<(u16, u16)>,
}

impl ScreenshotArgs {
    /// What was asked for that only a picture has.
    pub fn given_option(&self) -> Option<&'static str> {
        self.view.map(|_| "--view").or(self.size.map(|_| "--size"))
    }
}

/// Views a picture can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ViewName {
    /// Everything that fits.
    Overview,
    /// Block devices and network file systems, with graphs.
    Devices,
    /// Tasks.
    Processes,
    /// Dirty pages, swap, pressure.
    Memory,
    /// The kernel log.
    Kernel,
    /// What is wrong.
    Findings,
    /// Who waits for syncs, on which file; traced only if it is asked for.
    Syncs,
}

/// `120x40`
fn parse_screen_size(text: &str) -> Result<(u16, u16), String> {
    let (cols, rows) = text.split_once('x').ok_or("must be COLSxROWS, as in 120x40")?;
    match (cols.parse(), rows.parse()) {
        (Ok(cols @ 40..=500), Ok(rows @ 12..=200)) => Ok((cols, rows)),
        _ => Err("must be 40x12 to 500x200".into()),
    }
}

/// Panes a snapshot can be cut down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PaneName {
    /// Block devices and network file systems.
    Devices,
    /// Tasks.
    Processes,
    /// Dirty pages, swap, pressure.
    Memory,
    /// The kernel log.
    Kernel,
    /// What is wrong.
    Findings,
    /// Who waits for syncs, on which file; traced only if it is asked for.
    Syncs,
}

/// Written forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SnapshotFormat {
    /// Aligned columns.
    Text,
    /// Tables for a ticket.
    Markdown,
    /// One object a sample and line, documented in the README; with panes chosen, without the others' keys.
    Json,
    /// The screen as a picture, after the last sample: it needs no fonts here.
    Png,
    /// The screen as a picture whose text can be searched.
    Svg,
    /// The screen as a page whose text can be copied.
    Html,
    /// The screen for `cat`: text with colours.
    Ansi,
}

impl SnapshotFormat {
    /// The name of the screen's form, if it is one of the screen.
    pub fn screenshot_format_name(self) -> Option<&'static str> {
        match self {
            SnapshotFormat::Text | SnapshotFormat::Markdown | SnapshotFormat::Json => None,
            SnapshotFormat::Png => Some("png"),
            SnapshotFormat::Svg => Some("svg"),
            SnapshotFormat::Html => Some("html"),
            SnapshotFormat::Ansi => Some("ansi"),
        }
    }
}
