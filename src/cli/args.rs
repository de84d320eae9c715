//! Arguments and value parsers that several subcommands share.

use crate::export::screenshot::{ScreenshotFormat, find_format};
use crate::tui::action::ViewId;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(super) struct ScreenshotArgs {
    /// Images: the view to show; by default the first one.
    #[arg(long, value_name = "VIEW", value_enum, conflicts_with = "pane")]
    pub(super) view: Option<ViewId>,
    /// Images: columns and rows, 40x12 to 500x200; by default 120x40.
    #[arg(long, value_name = "COLSxROWS", value_parser = parse_screen_size)]
    pub(super) size: Option<(u16, u16)>,
    /// Theme: dark, light, slate, color-blind, high-contrast, mono; on the full screen also one of your own.
    #[arg(long, value_name = "NAME")]
    pub(super) theme: Option<String>,
    /// Draw borders, graphs and marks with ASCII characters only.
    #[arg(long)]
    pub(super) ascii: bool,
}

/// Parses the name of a pane: a view, but for the overview.
pub(super) fn parse_pane() -> impl TypedValueParser<Value = ViewId> {
    let names = ViewId::value_variants().iter().skip(1).filter_map(ViewId::to_possible_value).map(|name| {
        let is_devices = name.get_name() == "devices";
        // A pane of a snapshot has no graphs.
        if is_devices { name.help("Block devices and network file systems") } else { name }
    });
    PossibleValuesParser::new(names).try_map(|name| ViewId::from_str(&name, false))
}

/// The image format with the name of an output format.
pub(super) fn image_format(format: impl ValueEnum) -> Option<&'static ScreenshotFormat> {
    let name = format.to_possible_value()?;
    ["png", "svg", "html", "ansi"].contains(&name.get_name()).then(|| find_format(name.get_name())).flatten()
}

/// Parses a size such as `120x40`.
fn parse_screen_size(text: &str) -> Result<(u16, u16), String> {
    let (cols, rows) = text.split_once('x').ok_or("must be COLSxROWS, as in 120x40")?;
    match (cols.parse(), rows.parse()) {
        (Ok(cols @ 40..=500), Ok(rows @ 12..=200)) => Ok((cols, rows)),
        _ => Err("must be 40x12 to 500x200".into()),
    }
}

pub(super) fn parse_seconds(text: &str) -> Result<f64, String> {
    parse_seconds_from(0.1, text)
}

/// Parses a number of seconds from `least` to an hour.
pub(super) fn parse_seconds_from(least: f64, text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (least..=3600.0).contains(&s) => Ok(s),
        Ok(_) => Err(format!("must be {least} to 3600 seconds")),
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
