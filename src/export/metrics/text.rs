//! Writes metric families as text, in either of the two formats that Prometheus reads.
//!
//! Sources: the OpenMetrics specification 1.0, and "Exposition formats" in Prometheus' documentation. The older format
//! is what node_exporter's textfile collector and `promtool check metrics` read; it has no units, no type for
//! information, and the name of a counter's family ends in `_total`.

use crate::sanitize::sanitize;
use std::fmt::Write as _;

/// The format of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0.
    #[default]
    OpenMetrics,
    /// The older text format, version 0.0.4.
    Prometheus,
}

impl MetricsFormat {
    /// The media type of the text.
    pub fn content_type(self) -> &'static str {
        match self {
            MetricsFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            MetricsFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    /// Always 1; what it says is in its labels.
    Info,
    Histogram,
}

/// What a family is.
#[derive(Debug, Clone, Copy)]
pub(super) struct MetricFamily {
    /// Its name without prefix and suffix; ends in the unit.
    pub name: &'static str,
    pub kind: MetricKind,
    /// `seconds`, `bytes`, or empty.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
}

impl MetricFamily {
    pub(super) const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Counter, unit, help }
    }

    pub(super) const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Gauge, unit, help }
    }

    /// Of seconds.
    pub(super) const fn histogram(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Histogram, unit: "seconds", help }
    }

    pub(super) const fn info(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Info, unit: "", help }
    }
}

/// Begins the name of every family.
pub(super) const PREFIX: &str = "iotop_plus_";

/// Names and values of labels; values need not be sanitized.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

/// A text under construction.
pub(super) struct MetricsText {
    out: String,
    format: MetricsFormat,
}

impl MetricsText {
    pub(super) fn new(format: MetricsFormat) -> Self {
        Self { out: String::with_capacity(16 << 10), format }
    }

    /// Writes the lines before a family's samples.
    pub(super) fn begin(&mut self, family: &MetricFamily) {
        let MetricFamily { name, kind, unit, help } = *family;
        let is_open = self.format == MetricsFormat::OpenMetrics;
        let suffix = match kind {
            MetricKind::Counter if !is_open => "_total",
            MetricKind::Info if !is_open => "_info",
            _ => "",
        };
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Info if is_open => "info",
            MetricKind::Gauge | MetricKind::Info => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let _ = writeln!(self.out, "# HELP {PREFIX}{name}{suffix} {help}");
        let _ = writeln!(self.out, "# TYPE {PREFIX}{name}{suffix} {kind}");
        if is_open && !unit.is_empty() {
            let _ = writeln!(self.out, "# UNIT {PREFIX}{name} {unit}");
        }
    }

    /// Writes a sample of a counter, a gauge or an information.
    pub(super) fn sample(&mut self, family: &MetricFamily, labels: Labels<'_>, value: f64) {
        let suffix = match family.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        self.line(family.name, suffix, labels, None, value);
    }

    /// Writes a histogram: for each upper bound in seconds the number of values up to it, not those of lower bounds,
    /// and last the number of all longer ones.
    pub(super) fn histogram(&mut self, family: &MetricFamily, labels: Labels<'_>, counts: &[(f64, u64)], sum: f64) {
        let mut total = 0;
        for (bound, n) in counts {
            total += n;
            let bound = if bound.is_finite() { format!("{bound}") } else { "+Inf".into() };
            self.line(family.name, "_bucket", labels, Some(&bound), total as f64);
        }
        self.line(family.name, "_sum", labels, None, sum);
        self.line(family.name, "_count", labels, None, total as f64);
    }

    fn line(&mut self, name: &str, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: f64) {
        let out = &mut self.out;
        out.extend([PREFIX, name, suffix]);
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let mut separator = '{';
        for (label, text) in all {
            out.push(separator);
            out.push_str(label);
            out.push_str("=\"");
            push_escaped(out, text);
            out.push('"');
            separator = ',';
        }
        if separator == ',' {
            out.push('}');
        }
        let _ = writeln!(out, " {value}");
    }

    /// The text so far. [`MetricsText::finish`] ends it.
    pub(super) fn into_text(self) -> String {
        self.out
    }

    /// The whole text.
    pub(super) fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }
}

