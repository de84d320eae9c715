//! How reports write single values: ends of runs, figures, times.

use super::data::RunEnd;

pub(crate) const MIB: f64 = 1_048_576.0;

pub(crate) fn describe_end(end: &RunEnd) -> String {
    match end {
        RunEnd::Complete => "complete".into(),
        RunEnd::Cancelled => "cancelled: the figures are those up to then".into(),
        RunEnd::Failed(why) => format!("failed: {why}; the figures are those up to then"),
        RunEnd::Stalled(why) => format!("stalled: {why}; the figures are those up to then"),
    }
}

/// A value with its unit; digits depend on the size.
pub(crate) fn format_value(value: f64, unit: &str) -> String {
    let digits = match value.abs() {
        v if v == v.trunc() && v < 1e15 => 0,
        v if v >= 1000.0 => 0,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    if unit.is_empty() { format!("{value:.digits$}") } else { format!("{value:.digits$} {unit}") }
}

/// A time; digits depend on the size: `1.23us`, `12.3ms`, `1.2s`.
pub(crate) fn format_latency(ns: f64) -> String {
    match ns {
        n if n < 10_000.0 => format!("{:.2}us", n / 1e3),
        n if n < 10_000_000.0 => format!("{:.0}us", n / 1e3),
        n if n < 10e9 => format!("{:.1}ms", n / 1e6),
        n => format!("{:.1}s", n / 1e9),
    }
}
