//! The history of a host as text and JSON.

use super::history::{HistoryUnit, HostHistory};
use super::text::wall_ns;
use crate::export::table::Table;
use crate::units::{format_rfc3339, format_rfc3339_in};
use serde_json::{Value, json};

impl HistoryUnit {
    /// Its name in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Percent => "percent",
            Self::Bytes => "bytes",
            Self::ByteRate => "bytes_per_second",
            Self::Secs => "seconds",
            Self::Rate => "per_second",
            Self::ThreadSecs => "seconds_per_second",
            Self::Count => "count",
        }
    }
}

/// A history as one JSON object; values are those at `from`, `from` and a step, and so on.
pub fn history_json(host: &str, history: &HostHistory) -> Value {
    let series = history.series.iter().map(|series| {
        json!({
            "pane": <&str>::from(series.group),
            "name": series.name,
            "unit": series.unit.name(),
            "values": series.values,
        })
    });
    let findings = history.findings.iter().map(|span| {
        let finding = &span.finding;
        json!({
            "severity": finding.severity.name(),
            "rule": finding.rule,
            "subject": finding.subject,
            "present": span.present,
        })
    });
    json!({
        "host": host,
        "from": format_rfc3339(wall_ns(history.start)),
        "to": format_rfc3339(wall_ns(history.time_at(history.count.saturating_sub(1)))),
        "step_seconds": history.step,
        "findings": findings.collect::<Vec<_>>(),
        "series": series.collect::<Vec<_>>(),
        "missing": history.missing(),
    })
}

/// Findings with their times, and the range of each figure.
pub fn history_tables(host: &str, history: &HostHistory, utc_offset_secs: i64) -> [Table; 2] {
    let time = |at: usize| {
        let text = format_rfc3339_in(wall_ns(history.time_at(at)), utc_offset_secs);
        text.split('.').next().unwrap_or_default().to_owned()
    };
    let headers = [("Finding", false), ("severity", false), ("first seen", false), ("last seen", false)];
    let mut findings = Table::new(format!("Findings of {host}, {} to {}", time(0), time(history.count - 1)), &headers);
    for span in &history.findings {
        let seen = || span.present.iter().enumerate().filter(|(_, present)| **present == Some(true)).map(|(at, _)| at);
        let shown = |at: Option<usize>| at.map_or("-".to_owned(), time);
        let severity = span.finding.severity.name().to_owned();
        findings.rows.push(vec![span.finding.text(), severity, shown(seen().next()), shown(seen().next_back())]);
    }
    let headers = [("Pane", false), ("figure", false), ("least", true), ("most", true), ("last", true)];
    let mut figures = Table::new(format!("Figures of {host}"), &headers);
    for series in &history.series {
        let values = || series.values.iter().flatten().copied();
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| series.unit.format(value));
        figures.rows.push(vec![
            <&str>::from(series.group).to_owned(),
            series.name.clone(),
            shown(values().reduce(f64::min)),
            shown(values().reduce(f64::max)),
            shown(series.values.last().copied().flatten()),
        ]);
    }
    figures.notes = history.missing();
    [findings, figures]
}