/// Appends the value of a label: sanitized, with backslash and quote escaped.
fn push_escaped(out: &mut String, text: &str) {
    for c in sanitize(text).chars() {
        if matches!(c, '\\' | '"') {
            out.push('\\');
        }
        out.push(c);
    }
}

/// Longest value of a label that a user may choose, in characters.
const MAX_LABEL: usize = 200;

/// A path for a label; of a long one its end.
pub(super) fn path_label(path: &str) -> String {
    match path.char_indices().rev().nth(MAX_LABEL - 1) {
        Some((at, _)) if at > 0 => format!("…{}", &path[at..]),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WAITS: MetricFamily =
        MetricFamily { name: "waits_seconds", kind: MetricKind::Counter, unit: "seconds", help: "Time waited." };

    /// Reads the value of a label as Prometheus does. Returns it and what follows the closing quote.
    fn unescape(text: &str) -> (String, &str) {
        let (mut value, mut chars) = (String::new(), text.char_indices());
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return (value, &text[at + 1..]),
                '\\' => match chars.next().unwrap().1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("no escape: \\{c}"),
                },
                c => value.push(c),
            }
        }
        panic!("no closing quote")
    }

    #[test]
    fn both_formats_name_a_counter_as_they_must() {
        let text = |format| {
            let mut text = MetricsText::new(format);
            text.begin(&WAITS);
            text.sample(&WAITS, &[("program", "a\"b\\c")], 1.5);
            text.finish()
        };
        assert_eq!(
            text(MetricsFormat::OpenMetrics),
            "# HELP iotop_plus_waits_seconds Time waited.\n# TYPE iotop_plus_waits_seconds counter\n\
             # UNIT iotop_plus_waits_seconds seconds\niotop_plus_waits_seconds_total{program=\"a\\\"b\\\\c\"} 1.5\n# EOF\n"
        );
        assert_eq!(
            text(MetricsFormat::Prometheus),
            "# HELP iotop_plus_waits_seconds_total Time waited.\n# TYPE iotop_plus_waits_seconds_total counter\n\
             iotop_plus_waits_seconds_total{program=\"a\\\"b\\\\c\"} 1.5\n"
        );
    }

    #[test]
    fn buckets_are_cumulative_and_end_with_all() {
        let family = MetricFamily { kind: MetricKind::Histogram, ..WAITS };
        let mut text = MetricsText::new(MetricsFormat::OpenMetrics);
        text.histogram(&family, &[("device", "sda")], &[(0.001, 3), (0.5, 0), (f64::INFINITY, 2)], 7.25);
        assert_eq!(
            text.into_text(),
            "iotop_plus_waits_seconds_bucket{device=\"sda\",le=\"0.001\"} 3\n\
             iotop_plus_waits_seconds_bucket{device=\"sda\",le=\"0.5\"} 3\n\
             iotop_plus_waits_seconds_bucket{device=\"sda\",le=\"+Inf\"} 5\n\
             iotop_plus_waits_seconds_sum{device=\"sda\"} 7.25\niotop_plus_waits_seconds_count{device=\"sda\"} 5\n"
        );
    }

    #[test]
    fn of_a_long_path_the_end_is_kept() {
        let long = format!("/{}/web", "ä".repeat(300));
        let label = path_label(&long);
        assert_eq!((label.chars().count(), label.starts_with("…ä"), label.ends_with("/web")), (201, true, true));
        assert_eq!(path_label("/web"), "/web");
    }

    proptest! {
        #[test]
        fn a_hostile_name_stays_one_value_on_one_line(name in proptest::collection::vec(any::<u8>(), 0..64)) {
            let name = String::from_utf8_lossy(&name);
            let mut text = MetricsText::new(MetricsFormat::Prometheus);
            text.sample(&WAITS, &[("program", &name), ("cgroup", "x")], 1.0);
            let text = text.into_text();
            prop_assert_eq!(text.matches('\n').count(), 1);
            let (value, rest) = unescape(text.strip_prefix("iotop_plus_waits_seconds_total{program=\"").unwrap());
            prop_assert_eq!(value, sanitize(&*name));
            prop_assert_eq!(rest, ",cgroup=\"x\"} 1\n");
        }
    }
}
