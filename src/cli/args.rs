//! Arguments and value parsers that several subcommands share.

use clap::{Args, ValueEnum};

/// What a screenshot shows.
#[derive(Debug, Args)]
pub struct ScreenshotArgs {
    /// Images: the view to show; by default the first one.
    #[arg(long, value_name = "VIEW", value_enum, conflicts_with = "pane")]
    pub view: Option<ViewName>,
    /// Images: columns and rows, 40x12 to 500x200; by default 120x40.
    #[arg(long, value_name = "COLSxROWS", value_parser = parse_screen_size)]
    pub size: Option<(u16, u16)>,
}

impl ScreenshotArgs {
    /// The name of an option that only images have, if one was given.
    pub fn given_option(&self) -> Option<&'static str> {
        self.view.map(|_| "--view").or(self.size.map(|_| "--size"))
    }
}

/// Views that an image can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ViewName {
    /// All panes that fit.
    Overview,
    /// Block devices and network file systems, with graphs.
    Devices,
    /// Processes.
    Processes,
    /// Dirty pages, swap, pressure.
    Memory,
    /// The kernel log.
    Kernel,
    /// Findings: problems and their causes.
    Findings,
    /// Sync calls: which process waits, on which file. Traced only on request.
    Syncs,
}

/// Panes that a snapshot can be limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PaneName {
    /// Block devices and network file systems.
    Devices,
    /// Processes.
    Processes,
    /// Dirty pages, swap, pressure.
    Memory,
    /// The kernel log.
    Kernel,
    /// Findings: problems and their causes.
    Findings,
    /// Sync calls: which process waits, on which file. Traced only on request.
    Syncs,
}

/// Parses a size such as `120x40`.
fn parse_screen_size(text: &str) -> Result<(u16, u16), String> {
    let (cols, rows) = text.split_once('x').ok_or("must be COLSxROWS, as in 120x40")?;
    match (cols.parse(), rows.parse()) {
        (Ok(cols @ 40..=500), Ok(rows @ 12..=200)) => Ok((cols, rows)),
        _ => Err("must be 40x12 to 500x200".into()),
    }
}

/// Parses a sampling interval.
pub(super) fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.1..=3600.0).contains(&s) => Ok(s),
        Ok(_) => Err("must be 0.1 to 3600 seconds".into()),
        Err(_) => Err("is not a number of seconds".into()),
    }
}

/// Parses a time such as `90`, `90s`, `10m`, `8h` or `7d`, in seconds.
pub(super) fn parse_duration_secs(text: &str) -> Result<u64, String> {
    parse_time(text).filter(|secs| *secs <= 366 * 86_400).ok_or("must be 1s to 366d, as in 90, 10m, 8h, 7d".into())
}

/// Parses the duration of a lease such as `120`, `120s`, `10m` or `2h`, in seconds.
pub(super) fn parse_lease_secs(text: &str) -> Result<u64, String> {
    parse_time(text).filter(|secs| *secs <= 86_400).ok_or("must be 1s to 24h, as in 120s, 10m, 2h".into())
}

fn parse_time(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor).filter(|secs| *secs > 0)
}
