//! Arguments and value parsers that several subcommands share.

use clap::{Args, ValueEnum};

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

/// `120x40`
fn parse_screen_size(text: &str) -> Result<(u16, u16), String> {
    let (cols, rows) = text.split_once('x').ok_or("must be COLSxROWS, as in 120x40")?;
    match (cols.parse(), rows.parse()) {
        (Ok(cols @ 40..=500), Ok(rows @ 12..=200)) => Ok((cols, rows)),
        _ => Err("must be 40x12 to 500x200".into()),
    }
}

/// A delay within what the program can keep.
pub(super) fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.1..=3600.0).contains(&s) => Ok(s),
        Ok(_) => Err("must be 0.1 to 3600 seconds".into()),
        Err(_) => Err("is not a number of seconds".into()),
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

/// A lease: `120`, `120s`, `10m`, `2h`.
pub(super) fn parse_lease_secs(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    match digits.parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f)) {
        Some(secs) if (1..=86_400).contains(&secs) => Ok(secs),
        _ => Err("must be 1s to 24h, as in 120s, 10m, 2h".into()),
    }
}
