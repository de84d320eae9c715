//! The command line of `record` and `replay`.

use super::parse_seconds;
use super::snapshot::{PaneName, ScreenshotArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Options of `record`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus record night.iotop -d 5 --for 8h\n  \
                        iotop-plus record /var/log/iotop/box --max-size 50M --rotate 14\n  \
                        iotop-plus replay night.iotop\n\n\
                        SIGINT and SIGTERM end the file cleanly; what was written before a crash can be read too.")]
pub struct RecordArgs {
    /// Where to; with --rotate its name gets a number: FILE.0001, FILE.0002, ...
    pub file: PathBuf,
    /// Seconds between samples, 0.1 to 3600.
    #[arg(short, long, value_name = "S", default_value = "1", value_parser = parse_seconds)]
    pub delay: f64,
    /// End after this time: 90, 10m, 8h; without it: when interrupted.
    #[arg(long = "for", value_name = "T", value_parser = parse_duration_secs)]
    pub time: Option<u64>,
    /// End when the file has about this size; with --rotate: go on in the next file. 512K, 50M, 1G.
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<String>,
    /// Keep the newest N files, 1 to 9999; older ones of this run are removed.
    #[arg(long, value_name = "N", requires = "max_size", value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub rotate: Option<u32>,
    /// Who waits for syncs, on which file, too: costs every system call of the machine 10 to 50 ns.
    #[arg(long)]
    pub syncs: bool,
    /// An existing file may be replaced.
    #[arg(long)]
    pub replace: bool,
    /// Say nothing on stderr but what goes wrong.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Options of `replay`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iotop-plus replay night.iotop --at 03:10\n  \
                        iotop-plus replay night.iotop --format csv --pane devices > devices.csv\n  \
                        iotop-plus replay night.iotop --format json --from 03:00 --to 03:30 | jq .writeback\n  \
                        iotop-plus replay night.iotop --at 03:10 --format png --view devices > devices.png")]
pub struct ReplayArgs {
    /// A recording.
    pub file: PathBuf,
    /// Begin here: 14:35, 14:35:12, 2026-11-21T14:35:12Z, +90 (after the start), -10m (before the end).
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "from")]
    pub at: Option<String>,
    /// Print instead of taking the screen.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<ReplayFormat>,
    /// Print only this pane; may be given several times, once for csv.
    #[arg(long, value_name = "PANE", value_enum, requires = "format")]
    pub pane: Vec<PaneName>,
    /// Print from here on; times as with --at.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "format")]
    pub from: Option<String>,
    /// Print up to here.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "format")]
    pub to: Option<String>,
    /// Print at most so many samples.
    #[arg(short = 'n', long = "count", value_name = "N", requires = "format",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// For pictures.
    #[command(flatten)]
    pub picture: ScreenshotArgs,
    /// Theme: dark, light, mono, high-contrast.
    #[arg(long, value_name = "NAME", conflicts_with = "format", value_parser = ["dark", "light", "mono", "high-contrast"])]
    pub theme: Option<String>,
    /// Another config file; `none` reads no file.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub config: Option<PathBuf>,
}

/// Written forms of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReplayFormat {
    /// Aligned columns.
    Text,
    /// Tables for a ticket.
    Markdown,
    /// One object a sample and line, as `snapshot` writes it.
    Json,
    /// One pane, a line for each of its rows.
    Csv,
    /// A report for a ticket over the part asked for, in Markdown.
    Report,
    /// The screen at the time asked for (without one, at the end) as a picture.
    Png,
    /// The same as a picture whose text can be searched.
    Svg,
    /// The same as a page whose text can be copied.
    Html,
    /// The same for `cat`: text with colours.
    Ansi,
}

impl ReplayFormat {
    /// The name of the screen's form, if it is one of the screen.
    pub fn screenshot_format_name(self) -> Option<&'static str> {
        match self {
            ReplayFormat::Png => Some("png"),
            ReplayFormat::Svg => Some("svg"),
            ReplayFormat::Html => Some("html"),
            ReplayFormat::Ansi => Some("ansi"),
            _ => None,
        }
    }
}

impl RecordArgs {
    /// How long it goes on.
    pub fn duration_limit(&self) -> Option<Duration> {
        self.time.map(Duration::from_secs)
    }
}

/// A time: `90`, `90s`, `10m`, `8h`, `7d`.
pub(super) fn parse_duration_secs(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => None,
    };
    match digits.parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f)) {
        Some(secs) if (1..=366 * 86_400).contains(&secs) => Ok(secs),
        _ => Err("must be 1s to 366d, as in 90, 10m, 8h, 7d".into()),
    }
}
